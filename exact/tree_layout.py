"""Where the nodes of a draft tree stand when it is drawn, for every kind of picture alike.

Depths are rows from the top, leaves stand side by side in slot order, a parent stands over the middle of its children.
Nothing here knows about ink: pictures scale these coordinates and add their own marks.
"""

from __future__ import annotations

from dataclasses import dataclass

from rheo_core.tree import ROOT, Tree


@dataclass(frozen=True)
class TreeLayout:
    """Coordinates of a tree of n nodes, in rank order.

    `x[i]` is the place of row i from 0 (the first leaf) to `width` - 1 (the last), one unit between leaves; its row from
    the top is its `depth[i]`, 1..`height`. `root` is the x of the root, which stands at depth 0. `edges` are
    (parent, child) rows, -1 the root.
    """

    x: tuple[float, ...]
    depth: tuple[int, ...]
    root: float
    width: int
    height: int
    edges: tuple[tuple[int, int], ...]

    def place(self, node: int) -> tuple[float, int]:
        """(x, depth) of a row; of the root for -1."""
        return (self.root, 0) if node == ROOT else (self.x[node], self.depth[node])


def tree_layout(tree: Tree) -> TreeLayout:
    """The layout of one tree.

    >>> import numpy as np
    >>> token, parent, depth, slot, kind = np.array([[4, 2, 7], [-1, -1, 1], [1, 1, 2], [0, 1, 0], [0, 1, 0]])
    >>> layout = tree_layout(Tree(token, parent, depth, slot, kind, np.array([0.5, 0.25, 0.125])))
    >>> layout.x, layout.root, layout.width, layout.height, layout.edges
    ((0.0, 1.0, 1.0), 0.5, 2, 2, ((-1, 0), (-1, 1), (1, 2)))
    """
    children: dict[int, list[int]] = {}
    for node in sorted(range(len(tree)), key=tree.slot.tolist().__getitem__):
        children.setdefault(int(tree.parent[node]), []).append(node)
    x: dict[int, float] = {}
    leaves = 0
    waiting = [(ROOT, False)]
    while waiting:  # children before their parent, from left to right
        node, seen = waiting.pop()
        below = children.get(node, [])
        if not below:
            x[node] = float(leaves)
            leaves += 1
        elif seen:
            x[node] = (x[below[0]] + x[below[-1]]) / 2
        else:
            waiting += [(node, True), *((child, False) for child in reversed(below))]
    depth = tuple(tree.depth.tolist())
    edges = tuple((parent, node) for node, parent in enumerate(tree.parent.tolist()))
    return TreeLayout(tuple(x[node] for node in range(len(tree))), depth, x[ROOT], leaves, max(depth, default=0), edges)
