"""Looking for lossy cases by chance: seeded jobs that can run anywhere, each ending in a case made small.

A job tries a number of directed cases, or lets Hypothesis choose and shrink. The seed of a job is made of the hunt's
seed and the job's number, so the first job that finds something is the same whoever runs it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample, Unsatisfiable

from exact.search.case_evaluation import BlockResult, CaseEvaluator
from exact.search.cases import Case, Law, Leads, Model, laws, most_nodes, prefixes
from exact.search.exhaustive import evaluator_of
from exact.search.shrink import shrink
from exact.verdict.small_models import law_of
from rheo_core import TreeShape

SMALL_DENOMINATOR = 3
"""Half of the directed cases have rows of this denominator at most, so that what they show is already small."""

DEEPEST, WIDEST, LARGEST = 3, 4, 7
"""Largest depth, width and budget of the trees tried here."""


def kinds(vocabulary: int) -> list[Law]:
    """Give the rows of every kind on `vocabulary` tokens, each with its largest mass first.

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
    """Give one case of these kinds."""
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
    """Give a row for all prefixes, and up to four that have another."""
    others = chance.sample(prefixes(v, length), min(chance.choice([0, 1, 2, 3, 4]), len(prefixes(v, length))))
    return Model(_row(chance, rows), {prefix: _row(chance, rows) for prefix in others})


def _row(chance: random.Random, rows: Sequence[Law]) -> Law:
    row = list(chance.choice(rows))
    chance.shuffle(row)
    return tuple(row)


def laws_of(vocabulary: int) -> st.SearchStrategy[Law]:
    """Distributions with small weights, or of the kinds above."""
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


DIRECTED_CASES, HYPOTHESIS_CASES = 100, 100
"""Cases tried by one job of each kind."""


@dataclass(frozen=True)
class RandomJob:
    """A job: which vocabularies and m to try, the seed, and whether Hypothesis chooses the cases."""

    vocabularies: tuple[int, ...]
    leads: Leads
    seed: str
    by_hypothesis: bool


def jobs(vocabularies: tuple[int, ...], leads: Leads, seed: int, count: int, start: int = 0) -> Iterator[RandomJob]:
    """`count` jobs from number `start` on, every third of them by Hypothesis."""
    for number in range(start, start + count):
        yield RandomJob(vocabularies, leads, f"{seed}/{number}", number % 3 == 2)


def run_packed(packed: str | bytes, deadline: float, chance: RandomJob) -> BlockResult:
    """Give one job, up to the time.time() of `deadline`."""
    return take(evaluator_of(packed), deadline, chance)


def take(evaluator: CaseEvaluator, deadline: float, chance: RandomJob) -> BlockResult:
    """Give one job with a given evaluator."""
    evaluator.tried = tried = BlockResult()
    evaluator.deadline = deadline

    def may_go_on() -> bool:
        return time.time() < deadline

    def is_lossy(case: Case) -> bool:
        if not may_go_on():
            return False
        tried.computed += 1
        return evaluator.is_lossy(case)

    def variant(case: Case) -> Case | None:
        tried.computed += 1
        return evaluator.lossy_variant(case) if may_go_on() else None

    found = _by_hypothesis(chance, is_lossy) if chance.by_hypothesis else _directed(chance, variant)
    tried.finished = may_go_on()
    if found is not None:
        tried.found = shrink(found, evaluator.lossy_variant, chance.leads, may_go_on)
    return tried


def _directed(chance: RandomJob, variant: Callable[[Case], Case | None]) -> Case | None:
    choices = random.Random(chance.seed)
    tried = (variant(directed(choices, chance.vocabularies, chance.leads)) for _ in range(DIRECTED_CASES))
    return next((case for case in tried if case is not None), None)


def _by_hypothesis(chance: RandomJob, is_lossy: Callable[[Case], bool]) -> Case | None:
    quiet = settings(
        database=None,
        deadline=None,
        max_examples=HYPOTHESIS_CASES,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        return find(
            cases(chance.vocabularies, chance.leads), is_lossy, settings=quiet, random=random.Random(chance.seed)
        )
    except (NoSuchExample, Unsatisfiable):
        return None
