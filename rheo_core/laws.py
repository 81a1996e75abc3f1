"""Probability rows in any arithmetic.

A row is a 1-D NumPy array: float64, float32 or float16, computed in that type; or an object array of rationals, exact.
The functions here are the only place where rows are summed, normalised and subtracted, so that one code serves every
arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheo_core.checks import InvalidInput, check_logits, check_temperature

Row = NDArray[Any]
RowLike = ArrayLike | Sequence[Any]
"""Anything that NumPy reads as a row, sequences of rationals too."""


def total(values: Row) -> Any:
    """Sum of `values` [n], a number of their own type.

    Floats are accumulated in float64 from left to right and rounded once, so that another implementation can be
    equal to the bit; rationals are added exactly.

    >>> from fractions import Fraction
    >>> total(np.array([Fraction(1, 3), Fraction(1, 6)], dtype=object))
    Fraction(1, 2)
    """
    if values.dtype == object:
        return sum(values.tolist())
    if not len(values):
        return values.dtype.type(0)
    return values.dtype.type(np.add.accumulate(values, dtype=np.float64)[-1])


def normalise(weights: Row) -> Row:
    """norm(w) = w / sum(w) for non-negative `weights` [n] of positive sum.

    >>> normalise(np.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    mass = total(weights)
    if not mass > 0:
        raise InvalidInput("weights", weights.tolist(), "a positive sum")
    law: Row = weights / mass
    return law


def excess(p: Row, q: Row) -> Row:
    """max(0, p - q), entry by entry: the unnormalised residual (Algorithm 1, line 8)."""
    result: Row = np.maximum(p - q, 0)
    return result


def zeroed(row: Row, tokens: Iterable[int]) -> Row:
    """`row` with the entries of `tokens` set to 0, not renormalised."""
    result = row.copy()
    result[list(tokens)] = 0
    return result


def residual(p: Row, q: Row) -> Row | None:
    """r = norm(max(0, p - q)); None where it has no mass, that is p <= q everywhere (then nothing is ever rejected).

    >>> residual(np.array([0.5, 0.3, 0.2]), np.array([0.75, 0.25, 0.0])).round(3).tolist()
    [0.0, 0.2, 0.8]
    """
    return _normalised_or_none(excess(p, q))


def without(row: Row, tokens: Iterable[int]) -> Row | None:
    """norm(`row` with `tokens` zeroed) (Algorithm 1, line 16); None where nothing is left."""
    return _normalised_or_none(zeroed(row, tokens))


def tail_law(q: Row, lead: Iterable[int]) -> Row:
    """q~ (appendix C.1): `q` [V] restricted to the tokens outside `lead` and normalised.

    Raises where `q` has no mass outside the lead: there is no tail law then.

    >>> tail_law(np.array([0.5, 0.25, 0.25]), [0]).tolist()
    [0.0, 0.5, 0.5]
    """
    lead = list(lead)
    law = without(q, lead)
    if law is None:
        raise InvalidInput("lead", lead, "a draft law with mass outside the lead (no tail law exists here)")
    return law


def _normalised_or_none(weights: Row) -> Row | None:
    return normalise(weights) if total(weights) > 0 else None


def softmax(logits: ArrayLike, temperature: float = 1, name: str = "logits") -> Row:
    """softmax(logits / temperature) [V] in the logits' own float type.

    At temperature 0 all mass lies on the maximum of lowest id. A logit may be -inf (a masked token), never NaN or +inf.

    >>> softmax(np.array([1.0, 1.0, 0.0]), temperature=0).tolist()
    [1.0, 0.0, 0.0]
    """
    row = check_logits(logits, name)
    check_temperature(temperature)
    if temperature == 0:
        law = np.zeros_like(row)
        law[int(np.argmax(row))] = 1
        return law
    with np.errstate(over="ignore"):
        divisor = row.dtype.type(temperature)
        if not 0 < divisor < np.inf:
            raise InvalidInput("temperature", temperature, f"0 or a number within the range of {row.dtype}")
        return normalise(np.exp((row - row.max()) / divisor))
