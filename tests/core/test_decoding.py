"""One cycle and text made of cycles: what counts as emitted, where text ends, and what a user's method may return."""

from dataclasses import FrozenInstanceError, replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz

from exact import law
from rheo_core import (
    Cycle,
    InvalidInput,
    SamplingChooser,
    TreeMethod,
    TreeShape,
    find_method,
    generate,
    laws,
    method,
    methods,
    speculate,
)
from rheo_core.tree import Nodes
from tests.exact.laws import replayed_law
from tests.pairs import HAND_MADE, alike, both, rational, rule, varied
from tests.recording import RecordingChooser

SHAPE = TreeShape(2, 3, 4)
EMPTY = Nodes().tree(np.dtype(object))


def sampling(seed=0):
    return SamplingChooser(np.random.default_rng(seed))


def one_hot(token, size=8):
    return [int(each == token) for each in range(size)]


def counting(prefix):
    """After t comes t + 1, surely."""
    return one_hot((prefix[-1] + 1) % 8 if prefix else 0)


@pytest.mark.parametrize("name", methods)
@pytest.mark.parametrize("pair", HAND_MADE, ids=repr)
def test_a_cycle_emits_1_to_d_plus_1_tokens_along_its_tree(name, pair):
    for seed in range(5):
        cycle = speculate(pair.target, pair.draft, (), name, SHAPE, sampling(seed))
        assert 1 <= len(cycle.tokens) <= SHAPE.depth + 1
        assert cycle.accepted == len(cycle.tokens) - 1  # H1: the accepted prefix, not the sum of a mask
        assert len(cycle.tree) <= SHAPE.budget
        assert all(type(token) is int for token in cycle.tokens)
        paths = {cycle.tree.tokens_to(node) for node in range(len(cycle.tree))} | {()}
        assert cycle.tokens[:-1] in paths
        assert all(pair.target(cycle.tokens[:end])[token] > 0 for end, token in enumerate(cycle.tokens))


def test_a_draft_that_agrees_is_accepted_to_full_depth():
    text = generate(counting, counting, (), "rheo", TreeShape(2, 3, 5), sampling(), 8)
    assert text.tokens == tuple(range(8))
    assert [cycle.accepted for cycle in text.cycles] == [3, 3]
    assert text.acceptance_length == 4  # H2: the target's own token is counted


def test_text_stops_at_an_end_token_inside_an_accepted_path():
    """H3: three tokens emitted, not six."""
    text = generate(counting, counting, (), "rheo", TreeShape(1, 5, 5), sampling(), 100, end=[2])
    assert text.tokens == (0, 1, 2)
    assert len(text.cycles) == 1
    assert text.cycles[0].tokens == (0, 1, 2, 3, 4, 5)
    assert text.acceptance_length == 3
    assert generate(counting, counting, (), "rheo", TreeShape(1, 2, 2), sampling(), 100, end={5, 7}).tokens == tuple(
        range(6)
    )
    assert generate(counting, counting, (1,), "rheo", TreeShape(1, 2, 2), sampling(), 4, end=[1]).tokens == (2, 3, 4, 5)


@pytest.mark.parametrize("length", [0, 1, 3, np.int64(5)])
def test_text_has_the_length_asked_for(length):
    model: Any = varied(rational(1, 2, 3), rational(3, 2, 1))
    text = generate(model, model, (0,), "rheo", SHAPE, sampling(), length)
    assert len(text.tokens) == length
    if not length:
        with pytest.raises(InvalidInput, match="cycles: got 0, expected at least one cycle"):
            _ = text.acceptance_length


def test_the_same_seed_gives_the_same_text_and_another_does_not():
    models = (varied(rational(1, 2, 3), rational(3, 2, 1)), varied(rational(1, 1, 1)))
    one, again, other = (generate(*models, (), "rheo", SHAPE, sampling(seed), 40).tokens for seed in (1, 1, 2))
    assert one == again != other


def test_addresses_carry_the_number_of_the_cycle():
    """So that a record of one text replays on another implementation, cycle by cycle."""
    models = (varied(rational(1, 2, 3), rational(3, 2, 1)), varied(rational(1, 1, 1), rational(4, 1, 1)))
    first = RecordingChooser(sampling())
    text = generate(*models, (), "rheo", SHAPE, first, 12)
    addresses: Any = set(first.record)
    assert {at[1] for at in addresses} == set(range(len(text.cycles)))
    assert all(at[0] in ("tail", "coin", "emit") and len(at) == 4 for at in addresses)

    class Nothing:
        def accept(self, probability, at=None):
            raise AssertionError(at)

        index = accept

    again = generate(*models, (), "rheo", SHAPE, RecordingChooser(Nothing(), first.record), 12)
    assert again.tokens == text.tokens
    grown = rule("rheo", construction="grown")  # draws less, at the same addresses
    assert generate(*models, (), grown, SHAPE, RecordingChooser(Nothing(), first.record), 12).tokens == text.tokens


def test_greedy_decoding_is_the_arg_max_whatever_the_draft():
    logits = varied([0.1, 2.0, 1.0], [3.0, 0.0, 3.0], [-1.0, -2.0, 0.5])

    def target(prefix):
        return laws.softmax(logits(prefix), temperature=0)

    expected: tuple[int, ...] = ()
    while len(expected) < 6:
        expected += (int(np.argmax(logits(expected))),)
    for name in ("top-k", "rheo", "rheo-rrsw"):
        text = generate(target, alike([0.5, 0.25, 0.25]), (), name, SHAPE, sampling(), 6)
        assert text.tokens == expected


@pytest.mark.parametrize("pair", HAND_MADE, ids=repr)
def test_both_constructions_emit_one_law(pair):
    one, other = (
        replayed_law(each, pair.target, pair.draft, TreeShape(2, 2, 3))
        for each in (rule("rheo"), rule("rheo", construction="grown"))
    )
    assert one == other


def test_methods_are_frozen_values_and_other_leads_are_replacements():
    zero = replace(rule("rheo"), lead=np.int64(0))
    assert type(zero.lead) is int
    assert zero == rule("rheo", lead=0)
    with pytest.raises(FrozenInstanceError):
        zero.lead = 2
    table: Any = methods
    with pytest.raises(TypeError):
        table["mine"] = zero
    assert {"top-k", "rheo", "rheo-rrsw", "rheo-adhoc", "rheo-raw"} <= set(methods)
    assert rule("rheo").lead == rule("rheo-rrsw").lead == 1
    assert find_method(zero) is zero


@pytest.mark.parametrize("result", [[1, 0], (1, 0), np.array([1, 0]), [np.int64(1), mpz(0)], Cycle((1, 0), 99, EMPTY)])
def test_a_users_cycle_function_returns_tokens_or_a_cycle(result):
    @method(name="mine", claim="lossy")
    def cycle(target, draft, prefix, shape, chooser):
        return result

    found = speculate(*both(rational(1, 1)), (), cycle, SHAPE, sampling())
    assert (cycle.name, cycle.claim) == ("mine", "lossy")
    assert found.tokens == (1, 0)
    assert found.accepted == 1


def test_a_users_cycle_function_gets_checked_rows_and_the_map():
    @method
    def cycle(target, draft, prefix, shape, chooser, ids=None):
        assert target(prefix).tolist() == [F(1, 4), F(1, 4), F(1, 2)]
        assert draft(prefix).tolist() == [F(1, 2), F(1, 2)]
        assert ids == [2, 0]
        return [ids[chooser.index(draft(prefix))]]

    models = alike(rational(1, 1, 2)), alike(rational(1, 1))
    assert law(lambda chooser: speculate(*models, (), cycle, SHAPE, chooser, ids=[2, 0]).tokens) == {
        (2,): F(1, 2),
        (0,): F(1, 2),
    }


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([], "tokens emitted by cycle: got (), expected 1 to 4 (depth + 1) of them"),
        ([0] * 5, "tokens emitted by cycle: got (0, 0, 0, 0, 0), expected 1 to 4 (depth + 1) of them"),
        ([2], "token emitted by cycle: got 2, expected a token id in 0..1"),
        ([-1], "token emitted by cycle: got -1, expected a token id in 0..1"),
        (3, "result of cycle: got 3, expected a Cycle or a sequence of token ids"),
        ("01", "result of cycle: got 01, expected a Cycle or a sequence of token ids"),
        (None, "result of cycle: got None, expected a Cycle or a sequence of token ids"),
    ],
)
def test_what_a_users_cycle_function_may_not_return(result, message):
    @method
    def cycle(target, draft, prefix, shape, chooser):
        return result

    with pytest.raises(InvalidInput) as caught:
        speculate(*both(rational(1, 1)), (), cycle, SHAPE, sampling())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((2, -1), "token emitted by verify: got 2, expected a token id in 0..1"),
        ((0, 1), "child: got 1, expected -1 or the index of token 0 among the candidates [1]"),
        ((0, 0), "child: got 0, expected -1 or the index of token 0 among the candidates [1]"),
        ((1, None), "child: got None, expected -1 or the index of token 1 among the candidates [1]"),
        ((1, -2), "child: got -2, expected -1 or the index of token 1 among the candidates [1]"),
        (1, "result of verify: got 1, expected a pair (token, index of the accepted candidate or -1)"),
        (None, "result of verify: got None, expected a pair (token, index of the accepted candidate or -1)"),
    ],
)
def test_what_a_users_verification_rule_may_not_return(result, message):
    mine = TreeMethod("mine", None, lead=1, verify=lambda *arguments: result)
    with pytest.raises(InvalidInput) as caught:
        speculate(*both(rational(1, 3)), (), mine, TreeShape(1, 1, 1), sampling())
    assert str(caught.value) == message


def test_rows_cannot_be_changed_by_a_rule():
    mine = TreeMethod("mine", None, lead=1, verify=lambda p, tail, *rest: p.__setitem__(0, 1))
    with pytest.raises(ValueError, match="read-only"):
        speculate(*both(rational(1, 3)), (), mine, TreeShape(1, 1, 1), sampling())
