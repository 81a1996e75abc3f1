"""How far an exhaustive search goes, and the levels of cases within those bounds, smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exact.hunting.cases import Level, laws
from exact.hunting.tries import Block
from rheo_core import TreeShape
from rheo_core.errors import check_count


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

    def levels(self, leads: Leads) -> Iterator[Level]:
        """Every level of cases within these bounds."""
        for depth in range(1, self.depth + 1):
            for budget in range(1, self.budget + 1):
                for width in range(1, self.width + 1):
                    if leads.of_tree and not is_new(self.vocabulary, width, depth, budget):
                        continue
                    shape = TreeShape(width, depth, budget)
                    for lead in leads.at(width):
                        for dependent, largest in ((False, self.alike), (True, self.dependent)):
                            for denominator in range(1, largest + 1):
                                yield Level(self.vocabulary, shape, lead, dependent, denominator)


@dataclass(frozen=True)
class Leads:
    """Which numbers of leads m are tried: every m from 0 to K, one given m, or none for a method without leads.

    `of_tree` says that the method drafts dynamic trees, so that shapes which change nothing can be left out.
    """

    any_lead: bool
    given: int | None = None
    of_tree: bool = False

    def at(self, width: int) -> list[int | None]:
        """The values of m at one width."""
        if not self.any_lead:
            return [None]
        if self.given is not None:
            return [self.given] if self.given <= width else []
        return list(range(width + 1))


def is_new(vocabulary: int, width: int, depth: int, budget: int) -> bool:
    """Whether a dynamic tree of this shape can differ from those of smaller budget or width.

    Pools hold at most V tokens, and up to depth 2 at most V nodes are expanded at a level: there K = V says it all.
    """
    return budget <= most_nodes(vocabulary, width, depth) and (width <= vocabulary or depth > 2)


def most_nodes(vocabulary: int, width: int, depth: int) -> int:
    """The largest number of nodes that a dynamic tree can have before pruning.

    >>> most_nodes(vocabulary=2, width=2, depth=2)
    6
    """
    pool = min(vocabulary, width)
    nodes, level = pool, pool
    for _ in range(depth - 1):
        level = min(level, width) * pool
        nodes += level
    return nodes


def in_order(bounds: Iterable[Bounds], leads: Leads) -> list[Level]:
    """The levels of several bounds, each once, smallest first."""
    return sorted({level for each in bounds for level in each.levels(leads)}, key=lambda level: level.key)


def blocks(levels: Iterable[Level]) -> Iterator[Block]:
    """The blocks of levels, in order. Denominators without a law of their own give no block."""
    for level in levels:
        for first in range(len(laws(level.vocabulary, level.denominator))):
            yield Block(level, first)
