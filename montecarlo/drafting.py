"""Draft trees of many cycles at once: the layered construction of `rheo_core.construction`, rows stacked.

Every pool has W = min(K, draft V) slots whatever is drawn, so the trees of a batch share one shape until they are
pruned: level d holds F_d * W nodes, F_0 = 1, F_{d+1} = min(K, F_d * W).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from montecarlo.keyed_random import TAIL, Uniforms, Words, child_codes, root_codes
from montecarlo.pairs import Batch, Ints
from montecarlo.pools import PoolSource
from rheo_core import Tree, TreeShape

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Trees:
    """Draft trees of B cycles: the fields of `rheo_core.Tree`, each [B, n] in rank order; `code` hashes slot paths."""

    token: Ints
    parent: Ints
    depth: Ints
    slot: Ints
    kind: Ints
    score: Batch
    code: Words

    def __len__(self) -> int:
        return len(self.token)

    def tree(self, cycle: int) -> Tree:
        """One of them in the reference's form."""
        fields = (self.token, self.parent, self.depth, self.slot, self.kind, self.score)
        return Tree(*(field[cycle] for field in fields))

    def tokens_to(self, cycles: Ints, nodes: Ints) -> Ints:
        """Tokens [n, d] from the root to `nodes` [n], all of one depth d."""
        path: list[Ints] = []
        while len(nodes) and nodes[0] >= 0:
            path.append(self.token[cycles, nodes])
            nodes = self.parent[cycles, nodes]
        return np.stack(path[::-1], axis=1) if path else np.zeros((len(nodes), 0), dtype=np.int64)

    def children(self, cycles: Ints, nodes: Ints, slots: int) -> Ints:
        """Rows [n, slots] of the children of `nodes` [n] (-1: root) by slot; -1 where a slot did not survive."""
        table = np.full((len(cycles), slots), -1, dtype=np.int64)
        found, column = np.nonzero(self.parent[cycles] == nodes[:, None])
        table[found, self.slot[cycles[found], column]] = column
        return table


@dataclass(frozen=True)
class _Level:
    """The nodes [B, n] of one depth, from left to right; `parent` counts from the first node of depth 1."""

    token: Ints
    parent: Ints
    slot: Ints
    kind: Ints
    score: Batch
    code: Words


def draft(source: PoolSource, prefixes: Ints, shape: TreeShape, uniforms: Uniforms, streams: Words) -> Trees:
    """Expand D levels below `prefixes` [B, L], K parents a level, and keep the R best nodes (appendix C.1)."""
    count = len(prefixes)
    contexts = prefixes[:, None, :]
    codes = root_codes(count)[:, None]
    parents = np.full((count, 1), -1, dtype=np.int64)
    scores: Batch | None = None
    levels: list[_Level] = []
    first = 0
    for depth in range(shape.depth):
        level = _expand(source, contexts, codes, parents, scores, uniforms, streams)
        levels.append(level)
        if depth + 1 < shape.depth:
            best = np.argsort(-level.score, axis=1, kind="stable")[:, : shape.width]
            token, above = _take(level.token, best), best // (level.token.shape[1] // contexts.shape[1])
            contexts = np.concatenate([np.take_along_axis(contexts, above[..., None], 1), token[..., None]], axis=2)
            codes, scores, parents = _take(level.code, best), _take(level.score, best), first + best
            first += level.token.shape[1]
    return _pruned(levels, shape.budget)


def _expand(
    source: PoolSource,
    contexts: Ints,
    codes: Words,
    parents: Ints,
    scores: Batch | None,
    uniforms: Uniforms,
    streams: Words,
) -> _Level:
    count, width, length = contexts.shape
    table, rows = source.at(contexts.reshape(count * width, length))
    u = uniforms.at(streams[:, None], TAIL, codes, 0).reshape(-1)
    pools = table.draw(rows, u)
    slots = pools.token.shape[1]
    score = pools.score.reshape(count, width, slots)
    if scores is not None:
        score = scores[:, :, None] * score
    slot = np.arange(slots)
    flat = (count, width * slots)
    return _Level(
        token=pools.token.reshape(flat),
        parent=np.repeat(parents, slots, axis=1),
        slot=np.broadcast_to(np.tile(slot, width), flat),
        kind=pools.kind.reshape(flat),
        score=score.reshape(flat),
        code=child_codes(codes[:, :, None], slot).reshape(flat),
    )


def _pruned(levels: list[_Level], budget: int) -> Trees:
    score = np.concatenate([level.score for level in levels], axis=1)
    order = np.argsort(-score, axis=1, kind="stable")
    kept = order[:, :budget]
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    parent = _take(np.concatenate([level.parent for level in levels], axis=1), kept)
    ranked = np.where(parent < 0, -1, _take(place, np.maximum(parent, 0)))
    depth = np.repeat(np.arange(1, len(levels) + 1), [level.token.shape[1] for level in levels])
    return Trees(
        token=_take(np.concatenate([level.token for level in levels], axis=1), kept),
        parent=ranked,
        depth=depth[kept],
        slot=_take(np.concatenate([level.slot for level in levels], axis=1), kept),
        kind=_take(np.concatenate([level.kind for level in levels], axis=1), kept),
        score=_take(score, kept),
        code=_take(np.concatenate([level.code for level in levels], axis=1), kept),
    )


def _take(array: NDArray[T], places: Ints) -> NDArray[T]:
    return np.take_along_axis(array, places, axis=1)
