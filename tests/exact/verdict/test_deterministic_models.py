"""Models that are no functions and rules that look at the cycle number are noticed; others are left alone."""

import itertools
import math
import pickle
import random
from dataclasses import replace
from fractions import Fraction as F
from functools import partial
from typing import Any

import numpy as np
import pytest

from exact import assert_lossless, certify, law
from exact.cli import options
from exact.cli.main import app
from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods import methods
from exact.verdict.replay_check import DeterministicModel
from rheo_core import DraftRow, InvalidInput, TreeMethod, TreeShape, generate
from rheo_core.verification import algorithm_1
from tests.pairs import alike

pytestmark = pytest.mark.exact

P, Q = [F(1, 2), F(1, 5), F(3, 10)], [F(1, 2), F(3, 10), F(1, 5)]
SHAPE = TreeShape(3, 2, 4)


def target(prefix):
    return P


def draft(prefix):
    return Q


def reading(number):
    """A rule that is Algorithm 1, but greedy from cycle `number` on."""

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        if at[0] >= number and candidates:
            return candidates[0], 0
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    return TreeMethod("reading", None, lead=1, verify=verify)


@pytest.mark.parametrize("number", [1, 2, 3, 999, 10**9])
def test_a_rule_that_looks_at_the_cycle_number_is_noticed_whatever_the_number(number):
    with pytest.raises(InvalidInput, match="reading: got a look at the number of the cycle"):
        certify(reading(number), target, draft, SHAPE)
    with pytest.raises(InvalidInput, match="does not look at the cycle number"):
        assert_lossless(reading(number), examples=1)


def test_a_rule_that_loses_in_the_first_cycle_is_lossy_all_the_same():
    assert certify(reading(0), target, draft, SHAPE).lossless is False


def test_a_rule_on_a_fixed_topology_is_looked_at_too():
    known = next(each for each in methods.values() if isinstance(each, FixedTreeMethod) and each.claim == "lossless")

    def verify(node, candidates, chooser):
        if node.at[0] == 2 and candidates:
            return candidates[0], 0
        return known.verify(node, candidates, chooser)

    with pytest.raises(InvalidInput, match="own: got a look at the number of the cycle"):
        certify(replace(known, name="own", verify=verify), target, draft, SHAPE)

    def blind(node, candidates, chooser):
        return known.verify(node, candidates, chooser)

    assert certify(replace(known, name="own", verify=blind), target, draft, SHAPE).lossless


LOOKS = {
    "equality": lambda number: number == 3,
    "a table": lambda number: number in {3: "three"},
    "an index": lambda number: [False, True, True, True][number],
    "a range": lambda number: len(range(number)) == 3,
    "text": lambda number: f"{number}" == "3",
    "a remainder": lambda number: 4 % (number + 1) == 2,
    "a root": lambda number: math.sqrt(number) > 1.7,
    "truth": lambda number: bool(number),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_every_way_to_look_at_the_number_is_noticed(look):
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        assert isinstance(at[0], int)
        if look(at[0]) and candidates:
            return candidates[0], 0
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    with pytest.raises(InvalidInput, match="a look at the number of the cycle"):
        certify(TreeMethod("own", None, lead=1, verify=verify), target, draft, SHAPE)


def greedy_in(number):
    """A rule that takes the first candidate in one cycle, and is Algorithm 1 in all others."""

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        if at[0] == number:
            return 0, -1
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    return TreeMethod("own", None, lead=1, verify=verify)


def _text(rule, rows, shape, chooser):
    return generate(rows[0], rows[1], (), rule, shape, chooser, 4).tokens


def test_the_number_is_that_of_the_cycle_which_the_rule_is_in():
    rows = alike([F(1, 2), F(1, 3), F(1, 6)]), alike([F(1, 6), F(1, 3), F(1, 2)])
    shape = TreeShape(2, 1, 2)
    for number in range(4):
        found = certify(greedy_in(number), *rows, shape, 4, cycles=4, every_target=False)
        assert found.lossless is False
        texts = law(partial(_text, greedy_in(number), rows, shape))
        assert found.law(4) == texts  # `generate` hands out the same numbers
    with pytest.raises(InvalidInput, match="it does not lose in the first 4, but may later"):
        certify(greedy_in(4), *rows, shape, 4, cycles=4)


def test_without_the_noting_number_a_later_cycle_would_pass(monkeypatch):
    """Planted fault: the rule is handed a plain 0."""
    monkeypatch.setattr("exact.verdict.handed.CycleNumber", lambda number, read: number)
    assert certify(reading(3), target, draft, SHAPE).lossless


def test_a_rule_that_passes_its_addresses_on_is_left_alone():
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        assert chooser.accept(1, ("coin", *at, 0))
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    assert certify(TreeMethod("own", None, lead=1, verify=verify), target, draft, SHAPE).lossless


def noisy(prefix):
    x = random.random() / 4
    return np.array([0.5 + x, 0.5 - x])


def counting():
    calls = itertools.count()
    return lambda prefix: [F(1, 2), F(1, 2)] if next(calls) % 2 else [F(1, 4), F(3, 4)]


def even(prefix):
    return np.array([0.5, 0.5])


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ((noisy, even), r"target\(\(\)\): got two different rows"),
        ((even, noisy), r"draft\(\(\)\): got two different rows"),
        ((even, lambda prefix: DraftRow.law(noisy(prefix))), r"draft\(\(\)\)"),
        ((even, lambda prefix: DraftRow.logits(noisy(prefix), 0.5)), r"draft\(\(\)\)"),
        ((even, lambda prefix: DraftRow.pair(even(prefix), noisy(prefix))), r"draft\(\(\)\)"),
        ((lambda prefix: noisy(prefix) if len(prefix) == 1 else even(prefix), even), r"target\(\([01],\)\)"),
        ((counting(), lambda prefix: [F(1, 2), F(1, 2)]), r"target\(\(\)\)"),
    ],
)
def test_a_model_that_answers_differently_when_asked_twice_is_refused(models, said):
    with pytest.raises(InvalidInput, match=said):
        certify("rheo", models[0], models[1], TreeShape(2, 1, 2))


def _always(row, prefix):
    return row


def test_what_is_no_row_is_refused_for_that_and_not_for_being_unsteady():
    rows: list[Any] = [[float("nan"), 1.0], [[0.5, 0.5]], iter([1]), None, [0.5, "x"], [[1], [1, 2]]]
    for wrong in rows:
        with pytest.raises(InvalidInput, match=r"target\(\(\)\)") as caught:
            certify("rheo", partial(_always, wrong), even, TreeShape(2, 1, 2))
        assert "asked twice" not in str(caught.value)


def test_a_steady_model_is_handed_on_as_it_is_and_can_be_sent():
    assert DeterministicModel(target, "target")(()) is P
    assert pickle.loads(pickle.dumps(DeterministicModel(target, "target")))(()) == P


def test_the_command_says_it_in_one_line(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(
        "from rheo_core.verification import algorithm_1\n\n\n"
        "def verify(p, tail, candidates, sampled, lead, chooser, at):\n"
        "    if at[0] == 1 and candidates:\n"
        "        return candidates[0], 0\n"
        "    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)\n",
        encoding="utf-8",
    )
    assert options.run(app, ["certify", f"{path}:verify", "--width", "2", "--depth", "1", "--budget", "2"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "got a look at the number of the cycle" in err
