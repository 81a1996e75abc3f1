"""Pairs of models for the tests: constant, prefix-dependent, and drawn by Hypothesis with the awkward rows in front.

Zeros, ties, near-ties and one-hot rows are where constructions and verification rules go wrong, so half of what is
drawn has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rheo_core import ModelPair, TreeShape, methods

Model = Callable[[tuple[int, ...]], Any]


def rational(*weights: int) -> list[Fraction]:
    """The law proportional to integer weights."""
    return [Fraction(weight, sum(weights)) for weight in weights]


def alike(row: Any) -> Model:
    """The same row at every prefix."""
    return lambda prefix: row


def rule(name: str, **changes: Any) -> Any:
    """A built-in tree method with other parts."""
    method: Any = methods[name]
    return replace(method, **changes) if changes else method


def both(row: Any) -> tuple[Model, Model]:
    """One row for target and draft at every prefix; a model stands for itself."""
    model: Model = row if callable(row) else alike(row)
    return model, model


def varied(*rows: Any) -> Model:
    """Rows that change with the prefix: its length, its tokens and their order."""
    return lambda prefix: rows[sum((i + 2) * (token + 1) for i, token in enumerate(prefix)) % len(rows)]


@dataclass(frozen=True)
class Models:
    """A target and a draft over one vocabulary, with a readable description."""

    name: str
    size: int
    target: Model
    draft: Model

    def __repr__(self) -> str:
        return self.name

    def pair(self) -> ModelPair:
        return ModelPair(self.target, self.draft)


def models(name: str, targets: Sequence[Any], drafts: Sequence[Any]) -> Models:
    return Models(name, len(targets[0]), varied(*targets), varied(*drafts))


HAND_MADE = (
    models("table-1", [rational(5, 2, 3)], [rational(5, 3, 2)]),
    models("p = q", [rational(1, 2, 3), rational(3, 2, 1)], [rational(1, 2, 3), rational(3, 2, 1)]),
    models("uniform", [rational(3, 1, 2)], [rational(1, 1, 1)]),
    models("ties across parents", [rational(1, 2, 1), rational(2, 1, 1)], [rational(1, 4, 1), rational(4, 1, 4)]),
    models("one-hot draft", [rational(1, 2, 1)], [[1, 0, 0], rational(0, 1, 1)]),
    models("one-hot target", [[0, 0, 1], rational(1, 1, 2)], [rational(1, 2, 1)]),
    models("zeros apart", [rational(0, 1, 1), rational(1, 0, 1)], [rational(1, 1, 0), rational(0, 1, 1)]),
    models("near-ties", [rational(999, 1000, 1001)], [rational(1001, 1000, 999), rational(1000, 999, 1000)]),
    models("one token", [[1]], [[1]]),
    models("two tokens", [rational(1, 1), rational(1, 3)], [rational(1, 2), rational(1, 1), [1, 0]]),
    models(
        "four tokens",
        [rational(4, 3, 2, 1), rational(1, 1, 1, 1), rational(0, 3, 0, 1)],
        [rational(1, 2, 3, 4), rational(2, 2, 1, 0), rational(1, 1, 1, 1)],
    ),
)


def weights(size: int) -> st.SearchStrategy[list[int]]:
    """Integer weights: small ones with zeros and ties, near-ties, one-hot, uniform."""
    one_hot = st.integers(0, size - 1).map(lambda place: [int(token == place) for token in range(size)])
    small = st.lists(st.integers(0, 3), min_size=size, max_size=size)
    near = st.lists(st.sampled_from([0, 999, 1000, 1001]), min_size=size, max_size=size)
    wide = st.lists(st.integers(0, 60), min_size=size, max_size=size)
    return st.one_of(small, wide, near, one_hot, st.just([1] * size)).filter(any)


def rows(size: int) -> st.SearchStrategy[list[Fraction]]:
    return weights(size).map(lambda drawn: rational(*drawn))


@st.composite
def drawn_models(draw: st.DrawFn, most: int = 4, least: int = 1) -> Models:
    """Two models over 1..most tokens: rows alike or prefix-dependent, p = q now and then."""
    size = draw(st.integers(least, most))
    several = st.lists(rows(size), min_size=1, max_size=3)
    drafts = draw(several)
    targets = draw(st.one_of(several, st.just(drafts)))
    return models(f"target {_shown(targets)}, draft {_shown(drafts)}", targets, drafts)


def _shown(given: list[list[Fraction]]) -> str:
    return "; ".join("[" + ", ".join(map(str, row)) + "]" for row in given)


def full_tree(width: int, depth: int) -> int:
    """Nodes of an unpruned tree: K at the root, K below each of K parents of every later level."""
    return width + width * width * (depth - 1)


@st.composite
def shapes(draw: st.DrawFn, width: int = 4, depth: int = 3) -> TreeShape:
    """K, D, and R from 1 to the full tree."""
    k, d = draw(st.integers(1, width)), draw(st.integers(1, depth))
    return TreeShape(k, d, draw(st.integers(1, full_tree(k, d))))


def draws(models: Models, shape: TreeShape, lead: int) -> int:
    """At most so many outcomes of the draws of an unpruned tree: tail tokens to the power of expanded parents."""
    parents = sum(min(shape.width, min(shape.width, models.size) ** level) for level in range(shape.depth))
    return max(1, models.size - lead) ** parents if lead < shape.width else 1


def floats(model: Model, dtype: Any) -> Model:
    """The model's rows rounded to a float type."""

    def rounded(prefix: tuple[int, ...]) -> Any:
        return np.array([float(entry) for entry in model(prefix)], dtype=dtype)

    return rounded
