"""What may be called rounding: the one rule behind every "lossless up to rounding".

A run in floats has an exact distribution too, so its total variation (TV) from the target is known to the last bit. It
is called rounding where two things hold. The same code on the same floats, run in rationals (where that cannot be: in
float64), is lossless. And a bound accounts for the difference: the distance d of every draw from the same draw of that
other run is measured, and by coupling the first L tokens differ by at most the exact expectation of the sum of the d
(`exact.enumeration.step_laws`).

Such a bound means something only while it is small. Beyond the size below the answer is "undecided", never "up to
rounding". Per token the size is 64 V eps but at most 1e-5, and at least 8 eps but at most 1/100:

- To see a TV of 1e-5 a token in samples takes about 1e10 tokens, and a bias of 1e-4 is ten times as large: no bias of
  practical size fits below, whatever V. Below V = 1300 (float32) even less is granted, for there a right step needs
  less.
- Weights that are each computed by a handful of roundings are off by a factor within 1 +- a few eps / 2, and so is the
  draw, whatever V: float16 and bfloat16, in which 8 eps exceeds 1e-5, are granted that much.
- A bound beyond 1/100 a token (bfloat16 reaches it at 8 eps) means nothing: such a loss shows in 10^4 tokens.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import fraction

LEAST_PRACTICAL = Fraction(1, 10**5)
"""TV a token below which no bias could be noticed by sampling."""

MOST = Fraction(1, 100)
"""TV a token that is granted to no type, however narrow."""


def most_rounding(length: int, vocabulary: int, eps: Any) -> Fraction:
    """The largest bound over the first `length` tokens that means something in a type of this eps (the spacing at 1).

    Per token min(64 V eps, 1e-5), raised to 8 eps where that is more, and never above 1/100.

    >>> most_rounding(1, 50_000, 2.0**-23), most_rounding(1, 50_000, 2.0**-7)
    (Fraction(1, 100000), Fraction(1, 100))
    """
    unit = fraction(eps)
    return length * min(MOST, max(8 * unit, min(64 * vocabulary * unit, LEAST_PRACTICAL)))


def worst_rounding(length: int, vocabulary: int, eps: Any) -> Fraction:
    """TV that no accumulation of roundings in this type exceeds: 64 L V eps. Between the two, no verdict is given."""
    return min(Fraction(1), 64 * length * vocabulary * fraction(eps))


def judged(variation: Fraction, bound: Fraction, most: Fraction) -> tuple[bool | None, str]:
    """Whether a float run whose code is lossless in rationals is lossless up to rounding, and why not where it is not.

    `variation` is its own TV, `bound` the measured one, `most` the largest that means something.
    """
    if variation > most:
        return False, ""
    if bound > most:
        return None, f"its draws differ from rationals by up to {float(bound):.3g}, above {float(most):.3g}"
    if variation > bound:
        return None, f"TV {float(variation):.3g} is more than its draws account for, {float(bound):.3g}"
    return True, ""
