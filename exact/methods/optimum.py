"""The most that any lossless rule can accept, for any distribution over candidate sets.

One layer is a transport problem: a drafted set S (probability Q(S)) may hand its mass to a token of S, and each token v
takes no more than p(v). HiGHS proposes a vertex in floats; it is rebuilt in rationals, completed by exact augmenting
paths where floats fell short, and proved optimal by a cut H with the same value, p(H) + 1 - Q(S inside H).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from exact.enumeration.rationals import ZERO, exact, exact_law, fraction
from exact.enumeration.walk import outcomes
from rheo_core import Chooser, InvalidInput

Pools = Mapping[frozenset[int], Any]
"""A law over candidate sets: Q(S)."""

Flow = dict[tuple[frozenset[int], int], Any]


@dataclass(frozen=True)
class Optimum:
    """The optimal acceptance, a coupling that attains it, and the cut that proves it.

    `flow[S, v]` is the probability that S was drafted and v accepted from it; `cut` is the token set H with
    value = p(H) + 1 - Q(S inside H).
    """

    value: Fraction
    flow: Flow
    cut: frozenset[int]


def pool_law(draft: Callable[[Chooser], Sequence[int]]) -> dict[frozenset[int], Any]:
    """Q(S) of any rule that drafts candidates through a chooser.

    >>> q = [Fraction(1, 2), Fraction(1, 2)]
    >>> pools = pool_law(lambda chooser: [chooser.index(q), chooser.index(q)])
    >>> sorted((sorted(pool), str(mass)) for pool, mass in pools.items())
    [([0], '1/4'), ([0, 1], '1/2'), ([1], '1/4')]
    """
    pools: dict[frozenset[int], Any] = {}
    for tokens, weight in outcomes(draft):
        pool = frozenset(tokens)
        pools[pool] = pools.get(pool, ZERO) + weight
    return pools


def optimum(p: Iterable[Any], pools: Pools) -> Optimum:
    """Give the optimal acceptance on target distribution `p` [V] (a float row counts as its row over its exact sum).

    >>> optimum([Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], {frozenset([0]): 1}).value
    Fraction(1, 2)
    """
    target = exact_law(p).tolist()
    supply = {pool: exact(mass) for pool, mass in pools.items() if mass}
    if sum(supply.values()) != 1 or not all(mass > 0 for mass in supply.values()):
        raise InvalidInput("pools", dict(pools), "a law over candidate sets")
    for pool in supply:
        if not all(0 <= token < len(target) for token in pool):
            raise InvalidInput("pools", sorted(pool), f"token ids in 0..{len(target) - 1}")
    flow = _vertex(target, supply)
    while (path := _augmenting_path(target, supply, flow)[0]) is not None:
        _augment(target, supply, flow, path)
    cut = _augmenting_path(target, supply, flow)[1]
    value = sum(flow.values(), ZERO)
    if value != cut_value(target, supply, cut):
        raise ArithmeticError(f"flow {value} and cut {cut_value(target, supply, cut)} differ")
    return Optimum(fraction(value), {arc: fraction(mass) for arc, mass in flow.items() if mass}, cut)


def cut_value(p: Sequence[Any], pools: Pools, cut: frozenset[int]) -> Any:
    """p(H) + 1 - Q(S inside H): no lossless rule accepts more, whatever H."""
    inside = sum((mass for pool, mass in pools.items() if pool <= cut), ZERO)
    return sum((p[token] for token in cut), ZERO) + 1 - inside


def optimal_float(p: Iterable[Any], pools: Pools) -> float:
    """The same optimum by HiGHS alone, in float64; at least one set must hold a token."""
    target = exact_law(p).tolist()
    return -float(_solved(target, {pool: exact(mass) for pool, mass in pools.items()})[1].fun)


def _solved(p: Sequence[Any], supply: Pools) -> tuple[list[tuple[frozenset[int], int]], Any]:
    """Arcs, and HiGHS's answer for the most mass over them."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    arcs = [(pool, token) for pool in supply for token in sorted(pool)]
    row_of = {pool: row for row, pool in enumerate(supply)}
    rows = [row_of[pool] for pool, _ in arcs] + [len(supply) + token for _, token in arcs]
    columns = [*range(len(arcs)), *range(len(arcs))]
    limits = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(supply) + len(p), len(arcs)))
    bounds = [float(mass) for mass in supply.values()] + [float(mass) for mass in p]
    answer = linprog(-np.ones(len(arcs)), A_ub=limits.tocsr(), b_ub=bounds, method="highs-ds")
    return arcs, answer


def _vertex(p: Sequence[Any], supply: Pools) -> Flow:
    """HiGHS's vertex in rationals: its arcs form a forest, which is filled from the leaves.

    Amounts are cut to what is left on both sides, so that the flow is feasible whatever the floats were.
    """
    if not any(supply):
        return {}  # nothing is ever drafted
    arcs, answer = _solved(p, supply)
    flow = dict.fromkeys(arcs, ZERO)
    left: dict[Any, Any] = {**supply, **dict(enumerate(p))}
    used = [arc for arc, amount in zip(arcs, answer.x, strict=True) if amount > 1e-12]
    degree: dict[Any, list[tuple[frozenset[int], int]]] = {}
    for arc in used:
        for end in arc:
            degree.setdefault(end, []).append(arc)
    while used:
        arc = next((a for a in used if any(len(degree[end]) == 1 for end in a)), used[0])
        amount = min(left[end] for end in arc)
        flow[arc] = amount
        for end in arc:
            left[end] -= amount
            degree[end].remove(arc)
        used.remove(arc)
    return flow


def _augmenting_path(p: Sequence[Any], supply: Pools, flow: Flow) -> tuple[list[Any] | None, frozenset[int]]:
    """Give a shortest path from spare drafted mass to spare target mass; without one, the tokens H of a minimal cut.

    A path alternates sets and tokens. Where none ends in spare mass, all tokens reached are full and every set that is
    not inside them has given all it has: they are H.
    """
    given: dict[frozenset[int], Any] = dict.fromkeys(supply, ZERO)
    taken = [ZERO] * len(p)
    for (pool, token), mass in flow.items():
        given[pool] += mass
        taken[token] += mass
    came: dict[Any, Any] = {pool: None for pool, mass in supply.items() if given[pool] < mass}
    waiting = deque(came)
    while waiting:
        here = waiting.popleft()
        if isinstance(here, frozenset):
            reached: list[Any] = sorted(here)
        elif taken[here] < p[here]:
            path = [here]
            while came[path[-1]] is not None:
                path.append(came[path[-1]])
            return path[::-1], frozenset()
        else:
            reached = [pool for pool in supply if flow.get((pool, here), ZERO) > 0]
        for there in reached:
            if there not in came:
                came[there] = here
                waiting.append(there)
    return None, frozenset(token for token in came if not isinstance(token, frozenset))


def _augment(p: Sequence[Any], supply: Pools, flow: Flow, path: list[Any]) -> None:
    """Push as much as the path bears; arcs followed backwards give mass back."""
    steps = list(pairwise(path))
    backwards = [(there, here) for here, there in steps if not isinstance(here, frozenset)]
    spare_set = supply[path[0]] - sum((m for (pool, _), m in flow.items() if pool == path[0]), ZERO)
    spare_token = p[path[-1]] - sum((m for (_, token), m in flow.items() if token == path[-1]), ZERO)
    amount = min([spare_set, spare_token, *(flow[arc] for arc in backwards)])
    for here, there in steps:
        if isinstance(here, frozenset):
            flow[here, there] = flow.get((here, there), ZERO) + amount
        else:
            flow[there, here] -= amount
