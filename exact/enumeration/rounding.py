"""How far rounding may move a distribution: the one rule behind every "lossless up to rounding".

A run in floats has an exact distribution too, so its total variation (TV) from the target is known to the last bit.
What has to be settled is the size up to which it is called rounding. Errors add up along a text: where the distribution
of each token, given those before, is off by at most t, a coupling keeps the first L tokens together but for probability
L t. So the bound is L t, with a t that does not grow with the vocabulary.

Per token, t is 64 V eps but at most 1e-5, and at least 8 eps but at most 1/100:

- A right step makes a handful of roundings. Each moves every weight by a factor within 1 +- eps / 2, hence TV by at
  most eps / 2, for any V; 8 eps leaves room for a softmax, a ratio, a residual and its normalisation.
- Cumulative sums err with V. They are granted 64 V eps up to 1e-5: to see a TV of 1e-5 a token in samples takes about
  1e10 tokens, so no hidden bias of practical size fits below.
- Types so narrow that 8 eps exceeds 1/100 (bfloat16) are granted 1/100 a token.

Size never acquits on its own: the same code in exact or in float64 arithmetic must be lossless as well. There a bias
stays what it is while rounding vanishes.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import fraction

LEAST_PRACTICAL = Fraction(1, 10**5)
"""TV a token below which no bias could be noticed by sampling."""

MOST = Fraction(1, 100)
"""TV a token that is granted to no type, however narrow."""


def rounding_bound(length: int, vocabulary: int, eps: Any) -> Fraction:
    """TV over the first `length` tokens that counts as rounding in a type of this eps (the spacing of floats at 1).

    Per token min(64 V eps, 1e-5), raised to 8 eps where that is more, and never above 1/100.

    >>> rounding_bound(1, 50_000, 2.0**-23), rounding_bound(1, 50_000, 2.0**-7)
    (Fraction(1, 100000), Fraction(1, 100))
    """
    unit = fraction(eps)
    return length * min(MOST, max(8 * unit, min(64 * vocabulary * unit, LEAST_PRACTICAL)))


def worst_rounding(length: int, vocabulary: int, eps: Any) -> Fraction:
    """TV that no accumulation of roundings in this type exceeds: 64 L V eps. Between the two, no verdict is given."""
    return min(Fraction(1), 64 * length * vocabulary * fraction(eps))
