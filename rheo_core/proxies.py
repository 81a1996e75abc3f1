"""Proxy rules: the score that the sampled slot carries while the tree is built (section 3.2).

A proxy is called as `proxy(score, order, m, sampled)`: the score law [V], draft ids by falling score, the number of
leads and the id of the sampled token Y. A rule whose value does not depend on Y says `uses_token = False`; only then
can the slot be ranked before Y is drawn. RheoSampling is lossless when the value lies in [q(x_{m+1}), 1] and ignores
Y; the other rules here are the traps that the paper warns of, kept to be refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from rheo_core.laws import Row, total, zeroed


class Proxy(Protocol):
    """Anything callable as a proxy rule; without a `uses_token` attribute it counts as using the token."""

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """The score of the sampled slot, in [0, 1]."""
        ...


@dataclass(frozen=True)
class ProxyRule:
    """A named proxy rule and whether its value depends on the sampled token."""

    name: str
    rule: Callable[[Row, Row, int, int], Any]
    uses_token: bool

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """The rule's value."""
        return self.rule(score, order, m, sampled)


@dataclass(frozen=True)
class Constant:
    """The same score whatever the row (Table 1's ad-hoc proxy)."""

    value: Any
    uses_token = False

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """The constant."""
        return self.value


def _tail_mass(score: Row, order: Row, m: int, sampled: int) -> Any:
    """z = sum of q(x_i) over i > m, summed over the tail (1 - sum over the lead can fall below q(x_{m+1})).

    Added up in the order of the ids, so that a device needs no full sort to get the same number. Never above 1, where
    a sum of rounded entries can come out if m = 0.
    """
    return min(total(zeroed(score, order[:m])), 1)


def _rheo(score: Row, order: Row, m: int, sampled: int) -> Any:
    """min{q(x_m), z}; q(x_1) when m = 0 (section 3.2: the first slot, ahead of x_1 by its place)."""
    if m == 0:
        return score[order[0]]
    return min(score[order[m - 1]], _tail_mass(score, order, m, sampled))


def _next_token(score: Row, order: Row, m: int, sampled: int) -> Any:
    """q(x_{m+1}), the least value that Lemma 4 allows."""
    return score[order[m]]


def _raw(score: Row, order: Row, m: int, sampled: int) -> Any:
    """q(Y) itself: section 3.1's trap."""
    return score[sampled]


def _half_least(score: Row, order: Row, m: int, sampled: int) -> Any:
    """min(q) / 2: the sampled slot is always last in its pool, and Lemma 4's bound is broken."""
    return score.min() / 2


RHEO = ProxyRule("min{q(x_m), z}", _rheo, uses_token=False)
TAIL_MASS = ProxyRule("z", _tail_mass, uses_token=False)
NEXT_TOKEN = ProxyRule("q(x_{m+1})", _next_token, uses_token=False)
RAW = ProxyRule("q(Y)", _raw, uses_token=True)
HALF_LEAST = ProxyRule("min(q)/2", _half_least, uses_token=False)
ADHOC = Constant(Fraction(1, 4))
