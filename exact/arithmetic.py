"""Exact numbers: what a float or a rational is worth, and a faster rational where gmpy2 is installed.

Every weight in this room is a rational. gmpy2's `mpq` only speeds the arithmetic up; results leave as
`fractions.Fraction`, the same with and without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from rheo_core import InvalidInput
from rheo_core.laws import Row


class Plain(Fraction):
    """A `Fraction` whose comparison, product and sum with fractions and ints take the short way."""

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        """Cross-multiplied."""
        if type(other) in QUICK:
            return bool(self.numerator * other.denominator < other.numerator * self.denominator)
        return super().__lt__(other)

    def __mul__(self, other: Any) -> Any:
        """The product, of this class."""
        if type(other) in QUICK:
            return Plain(self.numerator * other.numerator, self.denominator * other.denominator)
        return super().__mul__(other)

    def __add__(self, other: Any) -> Any:
        """The sum, of this class."""
        if type(other) in QUICK:
            a, b = self.denominator, other.denominator
            return Plain(self.numerator * b + other.numerator * a, a * b)
        return super().__add__(other)

    __rmul__, __radd__ = __mul__, __add__


QUICK = frozenset({Plain, Fraction, int})

Fast: Any
try:
    from gmpy2 import mpq

    Fast = mpq
except ImportError:
    Fast = Plain

ZERO, ONE = Fast(0), Fast(1)


def exact(value: Any) -> Any:
    """The exact value of a number (int, rational, float of any width, NumPy scalar) as a fast rational."""
    if isinstance(value, Fast):
        return value
    if isinstance(value, (Rational, np.integer)):
        return Fast(int(value.numerator), int(value.denominator))
    if hasattr(value, "as_integer_ratio"):
        try:
            return Fast(*value.as_integer_ratio())
        except (ValueError, OverflowError):
            raise InvalidInput("number", value, "a finite number") from None
    if hasattr(value, "item"):
        return exact(value.item())
    raise InvalidInput("number", value, "a number with an exact value (int, rational or float)")


def fraction(value: Any) -> Fraction:
    """The exact value as a `Fraction`."""
    number = exact(value)
    return Fraction(int(number.numerator), int(number.denominator))


def exact_row(values: Iterable[Any]) -> Row:
    """A row of fast rationals, each the exact value of its entry."""
    numbers = [exact(value) for value in values]
    row = np.empty(len(numbers), dtype=object)
    row[:] = numbers
    return row


def exact_law(values: Iterable[Any]) -> Row:
    """A row over its exact sum: what a float row means as a law."""
    row = exact_row(values)
    return exact_row(row / sum(row.tolist()))
