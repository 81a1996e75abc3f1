"""The layered construction on many draws at once: a twin of `rheo_core.construction.layered` on whole numbers.

A class is handed to it as the draws that it holds; all other draws are filled in, and the tree that comes out must be
the class's. Scores are numbers of exact scores, so ranks are exact. The twin is held to the reference in the tests, and
each certificate that uses it hands a part of its classes to the reference itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exact.enumeration.class_table import ABSENT, ClassTable
from exact.enumeration.context_states import State, StepTable
from exact.enumeration.exact_order import Key
from exact.enumeration.growth_graph import PoolTables
from rheo_core import TreeShape
from rheo_core.tree import FILL, ROOT, SAMPLED

Array = NDArray[Any]
MOST_CELLS = 40_000_000
"""Cells of the table of products; a model of more scores and factors is left to the reference."""

BLOCK = 512  # classes at once: what a core's cache holds
LAST = np.iinfo(np.int32).max // 2  # the rank of what is absent


class TooManyScores(Exception):
    """More scores than the twin's tables hold."""


class LayeredBatch:
    """The layered construction for the classes of one table; number 0 of a score, a factor and a code is "absent"."""

    def __init__(self, tables: PoolTables, shape: TreeShape, found: ClassTable) -> None:
        self.tables, self.shape, self.found = tables, shape, found
        self.slots = min(shape.width, len(tables.drafter.pair.q(tables.states.prefix(0)).score))
        if (self.slots + 1) ** shape.depth >= 2**62:
            raise TooManyScores
        self._numbers: dict[Key, int] = {key: number for number, key in enumerate(found.keys, 1)}
        self._root = self._numbers.setdefault(found.scores.root, len(found.keys) + 1)
        self._keys: list[Key] = list(self._numbers)
        self._factors: dict[Any, int] = {}
        self._products: Array = np.full((1, 1), -1, dtype=np.int32)
        self._rank = np.full(1, LAST, dtype=np.int32)
        size = 1 + max(found.token.max(initial=0), *self._draft_tokens())
        self._y = np.full((0, size), -1, dtype=np.int32)  # [state, target id] -> place among the draws
        self._after = StepTable(tables.states, size)
        self._token = np.zeros((0, 1, self.slots), dtype=np.int32)  # [state, place of Y, slot]
        self._factor = np.zeros((0, 1, self.slots), dtype=np.int32)
        self._filling = np.zeros((0, 2), dtype=np.int32)  # places of the most and the least probable Y
        self._add_state(0)

    def _draft_tokens(self) -> list[int]:
        pair = self.tables.drafter.pair
        return [len(pair.q(self.tables.states.prefix(0)).score) - 1] if pair.ids is None else list(map(int, pair.ids))

    def moved(self, first: int, last: int) -> Array:
        """Which of the classes `first`..`last` - 1 come out as another tree under one of the two fillings."""
        found, rows = self.found, slice(first, last)
        parent, slot, kind, token = found.parent[rows], found.slot[rows], found.kind[rows], found.token[rows]
        code = np.zeros(parent.shape, dtype=np.int64)
        above = np.zeros_like(code)  # the code of each node's parent
        for node in range(parent.shape[1]):
            held = np.take_along_axis(code, np.maximum(parent[:, node : node + 1], 0), 1)[:, 0]
            above[:, node] = np.where(parent[:, node] == ROOT, 0, held)
            code[:, node] = np.where(kind[:, node] == ABSENT, 0, above[:, node] * (self.slots + 1) + slot[:, node] + 1)
        absent = kind == ABSENT
        drawn = kind == SAMPLED
        most = max(1, int(drawn.sum(1).max(initial=0)))
        first_drawn = np.argsort(~drawn, axis=1, kind="stable")[:, :most]
        has = np.take_along_axis(drawn, first_drawn, 1)
        places = np.where(has, np.take_along_axis(above, first_drawn, 1), -1)
        tokens = np.take_along_axis(token, first_drawn, 1)
        wanted = code, np.where(absent, 0, token), np.where(absent, 0, found.score[rows] + 1)
        wrong = np.zeros(last - first, dtype=bool)
        for filling in (0, 1):
            built = self._layered(places, tokens, filling)
            for got, due in zip(built, wanted, strict=True):
                wrong |= (got[:, : due.shape[1]] != due).any(axis=1)
        return wrong

    def first_moved(self, tick: Callable[[int], None] = lambda done: None) -> int | None:
        """The first class that moves, by its number; `tick(classes)` after each block."""
        for start in range(0, len(self.found), BLOCK):
            end = min(start + BLOCK, len(self.found))
            wrong = np.flatnonzero(self.moved(start, end))
            if len(wrong):
                return start + int(wrong[0])
            tick(end)
        return None

    def _layered(self, places: Array, tokens: Array, filling: int) -> tuple[Array, Array, Array]:
        """(code of the slot path, token, number of the score) [classes, R] of the R best nodes in rank order."""
        count, slots, width, depth = len(places), self.slots, self.shape.width, self.shape.depth
        state = np.zeros((count, 1), dtype=np.int64)
        score = np.full((count, 1), self._root, dtype=np.int64)
        code = np.zeros((count, 1), dtype=np.int64)
        levels: list[tuple[Array, Array, Array]] = []
        for level in range(1, depth + 1):
            hit = code[:, :, None] == places[:, None, :]
            held = np.take_along_axis(tokens, hit.argmax(2), 1)
            y = np.where(hit.any(2), self._y[state, held], self._filling[state, filling])
            token = self._token[state, y].reshape(count, -1)
            below = self._times(score[:, :, None], self._factor[state, y]).reshape(count, -1)
            path = (code[:, :, None] * (slots + 1) + np.arange(1, slots + 1)).reshape(count, -1)
            levels.append((np.where(below == 0, 0, path), np.where(below == 0, 0, token), below))
            if level < depth:
                best = self._best(below, width)
                parents = np.repeat(state, slots, axis=1)
                state, token, score, code = (
                    np.take_along_axis(column, best, 1) for column in (parents, token, below, path)
                )
                state = self._step(state, token, score)
                code = np.where(score == 0, -2, code)
        columns = [np.concatenate(each, axis=1) for each in zip(*levels, strict=True)]
        kept = self._best(columns[2], self.shape.budget)
        code, token, score = (np.take_along_axis(column, kept, 1) for column in columns)
        short = self.shape.budget - kept.shape[1]
        pad = ((0, 0), (0, max(0, short)))
        return np.pad(code, pad), np.pad(token, pad), np.pad(score, pad)

    def _best(self, scores: Array, most: int) -> Array:
        """Positions of the best `most` columns in rank order, equal scores by position: a column's place is its key."""
        size = scores.shape[1]
        order = self._rank[scores].astype(np.int64) * size + np.arange(size)
        best: Array = np.sort(order, axis=1)[:, :most] % size
        return best

    def _times(self, scores: Array, factors: Array) -> Array:
        """Numbers of the products of scores and factors."""
        self._fit()
        found = self._products[scores, factors]
        if (found < 0).any():
            pairs = np.stack(np.broadcast_arrays(scores, factors), -1)[found < 0]
            values = list(self._factors)
            for number, factor in np.unique(pairs, axis=0).tolist():
                if number and factor:
                    key = self.found.scores.times(self._keys[number - 1], values[factor - 1])
                    product = self._numbers.setdefault(key, len(self._keys) + 1)
                    if product > len(self._keys):
                        self._keys.append(key)
                self._products[number, factor] = product if number and factor else 0
            found = self._products[scores, factors]
        self._fit()
        return found

    def _fit(self) -> None:
        """Make room for all scores and factors, and rank the scores."""
        need = len(self._keys) + 1, len(self._factors) + 1
        have = self._products.shape
        if need[0] > have[0] or need[1] > have[1]:
            size = tuple(max(old, 2 * new if new > old else 0) for new, old in zip(need, have, strict=True))
            if size[0] * size[1] > MOST_CELLS:
                raise TooManyScores
            grown = np.full(size, -1, dtype=np.int32)
            grown[: have[0], : have[1]] = self._products
            self._products = grown
        if len(self._rank) != need[0]:
            self._rank = np.full(need[0], LAST, dtype=np.int32)
            self._rank[1 + np.array(sorted(range(len(self._keys)), key=self._keys.__getitem__))] = range(
                len(self._keys)
            )

    def _step(self, state: Array, token: Array, score: Array) -> Array:
        """The states below tokens; what is absent stays where it is."""
        found = self._after.after(state, token, score != 0)
        while len(self._token) <= int(found.max()):
            self._add_state(len(self._token))
        return found

    def _add_state(self, state: State) -> None:
        table = self.tables.at(state)
        draws = [token for token, _ in table.draws]
        rows = [table.first] if not draws else [self._slots_after(state, y) for y in draws]
        token, factor = np.zeros((2, len(rows), self.slots), dtype=np.int32)
        for place, row in enumerate(rows):
            for slot, _, each, score in row:
                token[place, slot] = each
                factor[place, slot] = self._factors.setdefault(score, len(self._factors) + 1)
        y = np.full((1, self._y.shape[1]), -1, dtype=np.int32)
        y[0, [self.tables.target_id(each) for each in draws]] = range(len(draws))
        shares = [share for _, share in table.draws] or [0]
        filling = [shares.index(max(shares)), shares.index(min(shares))]
        self._y, self._filling = np.concatenate([self._y, y]), np.concatenate([self._filling, [filling]])
        self._token, self._factor = _stacked(self._token, token), _stacked(self._factor, factor)

    def _slots_after(self, state: State, y: int) -> list[tuple[int, int, int, Any]]:
        """The whole pool once Y is drawn."""
        table, token = self.tables.at(state), self.tables.target_id(y)
        first = [(slot, kind, token if kind == SAMPLED else each, q) for slot, kind, each, q in table.first]
        return first + [(slot, FILL, each, q) for slot, each, q in table.fills(y)]


def _stacked(rows: Array, row: Array) -> Array:
    """Rows [states, places, slots] with one more state, all padded to the most places."""
    most = max(rows.shape[1], row.shape[0])
    padded = [np.pad(each, ((0, 0), (0, most - each.shape[1]), (0, 0))) for each in (rows, row[None])]
    stacked: Array = np.concatenate(padded)
    return stacked
