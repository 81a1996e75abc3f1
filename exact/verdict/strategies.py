"""Hypothesis strategies for models and shapes, for anyone's own tests.

What breaks a decoder is rare in random rows, so it is drawn on purpose: zeros, ties, near-ties and one-hot rows, a
draft equal to the target, rows that change with the prefix, widths above the vocabulary. All rows are exact rationals.
"""

from __future__ import annotations

from hypothesis import strategies as st

from exact.verdict.small_models import DrawnModels, LawRow, RowsByPrefix, law_of, small_pairs
from rheo_core import TreeShape

__all__ = [
    "DrawnModels",
    "LawRow",
    "RowsByPrefix",
    "law_of",
    "laws",
    "model_pairs",
    "models",
    "pairs",
    "shapes",
    "small_pairs",
]


def laws(size: int, largest: int = 6) -> st.SearchStrategy[LawRow]:
    """Distributions [size] with integer weights up to `largest`: zeros, ties, near-ties and one-hot rows among them."""
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
def model_pairs(draw: st.DrawFn, smallest: int = 1, most: int = 4, most_rows: int = 3, largest: int = 6) -> DrawnModels:
    """Give a target and a draft over `smallest` to `most` tokens; sometimes the same model twice."""
    size = draw(st.integers(smallest, most))
    target = draw(models(size, most_rows, largest))
    draft = draw(st.one_of(models(size, most_rows, largest), st.just(target)))
    return DrawnModels(size, target, draft)


@st.composite
def shapes(draw: st.DrawFn, width: int = 4, depth: int = 3, budget: int | None = None) -> TreeShape:
    """Shapes up to these sizes; `budget` None: up to the full tree."""
    k, d = draw(st.integers(1, width)), draw(st.integers(1, depth))
    full = k + (d - 1) * k * k
    return TreeShape(k, d, draw(st.integers(1, full if budget is None else min(budget, full))))
