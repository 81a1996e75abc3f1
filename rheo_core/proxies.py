"""Other scores for the sampled slot than the paper's: two that are lossless as well, and the traps that it warns of.

RheoSampling is lossless when the score lies in [q(x_{m+1}), 1] and ignores Y (Lemma 4). `NEXT_TOKEN` and `TAIL_MASS`
do; `RAW` looks at Y, `HALF_LEAST` breaks the bound, and a `Constant` does both right or wrong as the rows fall.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rheo_core.laws import Row
from rheo_core.pool import RHEO as RHEO
from rheo_core.pool import ProxyRule as ProxyRule
from rheo_core.pool import tail_mass


@dataclass(frozen=True)
class Constant:
    """The same score whatever the row (Table 1's ad-hoc proxy)."""

    value: Any
    uses_token = False

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """Give the constant."""
        return self.value


def _next_token(score: Row, order: Row, m: int, sampled: int) -> Any:
    """q(x_{m+1}), the least value that Lemma 4 allows."""
    return score[order[m]]


def _raw(score: Row, order: Row, m: int, sampled: int) -> Any:
    """q(Y) itself: section 3.1's trap."""
    return score[sampled]


def _half_least(score: Row, order: Row, m: int, sampled: int) -> Any:
    """min(q) / 2: the sampled slot is always last in its pool, and Lemma 4's bound is broken."""
    return score.min() / 2


TAIL_MASS = ProxyRule("z", tail_mass, uses_token=False)
NEXT_TOKEN = ProxyRule("q(x_{m+1})", _next_token, uses_token=False)
RAW = ProxyRule("q(Y)", _raw, uses_token=True)
HALF_LEAST = ProxyRule("min(q)/2", _half_least, uses_token=False)
ADHOC = Constant(Fraction(1, 4))
