"""A uniform number as a symbol: an interval that every comparison splits and narrows.

The symbol remembers what is known of it, so a coin that is compared twice, or used again for another draw, answers as
the same number would. Known numbers may be added, multiplied and so on; whatever is not followed raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from exact.enumeration.rationals import ONE, ZERO, exact
from exact.interception.symbolic_maps import Affine, AtLeast, AtMost, Edge, Exp, Floor, Log, Reciprocal, Step, number
from exact.runtime.unsupported import Unsupported

Branch = Callable[[Hashable, Callable[[], Sequence[Any]]], int]
FOLLOWED = "comparisons with numbers, + - * / with numbers, log, exp, min, max, floor, int, or a draw by argmax"
_MOST_INTEGERS = 1 << 16


class Coin:
    """One uniform number: what is known of it is that low <= u < high.

    With a `step`, it is a float as a generator makes it, one of the multiples of `step`; without, an ideal real number,
    for which `<` and `<=` are the same.
    """

    __slots__ = ("branch", "consumed", "high", "low", "number", "step")

    def __init__(self, branch: Branch, number: int, step: Any = None) -> None:
        self.branch = branch
        self.number = number
        self.step = step
        self.low, self.high = ZERO, ONE
        self.consumed: str | None = None

    @property
    def unused(self) -> bool:
        """Whether nothing is known of it yet."""
        return self.consumed is None and self.low == 0 and self.high == 1

    def below(self, at: Any, closed: bool) -> bool:
        """u < at, or u <= at where `closed`: an outcome of the walk unless it is known already."""
        if self.consumed is not None:
            raise Unsupported(
                "a second use of noise", f"a uniform drawn from by {self.consumed}", "noise that is used once"
            )
        if isinstance(at, float) and math.isinf(at):
            return at > 0
        if self.step is not None:
            count = at / self.step
            whole = count.numerator // count.denominator
            at = self.step * (whole + 1 if closed or whole != count else whole)
        if at <= self.low:
            return False
        if at >= self.high:
            return True
        low, high = self.low, self.high
        if self.branch(("uniform", self.number, at), lambda: (at - low, high - at)) == 0:
            self.high = at
            return True
        self.low = at
        return False

    def consume(self, use: str) -> None:
        """Forget the coin: it has decided a draw whose memory an interval cannot hold."""
        self.consumed = use


class Uniform:
    """A monotone function of one `Coin`, standing where the code expects a float.

    >>> coin = Coin(lambda call, weights: 1, 0)
    >>> u = Uniform(coin)
    >>> 1 - 2 * u < 0, u < 0.5, u >= 0.25
    (True, False, True)
    """

    __slots__ = ("coin", "steps")
    __array_priority__ = 1000.0
    followed_by_torch: ClassVar[Callable[..., Any]]
    """What answers torch's functions; `symbolic_tensors` sets it."""

    def __init__(self, coin: Coin, steps: tuple[Step, ...] = ()) -> None:
        self.coin = coin
        self.steps = steps

    def then(self, step: Step) -> Uniform:
        """This number sent through one more map; affine maps are merged."""
        if self.steps and isinstance(step, Affine) and isinstance(last := self.steps[-1], Affine):
            merged = Affine(last.a * step.a, last.b * step.a + step.b)
            return Uniform(self.coin, self.steps[:-1] if merged == Affine(ONE, ZERO) else (*self.steps[:-1], merged))
        return Uniform(self.coin, (*self.steps, step))

    @property
    def positive(self) -> bool:
        """Whether it is known to lie above 0 whatever its coin is (0 itself has no mass)."""
        if not self.steps or isinstance(self.steps[-1], Exp | Reciprocal):
            return True
        if not isinstance(last := self.steps[-1], Affine) or last.b < 0:
            return False
        inner = Uniform(self.coin, self.steps[:-1])
        if inner.steps == (Log(),):
            return bool(last.a < 0)
        return bool(last.a > 0 and inner.positive) or (not inner.steps and last.a + last.b >= 0)

    # Comparisons: each is value < t or value <= t, or the opposite of one of them.

    def below(self, t: Any, closed: bool, symbol: str) -> bool:
        """value < t, or value <= t where `closed`, for a known number t or a function of the same coin."""
        if isinstance(t, Uniform):
            return self._below_another(t, closed, symbol)
        edge = Edge(number(t, f"`{symbol}`"), closed)
        for step in reversed(self.steps):
            inverted = step.invert(edge)
            if isinstance(inverted, bool):
                return inverted
            edge = inverted
        return self.coin.below(edge.at, edge.closed) is not edge.flipped

    def _below_another(self, other: Uniform, closed: bool, symbol: str) -> bool:
        mine, theirs = self._affine(), other._affine()
        if self.coin is other.coin and self.steps == other.steps:
            return closed
        if self.coin is not other.coin or mine is None or theirs is None:
            raise Unsupported(f"`{symbol}`", f"{self!r} against {other!r}", "a comparison with a number")
        a, b = mine.a - theirs.a, theirs.b - mine.b
        if a == 0:
            return bool(b > 0 or (closed and b == 0))
        return Uniform(self.coin, (Affine(a, ZERO),)).below(b, closed, symbol)

    def _affine(self) -> Affine | None:
        if not self.steps:
            return Affine(ONE, ZERO)
        return self.steps[0] if len(self.steps) == 1 and isinstance(self.steps[0], Affine) else None

    def __lt__(self, other: Any) -> Any:
        return self._elementwise("lt", other) if _is_array(other) else self.below(other, False, "<")

    def __le__(self, other: Any) -> Any:
        return self._elementwise("le", other) if _is_array(other) else self.below(other, True, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._elementwise("gt", other) if _is_array(other) else not self.below(other, True, ">")

    def __ge__(self, other: Any) -> Any:
        return self._elementwise("ge", other) if _is_array(other) else not self.below(other, False, ">=")

    def __eq__(self, other: object) -> Any:
        if _is_array(other):
            return self._elementwise("eq", other)
        return _comparable(other) and self.below(other, True, "==") and not self.below(other, False, "==")

    def __ne__(self, other: object) -> Any:
        return self._elementwise("ne", other) if _is_array(other) else not self == other

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __hash__(self) -> int:
        raise Unsupported("hash", self, FOLLOWED)

    # Arithmetic with known numbers, or with an affine function of the same coin.

    def _shifted(self, a: int, other: Any, b: int, symbol: str) -> Any:
        """a * self + b * other."""
        if isinstance(other, Uniform):
            mine, theirs = self._affine(), other._affine()
            if self.coin is not other.coin or mine is None or theirs is None:
                raise Unsupported(f"`{symbol}`", f"{self!r} and {other!r}", "at most one uniform in a sum")
            return _affine(Uniform(self.coin), a * mine.a + b * theirs.a, a * mine.b + b * theirs.b)
        shift = number(other, f"`{symbol}`")
        if isinstance(shift, float):
            return b * shift
        return _affine(self, exact(a), b * shift)

    def __add__(self, other: Any) -> Any:
        return self._elementwise("add", other) if _is_array(other) else self._shifted(1, other, 1, "+")

    def __radd__(self, other: Any) -> Any:
        return self._shifted(1, other, 1, "+")

    def __sub__(self, other: Any) -> Any:
        return self._elementwise("subtract", other) if _is_array(other) else self._shifted(1, other, -1, "-")

    def __rsub__(self, other: Any) -> Any:
        return self._shifted(-1, other, 1, "-")

    def __mul__(self, other: Any) -> Any:
        if _is_array(other):
            return self._elementwise("multiply", other)
        if isinstance(other, Uniform):
            raise Unsupported("`*`", f"{self!r} and {other!r}", "at most one uniform in a product")
        factor = number(other, "`*`")
        if isinstance(factor, float):
            return math.nan if self == 0 else math.copysign(math.inf, factor) * (1 if self > 0 else -1)
        return _affine(self, factor, ZERO)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        if _is_array(other):
            return self._elementwise("true_divide", other)
        if isinstance(other, Uniform):
            if self.coin is other.coin and self.steps == other.steps:
                return math.nan if self == 0 else 1.0
            raise Unsupported("`/`", f"{self!r} and {other!r}", "at most one uniform in a quotient")
        divisor = number(other, "`/`")
        if isinstance(divisor, float):
            return 0.0
        return self * math.inf if divisor == 0 else _affine(self, 1 / divisor, ZERO)

    def __rtruediv__(self, other: Any) -> Any:
        dividend = number(other, "`/`")
        if self < 0:
            return -((-self).__rtruediv__(other))
        if dividend == 0:
            return math.nan if self == 0 else 0.0
        return self.then(Reciprocal()) * other

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    # Maps. NumPy calls `log`, `exp` and so on of the objects that an array holds.

    def log(self) -> Any:
        """Natural logarithm; NaN where the number is negative, as in torch and NumPy."""
        if self.steps and isinstance(self.steps[-1], Exp):
            return Uniform(self.coin, self.steps[:-1])
        return math.nan if self < 0 else self.then(Log())

    def log1p(self) -> Any:
        """ln(1 + x)."""
        return (self + 1).log()

    def exp(self) -> Any:
        """e^x."""
        if self.steps and isinstance(self.steps[-1], Log):
            return Uniform(self.coin, self.steps[:-1])
        return self.then(Exp())

    def reciprocal(self) -> Any:
        """1 / x."""
        return 1 / self

    def at_least(self, bound: Any) -> Any:
        """max(x, bound)."""
        least = number(bound, "max")
        return self if least == -math.inf else bound if least == math.inf else self.then(AtLeast(least))

    def at_most(self, bound: Any) -> Any:
        """min(x, bound)."""
        most = number(bound, "min")
        return self if most == math.inf else bound if most == -math.inf else self.then(AtMost(most))

    def floor(self) -> Any:
        """The integer below, still a symbol; `int(u)` makes it a number."""
        return self.then(Floor())

    def __floor__(self) -> int:
        return self._integer()

    def __ceil__(self) -> int:
        below: int = math.floor(-self)
        return -below

    def __int__(self) -> int:
        return math.ceil(self) if self < 0 else self._integer()

    __trunc__ = __int__

    def _integer(self) -> int:
        """The integer below, by bisection over the values it can take."""
        reach = 1
        while not (-reach <= self and self < reach):
            reach *= 2
            if reach > _MOST_INTEGERS:
                raise Unsupported("int", self, f"an integer within {_MOST_INTEGERS}")
        low, high = -reach, reach
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self < middle else (middle, high)
        return low

    # Where a symbol cannot stand.

    def _refused(self, operation: str) -> Any:
        raise Unsupported(operation, self, FOLLOWED)

    def __float__(self) -> float:
        return self._refused("float")  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return self._refused("use as an index")  # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        return self._refused("complex")  # type: ignore[no-any-return]

    def __round__(self, digits: int | None = None) -> Any:
        return self._refused("round")

    def __pow__(self, other: Any) -> Any:
        return self._refused("`**`")

    def __rpow__(self, other: Any) -> Any:
        return self._refused("`**`")

    def __mod__(self, other: Any) -> Any:
        return self._refused("`%`")

    def __rmod__(self, other: Any) -> Any:
        return self._refused("`%`")

    def __floordiv__(self, other: Any) -> Any:
        return (self / other).__floor__()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"a uniform has no attribute {name!r}")
        return self._refused(f"`.{name}`")

    def __copy__(self) -> Uniform:
        return self

    def __deepcopy__(self, memo: Any) -> Uniform:
        return self

    def item(self) -> Uniform:
        """Itself, as of a NumPy scalar."""
        return self

    def __repr__(self) -> str:
        return f"uniform {self.coin.number + 1}" + "".join(f" -> {step}" for step in self.steps)

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _elementwise(self, name: str, other: Any) -> Any:
        """The same operation on a NumPy array, one by one; a tensor does its own, with this number on the right."""
        if not type(other).__module__.startswith("numpy"):
            return NotImplemented
        import numpy as np

        ufunc = _UFUNCS.get(name, name)
        return getattr(np, ufunc)(self, other)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls.followed_by_torch(func, args, kwargs or {})


_UFUNCS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip


def _refused_by_name(name: str) -> Callable[..., Any]:
    def refused(self: Uniform, *args: Any) -> Any:
        return self._refused(name)

    return refused


_NUMPY_ASKS = [
    "sqrt", "cbrt", "square", "log2", "log10", "exp2", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "arcsin",
    "arccos", "arctan", "rint", "ceil", "trunc", "conjugate", "degrees", "radians",
]  # fmt: skip
for _name in _NUMPY_ASKS:  # NumPy looks these up on the objects of an array, and would not say where it failed
    setattr(Uniform, _name, _refused_by_name(f"{_name}"))


def _affine(x: Uniform, a: Any, b: Any) -> Any:
    """a x + b; a number where a is 0."""
    if a == 0:
        return float(b)
    return x if a == 1 and b == 0 else x.then(Affine(a, b))


def _is_array(value: Any) -> bool:
    """Whether the value is a tensor or an array (of any shape) rather than a number."""
    if isinstance(value, Uniform | int | float):
        return False
    return hasattr(value, "shape") and hasattr(value, "ndim") and hasattr(value, "__array_priority__")


def _comparable(value: object) -> bool:
    return isinstance(value, Uniform) or hasattr(value, "as_integer_ratio") or hasattr(value, "item")
