"""Where the nodes of a draft tree stand in its picture, and what is written on them.

A tree reads from left to right, as its text does: a column for each depth, a line for each leaf, siblings in slot order
from top to bottom. Lengths are points (1/72 inch) at the size of print; no two boxes overlap, whatever the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from numbers import Rational
from typing import Any

from exact.report.layout import tree_layout
from rheo_core import InvalidInput, Tree
from rheo_core.tree import ROOT

Names = Sequence[str] | Mapping[int, str] | Callable[[int], str] | None
"""How token ids are called: a list, a mapping or a function (a tokenizer's `decode`); None: the ids."""

FONT = "DejaVu Sans"  # comes with matplotlib, so widths are the same everywhere
TOKEN, NUMBER, TITLE, HEADING = 8.5, 6.5, 9.0, 11.0  # font sizes
BOX, LINE, BETWEEN, BRANCH = 15.0, 20.0, 5.0, 46.0  # box height, line height, gap between families, branch length
PADDING, MARGIN = 5.0, 8.0
LONGEST = 24  # characters of a token's name; a longer one is cut in the middle


@dataclass(frozen=True)
class Box:
    """One node's box: its left edge, the height of its middle, its width, its name and the number on its branch."""

    x: float
    y: float
    width: float
    name: str
    number: str


@dataclass(frozen=True)
class Layout:
    """The boxes of a tree in rank order, the target's own token behind them where there is one, the root, the size."""

    boxes: tuple[Box, ...]
    parents: tuple[int, ...]
    root: tuple[float, float]
    width: float
    height: float


def arrange(tree: Tree, names: Names = None, accepted: Sequence[int] = (), emitted: int | None = None) -> Layout:
    """Lay out a tree; `emitted`, the target's own token, hangs below the last accepted row.

    Raises `InvalidInput` where the accepted rows are not a path from the root.
    """
    parents = tree.parent.tolist()
    for parent, child in pairwise([ROOT, *accepted]):
        if not 0 <= child < len(tree) or parents[child] != parent:
            raise InvalidInput("accepted", list(accepted), f"rows of a path from the root of {len(tree)} nodes")
    tokens, slots = tree.token.tolist(), tree.slot.tolist()
    numbers = [number_text(score) for score in tree.score.tolist()]
    if emitted is not None:  # one more row, behind all slots of the row at which the text leaves the tree
        tokens, numbers = [*tokens, emitted], [*numbers, ""]
        parents, slots = [*parents, accepted[-1] if accepted else ROOT], [*slots, max(slots, default=0) + 1]
    flat = tree_layout(parents, slots, gap=BETWEEN / LINE)
    labels = [token_name(token, names) for token in tokens]
    widths = [max(text_width(label, TOKEN) + 2 * PADDING, BOX) for label in labels]
    widest = [0.0] * flat.columns
    for depth, width in zip(flat.depth, widths, strict=True):
        widest[depth] = max(widest[depth], width)
    columns = [MARGIN + 3]
    for width in widest[:-1]:
        columns.append(columns[-1] + width + BRANCH)
    top = BOX / 2 + 2
    heights = [top + line * LINE for line in flat.line]
    boxes = tuple(map(Box, [columns[depth] for depth in flat.depth], heights, widths, labels, numbers))
    root = (columns[0], top + flat.root * LINE)
    return Layout(boxes, tuple(parents), root, columns[-1] + widest[-1] + MARGIN, 2 * top + flat.lines * LINE)


def token_name(token: int, names: Names) -> str:
    """Give a token as it is written on its box: spaces and line breaks visible, cut in the middle where it is long.

    >>> token_name(1, ["a", " the"]), token_name(1, None), token_name(0, {0: "two" + chr(10) + "lines"})
    ('␣the', '1', 'two\\\\nlines')
    """
    try:
        name = str(token) if names is None else str(names(token) if callable(names) else names[token])
    except (IndexError, KeyError):
        raise InvalidInput("names", names, f"a name for token {token}") from None
    if not name:
        return "''"
    inner = name.strip(" ")
    start, end = (name.index(inner), len(name) - name.index(inner) - len(inner)) if inner else (len(name), 0)
    shown = "␣" * start + visible(inner) + "␣" * end
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]}…{shown[-(LONGEST // 2 - 1) :]}"


def number_text(value: Any) -> str:
    """Give a number as it is written on a picture: a short fraction as it is, else three digits.

    >>> from fractions import Fraction
    >>> number_text(Fraction(3, 10)), number_text(Fraction(1, 3) ** 9), number_text(1)
    ('3/10', '5.08e-05', '1')
    """
    if isinstance(value, Rational) and int(value.denominator) < 1000:
        return str(value)
    return f"{float(value):.3g}"


def visible(text: str) -> str:
    """Give the text with all that cannot be seen, or that the font lacks, spelled out."""
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    """Give the character itself where the font has it and it can be seen."""
    if character == " " or (character.isprintable() and _in_font(ord(character))):
        return character
    return character.encode("unicode_escape").decode()


@cache
def _in_font(code: int) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return bool(get_font(findfont(FontProperties(family=FONT))).get_char_index(code))


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width in points of a line of text, taken as it stands (no mathematics between dollar signs)."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FONT, size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])
