"""Every method of the catalogue: its claim, its one-layer acceptance in closed form, and its optimum."""

from collections.abc import Mapping
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import certify, law
from exact.enumeration.fixed_trees import FixedTreeMethod, fixed_tree_law, node_at
from exact.methods import methods, references
from exact.methods.k_seq import STEPS, is_valid, least_gamma
from exact.methods.optimum import optimum, pool_law
from exact.methods.ot_optimum import Transport
from exact.methods.parts import independent, of_paths
from exact.methods.sequoia import HALVES, best_paths, measured_rates, sequoia, tree_value
from exact.methods.static import static_paths
from exact.methods.traversal import TRAVERSAL, TRAVERSAL_TOP_K
from rheo_core import InvalidInput, ModelPair, SamplingChooser, TreeMethod, TreeShape, proxies, rates, speculate
from rheo_core import methods as core_methods
from rheo_core.verification import algorithm_1, rrsw, vanilla
from tests.pairs import HAND_MADE, alike, drawn_models, rational
from tests.products import pairwise

pytestmark = pytest.mark.exact

METHODS: Mapping[str, Any] = methods
OURS = [name for name in methods if name not in core_methods]
LOSSLESS = [name for name in OURS if methods[name].claim == "lossless"]
SMALL = TreeShape(2, 2, 4)
W_TARGET, W_DRAFT = rational(5, 3, 2), rational(7, 2, 1)


def one_layer(method, p, q, width):
    certificate = certify(method, alike(p), alike(q), TreeShape(width, 1, width))
    assert certificate.lossless
    return certificate.acceptance_by_depth[1]


def test_the_catalogue_is_complete():
    asked = {"chain", "rrs", "rrsw", "k-seq", "spechub", "greedy-hybrid", "ot-optimum", "block", "traversal", "typical"}
    asked |= {"sample-and-match", "top-k", "static", "sequoia", "opt-tree", "rheo-optimal"}
    assert asked <= set(methods)
    assert set(core_methods) <= set(methods)
    assert set(references) >= set(OURS)
    assert all(methods[name].claim in ("lossless", "lossy") for name in methods)


def test_the_built_in_methods_are_made_of_these_parts():
    found = {
        name: (method.claim, method.lead, method.proxy, method.verify)
        for name, method in core_methods.items()
        if isinstance(method, TreeMethod)
    }
    assert found == {
        "top-k": ("lossless", None, proxies.RHEO, vanilla),
        "rheo": ("lossless", 1, proxies.RHEO, algorithm_1),
        "rheo-rrsw": ("lossless", 1, proxies.RHEO, rrsw),
        "rheo-next": ("lossless", 1, proxies.NEXT_TOKEN, algorithm_1),
        "rheo-z": ("lossless", 1, proxies.TAIL_MASS, algorithm_1),
        "rheo-adhoc": ("lossy", 1, proxies.ADHOC, algorithm_1),
        "rheo-raw": ("lossy", 1, proxies.RAW, algorithm_1),
        "rheo-half": ("lossy", 1, proxies.HALF_LEAST, algorithm_1),
        "rheo-rrsw-z": ("lossy", 1, proxies.TAIL_MASS, rrsw),
    }
    assert proxies.ADHOC.value == F(1, 4)
    assert all(METHODS[name].construction == "layered" and METHODS[name].name == name for name in core_methods)


@pairwise("name, models, shape", LOSSLESS, HAND_MADE, [SMALL, TreeShape(3, 1, 3), TreeShape(2, 1, 2)])
def test_claimed_lossless_is_lossless_on_awkward_rows(name, models, shape):
    assert certify(methods[name], models.target, models.draft, shape).lossless


@settings(max_examples=100)
@given(st.sampled_from(LOSSLESS), drawn_models(most=3, least=2))
def test_claimed_lossless_is_lossless_on_any_rows(name, models):
    assert certify(methods[name], models.target, models.draft, SMALL).lossless


@pytest.mark.parametrize("name", [name for name in OURS if methods[name].claim == "lossy"])
def test_claimed_lossy_is_refuted(name):
    rows = {"rheo-optimal": (alike(rational(1, 2)), TreeShape(2, 2, 2))}
    target, shape = rows.get(name, (alike(W_TARGET), SMALL))
    draft = target if name in rows else alike(W_DRAFT)
    method = methods[name]
    if isinstance(method, TreeMethod):
        method = TreeMethod(method.name, method.claim, lead=0, proxy=method.proxy, verify=method.verify)
    assert certify(method, target, draft, shape).lossless is False


@pytest.mark.parametrize("name", ["rrs", "rrsw", "k-seq", "spechub", "greedy-hybrid", "ot-optimum", "sample-and-match"])
def test_following_parents_is_the_same_as_drafting_the_whole_tree(name):
    """`fixed_tree_law` against full replay of `cycle`, which drafts everything before it verifies."""
    method = METHODS[name]
    target, draft = HAND_MADE[0].target, HAND_MADE[3].draft
    shape = TreeShape(2, 2, 4)
    whole = law(lambda chooser: method.cycle(target, draft, (), shape, chooser).tokens)
    quick = fixed_tree_law(method, ModelPair(target, draft), (), shape)
    assert whole == {tokens: F(int(mass.numerator), int(mass.denominator)) for tokens, mass in quick.items()}


def test_one_layer_acceptance_in_closed_form():
    p, q = W_TARGET, W_DRAFT
    overlap = sum(min(a, b) for a, b in zip(p, q, strict=True))
    assert one_layer(methods["chain"], p, q, 1) == one_layer(methods["rrs"], p, q, 1) == overlap == F(4, 5)
    assert one_layer(methods["block"], p, q, 1) == overlap
    assert one_layer(methods["sample-and-match"], p, q, 1) == sum(a * b for a, b in zip(p, q, strict=True))
    assert one_layer(methods["static"], p, q, 2) == p[0] + p[1]
    assert one_layer(methods["opt-tree"], p, q, 2) == p[0] + p[1]
    three_p, three_q = rational(1, 2, 2), rational(5, 3, 2)
    assert one_layer(methods["rrsw"], three_p, three_q, 2) == F(23, 25)
    assert one_layer(methods["rrs"], three_p, three_q, 2) == F(17, 20)
    four_p, four_q = rational(1, 4, 3, 2), rational(4, 1, 3, 2)
    assert one_layer(methods["greedy-hybrid"], four_p, four_q, 2) == rates.optimal_rate(four_p, four_q, 1, 2)


def drafted_optimum(method, p, q, width):
    node = node_at(ModelPair(alike(p), alike(q)), (), (), width)
    pools = pool_law(lambda chooser: [token for token, _ in method.draft(node, chooser)])
    return optimum(p, pools).value


@settings(max_examples=100)
@given(
    drawn_models(most=4, least=2), st.integers(1, 3),
    st.sampled_from(["rrs", "rrsw", "k-seq", "greedy-hybrid", "ot-optimum", "sample-and-match", "static"]),
)  # fmt: skip
def test_no_rule_beats_the_optimum_of_its_draft(models, width, name):
    p, q, method = models.target(()), models.draft(()), methods[name]
    assert isinstance(method, FixedTreeMethod)
    best, accepted = drafted_optimum(method, p, q, width), one_layer(method, p, q, width)
    assert accepted <= best
    if name in ("greedy-hybrid", "ot-optimum", "static"):
        assert accepted == best


@settings(max_examples=30)
@given(drawn_models(most=4, least=2))
def test_spechub_attains_the_optimum_of_its_pairs(models):
    """Found here, not claimed: on every pair drawn there is nothing left to gain from SpecHub's own drafts."""
    p, q = models.target(()), models.draft(())
    assert one_layer(methods["spechub"], p, q, 2) == drafted_optimum(methods["spechub"], p, q, 2)


def test_the_transport_rule_takes_any_draft():
    method = FixedTreeMethod("ot-rrs", "lossless", METHODS["rrs"].topology, independent, Transport(independent))
    assert one_layer(method, W_TARGET, W_DRAFT, 2) == drafted_optimum(method, W_TARGET, W_DRAFT, 2)


@settings(max_examples=30)
@given(drawn_models(most=3, least=2), st.integers(1, 3))
def test_block_emits_at_least_as_much_as_the_chain(models, depth):
    shape = TreeShape(1, depth, depth)
    block, chain = (certify(methods[name], models.target, models.draft, shape) for name in ("block", "chain"))
    assert block.lossless
    assert chain.lossless
    assert block.acceptance_length >= chain.acceptance_length


@settings(max_examples=30)
@given(drawn_models(most=3, least=2), st.integers(1, 3))
def test_traversal_on_a_chain_is_block(models, depth):
    shape = TreeShape(1, depth, depth)
    block, traversal = (certify(methods[name], models.target, models.draft, shape) for name in ("block", "traversal"))
    assert block.emitted == traversal.emitted


def test_traversal_needs_drawn_siblings():
    rows = alike(W_TARGET), alike(W_DRAFT)
    assert certify(TRAVERSAL, *rows, SMALL).lossless
    refuted = certify(TRAVERSAL_TOP_K, *rows, SMALL)
    assert refuted.lossless is False
    assert refuted.counterexample is not None


@given(drawn_models(most=4, least=1), st.integers(1, 4))
def test_the_least_gamma_is_valid_and_the_one_below_is_not(models, k):
    p, q = (np.array(rows(()), dtype=object) for rows in (models.target, models.draft))
    gamma = least_gamma(p, q, k)
    assert is_valid(p, q, k, gamma)
    assert is_valid(p, q, k, F(k))
    if gamma > 1:
        assert not is_valid(p, q, k, gamma - F(1, STEPS))


def test_spechub_drafts_every_other_token_more_often():
    node = node_at(ModelPair(alike(W_TARGET), alike(W_DRAFT)), (), (), 2)
    pools = pool_law(lambda chooser: [token for token, _ in METHODS["spechub"].draft(node, chooser)])
    best = W_DRAFT[0]
    assert pools == {frozenset([0, x]): W_DRAFT[x] / (1 - best) for x in (1, 2)}


@pytest.mark.parametrize(("width", "budget"), [(1, 4), (2, 1)])
def test_spechub_needs_two(width, budget):
    with pytest.raises(InvalidInput, match="at least 2"):
        certify(methods["spechub"], alike(W_TARGET), alike(W_DRAFT), TreeShape(width, 1, budget))


def brute_force_tree(rates_, size, depth):
    """The best value over every topology that fits, grown node by node."""
    best: Any = 0
    seen: set[frozenset[Any]] = {frozenset()}
    waiting: list[frozenset[Any]] = [frozenset()]
    while waiting:
        tree = waiting.pop()
        best = max(best, tree_value(rates_, sorted(tree)))
        if len(tree) == size:
            continue
        for parent in [(), *tree]:
            slot = sum(1 for path in tree if path[:-1] == parent)
            longer = tree | {(*parent, slot)}
            if slot < len(rates_) and len(parent) < depth and longer not in seen:
                seen.add(longer)
                waiting.append(longer)
    return best


@pairwise(
    "size, depth, given_rates",
    range(1, 6), [1, 2, 3], [(F(3, 5), F(1, 5)), (F(1, 2), F(1, 2), F(1, 2)), (F(9, 10), F(1, 20), 0)],
)  # fmt: skip
def test_sequoia_is_the_best_tree(size, depth, given_rates):
    paths = best_paths(given_rates, size, depth)
    assert tree_value(given_rates, paths) == brute_force_tree(given_rates, size, depth)
    assert len(paths) <= size
    assert all(len(path) <= depth for path in paths)


def test_sequoia_at_the_paper_size_is_quick_and_takes_measured_rates():
    paths = best_paths(HALVES[:10], 60, 8)
    assert len(paths) == 60
    measured = measured_rates(ModelPair(alike(W_TARGET), alike(W_DRAFT)), (), 2)
    assert sum(measured) == one_layer(methods["rrsw"], W_TARGET, W_DRAFT, 2)
    assert certify(sequoia(sorted(measured, reverse=True)), alike(W_TARGET), alike(W_DRAFT), SMALL).lossless
    with pytest.raises(InvalidInput, match="none above the one before"):
        best_paths((F(1, 5), F(3, 5)), 3, 2)


def test_static_topologies_are_given_as_paths():
    method = static_paths([(0,), (1,), (0, 0)])
    certificate = certify(method, alike(W_TARGET), alike(W_DRAFT), TreeShape(2, 2, 3))
    assert certificate.lossless
    assert list(certificate.acceptance_by_depth) == [1, F(4, 5), F(1, 4)]
    with pytest.raises(InvalidInput, match="at least width 2, depth 2 and budget 3"):
        certify(method, alike(W_TARGET), alike(W_DRAFT), TreeShape(2, 1, 3))
    with pytest.raises(InvalidInput, match="left neighbour"):
        of_paths([(1,)])
    with pytest.raises(InvalidInput, match="left neighbour"):
        of_paths([(0, 0)])


def test_opt_tree_stops_when_little_is_gained():
    flat = alike(rational(*[1] * 8))
    shape = TreeShape(2, 3, 6)
    cycle = speculate(flat, flat, (), methods["opt-tree"], shape, SamplingChooser(np.random.default_rng(0)))
    assert cycle.tree.depth.tolist() == [1, 1]
    peaked = alike(rational(9, 1))
    deep = speculate(peaked, peaked, (), methods["opt-tree"], shape, SamplingChooser(np.random.default_rng(0)))
    assert max(deep.tree.depth) == 3
    assert len(deep.tree) == 6


def test_the_optimal_rule_is_right_on_one_pool_and_wrong_on_the_tree():
    rule = methods["rheo-optimal"]
    assert isinstance(rule, TreeMethod)
    rows = alike(rational(1, 2))
    bare = TreeMethod(rule.name, rule.claim, lead=0, proxy=rule.proxy, verify=rule.verify)
    wrong = certify(bare, rows, rows, TreeShape(2, 2, 2), 1)
    assert wrong.law() == {(0,): F(1, 9), (1,): F(8, 9)}


@given(drawn_models(most=4, least=1), st.integers(0, 3), st.integers(1, 4))
def test_the_optimal_rule_attains_the_optimum_on_one_pool(models, m, n):
    """One pool of exactly n: width n, all of it kept."""
    p, q = models.target(()), models.draft(())
    n = min(n, len(p))
    m = min(m, n)
    rule = METHODS["rheo-optimal"]
    bare = TreeMethod(rule.name, rule.claim, lead=m, proxy=rule.proxy, verify=rule.verify)
    certificate = certify(bare, models.target, models.draft, TreeShape(n, 1, n))
    assert certificate.lossless
    assert certificate.acceptance_by_depth[1] == rates.optimal_rate(p, q, m, n)


@pytest.mark.parametrize("name", OURS)
def test_an_id_map_is_followed(name):
    """The same law as with the draft row spread over the target's ids by hand."""
    p, q, ids = rational(2, 1, 4, 1), rational(5, 3, 2), [3, 0, 2]
    spread = [q[ids.index(token)] if token in ids else F(0) for token in range(4)]
    mapped = certify(methods[name], alike(p), alike(q), SMALL, ids=ids)
    assert mapped.emitted == certify(methods[name], alike(p), alike(spread), SMALL).emitted


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_are_lossless_up_to_rounding(name, dtype):
    target, draft = (alike(np.array([float(x) for x in row], dtype=dtype)) for row in (W_TARGET, W_DRAFT))
    certificate = certify(methods[name], target, draft, SMALL)
    if methods[name].claim == "lossless":
        assert certificate.verdict == "lossless up to rounding"


def test_the_typical_rule_takes_the_longest_path():
    target = alike(rational(6, 3, 1))
    cycle = speculate(target, target, (), methods["typical"], SMALL, SamplingChooser(np.random.default_rng(0)))
    assert cycle.tokens == (0, 0, 0)
