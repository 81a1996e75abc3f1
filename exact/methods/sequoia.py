"""Sequoia's tree: the topology of a given size with the largest expected acceptance, by dynamic programming.

The i-th sibling drawn without replacement is taken to be accepted at a rate of its own, wherever it stands; the value
of a tree is the sum over its nodes of the product of rates on the path. Rates are measured offline in practice.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

from exact.enumeration.fixed_trees import FixedTreeMethod, Widths, node_at, node_law
from exact.methods.parts import widths_of
from exact.methods.rejection import RRSW
from rheo_core import InvalidInput, TreeShape
from rheo_core.models import ModelPair, Prefix
from rheo_core.tree import SlotPath

REFERENCE = "Chen et al. 2024, Sequoia (arXiv 2402.12374)"

HALVES = tuple(Fraction(1, 2**slot) for slot in range(1, 65))
"""Rates used when none are given: each sibling is half as likely to be taken as the one before."""


def best_paths(rates: Sequence[Any], size: int, depth: int) -> tuple[SlotPath, ...]:
    """Give the slot paths of the best tree of at most `size` drafted nodes and `depth` levels; `rates` must not rise.

    >>> best_paths([Fraction(3, 5), Fraction(1, 5)], 3, 2)
    ((0,), (0, 0), (1,))
    """
    given = tuple(rates)
    if not given or any(later > earlier for earlier, later in pairwise(given)):
        raise InvalidInput("rates", given, "at least one rate, none above the one before it")

    @cache
    def best(nodes: int, levels: int, slot: int) -> tuple[Any, int]:
        """Value of the best forest of at most `nodes` nodes in the slots from `slot` on; size of its first tree."""
        if not nodes or not levels or slot == len(given):
            return 0, 0
        options: list[tuple[Any, int]] = [(0, 0)]
        for first in range(1, nodes + 1):
            below = best(first - 1, levels - 1, 0)[0]
            options.append((given[slot] * (1 + below) + best(nodes - first, levels, slot + 1)[0], first))
        return max(options, key=lambda option: (option[0], option[1]))

    def collect(nodes: int, levels: int, slot: int, parent: SlotPath) -> list[SlotPath]:
        first = best(nodes, levels, slot)[1]
        if not first:
            return []
        path = (*parent, slot)
        return [path, *collect(first - 1, levels - 1, 0, path), *collect(nodes - first, levels, slot + 1, parent)]

    return tuple(collect(size, depth, 0, ()))


def tree_value(rates: Sequence[Any], paths: Sequence[SlotPath]) -> Any:
    """Sum over the nodes of the product of rates on the path: expected accepted tokens."""
    total: Any = 0
    for path in paths:
        product: Any = 1
        for slot in path:
            product *= rates[slot]
        total += product
    return total


def measured_rates(pair: ModelPair, prefix: Prefix, width: int) -> tuple[Any, ...]:
    """Exact probability that the i-th sibling drawn without replacement is the one accepted at `prefix` [width]."""
    rates: list[Any] = [0] * width
    for (_, child), weight in node_law(RRSW, node_at(pair, prefix, (), width)).items():
        if child != -1:
            rates[child] += weight
    return tuple(rates)


def topology(shape: TreeShape, rates: Sequence[Any] = HALVES) -> Widths:
    """Give the best tree of the shape's size, for rates known beforehand."""
    return widths_of(best_paths(tuple(rates)[: shape.width], shape.budget, shape.depth))


def sequoia(rates: Sequence[Any] = HALVES, name: str = "sequoia") -> FixedTreeMethod:
    """Siblings drawn without replacement on the best topology for `rates`."""
    return FixedTreeMethod(name, "lossless", partial(topology, rates=tuple(rates)), RRSW.draft, RRSW.verify)


SEQUOIA = sequoia()
