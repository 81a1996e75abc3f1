"""Probability rows in any arithmetic.

A row is a 1-D NumPy array: float64, float32 or float16, computed in that type; or an object array of rationals, exact.
The functions here are the only place where rows are checked, summed, normalised and subtracted, so that one code
serves every arithmetic and nothing is clipped or renormalised in silence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheo_core.errors import InvalidInput

Row = NDArray[Any]
RowLike = ArrayLike | Sequence[Any]
"""Anything that NumPy reads as a row, sequences of rationals too."""

FLOATS = (np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16))


def total(values: Row) -> Any:
    """Sum of `values` [n], a number of their own type.

    Floats are accumulated in float64 from left to right and rounded once, so that another implementation can be
    equal to the bit; rationals are added exactly.

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


def check_temperature(temperature: Any) -> None:
    """Raise unless the temperature is a finite number of at least 0."""
    if isinstance(temperature, bool) or not isinstance(temperature, Real) or not 0 <= float(temperature) < math.inf:
        raise InvalidInput("temperature", temperature, "a finite number of at least 0")


def check_logits(logits: ArrayLike, name: str = "logits") -> Row:
    """`logits` as a 1-D float row; NaN, +inf and a row of nothing but -inf are refused."""
    try:
        row = np.asarray(logits)
    except (TypeError, ValueError):  # rows of different lengths; a tensor type that NumPy lacks
        raise InvalidInput(name, logits, "a non-empty 1-D row of floats") from None
    if row.dtype.kind in "iu":
        row = row.astype(np.float64)
    if row.ndim != 1 or not len(row) or row.dtype not in FLOATS:
        raise InvalidInput(name, logits, "a non-empty 1-D row of floats")
    if np.isnan(row).any() or not np.isfinite(row.max()):
        raise InvalidInput(name, row.tolist(), "finite logits (-inf for a masked token, but not for all)")
    return row


def check_law(values: RowLike, name: str) -> Row:
    """`values` [V] as a read-only law in its own arithmetic.

    Integers and rationals become exact object rows. Raises `InvalidInput` on anything that is not 1-D and numeric, on a
    negative or NaN entry, and on a row that does not sum to 1: exactly for rationals; for floats the exact sum must lie
    within V * eps(type) of 1. Nothing is renormalised.

    >>> check_law([1, 0], "q").tolist()
    [Fraction(1, 1), Fraction(0, 1)]
    """
    row = _arithmetic(values, name)
    if not len(row):
        raise InvalidInput(name, values, "at least one entry")
    for token in np.flatnonzero(~np.asarray(row >= 0, dtype=bool)):
        raise InvalidInput(f"{name}[{token}]", row.tolist()[token], "a non-negative number")
    if row.dtype == object:
        mass, tolerance = sum(row.tolist()), Fraction(0)
    else:
        mass, tolerance = _exact_sum(row, name), len(row) * Fraction(float(np.finfo(row.dtype).eps))
    if abs(mass - 1) > tolerance:
        within = "exactly 1" if not tolerance else f"1 within {float(tolerance):.3g} ({row.dtype}, {len(row)} entries)"
        shown = mass if row.dtype == object else float(mass)
        raise InvalidInput(name, row.tolist(), f"a law: its sum is {shown}, not {within}")
    row.flags.writeable = False
    return row


def _exact_sum(row: Row, name: str) -> Fraction:
    if not np.isfinite(row).all():
        raise InvalidInput(name, row.tolist(), "finite entries")
    mass = Fraction(math.fsum(row.tolist()))  # correctly rounded; only a sum near the border needs more
    border = len(row) * float(np.finfo(row.dtype).eps)
    if abs(abs(float(mass) - 1) - border) > 1e-15:
        return mass
    return sum((Fraction(entry) for entry in row.tolist()), Fraction(0))


def _arithmetic(values: RowLike, name: str) -> Row:
    """A fresh 1-D array of one of the four arithmetics."""
    try:
        row = np.array(values)
    except (TypeError, ValueError):  # rows of different lengths; a tensor type that NumPy lacks
        raise InvalidInput(name, values, "a 1-D row of numbers") from None
    if row.ndim != 1:
        raise InvalidInput(name, values, f"a 1-D row, not shape {row.shape}")
    if row.dtype.kind in "iu":
        row = row.astype(object)
    if row.dtype == object:
        return _rationals(row, name)
    if row.dtype not in FLOATS:
        raise InvalidInput(name, values, f"float64, float32, float16 or rationals, not {row.dtype}")
    return row


def _rationals(row: Row, name: str) -> Row:
    entries = row.tolist()
    kinds = set(map(type, entries))  # one or two: asked of the types, not of each entry
    strange = {kind for kind in kinds if issubclass(kind, bool) or not issubclass(kind, Rational)}
    for token, entry in enumerate(entries):
        if type(entry) in strange:
            raise InvalidInput(f"{name}[{token}]", entry, "an int or a rational: object rows hold nothing else")
    if any(issubclass(kind, Integral) for kind in kinds):
        row[:] = [Fraction(int(entry)) if isinstance(entry, Integral) else entry for entry in entries]
    return row
