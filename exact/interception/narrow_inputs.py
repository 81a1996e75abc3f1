"""What a function got from outside in a type narrower than float64: which types, and which rows of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST_LAWS, _SAME = 10_000, 2.0**-50


class Seen:
    """What came from outside in a narrower type: the coarsest type, by its eps (None: nothing), and the laws."""

    def __init__(self) -> None:
        self.eps: float | None = None
        self.laws: list[Any] = []

    def widened(self, values: Any, eps: float) -> Any:
        """An array or tensor that is in float64 by now, from a type of this eps: rows along the last dimension over
        their sums, where all of them are laws to within V eps."""
        self.eps = max(eps, self.eps or 0.0)
        if not values.ndim or values.shape[-1] < 2:
            return values
        sums = values.sum(-1)[..., None]
        if not bool((values >= 0).all()) or not bool((abs(sums - 1) <= values.shape[-1] * eps).all()):
            return values
        laws = values / sums
        if len(self.laws) < _MOST_LAWS:
            self.laws += laws.reshape(-1, values.shape[-1]).tolist()
        return laws

    def has(self, law: Mapping[Any, Any]) -> bool:
        """Whether a law of tokens is one of the inputs: then nothing but the function lies between the two."""
        return any(
            all(abs(float(law.get(token, 0)) - p) <= _SAME for token, p in enumerate(row))
            and all(token in range(len(row)) for token in law)
            for row in self.laws
        )
