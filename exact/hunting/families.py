"""Cases beyond the exhaustive end: rows of the kinds on which rules have been seen to break, in larger trees.

Ties, peaked and one-hot rows, zeros, path scores that are equal across parents and depths, almost no mass off the
lead, scores just above and below a constant. Chosen from a seed; the same seed gives the same cases everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import strategies as st

from exact.hunting.bounds import Leads, most_nodes
from exact.hunting.cases import Case, Law, Model, laws, prefixes
from exact.strategies import law_of
from rheo_core import TreeShape

SMALL_DENOMINATOR = 3
"""Half of the directed cases have rows of this denominator at most, so that what they show is already small."""

DEEPEST, WIDEST, LARGEST = 3, 4, 7
"""Largest depth, width and budget of the trees tried here."""


def kinds(vocabulary: int) -> list[Law]:
    """The rows of every kind on `vocabulary` tokens, each with its largest mass first.

    >>> law_of([1, 1]) in kinds(2)
    True
    """
    v = vocabulary
    found: list[Sequence[int]] = [[1] * held + [0] * (v - held) for held in range(1, v + 1)]  # one-hot, ties, zeros
    found += [[2] + [1] * (v - 1), [2] * (v - 1) + [1], list(range(v, 0, -1))]
    found += [[2 ** max(v - 2 - i, 0) for i in range(v)]]  # 1/2, 1/4, ...: a path's score equals another slot's
    found += [[4, 2] + [1] * (v - 2), [3, 1] + [0] * (v - 2), [3, 2] + [0] * (v - 2)]
    found += [[scale] + [1] * (v - 1) for scale in (10, 100, 1000)]  # almost no mass off the lead
    found += [[4] + [6] * (v - 1), [5] + [4] * (v - 1), [6] + [1] * (v - 1)]  # around a constant such as 1/4
    return [law_of(weights) for weights in found]


def directed(chance: random.Random, vocabularies: Sequence[int], leads: Leads) -> Case:
    """One case of these kinds."""
    v = chance.choice(vocabularies)
    shape = _shape(chance, v, leads)
    rows: Sequence[Law] = kinds(v) if chance.random() < 0.5 else laws(v, SMALL_DENOMINATOR)
    target, draft = (_model(chance, v, length, rows) for length in (shape.depth, shape.depth - 1))
    return Case(target, draft, shape, chance.choice(leads.at(shape.width)))


def _shape(chance: random.Random, v: int, leads: Leads) -> TreeShape:
    width = chance.choice([k for k in range(1, WIDEST + 1) if leads.at(k)])
    depth = chance.choice([1, 2, 2, 2, DEEPEST])
    most = most_nodes(v, width, depth) if leads.of_tree else LARGEST
    return TreeShape(width, depth, chance.randint(1, min(most, LARGEST)))


def _model(chance: random.Random, v: int, length: int, rows: Sequence[Law]) -> Model:
    """A row for all prefixes, and up to four that have another."""
    others = chance.sample(prefixes(v, length), min(chance.choice([0, 1, 2, 3, 4]), len(prefixes(v, length))))
    return Model(_row(chance, rows), {prefix: _row(chance, rows) for prefix in others})


def _row(chance: random.Random, rows: Sequence[Law]) -> Law:
    row = list(chance.choice(rows))
    chance.shuffle(row)
    return tuple(row)


def laws_of(vocabulary: int) -> st.SearchStrategy[Law]:
    """Laws with small weights, or of the kinds above."""
    weights = st.lists(st.integers(0, 6), min_size=vocabulary, max_size=vocabulary).filter(any)
    return st.one_of(weights.map(law_of), st.sampled_from(kinds(vocabulary)).flatmap(st.permutations).map(tuple))


@st.composite
def cases(draw: st.DrawFn, vocabularies: Sequence[int], leads: Leads) -> Case:
    """Any case, for Hypothesis: it tends to shrink to small vocabularies, small trees and rows alike."""
    v = draw(st.sampled_from(list(vocabularies)))
    depth = draw(st.integers(1, DEEPEST))
    width = draw(st.sampled_from([k for k in range(1, WIDEST + 1) if leads.at(k)]))
    most = most_nodes(v, width, depth) if leads.of_tree else LARGEST
    shape = TreeShape(width, depth, draw(st.integers(1, min(most, LARGEST))))
    rows = laws_of(v)
    target, draft = (
        Model(draw(rows), draw(st.dictionaries(st.sampled_from(prefixes(v, length)), rows, max_size=4)))
        for length in (depth, depth - 1)
    )
    return Case(target, draft, shape, draw(st.sampled_from(leads.at(width))))
