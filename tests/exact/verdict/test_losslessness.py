"""The certificate itself: every method that claims to be lossless is, on rational pairs of every awkward kind."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exact import certify, target_law
from exact.enumeration.tree_classes import BRUTE_FORCE_LIMIT, brute_force_classes, grown_classes
from rheo_core import TreeMethod, TreeShape, methods
from rheo_core.verification import algorithm_1, vanilla
from tests.exact.laws import emitted_law
from tests.pairs import HAND_MADE, Models, drawn_models, draws, full_tree, rule, shapes
from tests.products import pairwise

pytestmark = pytest.mark.exact

RULES = tuple(method for method in methods.values() if isinstance(method, TreeMethod) and method.claim == "lossless")
SHAPES = tuple(
    TreeShape(width, depth, budget)
    for width, depth in ((1, 3), (2, 2), (2, 3), (3, 2), (4, 1))
    for budget in sorted({1, 2, 4, full_tree(width, depth)})
)
LIMIT = 1500  # draws of an unpruned tree


def with_lead(method, lead):
    return method if method.lead is None else replace(method, lead=lead)


@pairwise("method, pair, shape, lead", RULES, HAND_MADE, SHAPES, range(4))
def test_hand_made_pairs(pair: Models, method, shape, lead):
    """A lead beyond the width stands for the width; one that leaves too many draws, for the next that does not."""
    lead = next(m for m in range(min(lead, shape.width), shape.width + 1) if draws(pair, shape, m) <= LIMIT)
    found = certify(with_lead(method, lead), pair.target, pair.draft, shape, every_target=False)
    assert found.lossless, (shape, lead, found.counterexample)
    assert found.total_variation == 0
    assert found.counterexample is None
    if shape.budget <= 2:  # the law itself, and not only its distance
        assert found.law() == target_law(pair.target, shape.depth + 1)


@given(drawn_models(), shapes(), st.integers(0, 3), st.sampled_from(RULES))
@settings(max_examples=100)
def test_drawn_pairs(pair: Models, shape, lead, method):
    lead = min(lead, shape.width)
    assume(draws(pair, shape, lead) <= LIMIT)
    found = certify(with_lead(method, lead), pair.target, pair.draft, shape, every_target=False)
    assert found.lossless, found.counterexample


@given(drawn_models(most=3, least=2), shapes(width=3, depth=2), st.integers(0, 3), st.integers(0, 2))
@settings(max_examples=40)
def test_drawn_pairs_after_a_prefix(pair: Models, shape, lead, token):
    prefix = (0, token % pair.size)
    found = certify(
        rule("rheo", lead=min(lead, shape.width)), pair.target, pair.draft, shape, prefix=prefix, every_target=False
    )
    assert found.law() == target_law(pair.target, shape.depth + 1, prefix)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_fewer_tokens_than_slots_and_than_leads(size):
    """V < K and m > V: there is no sampled slot once every token is a lead."""
    pair = next(each for each in HAND_MADE if each.size == size)
    for lead in range(5):
        found = certify(rule("rheo", lead=lead), pair.target, pair.draft, TreeShape(4, 2, 6))
        assert found.lossless
        if lead >= size:
            assert found.classes == 1


def backwards(indices):
    return reversed(indices)


def odd_ones_first(indices):
    return sorted(indices, key=lambda i: (i % 2 == 0, i))


@pairwise("pair, verify, order", HAND_MADE, [algorithm_1, vanilla], [backwards, odd_ones_first])
def test_the_rest_in_any_order(pair: Models, verify, order):
    """Lines 12-18 say "in arbitrary order": the law of a whole cycle is the same."""
    shape, name = TreeShape(3, 2, 6), "rheo" if verify is algorithm_1 else "top-k"
    ordered = rule(name, verify=partial(verify, order=order))
    assert emitted_law(ordered, pair.target, pair.draft, shape) == emitted_law(name, pair.target, pair.draft, shape)


@pytest.mark.slow
@given(drawn_models(most=5), shapes(), st.integers(0, 4), st.sampled_from(RULES))
@settings(max_examples=1500)
def test_many_drawn_pairs(pair: Models, shape, lead, method):
    lead = min(lead, shape.width)
    assume(draws(pair, shape, lead) <= BRUTE_FORCE_LIMIT)
    mine = with_lead(method, lead)
    assert certify(mine, pair.target, pair.draft, shape, every_target=False).lossless
    drafter = mine.drafter(pair.pair(), shape)
    slow = {each.tree.key(): each.probability for each in brute_force_classes(drafter, (), shape, BRUTE_FORCE_LIMIT)}
    assert slow == {each.tree.key(): each.probability for each in grown_classes(drafter, (), shape)}
