"""Where the nodes of a draft tree stand in its picture, and what is written on them.

A tree reads from left to right, as its text does: a column for each depth, a line for each leaf, siblings in slot order
from top to bottom. Lengths are points (1/72 inch) at the size of print; no two boxes overlap, whatever the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from exact.tree_layout import tree_layout
from rheo_core import InvalidInput, Tree
from rheo_core.tree import ROOT

Names = Sequence[str] | Mapping[int, str] | Callable[[int], str] | None
"""How token ids are called: a list, a mapping or a function (a tokenizer's `decode`); None: the ids."""

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
    numbers = [number_text(score) for score in tree.score.tolist()]
    if emitted is not None:
        tree = _with_own(tree, accepted[-1] if accepted else ROOT, emitted)
        numbers.append("")
    tokens, depths = tree.token.tolist(), tree.depth.tolist()
    labels = [token_name(token, names) for token in tokens]
    heights, root, height = _heights(tree)
    widths = [max(text_width(label, TOKEN) + 2 * PADDING, BOX) for label in labels]
    widest = [0.0] * (max(depths, default=0) + 1)
    for depth, width in zip(depths, widths, strict=True):
        widest[depth] = max(widest[depth], width)
    columns = [MARGIN + 3]
    for width in widest[:-1]:
        columns.append(columns[-1] + width + BRANCH)
    boxes = tuple(map(Box, [columns[depth] for depth in depths], heights, widths, labels, numbers))
    right = columns[-1] + widest[-1] + MARGIN
    return Layout(boxes, tuple(tree.parent.tolist()), (columns[0], root), right, height)


def _with_own(tree: Tree, end: int, token: int) -> Tree:
    """The tree with one more row: the target's own token, behind all slots of the row at which the text leaves it."""
    depth = 1 if end == ROOT else int(tree.depth[end]) + 1
    slot = max(tree.slot.tolist(), default=0) + 1
    row = (token, end, depth, slot, -1, 0)
    arrays = (tree.token, tree.parent, tree.depth, tree.slot, tree.kind, tree.score)
    return Tree(*(np.append(array, value) for array, value in zip(arrays, row, strict=True)))


def _heights(tree: Tree) -> tuple[list[float], float, float]:
    """Heights of the middles by row, of the root, and of the whole: leaves line by line, families a little apart."""
    flat = tree_layout(tree)
    parents = tree.parent.tolist()
    leaves = sorted(set(range(len(tree))) - set(parents), key=flat.x.__getitem__)
    lines = [BOX / 2 + 2]
    for above, below in pairwise(leaves):
        lines.append(lines[-1] + LINE + (BETWEEN if parents[above] != parents[below] else 0))
    heights = np.interp([*flat.x, flat.root], range(len(lines)), lines).tolist()
    return heights[:-1], heights[-1], lines[-1] + BOX / 2 + 2


def token_name(token: int, names: Names) -> str:
    """A token as it is written on its box: spaces and line breaks visible, cut in the middle where it is long.

    >>> token_name(1, ["a", " the"]), token_name(1, None), token_name(0, {0: "two" + chr(10) + "lines"})
    ('␣the', '1', 'two\\\\nlines')
    """
    try:
        name = str(token) if names is None else str(names(token) if callable(names) else names[token])
    except (IndexError, KeyError):
        raise InvalidInput("names", names, f"a name for token {token}") from None
    inner = name.strip(" ")
    start, end = (name.index(inner), len(name) - name.index(inner) - len(inner)) if inner else (len(name), 0)
    shown = "␣" * start + "".join(map(_visible, inner)) + "␣" * end
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]}…{shown[-(LONGEST // 2 - 1) :]}"


def number_text(value: Any) -> str:
    """A number as it is written on a picture: a short fraction as it is, else three digits.

    >>> number_text(Fraction(3, 10)), number_text(Fraction(1, 3) ** 9), number_text(1)
    ('3/10', '5.08e-05', '1')
    """
    if isinstance(value, Fraction) and value.denominator < 1000:
        return str(value)
    return f"{float(value):.3g}"


def _visible(character: str) -> str:
    """The character itself where the font has it and it can be seen."""
    if character == " " or (character.isprintable() and _in_font(ord(character))):
        return character
    return character.encode("unicode_escape").decode()


@cache
def _in_font(code: int) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return bool(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_char_index(code))


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Width in points of a line of text, taken as it stands (no mathematics between dollar signs)."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])
