"""Path scores by keys that stand in their order.

Growth compares and merges products of draft probabilities. As rationals they cost more than all the rest, so each
distinct score is kept once and known by a key: its value rounded down, negated, so that the best comes first. Where two
distinct scores have one key, `TooClose` is raised and the work is begun again with more digits: no order is rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from exact.enumeration.rationals import ONE

FLOAT, BITS = 0, 1024
"""Digits kept: those of a float first, which are the fastest, then so many."""

Key = float | int
T = TypeVar("T")


class TooClose(Exception):
    """Two distinct scores that the digits kept do not tell apart."""


class Scores:
    """Scores in [0, 1] by their keys."""

    def __init__(self, bits: int = FLOAT) -> None:
        self.bits = bits
        self.root = self._key(ONE)
        self._values: dict[Key, Any] = {self.root: ONE}
        self._products: dict[tuple[Key, Any], Key] = {}

    def _key(self, value: Any) -> Key:
        if self.bits == FLOAT:
            return -float(value)  # towards zero, as floor division is: neither turns an order round
        return -int((value.numerator << self.bits) // value.denominator)

    def value(self, key: Key) -> Any:
        """The score of a key."""
        return self._values[key]

    def times(self, key: Key, factor: Any) -> Key:
        """The key of a score times a factor in [0, 1]."""
        found = self._products.get((key, factor))
        if found is None:
            value = self._values[key] * factor
            found = self._key(value)
            if self._values.setdefault(found, value) != value:
                raise TooClose
            self._products[key, factor] = found
        return found


def told_apart(work: Callable[[Scores], T], bits: int = FLOAT) -> T:
    """The result of work on scores, with as many digits as it takes to tell all of them apart."""
    while True:
        try:
            return work(Scores(bits))
        except TooClose:
            bits = 2 * bits or BITS
