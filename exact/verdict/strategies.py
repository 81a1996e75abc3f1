"""Hypothesis strategies for models and shapes, for anyone's own tests.

What breaks a decoder is rare in random rows, so it is drawn on purpose: zeros, ties, near-ties and one-hot rows, a
draft equal to the target, rows that change with the prefix, widths above the vocabulary. All rows are exact rationals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

from rheo_core import TreeShape
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
    """Integer weights of positive sum as a law.

    >>> [str(mass) for mass in law_of([1, 2, 0])]
    ['1/3', '2/3', '0']
    """
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


@dataclass(frozen=True)
class RowsByPrefix:
    """A model: one of a few laws [V] at each prefix, chosen by its tokens and their places."""

    rows: tuple[LawRow, ...]

    def __call__(self, prefix: Prefix) -> LawRow:
        """The law at `prefix`."""
        return self.rows[sum((place + 2) * (token + 1) for place, token in enumerate(prefix)) % len(self.rows)]

    def __repr__(self) -> str:
        laws = ", ".join("[" + ", ".join(str(mass) for mass in row) + "]" for row in self.rows)
        return f"RowsByPrefix({laws})"


@dataclass(frozen=True)
class ModelPair:
    """A target and a draft over one vocabulary of `size` tokens."""

    size: int
    target: RowsByPrefix
    draft: RowsByPrefix


def small_pairs() -> Iterator[ModelPair]:
    """A fixed grid of pairs over 2 to 4 tokens: falling, rising and tied draft rows, alike and changing by prefix."""
    for weights in SMALL_WEIGHTS:
        rows = tuple(law_of(row) for row in weights)
        size = len(rows[0])
        target = RowsByPrefix((law_of(range(1, size + 1)), law_of(range(size, 0, -1))))
        yield ModelPair(size, target, RowsByPrefix(rows))


def laws(size: int, largest: int = 6) -> st.SearchStrategy[LawRow]:
    """Laws [size] with integer weights up to `largest`: zeros, ties, near-ties and one-hot rows among them."""
    weights = st.lists(st.integers(0, largest), min_size=size, max_size=size).filter(any)
    one_hot = st.integers(0, size - 1).map(lambda token: [int(v == token) for v in range(size)])
    near_ties = st.permutations([1000 + v for v in range(size)])
    two_values = st.lists(st.sampled_from([1, 2]), min_size=size, max_size=size)
    return st.one_of(weights, two_values, one_hot, near_ties).map(law_of)


def pairs(size: int, largest: int = 6) -> st.SearchStrategy[tuple[LawRow, LawRow]]:
    """(p, q) over `size` tokens; sometimes p = q."""
    return st.tuples(laws(size, largest), laws(size, largest), st.integers(0, 4)).map(
        lambda drawn: (drawn[1], drawn[1]) if drawn[2] == 0 else drawn[:2]
    )


def models(size: int, most_rows: int = 3, largest: int = 6) -> st.SearchStrategy[RowsByPrefix]:
    """Models over `size` tokens with 1 to `most_rows` different rows."""
    return st.lists(laws(size, largest), min_size=1, max_size=most_rows).map(lambda rows: RowsByPrefix(tuple(rows)))


@st.composite
def model_pairs(draw: st.DrawFn, smallest: int = 1, most: int = 4, most_rows: int = 3, largest: int = 6) -> ModelPair:
    """A target and a draft over `smallest` to `most` tokens; sometimes the same model twice."""
    size = draw(st.integers(smallest, most))
    target = draw(models(size, most_rows, largest))
    draft = draw(st.one_of(models(size, most_rows, largest), st.just(target)))
    return ModelPair(size, target, draft)


@st.composite
def shapes(draw: st.DrawFn, width: int = 4, depth: int = 3, budget: int | None = None) -> TreeShape:
    """Shapes up to these sizes; `budget` None: up to the full tree."""
    k, d = draw(st.integers(1, width)), draw(st.integers(1, depth))
    full = k + (d - 1) * k * k
    return TreeShape(k, d, draw(st.integers(1, full if budget is None else min(budget, full))))
