"""Exact numbers: the value of a float or a rational, and how exact numbers are written.

Every weight in this room is a rational. Inside it is gmpy2's `mpq`, several times faster than `fractions.Fraction`, as
which results leave.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isfinite, lcm
from numbers import Rational
from typing import Any

import numpy as np
from gmpy2 import mpq, mpz

from rheo_core import DraftRow, InvalidInput, ModelPair
from rheo_core.laws import Row
from rheo_core.models import Prefix

SHORT_PART = 10**12
"""Numerators and denominators below this are written out in a line."""

MOST_DIGITS = 40
"""Digits of a rounded number at most."""


ZERO, ONE, ZERO_INT = mpq(0), mpq(1), mpz(0)
MPQ = type(ZERO)


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
    if isinstance(value, MPQ):
        return value
    if isinstance(value, (Rational, np.integer)):
        return mpq(int(value.numerator), int(value.denominator))
    if hasattr(value, "as_integer_ratio"):
        try:
            return mpq(*value.as_integer_ratio())
        except (ValueError, OverflowError):
            raise InvalidInput("number", value, "a finite number") from None
    if hasattr(value, "item"):
        return exact(value.item())
    raise InvalidInput("number", value, "a number with an exact value (int, rational or float)")


def parse_number(text: str) -> Fraction:
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


def format_distinct(one: Any, other: Any) -> tuple[str, str]:
    """Two numbers as fractions where both are short, else with as many digits as it takes to tell them apart.

    >>> from fractions import Fraction
    >>> format_distinct(Fraction(3, 5), Fraction(1, 2))
    ('3/5', '1/2')
    >>> format_distinct(Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**12))
    ('0.333333333333', '0.333333333334')
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
    return _row(_exact_numbers(values))


def exact_law(values: Iterable[Any]) -> Row:
    """A row over its exact sum: what a float row means as a law."""
    listed = _listed(values)
    if _plain_floats(listed):
        whole = integers(listed)
        return _row([mpq(number, mass) for mass in [sum(whole)] for number in whole])
    numbers = _exact_numbers(listed)
    mass = sum(numbers)
    return _row(numbers if mass == 1 else [number / mass for number in numbers])


def integers(weights: Sequence[Any]) -> list[Any]:
    """Exact numbers (floats, rationals and ints in any mixture) times one common denominator, as integers.

    >>> from fractions import Fraction
    >>> [int(number) for number in integers([0.5, Fraction(1, 3), 2])]
    [3, 2, 12]
    """
    if _plain_floats(weights):
        mantissas, exponents = np.frexp(np.array(weights))
        whole, shifts = (mantissas * 2.0**53).astype(np.int64), exponents.astype(np.int64) - 53
        shifts -= min(int(shifts[whole != 0].min(initial=0)), 0)
        return [mpz(a) << b if a else ZERO_INT for a, b in zip(whole.tolist(), shifts.tolist(), strict=True)]
    numbers = _exact_numbers(weights)
    common = mpz(lcm(*{int(number.denominator) for number in numbers}))
    return [number.numerator * (common // number.denominator) for number in numbers]


class RationalModels(ModelPair):
    """Two models in rationals, every float row over its exact sum; target rows that are alike share their numbers."""

    def __init__(self, given: ModelPair) -> None:
        super().__init__(given.p, lambda prefix: converted_row(given.q(prefix), exact_law), given.ids)
        self._alike: dict[Any, Row] = {}

    def p(self, prefix: Prefix) -> Row:
        """The target law [V] at `prefix`; it was checked as it was given."""
        if prefix not in self.target_rows:
            given: Any = self._target(prefix)
            key = tuple(given.tolist()) if given.dtype == object else given.tobytes()
            if key not in self._alike:
                self._alike[key] = exact_law(given)
                self._alike[key].flags.writeable = False
            self.target_rows[prefix] = self._alike[key]
        return self.target_rows[prefix]


def rational_models(models: ModelPair) -> ModelPair:
    """Give the same models in rationals: every float row over its exact sum."""
    return RationalModels(models)


def converted(models: ModelPair, convert: Callable[[Row], Row]) -> ModelPair:
    """Give the same models in another arithmetic: `convert` is applied to each of their distributions [V]."""
    return ModelPair(
        lambda prefix: convert(models.p(prefix)), lambda prefix: converted_row(models.q(prefix), convert), models.ids
    )


def converted_row(row: DraftRow, convert: Callable[[Row], Row]) -> DraftRow:
    """Give a draft row in another arithmetic; one whose tail is no restriction of one distribution tail by tail."""
    if row.is_one_law:
        return DraftRow.law(convert(row.score))
    if row.sampling is not None:
        return DraftRow.pair(convert(row.score), convert(row.sampling))

    def tail(lead: Sequence[int]) -> Row | None:
        given = row.tail(lead)
        return None if given is None else convert(given)

    return DraftRow(convert(row.score), tail)


def _listed(values: Iterable[Any]) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) and values.dtype.itemsize <= 8 else list(values)


def _plain_floats(values: Sequence[Any]) -> bool:
    return all(type(value) is float and isfinite(value) for value in values)


def _exact_numbers(values: Iterable[Any]) -> list[Any]:
    """`exact` of each value, without a call for each where they are of one known kind."""
    listed = _listed(values)
    if all(type(value) is MPQ for value in listed):
        return listed
    if _plain_floats(listed):
        return [mpq(*value.as_integer_ratio()) for value in listed]
    return [exact(value) for value in listed]


def _row(numbers: list[Any]) -> Row:
    row = np.empty(len(numbers), dtype=object)
    row[:] = numbers
    return row
