"""Monotone maps of one number, followed exactly by inverting them.

A comparison `f(x) < t` is turned into one of x itself, so that whatever is computed from a uniform by known numbers
narrows the uniform's own interval. Only `Log` and `Exp` meet irrational edges: those are taken to 100 digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from exact.enumeration.rationals import exact, fraction
from exact.runtime.unsupported import Unsupported, invalid


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


def number(value: Any, operation: str) -> Any:
    """The exact value of a known number; infinities stay floats; NaN and what is no number raise."""
    if isinstance(value, float):
        if value != value:
            raise invalid(operation, value, "a number that is not NaN")
        return value if math.isinf(value) else exact(value)
    if hasattr(value, "item"):
        inner = value.item()
        if inner is value:
            raise Unsupported(operation, value, "a known number beside a uniform")
        return number(inner, operation)
    try:
        return exact(value)
    except ValueError:
        raise Unsupported(operation, value, "a number beside a uniform") from None


DIGITS = 100
_CONTEXT = Context(prec=DIGITS, Emin=-(10**9), Emax=10**9)
_LARGEST_EXPONENT = 10**6


class Edge(NamedTuple):
    """`value < at`, or `value <= at` where `closed`; the answer is to be negated where `flipped`."""

    at: Any
    closed: bool
    flipped: bool = False


Inverted = Edge | bool


@dataclass(frozen=True)
class Affine:
    """a x + b, with a != 0; both are exact."""

    a: Any
    b: Any

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        at = edge.at if _infinite(edge.at) else (edge.at - self.b) / self.a
        if self.a > 0:
            return edge._replace(at=at)
        return Edge(-at if _infinite(at) else at, not edge.closed, not edge.flipped)


@dataclass(frozen=True)
class Log:
    """ln x, for x >= 0."""

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        if edge.at == -math.inf:
            return edge._replace(at=exact(0)) if edge.closed else edge.flipped
        return edge if edge.at == math.inf else edge._replace(at=exponential(edge.at))


@dataclass(frozen=True)
class Exp:
    """e^x."""

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        if edge.at <= 0:
            return edge.flipped
        return edge if edge.at == math.inf else edge._replace(at=logarithm(edge.at))


@dataclass(frozen=True)
class Reciprocal:
    """1 / x, for x >= 0 (1 / 0 = +inf)."""

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        if edge.at < 0 or (edge.at == 0 and not edge.closed):
            return edge.flipped
        at = math.inf if edge.at == 0 else exact(0) if edge.at == math.inf else 1 / edge.at
        return Edge(at, not edge.closed, not edge.flipped)


@dataclass(frozen=True)
class AtLeast:
    """max(x, c)."""

    c: Any

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        return edge if self.c < edge.at or (edge.closed and self.c == edge.at) else edge.flipped


@dataclass(frozen=True)
class AtMost:
    """min(x, c)."""

    c: Any

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        return not edge.flipped if self.c < edge.at or (edge.closed and self.c == edge.at) else edge


@dataclass(frozen=True)
class Floor:
    """The largest integer that is at most x."""

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        if _infinite(edge.at):
            return edge
        at = math.floor(fraction(edge.at)) + 1 if edge.closed else math.ceil(fraction(edge.at))
        return Edge(exact(at), False, edge.flipped)


@dataclass(frozen=True)
class Rounded:
    """x rounded to a narrower float type, ties to even."""

    kind: FloatType

    def invert(self, edge: Edge) -> Inverted:
        """The edge on x, or the answer where it does not depend on x."""
        if _infinite(edge.at) and edge.closed == (edge.at > 0):
            return edge
        at, closed = self.kind.cut(edge.at, edge.closed)
        return Edge(at, closed, edge.flipped)


Step = Affine | Log | Exp | Reciprocal | AtLeast | AtMost | Floor | Rounded


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _decimal(value: Any) -> Decimal:
    number = Fraction(int(value.numerator), int(value.denominator))
    return _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))


def exponential(value: Any) -> Any:
    """e^value as an exact rational: itself where value is 0, otherwise correct to 100 digits.

    The exponent is first split so that its own 100 digits are enough; beyond 10^6 the result counts as 0 or infinite.

    >>> float(exponential(Fraction(1))) == math.e
    True
    """
    if value > _LARGEST_EXPONENT:
        return math.inf
    if value < -_LARGEST_EXPONENT:
        return exact(0)
    return exact(Fraction(_CONTEXT.exp(_decimal(value)))) if value else exact(1)


def logarithm(value: Any) -> Any:
    """ln(value) for value > 0 as an exact rational, correct to 100 digits."""
    return exact(Fraction(_CONTEXT.ln(_decimal(value)))) if value != 1 else exact(0)
