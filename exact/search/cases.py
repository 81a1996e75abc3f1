"""Cases: rows, a shape and an m on which a method can be tried, and the order in which one is smaller than another.

The order is V, D, R, K, m (absent counts as 0), rows alike at every prefix before prefix-dependent ones, the largest
denominator, then the draft rows and the target rows by prefix length and prefix. Rows that are not listed are the
smallest law there is, (0, ..., 0, 1), so that a case is a whole pair of models.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

from rheo_core import TreeShape
from rheo_core.checks import check_count
from rheo_core.models import Prefix

Law = tuple[Fraction, ...]


@cache
def laws(vocabulary: int, denominator: int) -> tuple[Law, ...]:
    """Every law on `vocabulary` tokens whose entries are n-ths for one n <= `denominator`, in rising order.

    >>> [[str(mass) for mass in law] for law in laws(2, 3)]
    [['0', '1'], ['1/3', '2/3'], ['1/2', '1/2'], ['2/3', '1/3'], ['1', '0']]
    """
    found = {
        tuple(Fraction(part, n) for part in parts)
        for n in range(1, denominator + 1)
        for parts in _compositions(n, vocabulary)
    }
    return tuple(sorted(found))


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield every way to write `total` as `parts` ordered non-negative integers."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        yield tuple(after - before - 1 for before, after in itertools.pairwise(edges))


def denominator_of(law: Law) -> int:
    """Give the least n such that every entry is a number of n-ths."""
    return math.lcm(*(Fraction(mass).denominator for mass in law))


def smallest_law(vocabulary: int) -> Law:
    """(0, ..., 0, 1)."""
    return (*(Fraction(0),) * (vocabulary - 1), Fraction(1))


@dataclass(frozen=True)
class Model:
    """One model's rows: those listed by prefix, and `default` at every other prefix."""

    default: Law
    listed: Mapping[Prefix, Law] = field(default_factory=dict)

    def __call__(self, prefix: Prefix) -> Law:
        """Give the row at a prefix."""
        return self.listed.get(tuple(prefix), self.default)

    def along(self, vocabulary: int, length: int) -> tuple[Law, ...]:
        """Give the rows at all prefixes of at most `length` tokens, by length and then by prefix."""
        return tuple(self(prefix) for prefix in prefixes(vocabulary, length))


@cache
def prefixes(vocabulary: int, length: int) -> tuple[Prefix, ...]:
    """Give all prefixes of at most `length` tokens, by length and then in order."""
    return tuple(prefix for each in range(length + 1) for prefix in itertools.product(range(vocabulary), repeat=each))


@dataclass(frozen=True)
class Case:
    """A pair of models, a tree shape and the number of leads m (None: the method has none to choose)."""

    target: Model
    draft: Model
    shape: TreeShape
    lead: int | None

    @property
    def vocabulary(self) -> int:
        """V."""
        return len(self.target.default)

    @cached_property
    def rows(self) -> tuple[tuple[Law, ...], tuple[Law, ...]]:
        """The draft's and the target's rows at every prefix that one cycle can read, by length and then by prefix."""
        v, depth = self.vocabulary, self.shape.depth
        return self.draft.along(v, depth - 1), self.target.along(v, depth)

    @cached_property
    def dependent(self) -> bool:
        """Tell whether some row differs from another of its model."""
        return any(len(set(rows)) > 1 for rows in self.rows)

    @cached_property
    def denominator(self) -> int:
        """The largest denominator among all rows."""
        return max(denominator_of(law) for rows in self.rows for law in set(rows))

    @property
    def level(self) -> tuple[int, ...]:
        """Everything of the order that stands before the rows themselves."""
        return level_key(self.vocabulary, self.shape, self.lead, self.dependent, self.denominator)

    @cached_property
    def size(self) -> tuple[Any, ...]:
        """The key by which cases are ordered."""
        return *self.level, *self.rows


def level_key(
    vocabulary: int, shape: TreeShape, lead: int | None, dependent: bool, denominator: int
) -> tuple[int, ...]:
    """V, D, R, K, m, alike before dependent, the largest denominator."""
    return vocabulary, shape.depth, shape.budget, shape.width, lead or 0, int(dependent), denominator


@dataclass(frozen=True)
class SearchLevel:
    """All cases that agree in everything of the order but their rows, whose denominators go up to `denominator`."""

    vocabulary: int
    shape: TreeShape
    lead: int | None
    dependent: bool
    denominator: int

    def __str__(self) -> str:
        shape = self.shape
        lead = "" if self.lead is None else f", m = {self.lead}"
        rows = "prefix-dependent" if self.dependent else "alike"
        where = f"V = {self.vocabulary}, D = {shape.depth}, R = {shape.budget}, K = {shape.width}{lead}"
        return f"{where}, rows {rows}, denominator {self.denominator}"

    @property
    def key(self) -> tuple[int, ...]:
        """The place of the level in the order."""
        return level_key(self.vocabulary, self.shape, self.lead, self.dependent, self.denominator)

    @property
    def rows(self) -> tuple[int, bool, int]:
        """What settles which rows its cases may have."""
        return self.vocabulary, self.dependent, self.denominator

    @property
    def laws(self) -> tuple[Law, ...]:
        """The rows that its cases may have."""
        return laws(self.vocabulary, self.denominator)

    @property
    def cases(self) -> int:
        """The number of cases whose largest denominator is exactly this level's."""
        return self._up_to(self.denominator) - self._up_to(self.denominator - 1)

    def _up_to(self, denominator: int) -> int:
        count = len(laws(self.vocabulary, denominator))
        if not self.dependent:
            return count**2
        v, depth = self.vocabulary, self.shape.depth
        rows = len(prefixes(v, depth - 1)) + len(prefixes(v, depth))
        return int(count**rows) - count**2


@dataclass(frozen=True)
class CaseBlock:
    """The cases of `level` whose draft row at the empty prefix is number `first` of its distributions."""

    level: SearchLevel
    first: int


@dataclass(frozen=True)
class Bounds:
    """All shapes up to a depth, budget and width at one V; largest denominators of rows alike and of dependent ones.

    A denominator of 0 leaves that kind of rows out.
    """

    vocabulary: int
    depth: int
    budget: int
    width: int
    alike: int
    dependent: int

    def __post_init__(self) -> None:
        for name, least in (
            ("vocabulary", 2),
            ("depth", 1),
            ("budget", 1),
            ("width", 1),
            ("alike", 0),
            ("dependent", 0),
        ):
            check_count(name, getattr(self, name), least)

    def levels(self, leads: Leads) -> Iterator[SearchLevel]:
        """Yield every level of cases within these bounds."""
        for depth in range(1, self.depth + 1):
            for budget in range(1, self.budget + 1):
                for width in range(1, self.width + 1):
                    if leads.of_tree and not is_new(self.vocabulary, width, depth, budget):
                        continue
                    shape = TreeShape(width, depth, budget)
                    for lead in leads.at(width):
                        for dependent, largest in ((False, self.alike), (True, self.dependent)):
                            for denominator in range(1, largest + 1):
                                yield SearchLevel(self.vocabulary, shape, lead, dependent, denominator)


@dataclass(frozen=True)
class Leads:
    """Which numbers of leads m are tried: every m from 0 to K, one given m, or none for a method without leads.

    `of_tree` says that the method drafts dynamic trees, so that shapes which change nothing can be left out.
    """

    any_lead: bool
    given: int | None = None
    of_tree: bool = False

    def at(self, width: int) -> list[int | None]:
        """Give the values of m at one width."""
        if not self.any_lead:
            return [None]
        if self.given is not None:
            return [self.given] if self.given <= width else []
        return list(range(width + 1))


def is_new(vocabulary: int, width: int, depth: int, budget: int) -> bool:
    """Tell whether a dynamic tree of this shape can differ from those of smaller budget or width.

    Pools hold at most V tokens, and up to depth 2 at most V nodes are expanded at a level: there K = V says it all.
    """
    return budget <= most_nodes(vocabulary, width, depth) and (width <= vocabulary or depth > 2)


def most_nodes(vocabulary: int, width: int, depth: int) -> int:
    """Give the largest number of nodes that a dynamic tree can have before pruning.

    >>> most_nodes(vocabulary=2, width=2, depth=2)
    6
    """
    pool = min(vocabulary, width)
    nodes, level = pool, pool
    for _ in range(depth - 1):
        level = min(level, width) * pool
        nodes += level
    return nodes


def in_order(bounds: Iterable[Bounds], leads: Leads) -> list[SearchLevel]:
    """Give the levels of several bounds, each once, smallest first."""
    return sorted({level for each in bounds for level in each.levels(leads)}, key=lambda level: level.key)


def blocks(levels: Iterable[SearchLevel]) -> Iterator[CaseBlock]:
    """Yield the blocks of levels, in order. Denominators without a law of their own give no block."""
    for level in levels:
        for first in range(len(laws(level.vocabulary, level.denominator))):
            yield CaseBlock(level, first)
