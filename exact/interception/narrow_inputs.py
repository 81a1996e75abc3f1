"""What a function met in a type narrower than float64: which types, and which rows of probabilities came in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from exact.interception.symbolic_maps import FLOAT_TYPES
from rheo_core import InvalidInput

Met = tuple[str, float, str]
"""A type by its name, its eps (the spacing of its numbers at 1), and how it is known."""

_MOST_LAWS, _SAME = 10_000, 2.0**-50


def type_eps(name: str) -> float:
    """The eps of a float type by its name."""
    return float(2.0 ** (1 - FLOAT_TYPES[name].precision))


def declared_type(dtype: Any, eps: Any) -> Met:
    """The type that a user declares, by itself or by its eps (neither: none, of eps 0)."""
    if dtype is not None and eps is not None:
        raise InvalidInput("eps", eps, "dtype or eps, not both")
    if dtype is not None:
        name = str(getattr(dtype, "__name__", dtype)).removeprefix("torch.")
        if name not in FLOAT_TYPES:
            raise InvalidInput("dtype", dtype, f"one of {', '.join(FLOAT_TYPES)}")
        return name, type_eps(name), "as declared"
    if eps is None:
        return "", 0.0, ""
    if not isinstance(eps, float) or not 0 < eps < 1:
        raise InvalidInput("eps", eps, "a number between 0 and 1: the spacing of the type's numbers at 1")
    return f"a type of eps {eps:g}", float(eps), "as declared"


class NarrowInputs:
    """What a run met in narrower types: the types, by name and eps, and the laws that came from outside."""

    def __init__(self) -> None:
        self.eps: float | None = None
        self.types: dict[str, float] = {}
        self.laws: list[Any] = []
        self._raw: list[tuple[list[float], Callable[[list[float]], list[float]]]] = []

    def meet(self, name: str) -> None:
        """Note a narrower type that the code asks for."""
        if name in FLOAT_TYPES and name != "float64":
            self.types[name] = type_eps(name)

    def coarsest(self, usual: float) -> Met:
        """The coarsest type met, or the usual one where none is coarser."""
        name, eps = max(self.types.items(), key=lambda each: each[1], default=("", 0.0))
        if eps > usual:
            return name, eps, "found inside"
        return next(name for name in FLOAT_TYPES if type_eps(name) == usual), usual, "its type"

    def widened(self, values: Any, name: str, rounding: Callable[[list[float]], list[float]]) -> Any:
        """An array or tensor that is in float64 by now, from the type of this name: rows along the last dimension over
        their sums, where all of them are laws to within V eps. `rounding` takes a row of numbers to that type."""
        self.meet(name)
        eps = type_eps(name)
        self.eps = max(eps, self.eps or 0.0)
        if not values.ndim or values.shape[-1] < 2:
            return values
        sums = values.sum(-1)[..., None]
        if not bool((values >= 0).all()) or not bool((abs(sums - 1) <= values.shape[-1] * eps).all()):
            return values
        laws = values / sums
        if len(self.laws) < _MOST_LAWS:
            self.laws += laws.reshape(-1, values.shape[-1]).tolist()
            self._raw += [(row, rounding) for row in values.reshape(-1, values.shape[-1]).tolist()]
        return laws

    def has(self, law: Mapping[Any, Any]) -> bool:
        """Whether a law of tokens is one of the inputs: then nothing but the function lies between the two."""
        return any(
            all(abs(float(law.get(token, 0)) - p) <= _SAME for token, p in enumerate(row))
            and all(token in range(len(row)) for token in law)
            for row in self.laws
        )

    def unrounded(self, law: Mapping[Any, Fraction]) -> list[float] | None:
        """The input that is this law rounded to its type, to the bit, as a law in float64; None where none is."""
        for (raw, rounding), row in zip(self._raw, self.laws, strict=True):
            if all(token in range(len(raw)) for token in law):
                exactly = [float(law.get(token, 0)) for token in range(len(raw))]
                if rounding(exactly) == raw:
                    return list(row)
        return None
