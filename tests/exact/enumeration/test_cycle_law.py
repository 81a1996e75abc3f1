"""The class path beside replay of the whole program, and everything that is computed from its law."""

import pickle
from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exact import certify, law, target_law
from exact.enumeration.cycle_law import compare, joint_law, tree_law
from exact.enumeration.rationals import rational_models
from rheo_core import InvalidInput, ModelPair, TreeMethod, TreeShape, generate, method, methods, speculate
from rheo_core.proxies import RAW, Constant
from rheo_core.verification import algorithm_1, rrsw, vanilla
from tests.exact.laws import emitted_law, replayed_law, total_variation
from tests.pairs import (
    HAND_MADE,
    Models,
    alike,
    both,
    drawn_models,
    draws,
    floats,
    models,
    rational,
    rule,
    shapes,
    varied,
)
from tests.products import pairwise, spread

pytestmark = pytest.mark.exact

BUILT_IN = tuple(each for each in methods.values() if isinstance(each, TreeMethod))
SMALL = TreeShape(2, 2, 3)


@spread("pair, each", HAND_MADE, BUILT_IN, part=1)
def test_class_path_and_replay_give_one_law(pair: Models, each):
    expected = replayed_law(each, pair.target, pair.draft, SMALL, limit=20_000)
    assert emitted_law(each, pair.target, pair.draft, SMALL) == expected
    if each.claim == "lossless":  # the rules that can be grown: the other construction emits the same law
        assert replayed_law(rule(each.name, construction="grown"), pair.target, pair.draft, SMALL) == expected


@given(drawn_models(most=3), shapes(width=3, depth=2), st.integers(0, 3), st.sampled_from(BUILT_IN))
@settings(max_examples=40)
def test_class_path_and_replay_give_one_law_on_drawn_pairs(pair: Models, shape, lead, each):
    assume(draws(pair, shape, 0) <= 27)
    mine = each if each.lead is None else rule(each.name, lead=min(lead, shape.width))
    expected = replayed_law(mine, pair.target, pair.draft, shape, limit=20_000)
    assert emitted_law(mine, pair.target, pair.draft, shape) == expected


def target_law_oracle(target, length, prefix):
    """The product of conditionals for every one of the V^L sequences."""
    found = {}
    for tokens in product(range(len(target(prefix))), repeat=length):
        mass = F(1)
        for end, token in enumerate(tokens):
            mass *= F(target(prefix + tokens[:end])[token])
        if mass:
            found[tokens] = mass
    return found


@given(drawn_models(), st.integers(1, 4), st.lists(st.integers(0, 0), max_size=2))
@settings(max_examples=40)
def test_target_law_against_the_product_of_conditionals(pair: Models, length, prefix):
    assert target_law(pair.target, length, tuple(prefix)) == target_law_oracle(pair.target, length, tuple(prefix))


def test_a_float_target_is_its_row_over_its_exact_sum():
    row = np.array([0.1, 0.2, 0.7], np.float32)
    exact = [F(*entry.as_integer_ratio()) for entry in row]
    assert list(target_law(alike(row), 1).values()) == [entry / sum(exact) for entry in exact]
    assert sum(exact) != 1


@given(drawn_models(most=3, least=2), shapes(width=2, depth=2), st.integers(1, 4), st.sampled_from(BUILT_IN))
@settings(max_examples=40)
def test_the_comparison_against_two_full_tables(pair: Models, shape, length, each):
    """Total variation, and the first wrong sequence: the shortest, then the lexicographically least."""
    mine = each if each.lead is None else rule(each.name, lead=min(each.lead, shape.width))
    emitted = emitted_law(mine, pair.target, pair.draft, shape)
    found = compare(emitted, rational_models(pair.pair()), (), length)
    got = {size: joint_law(emitted, pair.target, size) for size in range(1, length + 1)}
    right = {size: target_law_oracle(pair.target, size, ()) for size in range(1, length + 1)}
    assert found.total_variation == total_variation(got[length], right[length])
    wrong = [
        (tokens, got[size].get(tokens, 0), right[size].get(tokens, 0))
        for size in range(1, length + 1)
        for tokens in product(range(pair.size), repeat=size)
        if got[size].get(tokens, 0) != right[size].get(tokens, 0)
    ]
    assert found.wrong == (wrong[0] if wrong else None)


@spread("pair, name", HAND_MADE, ["rheo", "top-k", "rheo-rrsw", "rheo-adhoc", "rheo-raw"], part=2)
def test_acceptance_against_replay(pair: Models, name):
    shape = TreeShape(2, 2, 4)
    accepted: Any = law(lambda chooser: speculate(pair.target, pair.draft, (), name, shape, chooser).accepted)
    found = certify(name, pair.target, pair.draft, shape, every_target=False)
    by_depth = [sum(mass for count, mass in accepted.items() if count >= depth) for depth in range(3)]
    assert list(found.acceptance_by_depth) == by_depth
    assert found.acceptance_by_depth[0] == 1
    assert found.acceptance_length == sum((count + 1) * mass for count, mass in accepted.items())


TWO_CYCLES = (
    models("p = q", [rational(1, 2)], [rational(1, 2)]),
    models("two tokens", [rational(1, 1), rational(1, 3)], [rational(1, 2), rational(1, 1), [1, 0]]),
    models("zeros", [rational(1, 1, 2), [0, 1, 0]], [rational(2, 1, 1), [1, 0, 0]]),
)


@pairwise(
    "pair, name, lead, shape_and_cycles",
    TWO_CYCLES,
    ["rheo", "rheo-rrsw", "top-k", "rheo-raw", "rheo-half", "rheo-adhoc"],
    [0, 1],
    [(TreeShape(2, 1, 2), 2), (TreeShape(2, 2, 2), 2), (TreeShape(1, 1, 1), 3)],
)
def test_text_over_several_cycles_against_replay_of_generate(pair: Models, name, lead, shape_and_cycles):
    """Each cycle emits at least one token, so that `cycles` tokens need no more cycles than that."""
    shape, cycles = shape_and_cycles
    mine = rule(name) if name == "top-k" else rule(name, lead=lead)
    replayed = law(lambda chooser: generate(pair.target, pair.draft, (), mine, shape, chooser, cycles).tokens)
    found = certify(mine, pair.target, pair.draft, shape, cycles, cycles=cycles, every_target=False)
    assert found.law() == replayed
    assert found.total_variation == total_variation(replayed, target_law(pair.target, cycles))
    assert found.lossless == (replayed == target_law(pair.target, cycles))


def test_a_loss_may_show_in_the_second_cycle_only():
    """A fault that depends on the prefix: right while nothing was emitted, wrong afterwards."""

    @method
    def forgetful(target, draft, prefix, shape, chooser):
        return [chooser.index(target(prefix) if not prefix else draft(prefix))]

    pair = models("two", [rational(1, 1)], [rational(1, 3)])
    one = certify(forgetful, pair.target, pair.draft, TreeShape(1, 1, 1), 2)
    two = certify(forgetful, pair.target, pair.draft, TreeShape(1, 1, 1), 2, cycles=2)
    assert (one.lossless, two.lossless) == (True, False)
    assert two.counterexample is not None
    assert (two.counterexample.sequence, two.counterexample.got, two.counterexample.right) == ((0, 0), F(1, 8), F(1, 4))


def test_a_lossy_method_gets_the_shortest_wrong_sequence():
    found = certify("rheo-adhoc", alike(rational(5, 2, 3)), alike(rational(5, 3, 2)), TreeShape(3, 1, 2))
    assert not found.lossless
    assert found.counterexample is not None
    assert found.counterexample.sequence == (0,)
    assert found.counterexample.got != found.counterexample.right == F(1, 2)
    assert found.counterexample.target[()] == tuple(rational(5, 2, 3))
    assert str(found.counterexample) == f"(0,): got {found.counterexample.got}, right 1/2"


def test_a_function_method_is_replayed_whole_and_has_no_classes():
    @method(claim="lossless")
    def one_by_one(target, draft, prefix, shape, chooser):
        y = chooser.index(draft(prefix))
        p, q = target(prefix), draft(prefix)
        if chooser.accept(min(1, p[y] / q[y])):
            return [y, chooser.index(target((*prefix, y)))]
        rest = [max(0, a - b) for a, b in zip(p, q, strict=True)]
        return [chooser.index(rest)]

    pair = varied(rational(1, 2, 3), rational(3, 1, 1)), varied(rational(1, 1, 1), rational(2, 0, 1))
    found = certify(one_by_one, *pair, TreeShape(1, 1, 1))
    assert found.lossless
    assert found.classes is None
    assert found.law() == target_law(pair[0], 2)


def test_any_object_with_a_cycle_is_a_method():
    class Mine:
        name, claim = "mine", None

        def cycle(self, target, draft, prefix, shape, chooser, ids=None):
            return speculate(target, draft, prefix, "rheo", shape, chooser, ids=ids)

    found = certify(Mine(), *both(rational(1, 2, 1)), TreeShape(2, 1, 2))
    assert found.lossless
    assert found.acceptance_length == certify("rheo", *both(rational(1, 2, 1)), TreeShape(2, 1, 2)).acceptance_length


def test_an_id_map_is_followed_everywhere():
    """F1 by the right map: acceptance 3/5; with offsets read as ids for both, lossless and 2/5; a mixture is lossy."""
    p, q = rational(2, 1, 4, 1, 1, 1), rational(5, 3, 2)
    shape = TreeShape(1, 1, 1)
    right = certify(rule("rheo", lead=0), alike(p), alike(q), shape, ids=[0, 2, 5])
    wrong = certify(rule("rheo", lead=0), alike(p), alike(q), shape, ids=[0, 1, 3])
    assert (right.lossless, right.acceptance_by_depth[1]) == (True, F(3, 5))
    assert (wrong.lossless, wrong.acceptance_by_depth[1]) == (True, F(2, 5))

    def swapped(p, tail, candidates, sampled, lead, chooser, at):
        if sampled == -1:
            return vanilla(p, tail, candidates, sampled, lead, chooser, at)
        mixed = np.zeros_like(tail)
        mixed[[0, 1, 3]] = tail[[0, 2, 5]]  # the row by the wrong map, the token by the right one
        r = np.maximum(p - mixed, 0)
        y = candidates[sampled]
        if mixed[y] == 0 or chooser.accept(min(1, p[y] / mixed[y])):
            return y, sampled
        return chooser.index(r), -1

    mixed = certify(TreeMethod("mixed", "lossy", 0, verify=swapped), alike(p), alike(q), shape, 1, ids=[0, 2, 5])
    assert [mixed.law().get((token,), 0) for token in range(6)] == [F(1, 5), 0, F(1, 2), 0, F(1, 20), F(1, 4)]
    assert mixed.total_variation == F(1, 4)


@pairwise(
    "pair, dtype, mine",
    HAND_MADE,
    [np.float16, np.float32, np.float64],
    [rule("rheo"), rule("rheo-rrsw", lead=0), rule("top-k"), rule("rheo-raw")],
)
def test_float_runs_take_the_class_path_too(pair: Models, dtype, mine):
    target, draft = floats(pair.target, dtype), floats(pair.draft, dtype)
    assert emitted_law(mine, target, draft, SMALL) == replayed_law(mine, target, draft, SMALL)


def test_tree_law_of_one_tree_sums_to_its_verifier():
    from exact.enumeration.node_laws import VerifierCache
    from exact.enumeration.tree_classes import classes

    drafter = rule("rheo").drafter(ModelPair(*both(rational(5, 3, 2))), SMALL)
    for each in classes(drafter, (), SMALL):
        for verify in (algorithm_1, rrsw):
            found = list(tree_law(each.tree, VerifierCache(drafter, verify), ()))
            assert sum(mass for _, _, mass in found) == 1


def test_constant_and_raw_proxies_of_a_user_are_certified_by_brute_force():
    for proxy in (Constant(F(1, 10)), RAW, lambda score, order, m, sampled: score[sampled] / 2):
        mine = TreeMethod("mine", None, 1, proxy=proxy)
        expected = replayed_law(mine, *both(rational(5, 3, 2)), SMALL)
        assert emitted_law(mine, *both(rational(5, 3, 2)), SMALL) == expected


def test_a_certificate_is_pickled_without_its_target():
    target, draft = varied(rational(1, 2, 3), rational(3, 1, 1)), alike(rational(1, 1, 1))
    found = certify("rheo", target, draft, TreeShape(3, 1, 3), every_target=False)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.law() == found.law() == target_law(target, 2)
    far = certify("rheo", target, draft, TreeShape(1, 1, 1), 4, every_target=False)
    assert far.law() == target_law(target, 4)
    with pytest.raises(InvalidInput, match=r"^prefix: got \(.*\), expected one whose target row was read"):
        pickle.loads(pickle.dumps(far)).law()


def test_a_rule_that_looks_at_its_slot_path_is_replayed_at_each_of_them():
    """The same token below the same prefix can stand in different slots: the rule may tell them apart."""

    def by_slot(p, tail, candidates, sampled, lead, chooser, at):
        _, path = at
        return vanilla(p, tail, candidates if path != (2,) else candidates[:0], -1, lead, chooser, at)

    mine = TreeMethod("mine", None, 1, verify=by_slot)
    pair = alike(rational(1, 2, 3)), alike(rational(2, 2, 1))
    shape = TreeShape(3, 2, 12)
    assert emitted_law(mine, *pair, shape) == replayed_law(mine, *pair, shape)
