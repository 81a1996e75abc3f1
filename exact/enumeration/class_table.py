"""All classes of one tree as columns of whole numbers: what 27,000 trees of 59 nodes fit into.

The same classes as `grown_classes` lists, from the same growth; a row becomes a `TreeClass` when it is read. Scores
stand as numbers of distinct exact scores, so that the checks of appendix C run over all classes at once.
"""

from __future__ import annotations

import random
import sys
from bisect import bisect, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from exact.enumeration.context_states import State, States
from exact.enumeration.exact_order import Key, Scores, told_apart
from exact.enumeration.growth_graph import LEAF, GraphPools, PoolTables
from exact.enumeration.rationals import ONE
from exact.enumeration.tree_classes import TreeClass
from rheo_core import TreeShape
from rheo_core.pool import Drafter
from rheo_core.tree import FILL, ROOT, SAMPLED, Tree

ABSENT = -2
"""In a column, where a tree has fewer nodes than the budget."""

POPS, BEAM = 20_000, 300  # growths followed for the most probable classes, and those of a beam where that is too few
BLOCK = 4096  # classes that stand as Python lists at once

_Slot = tuple[Key, int, int, int, int, int, Any]
"""Score, depth, parent's row, slot, kind, token, and the state below; of a sampled slot (parent's state, its score)."""


class ClassTable(Sequence[TreeClass]):
    """Classes as columns [classes, R]: parent, slot, kind, token (a target id) and score, the number of a key.

    `scores.value(keys[number])` is the exact score; `probabilities` are exact too.
    """

    def __init__(
        self, columns: Sequence[NDArray[Any]], probabilities: list[Any], scores: Scores, keys: list[Key]
    ) -> None:
        self.parent, self.slot, self.kind, self.token, self.score = columns
        self.probabilities = probabilities
        self.scores, self.keys = scores, keys

    def __len__(self) -> int:
        return len(self.probabilities)

    @overload
    def __getitem__(self, at: int) -> TreeClass: ...
    @overload
    def __getitem__(self, at: slice) -> list[TreeClass]: ...
    def __getitem__(self, at: int | slice) -> TreeClass | list[TreeClass]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        size = int((self.kind[at] != ABSENT).sum())
        token, parent, slot, kind = (
            column[at, :size].astype(np.int64) for column in (self.token, self.parent, self.slot, self.kind)
        )
        depth = np.zeros(size, dtype=np.int64)
        for node, above in enumerate(parent.tolist()):
            depth[node] = 1 if above == ROOT else depth[above] + 1
        score = np.empty(size, dtype=object)
        score[:] = [self.scores.value(self.keys[number]) for number in self.score[at, :size].tolist()]
        return TreeClass(Tree(token, parent, depth, slot, kind, score), self.probabilities[at])

    def __iter__(self) -> Iterator[TreeClass]:
        return (self[number] for number in range(len(self)))


def class_table(drafter: Drafter, shape: TreeShape, states: States) -> ClassTable:
    """[U]_R in the order of `grown_classes`; raises `NotGrowable` as that does."""
    tables = PoolTables(drafter, states)
    return told_apart(lambda scores: _Listing(tables, shape, scores).table())


def class_sample(drafter: Drafter, shape: TreeShape, states: States, count: int, seed: int) -> ClassTable:
    """Up to `count` distinct classes drawn by their probability, the same for the same seed."""
    tables = PoolTables(drafter, states)
    return told_apart(lambda scores: _Listing(tables, shape, scores).sampled(count, random.Random(seed)))


def likeliest_classes(drafter: Drafter, shape: TreeShape, states: States, count: int) -> ClassTable:
    """The `count` most probable classes, the most probable first, without listing the others.

    The same up to `POPS` growths; beyond, the most probable of a beam.
    """
    tables = PoolTables(drafter, states)
    return told_apart(lambda scores: _Listing(tables, shape, scores).likeliest(count))


def _drawn(rng: random.Random, table: GraphPools) -> int:
    """The place of a draw from q~, with its exact probability."""
    return bisect(table.cumulated, rng.randrange(table.cumulated[-1]))


@dataclass
class _Growing:
    """A growth: open slots in rank order, records of the nodes, how many nodes of each depth may be expanded."""

    slots: list[_Slot]
    records: list[int]
    room: list[int]

    def copy(self) -> _Growing:
        """An independent copy."""
        return _Growing(self.slots[:], self.records[:], self.room[:])


class _Listing:
    """One depth-first listing."""

    def __init__(self, tables: PoolTables, shape: TreeShape, scores: Scores) -> None:
        self.tables, self.shape, self.scores = tables, shape, scores
        self._records: dict[tuple[int, int, int, int, Key], int] = {}
        self._blocks: list[NDArray[np.int32]] = []

    def table(self, found: Iterable[tuple[list[int], Any]] | None = None) -> ClassTable:
        """The classes as columns; all of them, or those found."""
        lists: list[list[int]] = []
        probabilities = []
        for records, probability in self._classes() if found is None else found:
            probabilities.append(probability)
            lists.append(records)
            if len(lists) == BLOCK:
                self._keep(lists)
                lists = []
        self._keep(lists)
        keys: dict[Key, int] = {}
        about = [(*record[:4], keys.setdefault(record[4], len(keys))) for record in self._records]
        columns = np.array([*about, (ABSENT,) * 5]).T
        rows = np.concatenate(self._blocks) if self._blocks else np.empty((0, self.shape.budget), dtype=np.int32)
        least = [column.astype(np.min_scalar_type(-1 - int(np.abs(column).max()))) for column in columns]
        return ClassTable([column[rows] for column in least], probabilities, self.scores, list(keys))

    def _keep(self, lists: list[list[int]]) -> None:
        budget = self.shape.budget
        padded = [records + [-1] * (budget - len(records)) for records in lists]
        self._blocks.append(np.array(padded, dtype=np.int32).reshape(len(lists), budget))

    def sampled(self, count: int, rng: random.Random) -> ClassTable:
        """Distinct classes drawn by their probability, at most `count`; at most four times as many draws are made."""
        draw = partial(_drawn, rng)
        seen: dict[tuple[int, ...], Any] = {}
        for _ in range(4 * count):
            records, probability = next(self._classes(draw))
            seen.setdefault(tuple(records), probability)
            if len(seen) == count:
                break
        return self.table(([*records], probability) for records, probability in seen.items())

    def likeliest(self, count: int) -> ClassTable:
        """The `count` most probable classes, best first: a growth is only followed while it may be one of them.

        Where that takes more than `POPS` growths, the best of a beam, which need not be the most probable.
        """
        found: list[tuple[list[int], Any]] = []
        waiting: list[tuple[Any, int, int, _Growing, Any, GraphPools]] = []
        numbers = iter(range(sys.maxsize))

        def wait(growing: _Growing, probability: Any, table: GraphPools, place: int) -> None:
            """Wait with the next Y of a growth, by falling q~."""
            if place < len(table.ranked):
                share = probability * table.ranked[place][1]
                heappush(waiting, (-share, next(numbers), place, growing, probability, table))

        growing = self._start()
        table = self._grow(growing, None)
        if table is None:
            return self.table([(growing.records, ONE)])
        wait(growing, ONE, table, 0)
        while waiting and len(found) < count:
            if next(numbers) > POPS:
                return self.table(self._beam(count))
            negated, _, place, growing, probability, table = heappop(waiting)
            wait(growing, probability, table, place + 1)
            following = growing.copy()
            further = self._grow(following, table.ranked[place][0])
            if further is None:
                found.append((following.records, -negated))
                # a whole class holds what it was waited for with, so none that comes later holds more
            else:
                wait(following, -negated, further, 0)
        return self.table(found)

    def _beam(self, count: int) -> list[tuple[list[int], Any]]:
        """The best classes of a beam: of the growths of as many draws, the `BEAM` most probable go on."""
        found: list[tuple[list[int], Any]] = []
        going: list[tuple[Any, _Growing, GraphPools]] = []
        growing = self._start()
        if (table := self._grow(growing, None)) is not None:
            going = [(ONE, growing, table)]
        while going:
            choices = [
                (probability * share, growing, y)
                for probability, growing, table in going
                for y, share in table.ranked[:BEAM]
            ]
            going = []
            for probability, before, y in sorted(choices, key=itemgetter(0), reverse=True)[:BEAM]:
                growing = before.copy()
                table = self._grow(growing, y)
                if table is None:
                    found.append((growing.records, probability))
                else:
                    going.append((probability, growing, table))
        return sorted(found, key=itemgetter(1), reverse=True)[:count]

    def _classes(self, choose: Callable[[GraphPools], int] | None = None) -> Iterator[tuple[list[int], Any]]:
        """(node records in rank order, probability) of each class; with `choose`, of one class, by its choices."""
        waiting: list[tuple[_Growing, Any, int | None]] = [(self._start(), ONE, None)]
        while waiting:
            growing, probability, y = waiting.pop()
            while (table := self._grow(growing, y)) is not None:
                if choose is not None:
                    y, share = table.draws[choose(table)]
                else:
                    (y, share), *others = table.draws
                    for other, weight in reversed(others):
                        waiting.append((growing.copy(), probability * weight, other))
                probability *= share
            yield growing.records, probability

    def _start(self) -> _Growing:
        growing = _Growing([], [], [self.shape.width] * (self.shape.depth - 1) + [0])
        self._open(growing.slots, self.scores.root, 0, ROOT, 0)
        return growing

    def _grow(self, growing: _Growing, y: int | None) -> GraphPools | None:
        """Admit nodes, the first with token `y` if it is given, up to the next draw, whose pool is returned."""
        budget, depth, states = self.shape.budget, self.shape.depth, self.tables.states
        slots, records, room, records_of = growing.slots, growing.records, growing.room, self._records
        while slots and len(records) < budget:
            key, level, parent, slot, kind, token, below = slots[0]
            if kind == SAMPLED:
                context, parent_key = below
                table = self.tables.at(context)
                if y is None:
                    return table
                token = self.tables.target_id(y)
                below = states.step(context, token) if room[level - 1] else LEAF
            del slots[0]
            row = len(records)
            records.append(records_of.setdefault((parent, slot, kind, token, key), len(records_of)))
            if row + 1 == budget:
                return None
            if room[level - 1]:
                room[level - 1] -= 1
                self._open(slots, key, level, row, below)
            if kind == SAMPLED and y is not None:
                for place, each, score in table.fills(y):
                    to = states.step(context, each) if level < depth else LEAF
                    insort(slots, (self.scores.times(parent_key, score), level, parent, place, FILL, each, to))
                y = None
        return None

    def _open(self, slots: list[_Slot], key: Key, level: int, row: int, state: State) -> None:
        """Add the slots that open when the node of a row is expanded."""
        inner = level + 1 < self.shape.depth
        for slot, kind, token, score in self.tables.at(state).first:
            below = (state, key) if kind == SAMPLED else self.tables.states.step(state, token) if inner else LEAF
            insort(slots, (self.scores.times(key, score), level + 1, row, slot, kind, token, below))
