"""Beyond the exhaustive end: what is planted there is found by chance and made small; acceptance gaps; the order."""

import dataclasses
import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction as F

import pytest

from exact import certify
from exact.methods import methods
from exact.search import Bounds, Case, Leads, Model, exhaust, search
from exact.search.acceptance_gap import widest_gaps
from exact.search.case_evaluation import CaseEvaluator
from exact.search.cases import in_order, laws, smallest_law
from exact.search.random_search import DIRECTED_CASES, directed, jobs, kinds, take
from exact.search.shrink import nearest, shrink
from exact.search.summary import coverage_lines
from rheo_core import TreeMethod, TreeShape, rates, verification

pytestmark = pytest.mark.exact

FREE = Leads(True, None, True)


@pytest.fixture(autouse=True)
def _own_time(monkeypatch):
    """Time limits in seconds of this process, so that a busy machine decides nothing."""
    monkeypatch.setattr(time, "time", time.process_time)


def beyond(vocabulary, depth):
    """Algorithm 1 everywhere, except that the fourth token is never rejected where the text is `depth` deep."""

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        if len(p) >= vocabulary and sampled != -1 and candidates[sampled] == 3 and len(at[1]) + 1 >= depth:
            return 3, sampled
        return verification.algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    return TreeMethod("beyond", None, lead=1, verify=verify)


def test_a_fault_that_needs_four_tokens_and_two_levels_is_found_by_chance_and_made_small():
    rule = beyond(vocabulary=4, depth=2)
    found = next(
        tried.found
        for job in jobs((2, 3, 4), FREE, 0, 30)
        if (tried := take(CaseEvaluator(rule), time.time() + 20, job)).found is not None
    )
    assert (found.vocabulary, found.shape.depth, found.shape.width, found.lead) == (4, 2, 1, 0)
    assert (
        certify(
            dataclasses.replace(rule, lead=found.lead), found.target, found.draft, found.shape, every_target=False
        ).lossless
        is False
    )
    assert found.denominator <= 2


@pytest.mark.parametrize("by_hypothesis", [False, True])
def test_the_same_seed_tries_the_same_cases(by_hypothesis):
    job = next(each for each in jobs((2,), FREE, 5, 3) if each.by_hypothesis is by_hypothesis)
    results = [take(CaseEvaluator(methods["rheo-raw"]), time.time() + 20, job) for _ in range(2)]
    assert results[0].found == results[1].found
    assert results[0].computed == results[1].computed


def test_directed_cases_are_laws_of_the_kinds_promised():
    for v in (2, 3, 4):
        rows = kinds(v)
        assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
        assert any(row.count(row[0]) == v for row in rows)  # ties
        assert any(max(row) == 1 for row in rows)  # one-hot
        assert any(0 in row for row in rows)
        assert any(1 - max(row) < F(1, 100) for row in rows)  # almost no mass off the lead
        assert v == 2 or any(row[0] * row[0] == row[1] for row in rows)  # a path's score equals another slot's
    chance = random.Random(1)
    made = [directed(chance, (2, 3, 4), FREE) for _ in range(DIRECTED_CASES)]
    assert {case.vocabulary for case in made} == {2, 3, 4}
    assert {case.shape.depth for case in made} == {1, 2, 3}
    assert {case.dependent for case in made} == {False, True}
    assert all(case.lead is not None and case.lead <= case.shape.width for case in made)


def test_shrinking_ends_at_the_least_case_that_single_steps_reach():
    big = Case(
        Model((F(2, 7), F(1, 7), F(4, 7)), {(0,): (F(1, 5), F(4, 5), F(0))}),
        Model((F(1, 9), F(3, 9), F(5, 9)), {(1,): (F(1, 2), F(1, 2), F(0))}),
        TreeShape(3, 2, 4),
        2,
    )

    def lossy(case):  # lossy wherever the draft prefers the last token: no rule, so the least case is known
        return case if case.draft(())[-1] > case.draft(())[0] > 0 else None

    small = shrink(big, lossy, FREE, lambda: True)
    assert small.size == Case(Model(smallest_law(2)), Model((F(1, 3), F(2, 3))), TreeShape(1, 1, 1), 0).size


def test_the_nearest_law():
    assert nearest((F(49, 100), F(51, 100)), 2) == (F(1, 2), F(1, 2))
    assert nearest((F(1, 3), F(2, 3)), 3) == (F(1, 3), F(2, 3))
    for law in laws(3, 5):
        distances = [sum(abs(a - b) for a, b in zip(law, other, strict=True)) for other in laws(3, 3)]
        closest = nearest(law, 3)
        assert sum(abs(a - b) for a, b in zip(law, closest, strict=True)) == min(distances)


def test_the_order_is_the_one_that_is_promised():
    third, half, last = (F(1, 3), F(2, 3)), (F(1, 2), F(1, 2)), smallest_law(2)
    rising = [
        Case(Model(half), Model(half), TreeShape(1, 1, 1), None),
        Case(Model(third), Model(third), TreeShape(1, 1, 1), 0),
        Case(Model(half), Model(third), TreeShape(1, 1, 1), 0),
        Case(Model(third), Model(half), TreeShape(1, 1, 1), 0),
        Case(Model(last, {(): half}), Model(half), TreeShape(1, 1, 1), 0),
        Case(Model(last, {(): third}), Model(last), TreeShape(1, 1, 1), 0),
        Case(Model(half), Model(half), TreeShape(1, 1, 1), 1),
        Case(Model(half), Model(half), TreeShape(2, 1, 1), 0),
        Case(Model(half), Model(half), TreeShape(1, 1, 2), 0),
        Case(Model(half), Model(half), TreeShape(1, 2, 1), 0),
        Case(Model((F(0), *half)), Model((F(0), *half)), TreeShape(1, 1, 1), 0),
    ]
    assert [case.size for case in rising] == sorted(case.size for case in rising)


def test_a_lossless_method_is_not_refuted_and_the_hunt_says_what_it_tried():
    for name in ("rheo", "chain"):
        result = search(name, seconds=0.7)
        assert result.counterexample is None
        assert result.coverage.cases > 1000
        assert not result.coverage.refusals.broken


@pytest.mark.parametrize("lead", [0, 1])
def test_the_widest_gap_to_the_optimum_is_the_one_of_the_closed_forms(lead):
    gaps = widest_gaps("rheo", "optimum", lead=lead, bounds=(Bounds(3, 1, 3, 3, 4, 0),))
    widest = max(
        rates.optimal_rate(p, q, lead, n) - rates.rheo_rate(p, q, lead, n)
        for p, q in itertools.product(laws(3, 4), repeat=2)
        for n in (1, 2, 3)
    )
    assert gaps.more is None
    assert (gaps.less.value if gaps.less else 0) == -widest
    assert gaps.finished


def test_gaps_go_both_ways_and_do_not_depend_on_the_executor():
    bounds = (Bounds(2, 1, 2, 2, 3, 0),)
    alone = widest_gaps("rheo", "chain", lead=1, bounds=bounds)
    with ThreadPoolExecutor(2) as threads:
        assert widest_gaps("rheo", "chain", lead=1, bounds=bounds, executor=threads) == alone
    turned = widest_gaps("chain", "rheo", second_lead=1, bounds=bounds)
    assert alone.more is not None
    assert alone.less is not None
    assert turned.less is not None
    assert (turned.less.value, turned.less.case.draft) == (-alone.more.value, alone.more.case.draft)
    assert alone.cases == sum(level.cases for level in in_order(bounds, Leads(False)))


@pytest.mark.slow
def test_the_widest_gaps_that_are_known():
    """Over all rows of denominator 4 at V = 4 (6 at V = 3): Rheo against RRSw, and against A*."""
    over = widest_gaps("rheo", "rheo-rrsw", seconds=300)
    assert over.finished
    assert over.less is not None
    assert (over.less.value, over.less.case.draft.default, over.less.case.target.default) == (
        F(-1, 30), (F(1, 4),) * 4, (F(1, 4), F(0), F(1, 2), F(1, 4)),
    )  # fmt: skip
    assert over.more is not None
    assert over.more.value == F(1, 4)
    short = widest_gaps("rheo", "optimum", lead=1, bounds=(Bounds(4, 1, 3, 3, 4, 0),))
    assert short.finished
    assert short.less is not None
    assert (short.less.value, short.less.case.shape) == (F(-1, 3), TreeShape(3, 1, 3))
    assert short.less.case.draft.default == (F(1, 4),) * 4


def test_all_cases_up_to_a_denominator_are_counted():
    bounds = [Bounds(2, depth=1, budget=2, width=2, alike=3, dependent=2)]
    result = exhaust("chain", bounds)
    assert result.finished
    assert result.counterexample is None
    shapes, alike, dependent = 4, len(laws(2, 3)) ** 2, len(laws(2, 2)) ** 4 - len(laws(2, 2)) ** 2
    assert result.coverage.cases == shapes * (alike + dependent)


def test_an_exhaustive_search_ends_at_the_smallest_case():
    result = exhaust("rheo-half", [Bounds(2, depth=2, budget=2, width=2, alike=3, dependent=3)])
    assert result.finished
    assert result.counterexample is not None
    assert result.counterexample.shape == TreeShape(2, 2, 2)
    assert result.counterexample.draft[()] == (F(1, 3), F(2, 3))


def test_a_hunt_without_enough_time_says_so():
    result = search("rheo", seconds=0.2)
    assert not result.finished
    assert any("bound, not a proof" in line for line in coverage_lines(result))


@pytest.mark.slow
def test_a_hunt_that_ends_by_chance_does_not_depend_on_the_executor():
    rule = beyond(vocabulary=4, depth=2)
    alone = search(rule, first=True)
    with ThreadPoolExecutor(2) as threads:
        together = search(rule, first=True, executor=threads)
    other_seed = search(rule, first=True, seed=1)
    assert alone.random_cases > 0
    assert alone.counterexample is not None
    assert alone.counterexample == together.counterexample
    assert other_seed.counterexample is not None
    assert len(other_seed.counterexample.target[()]) == 4
