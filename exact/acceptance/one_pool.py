"""One pool over a whole vocabulary, by closed forms on whole numbers.

Enumeration takes V^2 steps and more: every Y and, for each, every emitted token. Here the rows are brought to one
scale and the sums over Y of Eq. (6), Theorem 3 and Eq. (18) are taken at once, without rounding. They hold for the
rules and proxies of `rheo_core` as they stand there; a method with any other part is left to the enumeration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, cast

from exact.enumeration.rationals import MPQ, rational_models
from exact.verdict.identity import known_tree_method, verifier_name
from rheo_core import Method, ModelPair, TreeMethod, TreeShape
from rheo_core.checks import check_count
from rheo_core.laws import Row
from rheo_core.models import DraftRow, Prefix
from rheo_core.pool import Pool

CLOSED, ENUMERATED = "closed forms on whole numbers", "enumeration"
"""The two ways to the figures of a layer, as the commands name them."""


def scaled(row: Iterable[Any]) -> tuple[list[int], int]:
    """Give a row of rationals as whole numbers over one denominator.

    >>> scaled([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
    ([3, 2, 1], 6)
    """
    parts = [(int(value.numerator), int(value.denominator)) for value in row]
    scale = 1
    for _, denominator in parts:
        if scale % denominator:
            scale = lcm(scale, denominator)
    return [numerator * (scale // denominator) for numerator, denominator in parts], scale


class Emitted:
    """The distribution of the token that a layer emits and the target's, as whole numbers [V] over `scale`.

    `p` is the target over `scale / times`; `weights` computes what is emitted when that is read (None: p).
    """

    def __init__(
        self, p: list[int], scale: int, weights: Callable[[], list[int]] | None = None, times: int = 1
    ) -> None:
        self._p, self._weights, self._times, self.scale = p, weights, times, scale * times

    @cached_property
    def right(self) -> list[int]:
        """The target."""
        return [weight * self._times for weight in self._p]

    @cached_property
    def weights(self) -> list[int]:
        """What is emitted."""
        return self.right if self._weights is None else self._weights()

    @property
    def total_variation(self) -> Fraction:
        """The distance from the target; 0 iff the layer is lossless."""
        apart = sum(abs(actual - expected) for actual, expected in zip(self.weights, self.right, strict=True))
        return Fraction(apart, 2 * self.scale)

    @property
    def wrong(self) -> tuple[int, Fraction, Fraction] | None:
        """The first token whose probability is not the target's, with both; None where all are."""
        for token, (actual, expected) in enumerate(zip(self.weights, self.right, strict=True)):
            if actual != expected:
                return token, Fraction(actual, self.scale), Fraction(expected, self.scale)
        return None

    def law(self) -> list[Fraction]:
        """Give the emitted distribution [V]."""
        return [Fraction(weight, self.scale) for weight in self.weights]


@dataclass(frozen=True)
class Layer:
    """What a layer accepts and emits, and the probability that its sampled token survives pruning."""

    acceptance: Fraction
    sampled_kept: Fraction
    emitted: Emitted


class WholeRows:
    """A target row p [V] and a draft row, both of rationals, as whole numbers; `ids[draft id] = target id`."""

    def __init__(self, p: Row, q: DraftRow, ids: Sequence[int] | None = None) -> None:
        self.q = q
        self.ids = range(len(q.score)) if ids is None else ids
        self.order = [int(self.ids[token]) for token in q.order.tolist()]
        self.p, self.scale = scaled(p.tolist())

    def pool(self, m: int) -> WholePool:
        """Give the pools with m leads."""
        check_count("m", m, 0)
        return WholePool(self, m, self.q.tail(self.q.order[:m].tolist()))


class WholePool:
    """The pools with m leads at one parent, in whole numbers; `tail` is q~ [draft V], or None."""

    def __init__(self, rows: WholeRows, m: int, tail: Row | None) -> None:
        self.rows, self.m = rows, m
        values = [] if tail is None else tail.tolist()
        drawn = [token for token, mass in enumerate(values) if mass]
        weights, self.scale = scaled(values[token] for token in drawn)
        self.tail = {int(rows.ids[token]): weight for token, weight in zip(drawn, weights, strict=True)}

    def top_k(self, n: int) -> Fraction:
        """p(Top_n): the acceptance of vanilla verification on the n best tokens."""
        return Fraction(sum(self.rows.p[v] for v in self.rows.order[:n]), self.rows.scale)

    def optimum(self, n: int) -> Fraction:
        """A*, the most that any lossless rule accepts on a pool of n (`rheo_core.rates.optimal_rate`)."""
        if n <= self.m or not self.tail:
            return self.top_k(n)
        p, order = self.rows.p, self.rows.order
        covered = sum(self.tail.get(v, 0) for v in order[:n])
        at_last = min(p[order[n - 1]] * self.scale, covered * self.rows.scale)
        return self.top_k(n - 1) + Fraction(at_last, self.scale * self.rows.scale) + self._beyond(n, Fraction(1))

    def bound(self, n: int, thinned: bool = False) -> Fraction:
        """Theorem 3's bound, Eq. (2); `thinned` makes it that of A_RRSw, where q~ counts 1 - A times (D.3)."""
        if n <= self.m:
            return self.top_k(n)
        return self.top_k(n) + self._beyond(n, 1 - self.top_k(self.m) if thinned else Fraction(1))

    def _beyond(self, n: int, share: Fraction) -> Fraction:
        """Sum over v outside Top_n of min(p(v), share q~(v))."""
        p, above, below = self.rows.p, self.scale * share.denominator, self.rows.scale * share.numerator
        outside = self.tail.keys() - set(self.rows.order[:n])
        return Fraction(sum(min(p[v] * above, self.tail[v] * below) for v in outside), above * self.rows.scale)

    def rate(self, rule: str, n: int) -> Fraction:
        """Give the acceptance of a rule of `rheo_core` on a pool of n: Theorem 3 for Algorithm 1, Eq. (18) for RRSw."""
        return self.layer(rule, n, self.tail.keys() if n > self.m else ()).acceptance

    def layer(self, rule: str, n: int, kept: Iterable[int]) -> Layer:
        """Give a rule of `rheo_core` on n slots, where the tree keeps Y iff it is one of `kept`.

        The candidates are Y and the first n - 1 other tokens by falling q; where Y is pruned, n other tokens. Given Y
        the acceptance of a candidate does not depend on which others are there (V2 of `exact.verdict.every_target`), so
        a sum over Y has two parts: Y in Top_{n-1}, where x_n is a candidate too, and Y beyond it.
        """
        p, order, scale = self.rows.p, self.rows.order, self.scale
        q = {y: self.tail[y] for y in kept}
        share, one = sum(q.values()), self.rows.scale * scale
        top = sum(p[v] for v in order[:n])
        first, further = set(order[:n]), sum(p[v] for v in order[: n + 1])
        pruned = ((y, weight) for y, weight in self.tail.items() if y not in q)
        accepted = sum(weight * (further - p[y] if y in first else top) for y, weight in pruned)
        if not q:
            accepted = accepted if self.tail else top * scale
            return Layer(Fraction(accepted, one), Fraction(0), Emitted(p, self.rows.scale))
        if rule == "vanilla":
            others, last = set(order[: n - 1]), p[order[n - 1]]
            accepted += sum(weight * (top - last + (last if y in others else p[y])) for y, weight in q.items())
            return Layer(Fraction(accepted, one), Fraction(share, scale), Emitted(p, self.rows.scale))
        leads = order[: min(self.m, n - 1)] if rule == "rrsw" else []
        accepted += share * sum(p[v] for v in leads)
        r = p[:]  # what is tested against q~: p, without the leads that were tried before
        for v in leads:
            r[v] = 0
        left = self.rows.scale - sum(p[v] for v in leads)
        over = [weight * scale for weight in r]  # max(0, r - q~), as all below over left * scale
        direct, thrown = {}, {}  # Y accepted and rejected, for each that is kept
        for y, weight in self.tail.items():
            have, need = over[y], weight * left
            over[y] = max(0, have - need)
            if y in q:
                direct[y] = min(have, need)
                if need > have:
                    thrown[y] = need - have
        mass = sum(over) or 1  # without mass nothing is rejected
        rest = sum(over[v] for v in order[: n - 1])
        inside, rejected = sum(thrown.get(y, 0) for y in order[: n - 1]), sum(thrown.values())
        found = (accepted + sum(direct.values())) * mass + rejected * rest + inside * over[order[n - 1]]

        def emitted() -> list[int]:
            without = (scale - share) * mass  # where Y is pruned the rule emits p
            law = [rejected * more for more in over]
            if without:
                law = [weight + without * due for weight, due in zip(law, p, strict=True)]
            for y, weight in direct.items():
                law[y] += weight * mass
            for v in leads:
                law[v] += share * mass * p[v]
            return law

        law = Emitted(p, self.rows.scale, emitted, scale * mass)
        return Layer(Fraction(found, one * mass), Fraction(share, scale), law)


@dataclass(frozen=True)
class OneLayerTree(Layer):
    """The layer of a whole tree of depth 1, and A* of its drafts: the most that any lossless rule accepts."""

    optimum: Fraction

    @classmethod
    def of(cls, method: Method, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()) -> OneLayerTree | None:
        """Give the layer at `prefix`; None where the tree is deeper or a part of the method is not known."""
        if not in_closed_form(method, shape):
            return None
        known = cast(TreeMethod, method)
        exact = in_rationals(pair, prefix)
        p, pool = exact.p(prefix), known.drafter(exact, shape).pool(prefix)
        whole = WholePool(WholeRows(p, pool.row, pair.ids), pool.m, pool.tail)
        width = min(shape.width, len(pool.row.score))
        size = min(width, shape.budget)
        kept = [int(whole.rows.ids[y]) for y in _kept(pool, size, width)]
        layer = whole.layer(verifier_name(known.verify) or "", size, kept)
        return cls(layer.acceptance, layer.sampled_kept, layer.emitted, whole.optimum(width))


def in_rationals(pair: ModelPair, prefix: Prefix) -> ModelPair:
    """The same models in fast rationals; a pair whose rows are such already is itself."""
    return pair if isinstance(pair.p(prefix)[0], MPQ) else rational_models(pair)


def in_closed_form(method: Method, shape: TreeShape) -> bool:
    """Tell whether a layer is taken by closed forms: depth 1 and a tree method of known parts alone."""
    return shape.depth == 1 and known_tree_method(method)


def path_of(method: Method, shape: TreeShape) -> str:
    """Give the way that the figures of a layer are taken."""
    return CLOSED if in_closed_form(method, shape) else ENUMERATED


def _kept(pool: Pool, budget: int, width: int) -> Iterable[int]:
    """The draft ids Y that pruning to `budget` of `width` slots leaves: fewer than `budget` slots rank before Y's."""
    if pool.tail is None:
        return []
    drawn = [token for token, mass in enumerate(pool.tail.tolist()) if mass]
    best = pool.row.order[:width].tolist()  # leads and fills are among them, whatever Y is
    score = [pool.score[token] for token in best]

    def survives(y: int, proxy: Any) -> bool:
        fills = [each for token, each in zip(best[pool.m :], score[pool.m :], strict=True) if token != y]
        before = sum(each >= proxy for each in score[: pool.m])
        return bool(before + sum(each > proxy for each in fills[: width - pool.m - 1]) < budget)

    if getattr(pool.proxy, "uses_token", True):
        return [y for y in drawn if survives(y, pool.proxy_score(y))]
    proxy, listed = pool.proxy_score(), set(best)
    beyond = survives(-1, proxy)
    return [y for y in drawn if (survives(y, proxy) if y in listed else beyond)]
