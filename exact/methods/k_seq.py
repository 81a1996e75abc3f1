"""K-SEQ of SpecTr: k independent draws, each accepted with min(1, p / (gamma q)).

gamma trades the first draws against the last. The residual is a law only for gamma of at least some gamma*, which is
irrational in general; the least valid multiple of 1/1000 is used, so that exact arithmetic stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import FixedTreeMethod, Node
from exact.methods.parts import complete, emit, independent
from rheo_core import Chooser
from rheo_core.laws import Row, normalise, total
from rheo_core.verification import Verdict, ratio

REFERENCE = "Sun et al. 2023, SpecTr (arXiv 2310.15141)"
STEPS = 1000


def at_gamma(p: Row, q: Row, k: int, gamma: Any) -> tuple[Row, Any]:
    """min(q, p/gamma) [V], and (1 - (1-beta)^k) / beta, which is sum over j < k of (1-beta)^j."""
    accepted = np.minimum(q, p / gamma)
    beta = total(accepted)
    return accepted, sum((1 - beta) ** j for j in range(k))


def least_gamma(p: Row, q: Row, k: int) -> Fraction:
    """Give the least valid gamma among the multiples of 1/1000 in [1, k].

    gamma beta rises with gamma and 1 - (1-beta)^k falls, so validity is monotone and bisection finds it; k is valid.

    >>> third = np.array([Fraction(1, 3)] * 3, dtype=object)
    >>> least_gamma(third, third, 2)
    Fraction(1, 1)
    """
    low, high = STEPS, k * STEPS
    while low < high:
        middle = (low + high) // 2
        if is_valid(p, q, k, Fraction(middle, STEPS)):
            high = middle
        else:
            low = middle + 1
    return Fraction(low, STEPS)


def is_valid(p: Row, q: Row, k: int, gamma: Fraction) -> bool:
    """Tell whether what is left of p after k draws is non-negative."""
    accepted, times = at_gamma(p, q, k, _in_type(gamma, p))
    return bool((p - accepted * times >= 0).all())


def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Accept each in turn with min(1, p / (gamma q)), then draw from p less what was accepted."""
    k = len(candidates)
    if not k:
        return emit(node.p, node, chooser)
    gamma = _in_type(_known_gamma(tuple(node.p.tolist()), tuple(node.q.tolist()), k, node.p.dtype), node.p)
    accepted, times = at_gamma(node.p, node.q, k, gamma)
    left = np.maximum(node.p - accepted * times, 0)
    rest = normalise(left) if total(left) > 0 else None
    for slot, token in enumerate(candidates):
        last = slot == k - 1
        share = 1 if last and rest is None else ratio(node.p[token], gamma * node.q[token])
        if chooser.accept(share, ("coin", *node.at, slot)):
            return token, slot
    return emit(rest, node, chooser)


@lru_cache(maxsize=1024)
def _known_gamma(p: tuple[Any, ...], q: tuple[Any, ...], k: int, dtype: np.dtype[Any]) -> Fraction:
    return least_gamma(np.array(p, dtype=dtype), np.array(q, dtype=dtype), k)


def _in_type(gamma: Fraction, row: Row) -> Any:
    return gamma if row.dtype == object else row.dtype.type(gamma)


K_SEQ = FixedTreeMethod("k-seq", "lossless", complete, independent, verify)
