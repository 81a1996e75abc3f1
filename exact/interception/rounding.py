"""Rounding to a narrower float type, as a monotone map that can be inverted exactly."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.arithmetic import exact, fraction


@dataclass(frozen=True)
class FloatType:
    """A binary float type: `precision` significant bits, exponents from `least`, the largest finite number."""

    name: str
    precision: int
    least: int
    largest: Fraction

    def spacing(self, value: Fraction) -> Fraction:
        """The distance between neighbours where |value| lies, upwards in magnitude."""
        exponent = self.least if not value else max(_exponent(abs(value)), self.least)
        return Fraction(2) ** (exponent - self.precision + 1)

    def floor(self, value: Fraction) -> Fraction:
        """The largest number of the type that is at most `value`."""
        step = self.spacing(value)
        return value // step * step

    def above(self, number: Fraction) -> Fraction:
        """The next number of the type."""
        step = self.spacing(number)
        if number < 0 and -number == Fraction(2) ** _exponent(-number) > Fraction(2) ** self.least:
            step /= 2
        return number + step

    def below(self, number: Fraction) -> Fraction:
        """The number of the type before."""
        return -self.above(-number)

    def cut(self, edge: Any, closed: bool) -> tuple[Any, bool]:
        """Where a number must lie for its rounding (ties to even) to be < edge, or <= edge where `closed`."""
        at = Fraction(0) if edge in (float("inf"), -float("inf")) else fraction(edge)
        if edge > self.largest:
            at, closed = self.largest, True  # whatever is larger rounds to infinity
        elif edge < -self.largest:
            at, closed = -self.largest, False
        last = self.floor(at)
        if last == at and not closed:
            last = self.below(last)
        even = last / self.spacing(last) % 2 == 0
        return exact((last + self.above(last)) / 2), even


def _exponent(value: Fraction) -> int:
    """The exponent e with 2^e <= value < 2^(e + 1), for value > 0."""
    e = value.numerator.bit_length() - value.denominator.bit_length()
    return e if Fraction(2) ** e <= value else e - 1


FLOAT64 = FloatType("float64", 53, -1022, Fraction(2) ** 1023 * (2 - Fraction(1, 2**52)))
FLOAT32 = FloatType("float32", 24, -126, Fraction(2) ** 127 * (2 - Fraction(1, 2**23)))
FLOAT16 = FloatType("float16", 11, -14, Fraction(65504))
BFLOAT16 = FloatType("bfloat16", 8, -126, Fraction(2) ** 127 * (2 - Fraction(1, 2**7)))
FLOAT_TYPES = {each.name: each for each in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)}
