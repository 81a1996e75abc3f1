"""Draft trees as boxes and curves in pixels: what a page shows without any other file, script or library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width

from exact.enumeration.rationals import fraction
from exact.report.layout import KINDS, tree_layout
from rheo_core import Tree
from rheo_core.tree import ROOT

CHARACTER, BOX, LINE, BRANCH, MARGIN = 6.7, 20.0, 27.0, 52.0, 6.0
"""Pixels: a character of the token font, a box's height, the height of a line, the length of a branch, the border."""
LONGEST = 18
"""Characters of a token's text on a box."""


@dataclass(frozen=True)
class SvgBox:
    """One node: its left upper corner, its size, the height of its middle, and what is written on and before it."""

    x: float
    middle: float
    width: float
    kind: str
    label: str
    score: str
    height: float = BOX

    @property
    def y(self) -> float:
        """The upper edge."""
        return self.middle - self.height / 2


@dataclass(frozen=True)
class TreePicture:
    """A tree from left to right: leads are square boxes, the sampled token is round, fills are empty."""

    width: float
    height: float
    root: tuple[float, float]
    boxes: list[SvgBox]
    branches: list[str]
    said: str


def shown_token(token: int, names: Sequence[str] | None = None) -> str:
    """Give a token's id, and its text where it is known, with what cannot be seen made visible.

    >>> shown_token(1, ["a", " the" + chr(10)]), shown_token(7)
    ('1 ␣the\\\\n', '7')
    """
    if names is None or not 0 <= token < len(names):
        return str(token)
    seen = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in names[token])
    name = "".join("␣" if each == " " else each for each in seen)
    return f"{token} {name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'}"


def tree_picture(tree: Tree, names: Sequence[str] | None = None) -> TreePicture:
    """Give the picture of one tree; its branches are SVG paths from a parent's right edge to a child's left one."""
    labels = [shown_token(token, names) for token in tree.token.tolist()]
    widths = [max(CHARACTER * _columns(label) + 10, BOX + 4) for label in labels]
    layout = tree_layout(tree.parent.tolist(), tree.slot.tolist(), gap=0.25)
    left = [MARGIN + 4.0]
    for depth in range(1, layout.columns):
        above = [width for width, at in zip(widths, layout.depth, strict=True) if at == depth - 1]
        left.append(left[-1] + max(above, default=0) + BRANCH)

    def middle(row: int) -> float:
        return MARGIN + BOX / 2 + LINE * layout.place(row)[1]

    boxes, branches = [], []
    for row, (label, width, score) in enumerate(zip(labels, widths, tree.score.tolist(), strict=True)):
        parent = int(tree.parent[row])
        box = SvgBox(left[layout.depth[row]], middle(row), width, KINDS[int(tree.kind[row])], label, _score(score))
        start = left[0] if parent == ROOT else left[layout.depth[parent]] + widths[parent]
        bend, high = (start + box.x) / 2, middle(parent)
        branches.append(f"M{start:.1f} {high:.1f}C{bend:.1f} {high:.1f} {bend:.1f} {box.middle:.1f} "
                        f"{box.x:.1f} {box.middle:.1f}")  # fmt: skip
        boxes.append(box)
    width = max((box.x + box.width for box in boxes), default=left[0] + 4) + MARGIN
    said = "; ".join(f"{box.label} ({box.kind})" for box in boxes)
    root = left[0], middle(ROOT)
    return TreePicture(width, 2 * MARGIN + BOX + LINE * layout.lines, root, boxes, branches, said)


def _score(score: Any) -> str:
    """Give the path score above the end of a branch."""
    exact = str(fraction(score))
    return exact if len(exact) <= 6 else f"{float(score):.3g}"


def _columns(label: str) -> int:
    """Columns of a line of text in a font of one width: wide characters take two."""
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in label)
