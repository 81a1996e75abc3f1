"""Draws that only become output, taken as whole rows: the same distributions as one run for each value."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from exact import certify
from exact.enumeration import whole_rows
from exact.enumeration.cycle_law import acceptance_by_depth, compare, cycle_law
from exact.enumeration.rationals import rational_models
from exact.enumeration.walk import ReplayLog, recorded
from exact.enumeration.whole_rows import Spread, plain_numbers, row_outcomes
from rheo_core import InvalidInput, ModelPair, TreeShape, method
from tests.pairs import floats, rational, rule, varied

pytestmark = pytest.mark.exact
P = varied(rational(1, 2, 3, 4), rational(4, 1, 0, 1), rational(1, 1, 1, 1))
Q = varied(rational(3, 2, 0, 1), rational(1, 1, 1, 0))


@pytest.fixture
def rows_from(monkeypatch):
    """Rows of two weights are long, and laws of one sequence are kept in rows."""
    monkeypatch.setattr(whole_rows, "LEAST", 2)
    monkeypatch.setattr(whole_rows, "LISTED", 0)


def chain(last):
    """A chain whose last token is what `last` makes of the number that the chooser draws."""

    def cycle(target, draft, prefix, shape, chooser):
        p, q = target(prefix), draft(prefix)
        token = int(chooser.index(q))
        if chooser.accept(min(1, p[token] / q[token])):
            return [token, last(chooser.index(target((*prefix, token))))]
        return (last(chooser.index([max(0, a - b) for a, b in zip(p, q, strict=True)])),)

    return method(cycle)


TABLE = [0, 1, 2, 3]
MADE: dict[str, Any] = {
    "handed on": lambda token: token,
    "read as an int": int,
    "compared": lambda token: token if token < 2 else min(token, 3),
    "an index": lambda token: TABLE[token],
    "hashed": lambda token: {0: 0, 1: 1, 2: 2, 3: 3}[token],
    "computed with": lambda token: token + 0,
    "an array": lambda token: np.array([token])[0],
}


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("models", [(P, Q), (floats(P, np.float32), floats(Q, np.float32))])
def test_whatever_becomes_of_a_number_the_law_is_that_of_plain_numbers(rows_from, monkeypatch, made, models):
    pair, shape = ModelPair(*models), TreeShape(1, 1, 1)
    with plain_numbers():
        right, _ = cycle_law(chain(MADE[made]), pair, (), shape)
    found, _ = cycle_law(chain(MADE[made]), pair, (), shape)
    assert isinstance(found, Spread) == (made == "handed on")
    assert list(map(found.__getitem__, right)) == list(right.values())
    assert len(found) == len(right)
    monkeypatch.setattr(whole_rows, "LISTED", 200_000)
    assert dict(found) == right
    pair = rational_models(pair)
    for length in (1, 2, 3):
        one, two = compare(found, pair, (), length), compare(right, pair, (), length)
        assert (one.total_variation, one.wrong) == (two.total_variation, two.wrong)
    assert acceptance_by_depth(found, 1) == acceptance_by_depth(right, 1)


SHAPES = [TreeShape(1, 1, 1), TreeShape(2, 2, 4), TreeShape(1, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["rheo", "rheo-rrsw", "top-k", "rheo-raw"])
@pytest.mark.parametrize("dtype", [None, np.float32])
def test_tree_methods_have_the_same_law_and_verdict(rows_from, monkeypatch, name, shape, dtype):
    mine = rule(name) if name == "top-k" else rule(name, lead=0)
    target, draft = (P, Q) if dtype is None else (floats(P, dtype), floats(Q, dtype))
    kept = certify(mine, target, draft, shape, every_target=False)
    monkeypatch.setattr(whole_rows, "LEAST", 512)
    listed = certify(mine, target, draft, shape, every_target=False)
    assert isinstance(kept.emitted, Spread)
    assert not isinstance(listed.emitted, Spread)
    for figure in ("verdict", "total_variation", "counterexample", "acceptance_by_depth", "rounding_most"):
        assert getattr(kept, figure) == getattr(listed, figure)
    if dtype is not None and name != "rheo-raw":  # one row against another is bounded less tightly than value by value
        one, two = listed.rounding_bound or 0, kept.rounding_bound or 0
        assert listed.total_variation <= one <= two <= 2 * one
    with pytest.raises(InvalidInput, match="to list them"):
        kept.to_json()


def test_a_number_in_two_places_and_one_that_is_nowhere(rows_from):
    def outcomes(program):
        return row_outcomes(program, lambda result, token: [token])

    once = outcomes(lambda chooser, keep: [keep(chooser.index([1, 3]))])
    assert [(result, row.weights, weight) for result, row, weight in once] == [([1], (1, 3), 1)]

    @method
    def twice(target, draft, prefix, shape, chooser):
        return [chooser.index(target(prefix))] * 2

    assert cycle_law(twice, ModelPair(P, Q), (), TreeShape(1, 1, 1))[0] == {(v, v): F(v + 1, 10) for v in range(4)}
    assert len(outcomes(lambda chooser, keep: (chooser.index([1, 3]), 7)[1])) == 1  # decides nothing
    assert [w for _, _, w in outcomes(lambda chooser, keep: chooser.index([1, 3]) == 0)] == [F(1, 4), F(3, 4)]


class Typed:
    """A chain that tells a number that waits from an int, and loses where it does not wait."""

    @staticmethod
    def cycle(target, draft, prefix, shape, chooser):
        token = chooser.index(target(prefix))
        return [token if str(type(token)) != "<class 'int'>" else 0]


def test_code_that_tells_a_waiting_number_from_an_int_gets_plain_numbers(rows_from):
    """The planted fault: without the runs that are made again with plain numbers this would be lossless."""
    mine = method(Typed.cycle)
    assert certify(mine, P, Q, TreeShape(1, 1, 1), 1, every_target=False).verdict == "lossy"
    whole_rows_tried, whole_rows.TRIED = whole_rows.TRIED, 0
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("exact.verdict.certify.tells_types", lambda rule: False)
            assert certify(mine, P, Q, TreeShape(1, 1, 1), 1, every_target=False).verdict == "lossless"
    finally:
        whole_rows.TRIED = whole_rows_tried


def test_a_run_that_breaks_on_a_waiting_number_is_made_with_plain_ones(rows_from):
    def picky(target, draft, prefix, shape, chooser):
        return [chooser.index(target(prefix)).to_bytes(1, "big")[0], [0][chooser.index([1, 1]) and ord(chr(0))]]

    found = certify(method(picky), P, Q, TreeShape(1, 1, 1), every_target=False)
    assert found.verdict == "lossy"
    assert not isinstance(found.emitted, Spread)


def test_the_runs_that_are_made_once_more_are_those_of_the_rows_too(rows_from):
    log = ReplayLog()
    state = []

    def program(chooser, keep):
        state.append(0)
        return keep(chooser.index([1, 2] if len(state) < 3 else [1, 3]))

    with recorded(log):
        row_outcomes(program, lambda result, token: token)
    with pytest.raises(Exception, match="asked again"):
        log.replay()
