"""Facts about RheoSampling established by enumeration, each with exactly its law."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from exact import certify, law, target_law
from exact.enumeration.tree_classes import classes
from rheo_core import DraftRow, ModelPair, TreeMethod, TreeShape, checks, method, proxies, speculate
from rheo_core.proxies import Constant
from rheo_core.verification import algorithm_1, rrsw
from tests.exact.laws import first_token, replayed_law
from tests.pairs import HAND_MADE, alike, both, drawn_models, rational, rule, shapes
from tests.products import pairwise

pytestmark = pytest.mark.exact

K2_D2_R2 = TreeShape(2, 2, 2)


def by_prefix(rows, otherwise):
    """Rows listed by prefix, one row for every other."""
    return lambda prefix: rows.get(prefix, otherwise)


def test_raw_q_ranking_is_lossy_though_p_is_q():
    shape = TreeShape(2, 1, 1)
    assert first_token(rule("rheo-raw", lead=0), *both(rational(1, 2)), shape) == [F(1, 9), F(8, 9)]
    assert first_token(rule("rheo", lead=0), *both(rational(1, 2)), shape) == rational(1, 2)


def test_a_proxy_below_the_next_token_is_lossy_but_not_on_one_pool():
    """min(q)/2 puts Y last in its pool whatever it is: with one layer that hides the fault."""
    models = alike(rational(1, 1)), alike(rational(1, 2))
    half = rule("rheo-half", lead=0)
    assert first_token(half, *models, K2_D2_R2) == [F(7, 18), F(11, 18)]
    for budget in (1, 2):
        assert first_token(half, *models, TreeShape(2, 1, budget)) == rational(1, 1)


def zero_proxy(lead):
    return TreeMethod("zero", None, lead, proxy=Constant(0))


@given(drawn_models(most=3), shapes(width=3, depth=2))
@settings(max_examples=40)
def test_proxy_0_is_lossless_where_all_q_are_positive(pair, shape):
    """Rows are mixed with the uniform one, so that no entry is 0."""

    def positive(prefix):
        return [(entry + F(1, pair.size)) / 2 for entry in pair.draft(prefix)]

    if pair.size <= 2 or shape.budget * shape.depth <= 4:
        assert certify(zero_proxy(0), pair.target, positive, shape, every_target=False).lossless


def test_proxy_0_is_lossy_with_zeros():
    half = rational(1, 1)
    draft = by_prefix({(0,): [1, 0]}, half)
    assert first_token(zero_proxy(0), alike(half), draft, K2_D2_R2) == [F(1, 4), F(3, 4)]
    assert first_token(zero_proxy(0), *both(half), K2_D2_R2) == half  # rows that are all alike never show it
    assert first_token(rule("rheo", lead=0), alike(half), draft, K2_D2_R2) == half


def test_proxy_z_is_lossless_under_algorithm_1_and_lossy_under_rrsw():
    """RRSw needs every lead to be there whenever Y is: a proxy of at most q(x_m)."""
    third = rational(1, 1, 1)
    draft = by_prefix({(): rational(1, 2, 2), (2,): [1, 0, 0]}, third)
    target = alike([0, F(1, 2), F(1, 2)])
    assert first_token("rheo-rrsw-z", target, draft, K2_D2_R2) == [0, F(1, 3), F(2, 3)]
    assert first_token("rheo-z", target, draft, K2_D2_R2) == [0, F(1, 2), F(1, 2)]
    assert first_token("rheo-rrsw", target, draft, K2_D2_R2) == [0, F(1, 2), F(1, 2)]


@pairwise("lead, pair, proxy", [0, 1, 2], HAND_MADE, [proxies.NEXT_TOKEN, proxies.RHEO, proxies.TAIL_MASS, Constant(1)])
def test_any_proxy_from_the_next_token_to_1_is_lossless_under_algorithm_1(pair, lead, proxy):
    mine = TreeMethod("mine", None, lead, proxy=proxy)
    assert certify(mine, pair.target, pair.draft, TreeShape(2, 2, 3), every_target=False).lossless


def accepted(name, p, q, shape, **changes):
    return certify(rule(name, **changes), alike(p), alike(q), shape, every_target=False).acceptance_by_depth[1]


def test_rheo_does_not_always_dominate_rrsw():
    p, q = rational(1, 0, 2, 1), rational(1, 1, 1, 1)
    assert accepted("rheo", p, q, TreeShape(3, 1, 3)) == F(29, 30)
    assert accepted("rheo-rrsw", p, q, TreeShape(3, 1, 3)) == 1


def test_acceptance_in_m_is_not_monotone_on_one_layer():
    p, q = rational(0, 5, 1, 1), rational(5, 2, 2, 1)
    assert accepted("rheo", p, q, TreeShape(2, 1, 2), lead=1) == F(24, 35)
    assert accepted("rheo", p, q, TreeShape(2, 1, 2), lead=0) == F(823, 910)
    assert accepted("rheo", p, q, TreeShape(2, 1, 2), lead=2) == F(5, 7)


def test_the_rule_that_is_best_on_one_pool_is_lossy_on_the_dynamic_tree():
    """It tests the one token outside Top_{n-1} against its law on a pool of n; in the tree n depends on Y."""

    def best(p, tail, candidates, sampled, lead, chooser, at):
        if sampled == -1:
            return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)
        order = sorted(range(len(tail)), key=lambda token: (-tail[token], token))
        top = order[: len(candidates) - 1]
        outside = next(i for i, token in enumerate(candidates) if token not in top)
        pushed = np.array([0 if token in top else tail[token] for token in range(len(tail))], dtype=object)
        pushed[order[len(candidates) - 1]] += sum(tail[token] for token in top)
        return algorithm_1(p, pushed, candidates, outside, lead, chooser, at)

    mine = TreeMethod("best", None, 0, verify=best)
    assert first_token(mine, *both(rational(1, 2)), TreeShape(2, 1, 2)) == rational(1, 2)
    assert first_token(mine, *both(rational(1, 2)), K2_D2_R2) == [F(1, 9), F(8, 9)]


def test_m_chosen_by_a_fair_coin_is_lossless():
    """Though classes then no longer have the probability of their drawn tokens: that is sufficient, not necessary."""

    @method
    def either(target, draft, prefix, shape, chooser):
        lead = int(chooser.accept(F(1, 2)))
        return speculate(target, draft, prefix, rule("rheo", lead=lead), shape, chooser)

    pair = alike(rational(1, 2, 3)), alike(rational(3, 2, 1))
    found = certify(either, *pair, TreeShape(2, 1, 2))
    assert found.lossless
    assert found.law() == target_law(pair[0], 2)


def test_with_m_0_the_sampled_slot_comes_first_by_its_place_and_not_by_an_epsilon():
    """Its score is q(x1), a tie with the fill x1: another score would not fit the paper's bound of 1."""
    rows: Any = (rational(1, 1), np.array([0.5, 0.5], np.float32), np.array([1, 0], np.float16))
    for row in rows:
        for token in np.flatnonzero(row).tolist():
            tree = speculate(*both(row), (), rule("rheo", lead=0), TreeShape(2, 1, 1), Fixed(token)).tree
            assert (tree.kind.tolist(), tree.score.tolist()) == ([1], [row[0]])


class Fixed:
    """Draws one token in every tail, tosses every coin to reject."""

    def __init__(self, token):
        self.token = token

    def accept(self, probability, at=None):
        return bool(probability == 1)

    def index(self, weights, at=None):
        return self.token if weights[self.token] > 0 else int(np.flatnonzero(weights)[0])


def test_a_score_above_1_would_let_a_child_outrank_its_parent():
    above = TreeMethod("above", None, 0, proxy=Constant(F(9, 8)))
    with pytest.raises(ValueError, match=r"^proxy: got Fraction\(9, 8\), expected a score in \[0, 1\]"):
        speculate(*both([1, 0]), (), above, TreeShape(2, 2, 2), Fixed(0))


def test_the_base_case_with_z_1_is_another_tree():
    """Appendix C.3 keeps the sampled node at m = 0 with score z = 1, section 3.2 with q(x1): lossless, not alike."""
    shape, models = TreeShape(2, 2, 3), both(rational(2, 1))
    one, other = rule("rheo", lead=0), rule("rheo-z", lead=0)
    keys = [
        {each.tree.key() for each in classes(mine.drafter(ModelPair(*models), shape), (), shape)}
        for mine in (one, other)
    ]
    assert keys[0] != keys[1]
    assert certify(one, *models, shape).lossless
    assert certify(other, *models, shape).lossless


def test_z_as_one_minus_the_lead_falls_below_the_next_token_in_float32():
    """The row whose tail would be a "law" of sum 2.04; ours is summed over the tail."""
    q = checks.check_law(np.array([0.9999999, 1.5e-7, 4e-8, 4e-8, 1.3e-8], np.float32), "q")
    z = np.float32(1) - q[0]
    assert z < q[1]
    assert float((q[1:] / z).sum()) == pytest.approx(2.04, abs=0.005)
    row = DraftRow.law(q)
    tail = row.tail([0])
    assert tail is not None
    assert float(tail.sum()) == pytest.approx(1, abs=1e-6)
    for m in range(5):
        for proxy in (proxies.RHEO, proxies.TAIL_MASS):
            assert q[row.order[m]] <= proxy(q, row.order, m, -1) <= 1


def test_a_lead_of_1_leaves_a_tail_in_floats():
    q = np.array([1.0, 1e-8, 3e-8], np.float32)
    assert np.float32(1) - q[0] == 0
    tail = DraftRow.law(q).tail([0])
    assert tail is not None
    assert tail.tolist() == pytest.approx([0, 0.25, 0.75])
    found = law(lambda chooser: speculate(*both(q), (), "rheo", TreeShape(2, 1, 2), chooser).tokens[0])
    assert sum(found.values()) == 1


@pairwise("dtype, name, lead", [np.float16, np.float32, np.float64], ["rheo", "rheo-z", "rheo-next", "top-k"], [0, 1])
def test_a_float_law_that_holds_more_than_1_is_drafted_like_any_other(dtype, name, lead):
    """Its sum is within V eps of 1; taken as a score it would let a child outrank its parent."""
    above = np.nextafter(dtype(1), dtype(2))
    q = np.array([above, 0, 0], dtype)
    spread = np.array([1, np.finfo(dtype).eps, 0], dtype)  # z > 1 at m = 0
    mine = rule(name) if name == "top-k" else rule(name, lead=lead)
    for row in (q, spread):
        found = certify(mine, *both(row), TreeShape(2, 3, 4), every_target=False)
        assert found.lossless
        grown = replayed_law(rule(mine.name, lead=mine.lead, construction="grown"), *both(row), TreeShape(2, 3, 4))
        assert grown == replayed_law(mine, *both(row), TreeShape(2, 3, 4))


@pytest.mark.parametrize("verify", [algorithm_1, rrsw])
def test_p_below_q_everywhere_in_floats_with_p_unlike_q(verify):
    """An all-zero residual: the coin is accept(1), no 0/0 appears."""
    p = np.array([0.5, 0.5 - 2.0**-24], np.float32)
    mine = rule("rheo", lead=0, verify=verify)
    found = replayed_law(mine, alike(p), alike(np.array([0.5, 0.5], np.float32)), TreeShape(2, 1, 2))
    assert all(len(tokens) == 2 for tokens in found)
    assert sum(found.values()) == 1
