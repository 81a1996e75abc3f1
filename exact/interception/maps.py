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

from exact.arithmetic import exact, fraction
from exact.interception.rounding import FloatType

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
