"""Classes: brute force beside growth, Lemma 7, and the two constructions on the same draws."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from exact import TooManyOutcomes
from exact.enumeration.rationals import rational_models
from exact.enumeration.tree_classes import BRUTE_FORCE_LIMIT, brute_force_classes, classes, grown_classes, unpruned
from rheo_core import SAMPLED, ModelPair, SamplingChooser, TreeShape, proxies
from rheo_core.construction import layered
from rheo_core.growth import NotGrowable, grown
from rheo_core.pool import Drafter
from tests.pairs import (
    HAND_MADE,
    Models,
    alike,
    both,
    drawn_models,
    draws,
    floats,
    full_tree,
    rational,
    rule,
    shapes,
    varied,
)
from tests.recording import RecordingChooser

pytestmark = pytest.mark.exact

GROWABLE = (proxies.RHEO, proxies.NEXT_TOKEN, proxies.TAIL_MASS, proxies.Constant(1))


class Nothing:
    """Refuses every call: all draws must be in the record."""

    def accept(self, probability, at=None):
        raise AssertionError(f"a coin at {at}")

    def index(self, weights, at=None):
        raise AssertionError(f"a draw that the other construction did not make, at {at}")


def assert_same_tree(pair, shape, m, proxy, seed):
    drafter = Drafter(pair, shape.width, m, proxy)
    first = RecordingChooser(SamplingChooser(np.random.default_rng(seed)))
    tree = layered(drafter, (), shape, first)
    assert grown(drafter, (), shape, RecordingChooser(Nothing(), first.record)) == tree


@given(drawn_models(most=6), shapes(depth=4), st.integers(0, 7), st.sampled_from(GROWABLE), st.integers(0, 9))
@settings(max_examples=300)
def test_layered_and_grown_are_one_tree_in_one_order(models: Models, shape, m, proxy, seed):
    """The same draws by address, all arrays and the order included; V < K, m > V, zeros, one-hot rows, the K cap."""
    assert_same_tree(models.pair(), shape, min(m, shape.width), proxy, seed)


@given(
    drawn_models(most=5),
    shapes(),
    st.integers(0, 5),
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.integers(0, 9),
)
@settings(max_examples=150)
def test_layered_and_grown_are_one_tree_in_floats(models: Models, shape, m, dtype, seed):
    pair = ModelPair(floats(models.target, dtype), floats(models.draft, dtype))
    for proxy in (proxies.RHEO, proxies.NEXT_TOKEN, proxies.TAIL_MASS):
        assert_same_tree(pair, shape, min(m, shape.width), proxy, seed)


def test_the_k_cap_is_met():
    """More than K parents of one depth are among the R best, and only K of them are expanded."""
    row = [F(1, 10)] * 10
    drafter = Drafter(ModelPair(*both(row)), 2, 0, proxies.TAIL_MASS)
    shape = TreeShape(2, 3, full_tree(2, 3))
    tree = grown(drafter, (), shape, SamplingChooser(np.random.default_rng(0)))
    parents = {int(tree.parent[node]) for node in range(len(tree)) if tree.depth[node] == 3}
    assert np.count_nonzero(tree.depth == 2) == 4
    assert len(parents) == 2
    for seed in range(20):
        assert_same_tree(ModelPair(*both(row)), shape, 0, proxies.TAIL_MASS, seed)


def as_map(found):
    keyed = {each.tree.key(): (each.tree, each.probability) for each in found}
    assert len(keyed) == len(found)
    return keyed


@given(drawn_models(), shapes(), st.integers(0, 4), st.sampled_from(GROWABLE))
@settings(max_examples=120)
@example(HAND_MADE[10], TreeShape(2, 3, 6), 1, proxies.RHEO)
@example(HAND_MADE[6], TreeShape(3, 2, 5), 0, proxies.RHEO)
def test_brute_force_and_growth_give_the_same_classes(models: Models, shape, m, proxy):
    m = min(m, shape.width)
    assume(draws(models, shape, m) <= 2000)  # the fixed cases below go to 20,000
    drafter = Drafter(models.pair(), shape.width, m, proxy)
    slow, fast = brute_force_classes(drafter, (), shape, BRUTE_FORCE_LIMIT), list(grown_classes(drafter, (), shape))
    assert as_map(slow) == as_map(fast)
    assert sum(each.probability for each in fast) == 1
    assert all(each.probability > 0 for each in fast)


@pytest.mark.parametrize(
    ("row", "shape", "m"),
    [
        (rational(4, 3, 2, 1), TreeShape(2, 4, 7), 1),
        (rational(2, 2, 1, 1), TreeShape(4, 2, 9), 0),
        (rational(3, 3, 2, 1, 1), TreeShape(4, 2, 10), 1),
        (rational(1, 1, 1, 1, 1, 1, 1), TreeShape(3, 2, 8), 2),
    ],
)
def test_brute_force_and_growth_give_the_same_classes_on_large_cases(row, shape, m):
    drafter = rule("rheo", lead=m).drafter(ModelPair(*both(row)), shape)
    assert as_map(brute_force_classes(drafter, (), shape, BRUTE_FORCE_LIMIT)) == as_map(
        list(grown_classes(drafter, (), shape))
    )


@given(drawn_models(most=5), shapes(), st.integers(0, 4))
@settings(max_examples=120)
def test_lemma_7_in_one_line(models: Models, shape, m):
    """A class has the probability of its drawn tokens: the product of q~ over the sampled nodes that it holds."""
    m = min(m, shape.width)
    assume(draws(models, shape, m) <= 2000)
    drafter = rule("rheo", lead=m).drafter(models.pair(), shape)
    for each in brute_force_classes(drafter, (), shape, BRUTE_FORCE_LIMIT):
        expected = F(1)
        for node in np.flatnonzero(each.tree.kind == SAMPLED).tolist():
            tail = drafter.tail(each.tree.tokens_to(int(each.tree.parent[node])))
            assert tail is not None
            expected *= tail[each.tree.token[node]]
        assert each.probability == expected


def test_lemma_7_fails_for_the_ad_hoc_proxy():
    """The planted fault of the check above: Table 1's conditioning on survival."""
    drafter = rule("rheo-adhoc").drafter(ModelPair(*both(rational(5, 3, 2))), TreeShape(3, 1, 2))
    found = {tuple(each.tree.kind.tolist()): each for each in classes(drafter, (), TreeShape(3, 1, 2))}
    assert all(each.tree.token.tolist() == [0, 1] for each in found.values())  # Y = B, or B as a fill ahead of Y = C
    assert {kinds: each.probability for kinds, each in found.items()} == {(0, 1): F(3, 5), (0, 2): F(2, 5)}


def test_table_1_by_the_right_proxy():
    drafter = rule("rheo").drafter(ModelPair(*both(rational(5, 3, 2))), TreeShape(3, 1, 2))
    found = {tuple(each.tree.token.tolist()): each.probability for each in classes(drafter, (), TreeShape(3, 1, 2))}
    assert found == {(0, 1): F(3, 5), (0, 2): F(2, 5)}


@pytest.mark.parametrize("row", [rational(6, 5, 4, 3, 2, 1), rational(1, 1, 1, 1, 1, 1), rational(32, 16, 8, 4, 2, 2)])
def test_classes_without_the_unpruned_trees(row):
    """V = 6, m = 1, K = 4, D = 4, R = 10: 5^13 unpruned outcomes, a few hundred classes."""
    shape = TreeShape(4, 4, 10)
    found = list(grown_classes(rule("rheo").drafter(ModelPair(*both(row)), shape), (), shape))
    assert 125 <= len(found) <= 385
    assert sum(each.probability for each in found) == 1


def topologies(found):
    """Probability of each topology (parents, slots and kinds in rank order), by the sampled token at the root."""
    masses: dict[int, dict[Any, F]] = {}
    for each in found:
        tree = each.tree
        (y,) = tree.token[(tree.parent == -1) & (tree.kind == SAMPLED)].tolist()
        slots = tuple(zip(*(a.tolist() for a in (tree.parent, tree.slot, tree.kind)), strict=True))
        masses.setdefault(y, {})[slots] = masses.get(y, {}).get(slots, F(0)) + each.probability
    return masses


def test_y_enters_its_descendants_scores_and_so_the_topology():
    """Remark 2: the sampled slot is second in its pool whatever Y is; which branches survive below depends on Y."""
    sharp, flat = rational(8, 1, 1), rational(1, 1, 1)
    rows = {(): rational(5, 3, 2), (0,): flat, (1,): sharp, (2,): flat}
    shape, pair = TreeShape(2, 2, 4), ModelPair(alike(flat), rows.__getitem__)
    drafter = rule("rheo").drafter(pair, shape)
    for found in (list(grown_classes(drafter, (), shape)), brute_force_classes(drafter, (), shape)):
        below_a_and_y, both_below_a = topologies(found)[1], topologies(found)[2]
        lead_a, y = (-1, 0, 0), (-1, 1, SAMPLED)
        assert below_a_and_y == {(lead_a, y, (1, 0, 0), (0, 0, 0)): F(3, 5)}
        assert both_below_a == {(lead_a, y, (0, 0, 0), (0, 1, SAMPLED)): F(2, 5)}
    alone = rule("rheo").drafter(ModelPair(alike(flat), alike(rational(5, 3, 2))), shape)
    assert len({slots for each in topologies(grown_classes(alone, (), shape)).values() for slots in each}) == 1


def test_large_trees_have_many_topologies():
    shape = TreeShape(4, 4, 10)
    drafts = varied(rational(6, 5, 4, 3, 2, 1), rational(1, 1, 1, 1, 1, 1), rational(32, 16, 8, 4, 2, 2))
    found = topologies(grown_classes(rule("rheo").drafter(ModelPair(drafts, drafts), shape), (), shape))
    assert len({slots for each in found.values() for slots in each}) >= 10
    assert sum(mass for each in found.values() for mass in each.values()) == 1


def test_343_classes_of_the_uniform_draft():
    shape = TreeShape(4, 2, 10)
    assert len(list(grown_classes(rule("rheo").drafter(ModelPair(*both([F(1, 8)] * 8)), shape), (), shape))) == 343


def test_unpruned_trees_are_all_trees():
    shape = TreeShape(2, 2, 3)
    drafter = rule("rheo").drafter(ModelPair(*both(rational(3, 2, 1))), shape)
    found = list(unpruned(drafter, (), shape))
    assert len(found) == 8  # two tail tokens, three parents
    assert sum(each.probability for each in found) == 1
    assert {len(each.tree) for each in found} == {full_tree(2, 2)}
    with pytest.raises(TooManyOutcomes, match="more than 7 outcomes"):
        brute_force_classes(drafter, (), shape, 7)


def test_a_proxy_that_breaks_lemma_4_is_enumerated_by_brute_force():
    drafter = Drafter(ModelPair(*both(rational(5, 3, 2))), 3, 1, proxies.HALF_LEAST)
    with pytest.raises(NotGrowable, match=r"^proxy: got .*, expected at least q\(x_\(m\+1\)\)"):
        list(grown_classes(drafter, (), TreeShape(3, 1, 2)))
    assert classes(drafter, (), TreeShape(3, 1, 2)) == brute_force_classes(drafter, (), TreeShape(3, 1, 2))


def test_a_proxy_that_only_says_it_ignores_y_is_found_out():
    """It would be grown with one value for all Y, and a lossy method would pass."""
    liar = proxies.ProxyRule("liar", lambda score, order, m, sampled: score[sampled], uses_token=False)
    drafter = Drafter(ModelPair(*both(rational(1, 2))), 2, 0, liar)
    shape = TreeShape(2, 1, 1)
    with pytest.raises(NotGrowable, match="one value for all Y, as its uses_token = False says"):
        list(grown_classes(drafter, (), shape))
    raw = Drafter(ModelPair(*both(rational(1, 2))), 2, 0, proxies.RAW)
    assert as_map(classes(drafter, (), shape)).keys() == as_map(classes(raw, (), shape)).keys()
    honest = proxies.ProxyRule("honest", lambda score, order, m, sampled: F(2, 3), uses_token=False)
    assert len(list(grown_classes(Drafter(ModelPair(*both(rational(1, 2))), 2, 0, honest), (), shape))) == 2


def test_float_classes_have_the_exact_values_of_their_float_tails():
    shape = TreeShape(2, 1, 2)
    pair = ModelPair(*both(np.array([0.5, 0.3, 0.2], np.float32)))
    tail = np.array([0.3, 0.2], np.float32) / np.float32(np.float64(np.float32(0.3)) + np.float64(np.float32(0.2)))
    shares = [F(*entry.as_integer_ratio()) for entry in tail]
    found = [each.probability for each in classes(rule("rheo").drafter(pair, shape), (), shape)]
    assert found == [share / sum(shares) for share in shares]
    assert rational_models(pair).p(()).tolist() != pair.p(()).tolist()  # each over its exact sum


def test_classes_below_a_prefix_read_the_rows_of_that_prefix():
    pair = ModelPair(alike(rational(1, 1)), varied(rational(1, 1), rational(1, 2), rational(1, 3)))
    shape = TreeShape(1, 1, 1)
    found = classes(rule("rheo", lead=0).drafter(pair, shape), (0,), shape)  # (0 + 2) * 1 % 3: the third row
    assert sorted(each.probability for each in found) == [F(1, 4), F(3, 4)]
