"""Where the nodes of a draft tree stand when it is drawn, for every kind of picture alike.

A tree reads from left to right, as its text does: depths are columns, leaves are lines in slot order, a parent stands
half-way between its first and its last child. Nothing here knows about ink: pictures scale these coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rheo_core import FILL, LEAD, SAMPLED
from rheo_core.tree import ROOT

KINDS = {LEAD: "lead", SAMPLED: "sampled", FILL: "fill"}
"""What a node is called by its kind."""


@dataclass(frozen=True)
class TreeLayout:
    """Coordinates of a tree of n nodes.

    `line[i]` is the height of row i, from 0 (the first leaf) downwards, at least one unit between nodes of a column;
    `depth[i]` is its column, 1..`columns` - 1. The root stands at `root` in column 0; `lines` is the height of the
    whole.
    """

    line: tuple[float, ...]
    depth: tuple[int, ...]
    root: float
    lines: float

    @property
    def columns(self) -> int:
        """The number of columns, the root's included."""
        return 1 + max(self.depth, default=0)

    def place(self, node: int) -> tuple[int, float]:
        """(column, line) of a row; of the root for -1."""
        return (0, self.root) if node == ROOT else (self.depth[node], self.line[node])


def tree_layout(parents: Sequence[int], slots: Sequence[int], gap: float = 0) -> TreeLayout:
    """Give the layout of the tree whose row i hangs below row `parents[i]` (-1: the root), parents before children.

    Siblings stand in the order of their `slots`; neighbouring leaves of different parents stand `gap` further apart.

    >>> layout = tree_layout([-1, -1, 1], [1, 0, 0])
    >>> layout.line, layout.depth, layout.root, layout.lines, layout.columns
    ((1.0, 0.0, 0.0), (1, 1, 2), 0.5, 1.0, 3)
    """
    below: dict[int, list[int]] = {}
    for row in sorted(range(len(parents)), key=slots.__getitem__):
        below.setdefault(parents[row], []).append(row)
    line: dict[int, float] = {}
    here, family = 0.0, ROOT
    waiting = [ROOT]
    while waiting:  # leaves in the order of reading
        row = waiting.pop()
        if row in below:
            waiting += reversed(below[row])
            continue
        parent = parents[row] if row != ROOT else ROOT
        if line:
            here += 1 if parent == family else 1 + gap
        line[row], family = here, parent
    depth: list[int] = []
    for parent in parents:
        depth.append(1 if parent == ROOT else depth[parent] + 1)
    for row in (*reversed(range(len(parents))), ROOT):  # children before their parents
        if row in below:
            line[row] = (line[below[row][0]] + line[below[row][-1]]) / 2
    return TreeLayout(tuple(line[row] for row in range(len(parents))), tuple(depth), line[ROOT], here)
