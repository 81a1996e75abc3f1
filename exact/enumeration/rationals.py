"""Exact numbers: what a float or a rational is worth, and a faster rational where gmpy2 is installed.

Every weight in this room is a rational. gmpy2's `mpq` only speeds the arithmetic up; results leave as
`fractions.Fraction`, the same with and without it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import gcd, inf
from numbers import Rational
from typing import Any

import numpy as np

from rheo_core import InvalidInput
from rheo_core.laws import Row

SHORT_PART = 10**12
"""Numerators and denominators below this are written out in a line."""

MOST_DIGITS = 40
"""Digits of a rounded number at most."""


class Plain(Fraction):
    """A `Fraction` whose comparison, product and sum with its own kind take the short way.

    `near` is the value rounded to a float. Rounding never turns an order round, so two values whose floats differ are
    compared by those, and only the others exactly.
    """

    __slots__ = ("near",)
    _numerator: int
    _denominator: int
    near: float

    @classmethod
    def reduced(cls, numerator: int, denominator: int) -> Plain:
        """A quotient already in lowest terms, its denominator positive."""
        number = object.__new__(cls)
        number._numerator = numerator
        number._denominator = denominator
        return number

    def __lt__(self, other: Any) -> Any:
        """By the floats; where they are equal, cross-multiplied."""
        try:
            a, b = self.near, other.near
        except AttributeError:
            if type(other) is not Plain:
                return super().__lt__(other)
            a, b = self._rounded(), other._rounded()
        if a != b:
            return a < b
        return self._numerator * other._denominator < other._numerator * self._denominator

    def _rounded(self) -> float:
        try:
            self.near = self._numerator / self._denominator  # of ints, hence correctly rounded
        except OverflowError:
            self.near = inf if self._numerator > 0 else -inf
        return self.near

    def __eq__(self, other: object) -> bool:
        """Both in lowest terms."""
        if type(other) is Plain:
            return self._numerator == other._numerator and self._denominator == other._denominator
        return super().__eq__(other)

    __hash__ = Fraction.__hash__

    def __neg__(self) -> Plain:
        """The negative, of this class."""
        return self.reduced(-self._numerator, self._denominator)

    def __mul__(self, other: Any) -> Any:
        """The product, of this class."""
        if type(other) is not Plain:
            return _plain(super().__mul__(other))
        return _product(self._numerator, self._denominator, other._numerator, other._denominator)

    def __add__(self, other: Any) -> Any:
        """The sum, of this class."""
        if type(other) is not Plain:
            return _plain(super().__add__(other))
        a, b = self._denominator, other._denominator
        numerator, denominator = self._numerator * b + other._numerator * a, a * b
        common = gcd(numerator, denominator)
        return self.reduced(numerator // common, denominator // common)

    __rmul__, __radd__ = __mul__, __add__


@lru_cache(maxsize=4096)  # the path scores of a tree meet again in every replay
def _product(a: int, b: int, c: int, d: int) -> Plain:
    """a/b * c/d."""
    across, back = gcd(a, d), gcd(c, b)
    return Plain.reduced((a // across) * (c // back), (b // back) * (d // across))


def _plain(value: Any) -> Any:
    return Plain(value) if type(value) is Fraction else value


Fast: Any
try:
    from gmpy2 import mpq

    Fast = mpq
except ImportError:
    Fast = Plain

ZERO, ONE = Fast(0), Fast(1)


@contextmanager
def long_numbers() -> Iterator[None]:
    """Within, exact numbers of any length are written and read: products of many rows have thousands of digits.

    Python refuses them beyond `sys.get_int_max_str_digits()`; that setting is the whole process's.
    """
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(before)


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


def written(text: str) -> Fraction:
    """A number as a person writes it: 3/10, 0.3, 3e-1. Raises `ValueError` and `ZeroDivisionError`.

    So does an exponent of more than four digits: a Fraction would write out all its zeros.
    """
    if re.search(r"e[+-]?[0_]*[1-9](_?[0-9]){4}", text, re.IGNORECASE):
        raise ValueError(f"the exponent of {text}")
    return Fraction(text)


def fraction(value: Any) -> Fraction:
    """The exact value as a `Fraction`."""
    number = exact(value)
    return Fraction(int(number.numerator), int(number.denominator))


def apart(one: Any, other: Any) -> tuple[str, str]:
    """Two numbers as fractions where both are short, else with as many digits as it takes to tell them apart.

    >>> from fractions import Fraction
    >>> apart(Fraction(3, 5), Fraction(1, 2)), apart(Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**12))
    (('3/5', '1/2'), ('0.333333333333', '0.333333333334'))
    """
    numbers = [fraction(each) for each in (one, other)]
    if all(max(abs(each.numerator), each.denominator) < SHORT_PART for each in numbers):
        return str(numbers[0]), str(numbers[1])
    with localcontext(prec=MOST_DIGITS):
        values = [Decimal(each.numerator) / Decimal(each.denominator) for each in numbers]
        shown = [[f"{value:.{digits}g}" for value in values] for digits in range(6, MOST_DIGITS)]
    first, second = next((pair for pair in shown if pair[0] != pair[1]), shown[-1])
    return _without_zeros(first), _without_zeros(second)


def _without_zeros(text: str) -> str:
    return text if "." not in text or "e" in text else text.rstrip("0").rstrip(".")


def exact_row(values: Iterable[Any]) -> Row:
    """A row of fast rationals, each the exact value of its entry."""
    return _row([exact(value) for value in values])


def exact_law(values: Iterable[Any]) -> Row:
    """A row over its exact sum: what a float row means as a law."""
    numbers = [exact(value) for value in values]
    mass = sum(numbers)
    return _row([number / mass for number in numbers])


def _row(numbers: list[Any]) -> Row:
    row = np.empty(len(numbers), dtype=object)
    row[:] = numbers
    return row
