"""Products of test cases: a plain run meets every two values, `-m certificate` every combination.

A fault in one part shows with almost every partner, one between two parts with the pair of them. What needs three
values at once is left to the marker `certificate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest

CERTIFICATE = pytest.mark.certificate


def pairwise(names: str, *columns: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrise over a product: rows in which every two values of two columns meet, the rest as `certificate`."""
    kept = covering([len(column) for column in columns])
    return pytest.mark.parametrize(names, cases(columns, kept.__contains__))


def spread(names: str, *columns: Sequence[Any], part: int = 0, of: int = 3) -> pytest.MarkDecorator:
    """Parametrise over a product of which this test takes one row in `of`, along diagonals; the rest as `certificate`.

    Tests that hold the same product to different oracles take a different `part` each, so that together they meet
    every row.
    """
    return pytest.mark.parametrize(names, cases(columns, lambda row: sum(row) % of == part))


def cases(columns: Sequence[Sequence[Any]], is_kept: Any) -> list[Any]:
    """All rows of a product as parameters, marked where they are not kept."""
    places = product(*(range(len(column)) for column in columns))
    found = []
    for place in places:
        values = [column[i] for column, i in zip(columns, place, strict=True)]
        marks = () if is_kept(place) else (CERTIFICATE,)
        found.append(pytest.param(*values, marks=marks, id="-".join(map(shown, values))))
    return found


def shown(value: Any) -> str:
    """The name of a value in the id of a test."""
    return str(getattr(value, "name", None) or getattr(value, "__name__", None) or value)


def covering(sizes: Sequence[int]) -> frozenset[tuple[int, ...]]:
    """Places of a product in which every two places of two columns meet; greedy, the same on every run."""
    rows = list(product(*map(range, sizes)))
    rows.sort(key=lambda row: (sum(row) % max(sizes), row))  # along diagonals: values change together
    open_pairs = {pair for row in rows for pair in combinations(enumerate(row), 2)}
    kept = []
    for wanted in range(len(sizes) * (len(sizes) - 1) // 2, 0, -1):
        for row in rows:
            pairs = set(combinations(enumerate(row), 2)) & open_pairs
            if len(pairs) >= wanted:
                kept.append(row)
                open_pairs -= pairs
    return frozenset(kept)
