"""Rows made once.

A hunt tries the same few laws in every combination. Each is checked, converted to fast rationals and sorted once here,
and every pool of candidates is built once per law, so that screening a case costs little more than walking its tree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from exact.enumeration.rationals import exact_row
from exact.search.cases import Law, denominator_of
from rheo_core import DraftRow, TreeMethod, TreeShape
from rheo_core.checks import check_law
from rheo_core.laws import Row
from rheo_core.models import ModelPair, Prefix
from rheo_core.pool import Drafter, Pool

Choose = Callable[[Literal["p", "q"], Prefix], int]
"""Which law of the row table stands at a prefix of the target ("p") or of the draft ("q")."""


class RowTable:
    """Distributions by number, each as a target row and as a draft row."""

    def __init__(self) -> None:
        self.laws: list[Law] = []
        self.denominators: list[int] = []
        self.p: list[Row] = []
        self.q: list[DraftRow] = []
        self._numbers: dict[Law, int] = {}
        self._pools: dict[Any, Pool] = {}

    def number(self, law: Law) -> int:
        """Give the number of a distribution; a new distribution gets the next one."""
        if law not in self._numbers:
            self._numbers[law] = len(self.laws)
            self.laws.append(law)
            self.denominators.append(denominator_of(law))
            self.p.append(check_law(exact_row(law), "p"))
            self.q.append(DraftRow.law(exact_row(law)))
        return self._numbers[law]

    def pool(self, number: int, drafter: Drafter) -> Pool:
        """Give the pool of one distribution at this drafter's width, m and proxy."""
        key = (number, drafter.width, drafter.m)
        if key not in self._pools:
            self._pools[key] = Pool(self.q[number], drafter.width, drafter.m, drafter.proxy)
        return self._pools[key]


class IndexedPair(ModelPair):
    """A pair of models whose rows come from a row table, chosen when they are first read."""

    def __init__(self, table: RowTable, choose: Choose) -> None:
        super().__init__(lambda prefix: table.laws[choose("p", prefix)], lambda prefix: table.laws[choose("q", prefix)])
        self.table = table
        self.choose = choose
        self.numbers: dict[tuple[Literal["p", "q"], Prefix], int] = {}

    def at(self, side: Literal["p", "q"], prefix: Prefix) -> int:
        """Give the number of the distribution at a prefix."""
        key = (side, prefix)
        if key not in self.numbers:
            self.numbers[key] = self.choose(side, prefix)
        return self.numbers[key]

    def p(self, prefix: Prefix) -> Row:
        """Give the target distribution [V] at `prefix`."""
        return self.table.p[self.at("p", prefix)]

    def q(self, prefix: Prefix) -> DraftRow:
        """Give the draft row [V] at `prefix`."""
        return self.table.q[self.at("q", prefix)]

    def read(self, side: Literal["p", "q"]) -> dict[Prefix, Law]:
        """Give the distributions read so far on one side."""
        return {prefix: self.table.laws[number] for (each, prefix), number in self.numbers.items() if each == side}


class IndexedDrafter(Drafter):
    """A drafter that takes its pools from the row table. The table must serve one proxy rule only."""

    pair: IndexedPair

    def __init__(self, pair: IndexedPair, method: TreeMethod, shape: TreeShape) -> None:
        super().__init__(pair, shape.width, method.leads(shape), method.proxy)

    def pool(self, prefix: Prefix) -> Pool:
        """Give the pool at `prefix`."""
        return self.pair.table.pool(self.pair.at("q", prefix), self)
