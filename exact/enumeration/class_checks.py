"""The product form and the lemmas of appendix C on all classes of a table at once.

The same statements as `exact.verdict.every_target` checks class by class, over the tree of common prefixes: classes are
sorted, and two neighbours part at the first node where they differ.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exact.enumeration.class_table import ABSENT, ClassTable
from exact.enumeration.context_states import State, StepTable
from exact.enumeration.growth_graph import PoolTables
from exact.enumeration.rationals import ONE, ZERO
from rheo_core.tree import ROOT, SAMPLED


class ClassChecks:
    """The checks of one table; `states` are the contexts below which some class has a node."""

    def __init__(self, found: ClassTable, tables: PoolTables) -> None:
        self.found, self.tables = found, tables
        self.context = self._contexts()  # [classes, R]: the state of each node's parent
        self.states: list[State] = np.unique(self.context[found.kind != ABSENT]).tolist()
        self._shares: dict[State, dict[int, Any]] = {}

    def _contexts(self) -> NDArray[Any]:
        found = self.found
        step = StepTable(self.tables.states, int(found.token.max(initial=0)) + 1)
        context: NDArray[Any] = np.zeros(found.parent.shape, dtype=np.int32)
        below = np.zeros_like(context)
        parents = np.zeros(found.parent.shape, dtype=bool)  # whether some node hangs below
        rows, nodes = np.nonzero(found.parent >= 0)
        parents[rows, found.parent[rows, nodes]] = True
        for node in range(context.shape[1]):
            above = found.parent[:, node]
            held = np.take_along_axis(below, np.maximum(above, 0)[:, None], 1)[:, 0]
            context[:, node] = np.where(above == ROOT, 0, held)
            below[:, node] = step.after(context[:, node], found.token[:, node], parents[:, node])
        return context

    def shares(self, state: State) -> dict[int, Any]:
        """q~ of one state by target id, its zeros left out."""
        if state not in self._shares:
            draws = self.tables.at(state).draws
            self._shares[state] = {self.tables.target_id(token): share for token, share in draws}
        return self._shares[state]

    def first_failing(self) -> int | None:
        """The first class whose probability is not the product of q~ over its sampled nodes, by its number."""
        found = self.found
        drawn = found.kind == SAMPLED
        size = int(found.token.max(initial=0)) + 1
        pairs, place = np.unique(self.context[drawn].astype(np.int64) * size + found.token[drawn], return_inverse=True)
        shares = [self.shares(pair // size).get(pair % size, ZERO) for pair in pairs.tolist()]
        numbers: dict[Any, int] = {}  # of the distinct shares, from 1 on
        number = np.array([numbers.setdefault(share, len(numbers) + 1) for share in shares], dtype=np.int32)
        factors = np.zeros(found.kind.shape, dtype=np.int32)
        factors[drawn] = number[place] if len(number) else 0
        factors.sort(axis=1)
        values, products = [ONE, *numbers], dict[bytes, Any]()
        for row, (factor, probability) in enumerate(zip(factors, found.probabilities, strict=True)):
            key = factor.tobytes()
            if key not in products:
                products[key] = prod((values[each] for each in factor.tolist()), start=ONE)
            if products[key] != probability:
                return row
        return None

    def children_below(self) -> bool:
        """Lemma 5: no node stands before its parent or has a higher score."""
        found = self.found
        rank = np.zeros(len(found.keys), dtype=np.int64)
        rank[sorted(range(len(found.keys)), key=found.keys.__getitem__)] = range(len(found.keys))
        held = found.kind != ABSENT
        inner = held & (found.parent != ROOT)
        above = np.take_along_axis(found.score, np.maximum(found.parent, 0), 1)
        ranks, bounds = rank[np.where(held, found.score, 0)], rank[np.where(inner, above, 0)]
        before = found.parent < np.arange(found.parent.shape[1])
        return bool((before | ~held).all() and ((bounds <= ranks) | ~inner).all())

    def lemma_7(self) -> dict[str, bool]:
        """Lemma 7 at every number of common nodes: the same next slot, the same token or tokens in proportion q~."""
        return _Prefixes(self).checked()


class _Prefixes:
    """The tree of common prefixes of the sorted classes, visited from the root."""

    def __init__(self, checks: ClassChecks) -> None:
        found = checks.found
        self.checks = checks
        self.budget = found.parent.shape[1]
        columns = found.parent, found.slot, found.kind, found.token
        sizes = [int(column.max(initial=0)) + 1 - ABSENT for column in columns]
        width = 4 if prod(sizes) < 2**31 else 8
        record = np.zeros(found.parent.shape, dtype=f"i{width}")  # one number for parent, slot, kind and token
        for column, size in zip(columns, sizes, strict=True):
            record *= size
            record += column
            record -= ABSENT
        order = np.argsort(record.astype(f">i{width}").view(f"V{width * self.budget}")[:, 0], kind="stable")
        self.record = record[order]
        numbers = np.unique(self.record)
        parts = np.unravel_index(numbers, sizes)
        about = zip(*((part + ABSENT).tolist() for part in parts), strict=True)
        self.about = dict(zip(numbers.tolist(), about, strict=True))
        self.context = checks.context[order]
        self.mass = [found.probabilities[number] for number in order.tolist()]
        differ = self.record[1:] != self.record[:-1]
        self.parting = np.where(differ.any(1), differ.argmax(1), self.budget).tolist()
        only = np.full(max(checks.states, default=0) + 1, -1)  # the only token of a state's q~, -1: several or none
        for state in checks.states:
            only[state] = next(iter(checks.shares(state))) if len(checks.shares(state)) == 1 else -1
        drawn = found.kind[order] == SAMPLED
        parts_here = drawn & (only[np.where(drawn, self.context, 0)] != found.token[order])  # where classes must part
        packed = np.packbits(parts_here, axis=1, bitorder="little")
        self.parts = [int.from_bytes(row.tobytes(), "little") for row in packed]
        self.holds = {"Lemma 7.1": True, "Lemma 7.2": True, "Lemma 7.3": True}

    def checked(self) -> dict[str, bool]:
        """Visit all of the tree."""
        if self.mass:
            self._visit(0, len(self.mass), 0)
        return self.holds

    def _visit(self, first: int, last: int, node: int) -> Any:
        """Check what classes `first`..`last` - 1 do from `node` on, which share all nodes before; their mass."""
        if last - first == 1:
            self._alone(first, node, self.budget)
            return self.mass[first]
        between = self.parting[first : last - 1]
        at = min(between)
        self._alone(first, node, at)
        if at == self.budget:  # one class listed twice
            self.holds = dict.fromkeys(self.holds, False)
            return sum(self.mass[first:last])
        starts = [first, *(place for place, parting in enumerate(between, first + 1) if parting == at)]
        masses = [self._visit(one, end, at + 1) for one, end in zip(starts, [*starts[1:], last], strict=True)]
        total = sum(masses)
        rows = [self.about[number] for number in self.record[starts, at].tolist()]
        if len({row[:3] for row in rows}) != 1:
            self.holds["Lemma 7.1"] = False
        if sum(row[2] != SAMPLED for row in rows) > 1:
            self.holds["Lemma 7.2"] = False
        if rows[0][2] == SAMPLED:
            shares = {row[3]: mass / total for row, mass in zip(rows, masses, strict=True)}
            if shares != self.checks.shares(int(self.context[first, at])):
                self.holds["Lemma 7.3"] = False
        return total

    def _alone(self, number: int, node: int, end: int) -> None:
        """Between two partings a node that is drawn has the only token that it can have."""
        if self.parts[number] >> node & ((1 << (end - node)) - 1):
            self.holds["Lemma 7.3"] = False
