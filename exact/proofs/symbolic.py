"""Numbers that are ratios of polynomials in positive unknowns, on which rheo_core runs as it stands.

The reference code asks a number to add, divide and compare. Here a comparison is decided by the signs of coefficients,
once for every point of a cell; where they are of both signs the cell says too little and `Undecided` is raised, never
a guess. Coins and draws become branches whose weights are such numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exact.enumeration.walk import Walk
from exact.proofs.engines.rings import cancelled, sign
from rheo_core.chooser import Chooser
from rheo_core.laws import Row

ZERO, ONE = 0, 1  # the ints that object rows hold where there is nothing, and that stand below a polynomial


class Undecided(ArithmeticError):
    """A comparison that does not come out alike on the whole cell."""


class Symbolic:
    """num / den, polynomials (or ints) in unknowns that are all positive; den is positive everywhere.

    >>> from exact.proofs.engines.rings import generators
    >>> a, e = (Symbolic(x) for x in generators(["a", "e"]))
    >>> min(1, a / (a + e)) == a / (a + e), a + e > a, (a + e) / (a + e) == 1
    (True, True, True)
    """

    __slots__ = ("den", "num")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, num: Any, den: Any = 1) -> None:
        self.num = num
        self.den = den

    @classmethod
    def make(cls, num: Any, den: Any) -> Symbolic:
        """Give the value in this class's own form; here as it comes."""
        return cls(num, den) if num != den else cls(1)

    def sign(self) -> int:
        """1, 0 or -1, the same at every point; raises `Undecided` where it is not."""
        found = sign(self.num)
        if found is None:
            raise Undecided(f"the sign of {self.num}")
        return found

    def __bool__(self) -> bool:
        return bool(self.num != 0)

    def __repr__(self) -> str:
        return f"({self.num})/({self.den})"

    def _other(self, value: Any) -> Symbolic | None:
        kind = type(value)
        if kind is type(self) or isinstance(value, Symbolic):
            return value  # type: ignore[no-any-return]
        if kind is int:
            return type(self)(value)
        if isinstance(value, str | float):
            return None
        if hasattr(value, "numerator") and hasattr(value, "denominator"):  # rationals
            return type(self)(int(value.numerator), int(value.denominator))
        return type(self)(value)  # a polynomial

    def __add__(self, value: Any) -> Any:
        if value is ZERO:
            return self
        other = self._other(value)
        if other is None:
            return NotImplemented
        one, two = self.den, other.den
        if one is two or one == two:
            return self.make(self.num + other.num, one)
        if two is ONE:
            return self.make(self.num + other.num * one, one)
        if one is ONE:
            return self.make(self.num * two + other.num, two)
        return self.make(self.num * two + other.num * one, one * two)

    def __neg__(self) -> Symbolic:
        return type(self)(-self.num, self.den)

    def __sub__(self, value: Any) -> Any:
        if value is ZERO:
            return self
        other = self._other(value)
        if other is None:
            return NotImplemented
        if self.den is other.den:
            return self.make(self.num - other.num, self.den)
        return self + (-other)

    def __rsub__(self, value: Any) -> Any:
        return (-self) + value

    def __mul__(self, value: Any) -> Any:
        other = self._other(value)
        if other is None:
            return NotImplemented
        if self.den == other.num:
            return self.make(self.num, other.den)
        if other.den == self.num:
            return self.make(other.num, self.den)
        return self.make(self.num * other.num, self.den * other.den)

    def __truediv__(self, value: Any) -> Any:
        other = self._other(value)
        if other is None:
            return NotImplemented
        way = other.sign()
        if way == 0:
            raise ZeroDivisionError(f"{self} / {other}")
        if way < 0:
            return -self / -other
        if self.den == other.den:
            return self.make(self.num, other.num)
        return self.make(self.num * other.den, self.den * other.num)

    def __rtruediv__(self, value: Any) -> Any:
        if value is ZERO and self.sign():
            return ZERO
        other = self._other(value)
        return NotImplemented if other is None else other / self

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, value: object) -> bool:
        other = self._other(value)
        if other is None:
            return NotImplemented
        if self.den == other.den:
            return bool(self.num == other.num)
        return bool(self.num * other.den == other.num * self.den)

    def __lt__(self, value: Any) -> bool:
        return bool((self - value).sign() < 0)

    def __le__(self, value: Any) -> bool:
        return bool((self - value).sign() <= 0)

    def __gt__(self, value: Any) -> bool:
        return bool((self - value).sign() > 0)

    def __ge__(self, value: Any) -> bool:
        return bool((self - value).sign() >= 0)


class Reduced(Symbolic):
    """The same, in lowest terms: for long products, whose denominators would grow without end."""

    __slots__ = ()

    @classmethod
    def make(cls, num: Any, den: Any) -> Symbolic:
        """Give the value in lowest terms."""
        return cls(1, 1) if num == den else cls(*cancelled(num, den))


def row_of(values: Sequence[Any]) -> Row:
    """Give an object row [n] of numbers of any kind."""
    row = np.empty(len(values), dtype=object)
    row[:] = values
    return row


class SymbolicChooser:
    """The chooser of a `Walk` whose weights are symbolic: accept gives P and 1 - P, index w_i / sum(w).

    What `check_probability` and `check_weights` refuse is refused here by the signs on the whole cell.
    """

    def __init__(self, walk: Walk, kind: type[Symbolic] = Reduced) -> None:
        self.walk = walk
        self.kind = kind

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """Give both answers, with P and 1 - P."""
        given = self._number(probability)
        if given.sign() < 0 or (1 - given).sign() < 0:
            raise Undecided(f"a coin of probability {given}")
        return self.walk.branch(("accept", given), lambda: (given, 1 - given), at) == 0

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """Give every position, with w_i / sum(w)."""
        row = [self._number(weight) for weight in np.asarray(weights).tolist()]
        if any(weight.sign() < 0 for weight in row):
            raise Undecided(f"a draw with weights {row}")
        return self.walk.branch(("index", tuple(row)), lambda: row, at)

    def _number(self, value: Any) -> Symbolic:
        return value if isinstance(value, Symbolic) else self.kind(int(value))


def branches(program: Callable[[Chooser], Any]) -> Iterator[tuple[Any, Any]]:
    """(result, symbolic weight) of every run of `program(chooser)`."""
    walk = Walk()
    chooser = SymbolicChooser(walk)
    yield from walk.runs(lambda: program(chooser))


def law(program: Callable[[Chooser], Hashable]) -> dict[Hashable, Any]:
    """Give the distribution of `program(chooser)`, its masses symbolic numbers."""
    masses: dict[Hashable, Any] = {}
    for result, weight in branches(program):
        masses[result] = masses[result] + weight if result in masses else weight
    return masses
