"""A rule that keeps something between calls, or writes into what it is given, gets no verdict; planted faults."""

import functools
import itertools
import sys
from fractions import Fraction as F

import numpy as np
import pytest

from exact import assert_lossless, certify
from exact.runtime.reachable import State
from exact.search.cases import Bounds
from exact.search.hunt import exhaust
from exact.verdict.handed import Handed
from rheo_core import DraftRow, InvalidInput, TreeMethod, TreeShape, method
from rheo_core.verification import algorithm_1
from tests.pairs import alike, rational

pytestmark = pytest.mark.exact

P, Q = rational(1, 2), rational(2, 1)
SHAPE = TreeShape(1, 2, 2)
KEPT: dict[str, object] = {}


def own(verify):
    """A verification rule as a method."""
    return TreeMethod("own", None, lead=0, verify=verify)


def keeping(keep):
    """Algorithm 1, with something kept by `keep(chooser)` on the way."""

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        keep(chooser)
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    return own(verify)


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("last",)

    def keep(self, chooser):
        self.last = chooser.accept(F(1, 2))


class Counting:
    """A class that counts on itself."""

    calls = 0


def ways():
    """Ways to keep something, by name."""
    cell, nested, array, slotted = [], {"a": [{1}]}, np.zeros(2), Slotted()
    counter, left, paused = itertools.count(), iter(range(9)), (i for i in range(9))
    mapped = map(abs, range(9))

    def default(chooser, seen=[]):  # noqa: B006
        seen.append(1)

    def attribute(chooser):
        vars(attribute)["calls"] = vars(attribute).get("calls", 0) + 1

    @functools.lru_cache
    def cached(chooser):
        return chooser.accept(F(1, 2))

    return {
        "closure": lambda chooser: cell.append(1),
        "nested": lambda chooser: nested["a"][0].add(1 + len(nested["a"][0])),
        "array": lambda chooser: array.__setitem__(0, array[0] + 1),
        "slots": slotted.keep,
        "counter": lambda chooser: next(counter),
        "iterator": lambda chooser: next(left),
        "paused": lambda chooser: next(paused),
        "map": lambda chooser: next(mapped),
        "default": default,
        "attribute": attribute,
        "cache": cached,
        "global": lambda chooser: KEPT.update(last=chooser.accept(F(1, 2))),
        "class": lambda chooser: setattr(Counting, "calls", Counting.calls + 1),
        "new global": lambda chooser: globals().update(made=1),
    }


@pytest.mark.parametrize("name", ways())
def test_whatever_a_rule_keeps_between_calls_is_named(name):
    KEPT.clear()
    with pytest.raises(InvalidInput, match=r"^own: got a call that changes") as caught:
        certify(keeping(ways()[name]), alike(P), alike(Q), SHAPE, every_target=False)
    assert str(caught.value).partition("\n")[0].endswith("keeps nothing between calls")
    globals().pop("made", None)


def root_coin_below():
    """A coin of the root that decides below it: each call by itself is right, the text is not."""
    kept: list[bool] = []

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        x = 0 if kept and at[1] else chooser.index(p)
        if not at[1]:
            kept[:] = [x == 0]
        return x, (candidates.index(x) if x in candidates else -1)

    return own(verify)


def test_a_draw_at_the_root_that_is_used_below_is_refused():
    with pytest.raises(InvalidInput, match="a call that changes `kept`"):
        certify(root_coin_below(), alike(P), alike(Q), SHAPE)


def coin_unused():
    """A rule that emits its root draw again below wherever it was kept; a reference of its own text would lose."""
    kept: dict[str, int] = {}

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        x = chooser.index(p)
        if at[1] == () or "x" not in kept:
            kept["x"] = x
        return x, (candidates.index(x) if x in candidates else -1)

    return own(verify)


def test_without_the_comparison_state_would_pass(monkeypatch):
    """Planted fault: nothing is compared, so a rule with state is certified call by call."""
    with pytest.raises(InvalidInput, match="`kept`"):
        certify(coin_unused(), alike(P), alike(Q), SHAPE, every_target=False)
    monkeypatch.setattr(State, "changed", lambda self: None)
    monkeypatch.setattr(State, "changed_at_last", lambda self: None)
    assert certify(coin_unused(), alike(P), alike(Q), SHAPE, every_target=False).lossless


def overwriting(p, tail, candidates, sampled, lead, chooser, at):
    """A rule that makes its target row certain of token 0 and then follows it."""
    p.flags.writeable = True
    p[:] = [p[0] / p[0], p[0] - p[0]]
    return 0, (candidates.index(0) if 0 in candidates else -1)


@method
def overwriting_cycle(target, draft, prefix, shape, chooser):
    row = target(prefix)
    row.flags.writeable = True
    row[:] = [F(1), F(0)]
    return [0]


@method
def overwriting_draft(target, draft, prefix, shape, chooser):
    row = draft(prefix)
    row.score.flags.writeable = True
    row.score[0], row.score[1] = row.score[1], row.score[0]
    return [chooser.index(target(prefix))]


@pytest.mark.parametrize(
    ("rule", "row"), [(own(overwriting), "p"), (overwriting_cycle, "target"), (overwriting_draft, "draft")]
)
def test_a_row_that_a_rule_writes_into_is_named_and_stays_what_it_was(rule, row):
    draft = alike(DraftRow.pair(Q, P))
    with pytest.raises(InvalidInput, match=rf"got numbers written into its row {row}"):
        certify(rule, alike(P), draft, SHAPE)


def test_a_row_of_a_model_that_a_rule_reaches_is_no_target():
    shared = np.array([0.25, 0.75])

    @method
    def rule(target, draft, prefix, shape, chooser):
        shared[:] = [1.0, 0.0]
        return [0]

    with pytest.raises(InvalidInput, match="a call that changes `shared`"):
        certify(rule, lambda prefix: shared, alike(np.array([0.5, 0.5])), SHAPE)


def test_without_copies_the_written_row_would_be_the_target(monkeypatch):
    """Planted fault: the rule gets the row itself, and is compared with what it wrote."""
    monkeypatch.setattr(Handed, "row", lambda self, name, row: row)
    assert certify(own(overwriting), alike(P), alike(Q), TreeShape(1, 1, 1), 1, every_target=False).lossless


def on_floats_only(p, tail, candidates, sampled, lead, chooser, at):
    if isinstance(p[0], float) and candidates:
        return candidates[0], 0
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)


def narrow_only(p, tail, candidates, sampled, lead, chooser, at):
    if p.dtype == np.float32 and candidates:
        return candidates[0], 0
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)


@pytest.mark.parametrize(("rule", "where"), [(on_floats_only, "float64"), (narrow_only, "float32")])
def test_a_rule_that_is_wrong_on_floats_alone_is_lossy(rule, where):
    found = certify(own(rule), alike(P), alike(Q), SHAPE)
    assert (found.lossless, found.arithmetic, found.every_target) == (False, where, False)
    assert f"lossless on the same rows as rationals, not in {where}" in found.scope
    assert found.counterexample is not None
    assert abs(found.counterexample.got - found.counterexample.right) > F(1, 10)
    with pytest.raises(AssertionError, match=f"lossy at .* in {where}"):
        assert_lossless(rule, examples=1)


def test_without_the_float_runs_it_would_pass(monkeypatch):
    """Planted fault: rationals alone."""
    monkeypatch.setattr("exact.verdict.certify.FLOATS", ())
    assert certify(own(on_floats_only), alike(P), alike(Q), SHAPE).lossless


def test_the_scope_says_in_which_arithmetics_a_rule_was_run():
    def rational_alone(p, tail, candidates, sampled, lead, chooser, at):
        assert p[0].denominator > 0
        return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

    assert "float64 and float32 up to rounding" in certify(keeping(len_of), alike(P), alike(Q), SHAPE).scope
    assert "rationals alone: in float64 it breaks" in certify(own(rational_alone), alike(P), alike(Q), SHAPE).scope
    assert "ends not compared" in certify("rheo", alike(P), alike(Q), SHAPE).scope


def len_of(chooser):
    """Nothing is kept."""
    return len(str(chooser.accept))


def refusing(p, tail, candidates, sampled, lead, chooser, at):
    """A rule that says that a shape is not its own wherever it would lose."""
    if len(candidates) > 1:
        raise InvalidInput("width", len(candidates), "less")
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)


@pytest.mark.certificate
def test_a_refusal_of_the_rule_itself_is_no_shape_that_does_not_apply(monkeypatch):
    with pytest.raises(InvalidInput, match="width"):
        assert_lossless(refusing, examples=1)
    assert_lossless("spechub", examples=1)  # whose own shape check says which trees it has
    monkeypatch.setattr(InvalidInput, "by_rule", property(lambda self: False, lambda self, value: None))
    assert_lossless(refusing, examples=1)  # planted fault: swallowed, and passed


def test_a_hunt_says_nothing_of_a_rule_that_is_refused(monkeypatch):
    rule = coin_unused()
    with pytest.raises(InvalidInput, match="a call that changes `kept`"):
        exhaust(rule, [Bounds(2, depth=1, budget=1, width=1, alike=2, dependent=1)])
    monkeypatch.setattr(sys.modules["exact.search.hunt"], "own_parts", lambda rule: {})  # planted fault: nobody watches
    assert exhaust(rule, [Bounds(2, depth=1, budget=1, width=1, alike=2, dependent=1)]).counterexample is None
