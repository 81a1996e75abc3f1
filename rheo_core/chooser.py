"""Randomness as an argument.

Nothing in rheo_core draws by itself. Every random step is one of two calls on a `Chooser`, so the same code can be
sampled, replayed on recorded draws, or walked through every outcome with exact weights (`exact.law`).
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from rheo_core.checks import check_probability, check_weights

Address = tuple[Any, ...]
"""("tail" | "coin" | "emit", cycle, slot path of the parent (root = ()), i)."""


class Chooser(Protocol):
    """The only source of randomness: a coin and a weighted draw."""

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """Toss a coin: True with the given probability, a number in [0, 1]."""
        ...

    def index(self, weights: Any, at: Hashable | None = None) -> int:
        """Draw a position with probability proportional to `weights` [n]; its weight is positive."""
        ...


class SamplingChooser:
    """Draws from a NumPy `Generator`: exactly one `rng.random()` a call, whatever the probability.

    A coin accepts when u < probability (strictly), so that probability 0 is never accepted and 1 always is.

    >>> chooser = SamplingChooser(np.random.default_rng(7))
    >>> chooser.accept(0), chooser.accept(1), chooser.index([0, 3, 0])
    (False, True, 1)
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """u < probability, strictly."""
        check_probability(probability)
        # A narrow float would pull u down to its own width: in float16 one u in 4096 rounds up to 1.
        exact = probability.item() if hasattr(probability, "item") else probability
        return bool(self.rng.random() < exact)

    def index(self, weights: Any, at: Hashable | None = None) -> int:
        """Give the first position whose cumulative weight exceeds u times the sum."""
        row = check_weights(weights)
        u: Any = self.rng.random()
        if row.dtype == object:
            u = Fraction(u)
        else:  # brought near 1 by a power of two, so that neither huge nor subnormal weights are rounded away
            row = np.ldexp(row.astype(np.float64), -np.frexp(float(row.max()))[1])
        cumulative = np.add.accumulate(row)
        position = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
        return min(position, int(np.flatnonzero(row)[-1]))
