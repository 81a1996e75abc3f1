"""The bounded-exhaustive engine against slow oracles: every table of rows written out and enumerated."""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import pytest

from exact import target_law
from exact.enumeration.walk import outcomes
from exact.methods import methods
from exact.runtime.executors import in_order, processes
from exact.runtime.journal import Journal
from exact.runtime.pickling import pack, unpack
from exact.search import Bounds, Case, Coverage, Leads, Model, SearchLevel, exhaustive
from exact.search.case_evaluation import CaseEvaluator, RecordingShape, with_lead
from exact.search.cases import blocks, laws, most_nodes, prefixes
from exact.search.cases import in_order as levels_in_order
from exact.search.exhaustive import KINDS, Subject
from rheo_core import FunctionMethod, InvalidInput, TreeMethod, TreeShape
from tests.exact.laws import text_law

pytestmark = pytest.mark.exact

TREE = with_lead(methods["rheo-half"], 0)


def replayed(rule):
    """The same rule as a method that the engine can only replay."""
    return FunctionMethod(
        lambda target, draft, prefix, shape, chooser: rule.cycle(target, draft, prefix, shape, chooser), rule.name
    )


def every_case(level: SearchLevel) -> Iterator[Case]:
    """All cases of a level, written out."""
    if not level.dependent:
        yield from (Case(Model(p), Model(q), level.shape, level.lead) for q in level.laws for p in level.laws)
        return
    reads = prefixes(level.vocabulary, level.shape.depth - 1)
    emits = prefixes(level.vocabulary, level.shape.depth)
    default = level.laws[0]
    for draft in itertools.product(level.laws, repeat=len(reads)):
        for target in itertools.product(level.laws, repeat=len(emits)):
            yield Case(
                Model(default, dict(zip(emits, target, strict=True))),
                Model(default, dict(zip(reads, draft, strict=True))),
                level.shape,
                level.lead,
            )


def smallest_by_hand(rule, level: SearchLevel) -> Case | None:
    """The smallest lossy case of a level: the text of every one is held against its target's."""

    def is_lossy(case: Case) -> bool:
        method = rule if case.lead is None else replace(rule, lead=case.lead)
        length = case.shape.depth + 1
        return bool(text_law(method, case.target, case.draft, case.shape, length) != target_law(case.target, length))

    lossy = [case for case in every_case(level) if case.dependent == level.dependent and is_lossy(case)]
    return min(lossy, key=lambda case: case.size, default=None)


def smallest_by_engine(rule, level: SearchLevel) -> Case | None:
    evaluator = CaseEvaluator(rule)
    found = (evaluator.block(block).found for block in blocks([level]))
    return next((case for case in found if case is not None), None)


@pytest.mark.parametrize("denominator", range(1, 5))
@pytest.mark.parametrize("vocabulary", [2, 3])
def test_laws_are_all_rows_of_small_denominator_in_order(vocabulary, denominator):
    masses = sorted({F(a, n) for n in range(1, denominator + 1) for a in range(n + 1)})
    by_hand = [
        row
        for row in itertools.product(masses, repeat=vocabulary)
        if sum(row) == 1 and any(all((mass * n).denominator == 1 for mass in row) for n in range(1, denominator + 1))
    ]
    assert list(laws(vocabulary, denominator)) == sorted(by_hand)


@pytest.mark.parametrize("dependent", [False, True])
def test_a_level_counts_its_cases(dependent):
    for denominator in (1, 2, 3):
        level = SearchLevel(2, TreeShape(1, 1, 1), None, dependent, denominator)
        by_hand = {case.size for case in every_case(level) if case.level == level.key}
        assert level.cases == len(by_hand)


ALIKE = [
    SearchLevel(2, TreeShape(2, 1, 1), 0, False, 4),
    SearchLevel(2, TreeShape(2, 2, 2), 0, False, 3),
    SearchLevel(2, TreeShape(2, 2, 2), 1, False, 3),
    SearchLevel(3, TreeShape(2, 1, 1), 1, False, 3),
]
DEPENDENT = [SearchLevel(2, TreeShape(2, 1, 1), 0, True, 3), SearchLevel(2, TreeShape(2, 1, 2), 1, True, 2)]


@pytest.mark.parametrize("level", ALIKE + DEPENDENT, ids=str)
@pytest.mark.parametrize("name", ["rheo-raw", "rheo-half", "rheo-adhoc", "rheo"])
def test_tree_methods_against_every_case_by_hand(name, level):
    by_hand = smallest_by_hand(methods[name], level)
    by_engine = None
    for denominator in range(1, level.denominator + 1):  # as a sweep does: the engine skips what smaller levels tried
        by_engine = by_engine or smallest_by_engine(methods[name], replace(level, denominator=denominator))
    assert (by_engine and by_engine.size) == (by_hand and by_hand.size)


LEADLESS = [replace(level, lead=None) for level in (ALIKE[0], ALIKE[1], *DEPENDENT)]


@pytest.mark.parametrize("level", LEADLESS, ids=str)
@pytest.mark.parametrize(
    ("rule", "known"),
    [(rule, rule) for rule in (methods["chain"], methods["typical"], methods["block"])] + [(replayed(TREE), TREE)],
    ids=lambda rule: rule.name,
)
def test_other_methods_against_every_case_by_hand(rule, known, level):
    """`known` has the same distribution, and is enumerated by its trees."""
    by_hand = smallest_by_hand(known, level)
    by_engine = None
    for denominator in range(1, level.denominator + 1):
        by_engine = by_engine or smallest_by_engine(rule, replace(level, denominator=denominator))
    assert (by_engine and by_engine.size) == (by_hand and by_hand.size)


@pytest.mark.slow
def test_trying_state_by_state_equals_replaying_whole_tables():
    deep = SearchLevel(2, TreeShape(2, 2, 2), 0, True, 2)
    for rule in (TREE, with_lead(methods["rheo-rrsw-z"], 0)):
        by_state = smallest_by_engine(rule, deep)
        by_replay = smallest_by_engine(replayed(rule), replace(deep, lead=None))
        assert (by_state and by_state.size) == (by_replay and replace(by_replay, lead=0).size)


def test_what_a_rule_does_not_read_is_not_tried_again():
    shape = RecordingShape(2, 1, 3)
    assert shape.depth == 1
    assert RecordingShape(4, 1, 9).settled_by(shape)
    assert shape.budget == 3
    assert not RecordingShape(4, 1, 9).settled_by(shape)
    assert not RecordingShape(2, 2, 3).settled_by(shape)


@pytest.mark.parametrize("vocabulary", [2, 3])
@pytest.mark.parametrize("depth", [1, 2])
def test_widths_stop_where_pools_are_full(vocabulary, depth):
    law = laws(vocabulary, 5)[-4]
    for lead, budget in itertools.product(range(vocabulary + 2), range(1, 6)):
        trees = []
        for width in (vocabulary, vocabulary + 1):
            rule = with_lead(methods["rheo"], min(lead, width))
            shape = TreeShape(width, depth, budget)
            trees.append(
                {
                    cycle.tree.key()
                    for cycle, _ in outcomes(lambda c, r=rule, s=shape: r.cycle(lambda _: law, lambda _: law, (), s, c))  # type: ignore[misc]
                }
            )
        assert trees[0] == trees[1]


@pytest.mark.parametrize(("vocabulary", "width", "depth"), list(itertools.product([2, 3], [1, 2, 3], [1, 2])))
def test_budgets_stop_where_trees_cannot_grow(vocabulary, width, depth):
    law = (F(1, vocabulary),) * vocabulary
    most = most_nodes(vocabulary, width, depth)
    shape = TreeShape(width, depth, most + 1)

    method = with_lead(methods["rheo"], 0)
    trees = [
        cycle.tree
        for cycle, _ in outcomes(lambda chooser: method.cycle(lambda s: law, lambda s: law, (), shape, chooser))
    ]
    assert max(len(tree) for tree in trees) == most


SMALL = (Bounds(2, 1, 2, 2, 3, 2), Bounds(2, 2, 2, 2, 3, 2))


def swept(name: str, executor: Executor | None = None, journal: Journal | None = None, deadline: float = float("inf")):
    subject = Subject.of(name)
    coverage = Coverage()
    levels = levels_in_order(SMALL, Leads(subject.has_leads, None, isinstance(subject.method, TreeMethod)))
    found = exhaustive.sweep(subject, levels, coverage, executor=executor, journal=journal, deadline=deadline)
    return found, coverage


def test_the_same_result_whatever_the_executor():
    alone, covered = swept("rheo-half")
    assert alone is not None
    with ThreadPoolExecutor(3) as threads:
        by_threads, covered_by_threads = swept("rheo-half", threads)
    with processes(2) as pool:
        by_processes, covered_by_processes = swept("rheo-half", pool)
    assert alone == by_threads == by_processes
    assert covered.levels == covered_by_threads.levels == covered_by_processes.levels
    assert covered.cases == covered_by_processes.cases


def test_a_sweep_says_how_many_cases_it_covered():
    found, coverage = swept("rheo")
    assert found is None
    assert coverage.cases == sum(level.cases for level in levels_in_order(SMALL, Leads(True, None, True)))


def test_an_interrupted_sweep_goes_on_from_its_journal(tmp_path):
    path = tmp_path / "journal"
    whole, covered = swept("rheo-half")
    for seconds in (0.05, 0.2, 0.8, 3.2):  # on a busy machine nothing may be done in the first
        _, begun = swept("rheo-half", journal=Journal(path, "x", KINDS), deadline=time.time() + seconds)
        if begun.levels:
            break
    assert 0 < len(begun.levels) < len(covered.levels)
    path.write_text(path.read_text() + '{"job": {"Block": [{"Le', encoding="utf-8")  # a line cut short
    resumed = Journal(path, "x", KINDS)
    known = len(resumed.known)
    assert known
    again, covered_again = swept("rheo-half", journal=resumed)
    assert again == whole
    assert covered_again.levels == covered.levels
    assert covered_again.computed >= covered.computed // 2
    assert len(Journal(path, "x", KINDS).known) > known


@pytest.mark.parametrize(
    "text", ["[1]", "[1]\n", "{\n", '{"journal": 2, "subject": "y"}\n', '{"journal": 2, "subject": "x"}\n[1]\n']
)
def test_a_file_that_is_no_journal_of_this_hunt_is_refused(tmp_path, text):
    path = tmp_path / "journal"
    path.write_text(text)
    with pytest.raises(InvalidInput, match="resume"):
        Journal(path, "x", KINDS)
    assert path.read_text() == text


def test_cases_survive_a_journal(tmp_path):
    third = (F(1, 3), F(2, 3))
    case = Case(Model(third, {(0,): (F(1), F(0))}), Model(third, {(): (F(0), F(1))}), TreeShape(2, 2, 2), None)
    Journal(tmp_path / "journal", "x", KINDS).note((1, "a"), case)
    assert Journal(tmp_path / "journal", "x", KINDS).known == {(1, "a"): case}


class Counting(Executor):
    """Runs what it is given, at once, and counts the batches."""

    def __init__(self):
        self.batches = []

    def submit(self, function, /, *args, **kwargs):
        future: Future[Any] = Future()
        self.batches.append(len(args[1]))
        future.set_result(function(*args, **kwargs))
        return future


def test_jobs_travel_in_growing_batches_and_come_back_in_order():
    executor = Counting()
    assert list(in_order(lambda job: job * job, range(1000), executor, window=2)) == [n * n for n in range(1000)]
    assert len(executor.batches) < 30
    assert executor.batches[0] == 1


def test_jobs_are_taken_only_as_they_are_needed():
    taken = []

    def note(job: int) -> int:
        taken.append(job)
        return job

    results = in_order(lambda job: job, map(note, itertools.count()), Counting(), window=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    results.close()
    assert len(taken) < 20


def test_workers_must_be_a_number():
    with pytest.raises(InvalidInput, match="workers"), processes(-1):
        pass
    with processes(1) as pool:
        assert pool is None


def test_a_worker_that_dies_is_reported():
    with processes(2) as pool, pytest.raises(InvalidInput, match="a worker died"):
        list(in_order(os._exit, [1], pool))


def test_a_rule_that_cannot_be_sent_is_refused_and_a_users_function_can_be():
    def local(target, draft, prefix, shape, chooser):
        return [chooser.index(draft(prefix))]

    assert unpack(pack(local)).__name__ == "local"
    with pytest.raises(InvalidInput, match="sent to another process"):
        pack(threading.Lock())


@pytest.mark.slow
def test_the_same_result_on_a_dask_cluster():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra `dask`)")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        by_dask, covered = swept("rheo-half", client.get_executor())
    alone, covered_alone = swept("rheo-half")
    assert by_dask == alone
    assert covered.levels == covered_alone.levels
