"""The equivalence classes [U]_R of appendix C.3, with their probabilities.

Two ways to the same list. `grown_classes` follows the growth of the kept tree and branches at each draw, so unpruned
trees never appear; it needs a proxy that ignores Y and lies in [q(x_{m+1}), 1]. `brute_force_classes` expands every
unpruned tree, prunes it and merges: slow, obviously right, and good for any proxy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from exact.enumeration.rationals import ONE, ZERO, exact_law
from exact.enumeration.walk import outcomes
from rheo_core.construction import expand, layered
from rheo_core.growth import Growth, NotGrowable
from rheo_core.laws import Row
from rheo_core.models import Prefix
from rheo_core.pool import RHEO, Drafter, Proxy
from rheo_core.proxies import HALF_LEAST, NEXT_TOKEN, TAIL_MASS, Constant
from rheo_core.tree import Tree, TreeShape

IGNORING = (RHEO, TAIL_MASS, NEXT_TOKEN, HALF_LEAST)
"""Built-in proxies whose value does not depend on Y."""

BRUTE_FORCE_LIMIT = 20_000
"""Unpruned outcomes that are enumerated without being asked."""


@dataclass(frozen=True)
class TreeClass:
    """One class: the pruned tree T_R that its unpruned trees share, and its exact probability."""

    tree: Tree
    probability: Any


def unpruned(drafter: Drafter, prefix: Prefix, shape: TreeShape, limit: int | None = None) -> Iterator[TreeClass]:
    """Every unpruned tree U with its probability (the oracle). Raises `TooManyOutcomes` beyond `limit`."""
    for tree, weight in outcomes(lambda chooser: expand(drafter, prefix, shape, chooser), limit=limit):
        yield TreeClass(tree, weight)


def brute_force_classes(
    drafter: Drafter, prefix: Prefix, shape: TreeShape, limit: int | None = None
) -> list[TreeClass]:
    """[U]_R by definition: all unpruned trees, pruned to R and merged."""
    masses: dict[Hashable, Any] = {}
    trees: dict[Hashable, Tree] = {}
    for tree, weight in outcomes(lambda chooser: layered(drafter, prefix, shape, chooser), limit=limit):
        key = tree.key()
        trees.setdefault(key, tree)
        masses[key] = masses.get(key, ZERO) + weight
    return [TreeClass(trees[key], mass) for key, mass in masses.items()]


def grown_classes(drafter: Drafter, prefix: Prefix, shape: TreeShape) -> Iterator[TreeClass]:
    """[U]_R from growth: the state is copied at each draw and continued with each token of positive q~.

    Raises `NotGrowable` for any other proxy than those of Lemma 4.
    """
    drafter = check_ignores_token(drafter)
    shares: dict[int, list[tuple[int, Any]]] = {}  # by q~, which the drafter keeps
    waiting: list[tuple[Growth, int | None, Any]] = [(Growth(drafter, prefix, shape), None, ONE)]
    while waiting:
        growth, token, probability = waiting.pop()
        if token is not None:
            growth.supply(token)
        tail = growth.next_draw()
        if tail is None:
            yield TreeClass(growth.tree(), probability)
            continue
        if id(tail) not in shares:
            law = exact_law(tail)
            shares[id(tail)] = [(token, share) for token, share in enumerate(law) if share]
        (first, first_share), *others = shares[id(tail)]
        for token, share in reversed(others):
            waiting.append((growth.copy(), token, probability * share))
        waiting.append((growth, first, probability * first_share))


def check_ignores_token(drafter: Drafter) -> Drafter:
    """The drafter with a check on a user's proxy that says it ignores Y; the built-in ones are known to."""
    proxy = drafter.proxy
    if any(proxy is known for known in IGNORING) or type(proxy) is Constant or getattr(proxy, "uses_token", True):
        return drafter
    return Drafter(drafter.pair, drafter.width, drafter.m, _TokenFreeProxy(proxy))


class _TokenFreeProxy:
    """A proxy that is asked about every token it could be given; where the answers differ it cannot be grown."""

    uses_token = False

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self._known: dict[int, tuple[Row, Any]] = {}  # by score law, which is kept so that its identity stays its own

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        if id(score) not in self._known:
            values = {token: self.proxy(score, order, m, token) for token in order[m:].tolist()}
            if len(set(values.values())) > 1:
                raise NotGrowable("proxy", values, "one value for all Y, as its uses_token = False says")
            self._known[id(score)] = score, values[int(order[m])]
        return self._known[id(score)][1]


def classes(drafter: Drafter, prefix: Prefix, shape: TreeShape, limit: int | None = None) -> list[TreeClass]:
    """[U]_R, by growth where the proxy allows it, else by brute force over at most `limit` unpruned trees."""
    try:
        return list(grown_classes(drafter, prefix, shape))
    except NotGrowable:
        return brute_force_classes(drafter, prefix, shape, limit)
