"""Draft trees: their shape, their arrays, and the one key by which nodes are ranked.

Ranks are slots, never tokens: score falling, then depth rising, then left to right (parents in rank order, siblings in
slot order). The same stable key chooses which nodes are expanded and which survive pruning; a tie broken by a node's
own token id makes the method lossy.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheo_core.checks import check_count
from rheo_core.laws import Row

LEAD, SAMPLED, FILL = 0, 1, 2
ROOT = -1

SlotPath = tuple[int, ...]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TreeShape:
    """Width K (slots a parent, parents expanded a level), depth D (levels), budget R (drafted nodes kept, no root).

    >>> TreeShape(3, 2, 0)
    Traceback (most recent call last):
    rheo_core.checks.InvalidInput: budget: got 0, expected an int of at least 1
    """

    width: int
    depth: int
    budget: int

    def __post_init__(self) -> None:
        for name in ("width", "depth", "budget"):
            object.__setattr__(self, name, check_count(name, getattr(self, name), 1))


def rank(scores: Sequence[Any] | Row) -> list[int]:
    """Positions by falling score, equal scores in the order given (which is depth, then left to right).

    >>> rank([0.25, 0.5, 0.25, 0.5])
    [1, 3, 0, 2]
    """
    return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)


@dataclass(frozen=True, eq=False)
class Tree:
    """A drafted tree of n nodes in rank order, as a structure of arrays [n].

    `token` target ids; `parent` row of the parent, -1 for the root; `depth` 1..D; `slot` from 0; `kind` 0 lead,
    1 sampled, 2 fill; `score` path scores in the rows' arithmetic. Two trees are equal when all six arrays are.
    """

    token: Ints
    parent: Ints
    depth: Ints
    slot: Ints
    kind: Ints
    score: Row

    def __len__(self) -> int:
        return len(self.token)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.key() == other.key() and self.score.tolist() == other.score.tolist()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> Hashable:
        """Give the tree's slots, kinds and tokens in rank order: equal iff two trees are one class (appendix C.3)."""
        arrays = (self.parent, self.slot, self.kind, self.token)
        return tuple(tuple(array.tolist()) for array in arrays)

    def children(self, node: int) -> list[int]:
        """Rows of the children of `node` (-1: the root) in slot order."""
        return sorted(np.flatnonzero(self.parent == node).tolist(), key=lambda child: int(self.slot[child]))

    def path(self, node: int) -> SlotPath:
        """Slots from the root to `node`; () for the root."""
        return () if node == ROOT else (*self.path(int(self.parent[node])), int(self.slot[node]))

    def tokens_to(self, node: int) -> tuple[int, ...]:
        """Tokens from the root to `node`; () for the root."""
        return () if node == ROOT else (*self.tokens_to(int(self.parent[node])), int(self.token[node]))

    def first(self, budget: int) -> Tree:
        """Prune_R (appendix C.1): the `budget` best nodes."""
        arrays = (self.token, self.parent, self.depth, self.slot, self.kind, self.score)
        return Tree(*(array[:budget] for array in arrays))


class Nodes:
    """A tree under construction: nodes are appended, parents before children, and known by their row."""

    def __init__(self) -> None:
        self.token: list[int] = []
        self.parent: list[int] = []
        self.depth: list[int] = []
        self.slot: list[int] = []
        self.kind: list[int] = []
        self.score: list[Any] = []
        self._prefixes: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return len(self.token)

    def append(self, parent: int, slot: int, kind: int, token: int, score: Any) -> int:
        """Add a node under `parent` (-1: the root) with its own path score; its row."""
        self.token.append(token)
        self.parent.append(parent)
        self.slot.append(slot)
        self.kind.append(kind)
        self.score.append(score)
        root = parent == ROOT
        self.depth.append(1 if root else self.depth[parent] + 1)
        self._prefixes.append((token,) if root else (*self._prefixes[parent], token))
        return len(self.token) - 1

    def depth_of(self, node: int) -> int:
        """Depth of a row; 0 for the root."""
        return 0 if node == ROOT else self.depth[node]

    def tokens_to(self, node: int) -> tuple[int, ...]:
        """Tokens from the root to `node`; () for the root."""
        return () if node == ROOT else self._prefixes[node]

    def path(self, node: int) -> SlotPath:
        """Slots from the root to `node`; () for the root."""
        slots = []
        while node != ROOT:
            slots.append(self.slot[node])
            node = self.parent[node]
        return tuple(reversed(slots))

    def copy(self) -> Nodes:
        """Give an independent copy."""
        twin = object.__new__(Nodes)
        twin.token, twin.parent, twin.depth = self.token[:], self.parent[:], self.depth[:]
        twin.slot, twin.kind, twin.score = self.slot[:], self.kind[:], self.score[:]
        twin._prefixes = self._prefixes[:]
        return twin

    def tree(self, dtype: np.dtype[Any], order: Sequence[int] | None = None) -> Tree:
        """Give the nodes as a `Tree`, in the given order of rows (None: as they were appended); scores in `dtype`."""
        columns = [self.token, self.parent, self.depth, self.slot, self.kind]
        scores = self.score
        if order is not None:
            row_of = {node: row for row, node in enumerate(order)} | {ROOT: ROOT}
            columns = [[column[node] for node in order] for column in columns]
            columns[1] = [row_of[parent] for parent in columns[1]]
            scores = [self.score[node] for node in order]
        score = np.fromiter(scores, dtype=dtype, count=len(scores))
        token, parent, depth, slot, kind = np.array(columns, dtype=np.int64)
        return Tree(token, parent, depth, slot, kind, score)
