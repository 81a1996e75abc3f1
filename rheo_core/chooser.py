"""Randomness as an argument.

Nothing in rheo_core draws by itself. Every random step is one of two calls on a `Chooser`, so the same code can be
sampled, replayed on recorded draws, or walked through every outcome with exact weights (`exact.law`).
"""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rheo_core.errors import InvalidInput

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
        """The first position whose cumulative weight exceeds u times the sum."""
        row = check_weights(weights)
        u: Any = self.rng.random()
        if row.dtype == object:
            u = Fraction(u)
        else:  # brought near 1 by a power of two, so that neither huge nor subnormal weights are rounded away
            row = np.ldexp(row.astype(np.float64), -np.frexp(float(row.max()))[1])
        cumulative = np.add.accumulate(row)
        position = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
        return min(position, int(np.flatnonzero(row)[-1]))


class RecordingChooser:
    """Remembers each outcome by its address and gives it again whenever that address is asked for.

    Two constructions, or two implementations, given the same `record` therefore run on the same draws and coins
    whatever order they ask in. Addresses not yet in the record, and calls without one, go to `source`.
    """

    def __init__(self, source: Chooser, record: MutableMapping[Hashable, bool | int] | None = None) -> None:
        self.source = source
        self.record: MutableMapping[Hashable, bool | int] = {} if record is None else record

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """The outcome recorded at `at`; raises where it is impossible at this probability."""
        if at is None:
            return self.source.accept(probability)
        if at not in self.record:
            self.record[at] = self.source.accept(probability, at)
        outcome = bool(self.record[at])
        check_probability(probability)
        if probability == (0 if outcome else 1):
            raise InvalidInput("record", {at: outcome}, f"an outcome possible at probability {probability}")
        return outcome

    def index(self, weights: Any, at: Hashable | None = None) -> int:
        """The position recorded at `at`; raises where its weight is not positive."""
        if at is None:
            return self.source.index(weights)
        if at not in self.record:
            self.record[at] = self.source.index(weights, at)
        position = int(self.record[at])
        row = check_weights(weights)
        if not 0 <= position < len(row) or not row[position] > 0:
            raise InvalidInput("record", {at: position}, f"a position of positive weight among {len(row)}")
        return position


def check_probability(probability: Any) -> None:
    """Raise unless 0 <= probability <= 1 (NaN is refused too)."""
    try:
        possible = bool(0 <= probability <= 1)
    except (TypeError, ValueError):  # no number at all; more than one
        possible = False
    if not possible:
        raise InvalidInput("probability", probability, "a number in [0, 1]")


def check_weights(weights: Any) -> NDArray[Any]:
    """`weights` as a 1-D array; raises unless all are non-negative, finite and their sum is positive."""
    try:
        row = np.asarray(weights)
    except ValueError:  # rows of different lengths
        raise InvalidInput("weights", weights, "a non-empty 1-D row of numbers") from None
    if row.ndim != 1 or not len(row) or row.dtype.kind not in "iufO":
        raise InvalidInput("weights", weights, "a non-empty 1-D row of numbers")
    if not ((row >= 0) & (row < np.inf)).all():
        raise InvalidInput("weights", weights, "finite non-negative numbers")
    if not (row > 0).any():
        raise InvalidInput("weights", weights, "a positive sum")
    return row
