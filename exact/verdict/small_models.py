"""A fixed grid of small models, all rows exact rationals: on these every rule of a user's own is tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rheo_core.models import Prefix

LawRow = tuple[Fraction, ...]

SMALL_WEIGHTS: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((1, 2),),
    ((2, 1),),
    ((1, 1), (1, 0)),
    ((1, 2), (0, 1)),
    ((5, 3, 2),),
    ((1, 2, 2),),
    ((1, 2, 2), (1, 1, 1), (1, 0, 0)),
    ((1, 2, 3), (3, 1, 2)),
    ((1, 1, 1), (2, 1, 0)),
    ((1, 2, 3, 4),),
    ((2, 2, 1, 1), (1, 0, 0, 1)),
)
"""Weights of the draft rows of `small_pairs`."""


def law_of(weights: Sequence[int]) -> LawRow:
    """Integer weights of positive sum as a distribution.

    >>> [str(mass) for mass in law_of([1, 2, 0])]
    ['1/3', '2/3', '0']
    """
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


@dataclass(frozen=True)
class RowsByPrefix:
    """A model: one of a few laws [V] at each prefix, chosen by its tokens and their places."""

    rows: tuple[LawRow, ...]

    def __call__(self, prefix: Prefix) -> LawRow:
        """Give the distribution at `prefix`."""
        return self.rows[sum((place + 2) * (token + 1) for place, token in enumerate(prefix)) % len(self.rows)]

    def __repr__(self) -> str:
        laws = ", ".join("[" + ", ".join(str(mass) for mass in row) + "]" for row in self.rows)
        return f"RowsByPrefix({laws})"


@dataclass(frozen=True)
class DrawnModels:
    """A target and a draft over one vocabulary of `size` tokens."""

    size: int
    target: RowsByPrefix
    draft: RowsByPrefix


def small_pairs() -> Iterator[DrawnModels]:
    """A fixed grid of pairs over 2 to 4 tokens: falling, rising and tied draft rows, alike and changing by prefix."""
    for weights in SMALL_WEIGHTS:
        rows = tuple(law_of(row) for row in weights)
        size = len(rows[0])
        target = RowsByPrefix((law_of(range(1, size + 1)), law_of(range(size, 0, -1))))
        yield DrawnModels(size, target, RowsByPrefix(rows))
