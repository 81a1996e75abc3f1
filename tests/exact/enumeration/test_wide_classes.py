"""Classes by columns, by a graph and by the batched layered code, each held to the slow way on random small cases.

The slow ways: `grown_classes`, `layered` with a class's own draws, and the checks of `exact.verdict.every_target`.
"""

import json
import random
from dataclasses import replace
from fractions import Fraction as F
from functools import cache
from typing import Any

import numpy as np
import pytest

from exact.cli.main import app
from exact.cli.options import run
from exact.enumeration import class_table as exact_table
from exact.enumeration import exact_order
from exact.enumeration.batched_layered import LayeredBatch
from exact.enumeration.class_checks import ClassChecks
from exact.enumeration.class_table import ABSENT, ClassTable, class_sample, class_table, likeliest_classes
from exact.enumeration.context_states import States, read_states
from exact.enumeration.exact_order import Scores, TooClose, told_apart
from exact.enumeration.growth_graph import PoolTables, TooManyStates, _GraphWalk, growth_graph
from exact.enumeration.rationals import exact, rational_models
from exact.enumeration.tree_classes import grown_classes
from exact.methods.rows_file import Rows
from exact.verdict.every_target import check_lemmas, first_failing, first_moved
from rheo_core import DraftRow, ModelPair, TreeShape
from rheo_core.growth import NotGrowable
from tests.pairs import alike, both, rational, rule

pytestmark = [pytest.mark.exact, pytest.mark.certificate]
MOST = 400


class Case:
    """A method of the paper's parts on small random rows with ties, zeros and, often, two laws or an id map."""

    def __init__(self, seed):
        rng = random.Random(seed)
        size, width = rng.choice([1, 2, 3, 4, 5, 5]), rng.choice([1, 2, 3, 3, 4])
        self.shape = TreeShape(width, rng.randint(1, 4), rng.randint(1, 12))
        self.method = rule(rng.choice(["rheo", "rheo-next", "rheo-z", "top-k"]))
        if self.method.lead is not None:
            self.method = replace(self.method, lead=min(width, rng.choice([0, 1, 1, 2, 3])))
        rows = [drawn_row(rng, size) for _ in range(size + 2)]
        kind = rng.choice(["alike", "by last", "by prefix", "two laws"])
        models = {
            "alike": alike(rows[0]),
            "by last": lambda prefix: rows[prefix[-1] if prefix else -1],
            "by prefix": lambda prefix: rows[sum((i + 2) * (token + 1) for i, token in enumerate(prefix)) % len(rows)],
            "two laws": lambda prefix: DraftRow.pair(rows[len(prefix) % 2], rows[2 % len(rows)]),
        }
        self.draft = models[kind]
        self.ids = rng.sample(range(size + 1), size) if rng.random() < 0.3 else None
        self.tokens = self.ids or range(size)
        p = drawn_row(rng, size + 1 if self.ids else size)
        self.pair = rational_models(ModelPair(alike(p), self.draft, self.ids))
        self.drafter = self.method.drafter(self.pair, self.shape)

    def states(self) -> States:
        """The states by reading every row."""
        return read_states(self.draft, (), self.shape.depth, self.tokens, self.method.leads(self.shape))

    def table(self) -> ClassTable:
        """The classes as columns."""
        return class_table(self.drafter, self.shape, self.states())

    def tables(self) -> PoolTables:
        """The pools of the states."""
        return PoolTables(self.drafter, self.states())


def drawn_row(rng, size):
    weights = [rng.choice([0, 1, 1, 2, 3, 5, 8]) for _ in range(size)]
    weights[0] += not any(weights)
    return rational(*weights)


@cache
def cases():
    """(case, its classes by `grown_classes`) of 200 seeds, without those of more than 400 classes."""
    found = []
    for seed in range(200):
        case, classes = Case(seed), []
        for each in grown_classes(case.drafter, (), case.shape):
            classes.append(each)
            if len(classes) > MOST:
                break
        if len(classes) <= MOST:
            found.append((case, classes))
    return found


def test_the_cases_are_many_and_have_many_classes():
    assert len(cases()) > 180
    assert sum(len(classes) > 1 for _, classes in cases()) > 40
    assert max(len(classes) for _, classes in cases()) > 100


def test_the_table_lists_the_classes_of_growth():
    for case, classes in cases():
        table = case.table()
        assert [each.tree for each in table] == [each.tree for each in classes]
        assert [each.probability for each in table] == [each.probability for each in classes]
        assert all((one.tree.depth == two.tree.depth).all() for one, two in zip(table, classes, strict=True))


def graph_counts(states):
    """The cases where the graph counts other classes than there are."""
    counts = [growth_graph(case.drafter, case.shape, states(case)).classes for case, _ in cases()]
    return [case for (case, classes), count in zip(cases(), counts, strict=True) if count != len(classes)]


def test_the_graph_counts_the_classes():
    assert graph_counts(Case.states) == []
    assert graph_counts(lambda case: States(())) == []


def test_a_graph_that_merges_too_much_would_be_seen(monkeypatch):
    """Planted: states that differ only in how many nodes a level may still expand are one."""
    right = _GraphWalk._add

    def careless(self, level, slots, left, room, ways):
        right(self, level, slots, left, (*[self.shape.width] * (len(room) - 1), 0), ways)

    monkeypatch.setattr(_GraphWalk, "_add", careless)
    assert graph_counts(Case.states)


def test_scores_that_look_alike_are_told_apart(monkeypatch):
    """From three digits on, the work is begun again until no two scores share a key; the classes come out the same."""
    one, other = exact(F(1, 3)), exact(F(1, 3) + F(1, 2**80))
    with pytest.raises(TooClose):
        (scores := Scores()).times(scores.root, one), scores.times(scores.root, other)
    assert told_apart(lambda scores: scores.times(scores.root, one) > scores.times(scores.root, other))
    begun = []
    right = Scores.__init__

    def counted(self, bits):
        begun.append(bits)
        right(self, bits)

    monkeypatch.setattr(exact_order, "FLOAT", -1)
    monkeypatch.setattr(told_apart, "__defaults__", (3,))
    monkeypatch.setattr(Scores, "__init__", counted)
    for case, classes in cases()[:60]:
        assert [each.tree for each in case.table()] == [each.tree for each in classes]
    assert max(begun) > 3


def test_the_twin_builds_every_class_from_its_draws():
    for case, classes in cases()[::2]:
        table = case.table()
        assert LayeredBatch(case.tables(), case.shape, table).first_moved() is None
        assert first_moved(classes, case.drafter, (), case.shape) is None


def changed(table, rng, kind) -> Any:
    """The table with one entry changed, a class dropped, or one listed twice; the class that was changed."""
    number = rng.randrange(len(table))
    columns = [column.copy() for column in (table.parent, table.slot, table.kind, table.token, table.score)]
    masses, node = list(table.probabilities), rng.randrange(int((table.kind[number] != ABSENT).sum()))
    if kind == "token":
        columns[3][number, node] = rng.randrange(int(table.token.max()) + 1)
    elif kind == "slot":
        columns[1][number, node] = rng.randrange(int(table.slot.max()) + 1)
    elif kind == "mass":
        masses[number] /= 2
    else:
        kept = [each for each in range(len(table)) if each != number] + [number, number] * (kind == "twice")
        columns, masses = [column[kept] for column in columns], [masses[each] for each in kept]
    return ClassTable(columns, masses, table.scores, table.keys), number


def test_the_twin_sees_what_the_reference_sees():
    """Planted: another token or another slot at one node. What the reference refuses, the twin refuses."""
    rng, seen = random.Random(2), 0
    for case, _ in cases()[::2]:
        for kind in ("token", "slot"):
            table, number = changed(case.table(), rng, kind)
            moved = first_moved([table[number]], case.drafter, (), case.shape)
            wrong = LayeredBatch(case.tables(), case.shape, table).moved(number, number + 1)[0]
            assert wrong or moved is None
            seen += bool(wrong)
    assert seen > 60


def test_a_twin_that_breaks_ties_the_other_way_would_be_seen(monkeypatch):
    """Planted: of equal scores the last position ranks first."""

    def backwards(self, scores, most):
        size = scores.shape[1]
        order = self._rank[scores].astype(np.int64) * size + np.arange(size)[::-1]
        return size - 1 - np.sort(order, axis=1)[:, :most] % size

    monkeypatch.setattr(LayeredBatch, "_best", backwards)
    assert any(LayeredBatch(case.tables(), case.shape, case.table()).first_moved() is not None for case, _ in cases())


@pytest.mark.parametrize("kind", ["none", "token", "slot", "mass", "drop", "twice"])
def test_the_checks_of_a_table_are_those_of_each_class(kind):
    """What the checks class by class refuse, those of the table refuse; both hold where nothing is changed."""
    rng, refused = random.Random(3), 0
    for case, _ in cases():
        table = case.table()
        if kind != "none":
            table, _ = changed(table, rng, kind)
        if not len(table):
            continue
        slow = check_lemmas(table, case.drafter, ())
        slow_failing = first_failing(table, case.drafter, ())
        checks = ClassChecks(table, case.tables())
        fast = {"Lemma 5": checks.children_below(), **checks.lemma_7()}
        failing = checks.first_failing()
        assert all(slow.values()) or not all(fast.values())
        assert slow_failing is None or failing is not None
        refused += not all(fast.values()) or failing is not None
        if kind == "none":
            assert all(fast.values())
            assert failing is None
            assert set(checks.states) <= set(range(1 + max(checks.states)))
    assert (refused == 0) if kind == "none" else refused > 10


def test_a_sample_holds_distinct_classes_with_their_probabilities():
    for case, classes in cases()[:60]:
        known = {each.tree.key(): each for each in classes}
        sample = class_sample(case.drafter, case.shape, case.states(), 20, seed=1)
        assert len({each.tree.key() for each in sample}) == len(sample) <= min(20, len(classes))
        assert all(known[each.tree.key()].probability == each.probability for each in sample)
        again = class_sample(case.drafter, case.shape, case.states(), 20, seed=1)
        assert [each.tree for each in again] == [each.tree for each in sample]


def likeliest_are_right():
    """Whether the five most probable classes of some cases are those of a list of all."""
    for case, classes in cases()[:80]:
        found = likeliest_classes(case.drafter, case.shape, case.states(), 5)
        known = {each.tree.key(): each.probability for each in classes}
        if [each.probability for each in found] != sorted(known.values(), reverse=True)[:5]:
            return False
        assert all(known[each.tree.key()] == each.probability for each in found)
    return True


def test_the_most_probable_classes_come_first(monkeypatch):
    assert likeliest_are_right()
    monkeypatch.setattr(exact_table, "POPS", 0)
    assert likeliest_are_right()  # a beam that is wider than the cases are
    monkeypatch.setattr(exact_table, "BEAM", 1)
    assert not likeliest_are_right()


def test_classes_counts_more_than_it_lists(tmp_path, capsys):
    """Beyond --limit they are counted in a graph and the most probable are listed, as a list of all has them."""
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps({"contexts": {"*": {"target": [0.5, 0.25, 0.25], "draft": [0.5, 0.375, 0.125]}}}))
    line = ["classes", "--rows", str(rows), "--width", "3", "--depth", "5", "--budget", "20", "--json"]
    assert run(app, line) == 0
    (whole,) = json.loads(capsys.readouterr().out)["results"]
    assert run(app, [*line, "--limit", "20"]) == 0
    (part,) = json.loads(capsys.readouterr().out)["results"]
    assert part["count"] == whole["count"] == len(whole["classes"]) > 24 == len(part["classes"])
    assert [each["probability"] for each in part["classes"]] == [each["probability"] for each in whole["classes"][:24]]
    assert run(app, [*line, "--limit", "0"]) == 2


def test_states_are_read_from_a_function_and_known_of_a_table_of_rows():
    first, other = rational(3, 2, 1), rational(1, 1, 1)
    constant = read_states(alike(first), (), 3, range(3), 1)
    assert constant.step(0, 0) == constant.step(0, 1) != 0  # fewer levels of the tree are left below
    by_last = read_states(lambda prefix: first if prefix[-1:] == (0,) else other, (), 3, range(3), 1)
    assert by_last.step(0, 1) == by_last.step(0, 2) != by_last.step(0, 0)
    assert read_states(alike(first), (), 3, range(3), 1, most=5).known == "each prefix its own"
    rows = Rows("rows", {None: {"target": first, "draft": first}, (0, 1): {"target": first, "draft": other}})
    table = States((), rows.state)
    assert table.step(0, 1) == table.step(table.step(0, 1), 0) != table.step(0, 0) != 0
    assert table.standing((1, 0, 1)) == (1,)


def test_what_growth_cannot_follow_and_too_many_states_are_refused():
    pair = rational_models(ModelPair(*both(rational(4, 3, 2, 1))))
    shape = TreeShape(3, 3, 9)
    for name in ("rheo-raw", "rheo-half"):
        with pytest.raises(NotGrowable):
            growth_graph(rule(name).drafter(pair, shape), shape, States(()))
    with pytest.raises(TooManyStates, match="more than 5 states after"):
        growth_graph(rule("rheo").drafter(pair, shape), shape, States(()), most=5)
