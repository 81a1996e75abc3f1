"""Faults of RheoSampling and of coins, planted in trees and verification rules: each has exactly its law.

The right rule stands beside each fault and is lossless, so that what is seen is the fault and nothing else.
"""

from fractions import Fraction as F

import numpy as np
import pytest

from exact import certify, law, target_law
from rheo_core import ModelPair, SamplingChooser, TreeMethod, TreeShape, method, speculate
from rheo_core.laws import residual
from rheo_core.pool import RHEO, Drafter
from rheo_core.tree import FILL, ROOT, SAMPLED, Nodes
from rheo_core.verification import algorithm_1, sequential_rejection, verify_tree
from tests.exact.laws import first_token, text_law, total_variation
from tests.pairs import alike, both, rational, rule

pytestmark = pytest.mark.exact

P, Q = alike(rational(5, 2, 3)), alike(rational(5, 3, 2))  # RheoSampling's pair: q~ = [0, 3/5, 2/5] at m = 1
W_P, W_Q = alike(rational(5, 3, 2)), alike(rational(7, 2, 1))  # pair W: right acceptance 4/5
TABLE_1 = TreeShape(3, 1, 2)


def distance(found, right):
    return sum(abs(one - other) for one, other in zip(found, right, strict=True)) / 2


def ranked(key, parents_by=None):
    """The layered construction with another ranking key, or other places of the parents from left to right.

    `key(score, depth, place, token)`; the right one is (-score, depth, place).
    """

    @method
    def cycle(target, draft, prefix, shape, chooser):
        drafter = Drafter(ModelPair(target, draft), shape.width, 1, RHEO)
        nodes = Nodes()
        places: dict[int, tuple[int, ...]] = {ROOT: ()}

        def rank(rows):
            return sorted(
                rows, key=lambda node: key(nodes.score[node], nodes.depth[node], places[node], nodes.token[node])
            )

        frontier = [ROOT]
        for _ in range(shape.depth):
            level = []
            if parents_by is not None:
                frontier.sort(key=lambda node: 0 if node == ROOT else parents_by(nodes, node))
            for place, parent in enumerate(frontier):
                pool = drafter.pool(prefix + nodes.tokens_to(parent))
                y = None if pool.tail is None else chooser.index(pool.tail)
                for slot, kind, token, score in pool.slots(y):
                    above = 1 if parent == ROOT else nodes.score[parent]
                    level.append(nodes.append(parent, slot, kind, token, above * score))
                    places[level[-1]] = (place, slot)
            frontier = rank(level)[: shape.width]
        kept = rank(range(len(nodes)))[: shape.budget]
        return verify_tree(nodes.tree(np.dtype(object), kept), drafter, prefix, algorithm_1, chooser)

    return cycle


BY_SLOT = ranked(lambda score, depth, place, token: (-score, depth, place))
BY_TOKEN = ranked(lambda score, depth, place, token: (-score, depth, token, place))
TOKEN_BEFORE_DEPTH = ranked(lambda score, depth, place, token: (-score, token, depth, place))


def test_r1_the_ad_hoc_proxy():
    assert first_token("rheo-adhoc", P, Q, TABLE_1) == [F(3, 5), F(7, 25), F(3, 25)]
    found = certify("rheo-adhoc", P, Q, TABLE_1, 1)
    assert (found.lossless, found.total_variation) == (False, F(9, 50))
    right = certify("rheo", P, Q, TABLE_1)
    assert right.lossless
    assert right.acceptance_by_depth[1] == 1


def test_r2_a_tie_between_siblings_broken_by_token():
    models = alike(rational(1, 1, 0)), alike(rational(1, 2, 1))
    shape = TreeShape(3, 1, 1)
    assert first_token(BY_TOKEN, *models, shape) == [F(3, 4), F(1, 4), 0]
    assert first_token(BY_SLOT, *models, shape) == [F(1, 2), F(1, 2), 0]
    assert certify("rheo", *models, shape).lossless


def test_r2_a_tie_across_parents_broken_by_token():
    models = alike(rational(1, 2, 1)), alike(rational(1, 4, 1))
    shape = TreeShape(2, 2, 4)
    found = text_law(BY_TOKEN, *models, shape, 2)
    assert (found[1, 0], found[1, 2]) == (F(3, 16), F(1, 16))
    assert first_token(BY_TOKEN, *models, shape) == rational(1, 2, 1)  # the first token does not show it
    assert text_law(BY_SLOT, *models, shape, 2) == target_law(models[0], 2)
    assert certify("rheo", *models, shape).lossless


def test_r2_token_before_depth():
    models = alike(rational(1, 2, 1)), lambda prefix: rational(1, 2, 1) if prefix else rational(1, 4, 1)
    shape = TreeShape(2, 2, 2)
    assert first_token(TOKEN_BEFORE_DEPTH, *models, shape) == [F(3, 8), F(1, 2), F(1, 8)]
    assert first_token(BY_SLOT, *models, shape) == rational(1, 2, 1)
    assert certify("rheo", *models, shape).lossless


@pytest.mark.parametrize("backwards", [False, True])
def test_r2_false_alarm_parents_in_the_order_of_their_tokens(backwards):
    """From left to right the parents may stand in any order that their own tokens give: those are drawn already."""
    sign = -1 if backwards else 1
    mine = ranked(
        lambda score, depth, place, token: (-score, depth, place), lambda nodes, node: sign * nodes.token[node]
    )
    for rows in (rational(1, 2, 1), rational(1, 4, 1), rational(1, 1, 1)):
        for budget in range(1, 7):
            shape = TreeShape(2, 2, budget)
            assert text_law(mine, P, alike(rows), shape, 3) == target_law(P, 3)


def test_every_tie_by_slot_is_lossless_whatever_the_budget():
    for rows in (rational(1, 2, 1), rational(1, 4, 1), rational(1, 1, 1), rational(2, 1, 1)):
        for budget in range(1, 7):
            shape = TreeShape(2, 2, budget)
            assert text_law(BY_SLOT, P, alike(rows), shape, 3) == target_law(P, 3)
            assert text_law("rheo", P, alike(rows), shape, 3) == target_law(P, 3)


def with_law_of_y(law_of_y, ratio_only=False):
    """Algorithm 1 that takes `law_of_y` for q~ in line 4, and in line 8 too unless `ratio_only`."""

    def verify(p, tail, candidates, sampled, lead, chooser, at):
        if sampled == -1:
            return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)
        y, wrong = candidates[sampled], np.array(law_of_y, dtype=object)
        r = residual(p, tail if ratio_only else wrong)
        if r is None or chooser.accept(min(1, p[y] / wrong[y])):
            return y, sampled
        rest = [i for i in range(len(candidates)) if i != sampled]
        return sequential_rejection(r, candidates, rest, chooser, at)

    return TreeMethod("twin", "lossy", 1, verify=verify)


def test_r4_verified_with_another_law_than_y_was_drawn_from():
    right = [F(1, 2), F(1, 5), F(3, 10)]
    raw = first_token(with_law_of_y(Q(())), P, Q, TABLE_1)
    assert (raw, distance(raw, right)) == ([0, F(2, 5), F(3, 5)], F(1, 2))
    proxy = first_token(with_law_of_y([0, F(1, 2), F(1, 2)], ratio_only=True), P, Q, TABLE_1)
    assert (proxy, distance(proxy, right)) == ([F(13, 25), F(6, 25), F(6, 25)], F(3, 50))
    assert first_token(with_law_of_y([0, F(3, 5), F(2, 5)]), P, Q, TABLE_1) == right


def test_r5_fill_slots_that_do_not_exclude_y():
    """The repeated candidate is rejected for sure; nothing is lost but acceptance: 9/10 instead of 1."""
    p, q = alike(rational(3, 1, 4, 2)), alike(rational(10, 5, 3, 2))

    @method
    def cycle(target, draft, prefix, shape, chooser):
        drafter = Drafter(ModelPair(target, draft), shape.width, 1, RHEO)
        pool, nodes = drafter.pool(prefix), Nodes()
        y = chooser.index(pool.tail)
        slots = [*pool.lead_slots(), pool.sampled_slot(y)]
        slots += [(slot, FILL, int(pool.row.order[slot - 1]), 0) for slot in range(2, shape.width)]
        for slot, kind, token, score in slots:
            nodes.append(ROOT, slot, kind, token, score)
        return verify_tree(nodes.tree(np.dtype(object)), drafter, prefix, algorithm_1, chooser)

    shape = TreeShape(3, 1, 3)
    found, right = certify(cycle, p, q, shape), certify("rheo", p, q, shape)
    assert (found.lossless, found.acceptance_by_depth[1]) == (True, F(9, 10))
    assert right.lossless
    assert right.acceptance_by_depth[1] == 1


def test_r6_the_residual_not_taken_after_y_is_rejected():
    def unreduced(p, tail, candidates, sampled, lead, chooser, at):
        if sampled != -1 and chooser.accept(min(1, p[candidates[sampled]] / tail[candidates[sampled]])):
            return candidates[sampled], sampled
        rest = [i for i in range(len(candidates)) if i != sampled]
        return sequential_rejection(p, candidates, rest, chooser, at)

    right = [F(1, 2), F(1, 5), F(3, 10)]
    found = first_token(TreeMethod("twin", "lossy", 1, verify=unreduced), P, Q, TABLE_1)
    assert (found, distance(found, right)) == ([F(1, 4), F(3, 10), F(9, 20)], F(1, 4))


def test_r10_a_one_hot_draft_has_no_sampled_slot():
    for q in ([1, 0, 0], np.array([1.0, 0, 0]), np.array([1, 0, 0], np.float16)):
        p = rational(5, 2, 3) if isinstance(q, list) else np.array([0.5, 0.25, 0.25], q.dtype)
        for budget in (1, 2, 3):
            chooser = SamplingChooser(np.random.default_rng(1))
            cycle = speculate(alike(p), alike(q), (), "rheo", TreeShape(3, 1, budget), chooser)
            assert SAMPLED not in cycle.tree.kind
            assert len(cycle.tree) == budget
            found = certify("rheo", alike(p), alike(q), TreeShape(3, 1, budget), every_target=False)
            assert found.lossless
            assert found.classes == 1


class Grid:
    """A chooser whose coins use one of the uniform numbers {0, 1/4, 1/2, 3/4}, accepted with `compare`."""

    def __init__(self, chooser, compare):
        self.chooser, self.compare = chooser, compare

    def accept(self, probability, at=None):
        return bool(self.compare(F(self.chooser.index([1, 1, 1, 1]), 4), probability))

    def index(self, weights, at=None):
        return self.chooser.index(weights, at)


def at_most(u, probability):
    return u <= probability


def strictly(u, probability):
    return u < probability


def test_d1_coins_on_a_grid_accepted_at_equality():
    """p = 1/2 accepts 3/4, and a token of probability 0 is accepted with probability 1/4; strict is exact."""
    assert law(lambda chooser: Grid(chooser, at_most).accept(F(1, 2))) == {True: F(3, 4), False: F(1, 4)}
    assert law(lambda chooser: Grid(chooser, at_most).accept(0))[True] == F(1, 4)
    assert law(lambda chooser: Grid(chooser, strictly).accept(F(1, 2))) == {True: F(1, 2), False: F(1, 2)}
    models, shape = (alike([0, 1]), alike([1, 0])), TreeShape(1, 1, 1)
    for compare, right in ((at_most, False), (strictly, True)):
        found = law(
            lambda chooser, compare=compare: speculate(*models, (), "rheo", shape, Grid(chooser, compare)).tokens[0]  # type: ignore[misc]
        )
        assert found == ({1: 1} if right else {0: F(1, 4), 1: F(3, 4)})


def test_d3_the_acceptance_coin_is_always_0():
    class Zero(Grid):
        def accept(self, probability, at=None):
            return bool(probability > 0)

    shape, chain = TreeShape(1, 1, 1), rule("rheo", lead=0)
    found = law(lambda chooser: speculate(W_P, W_Q, (), chain, shape, Zero(chooser, strictly)).tokens[0])
    assert [found[token] for token in range(3)] == W_Q(())
    right = certify(chain, W_P, W_Q, shape)
    assert (right.lossless, right.acceptance_by_depth[1]) == (True, F(4, 5))


@pytest.mark.parametrize("kind", ["rational", np.float16, np.float32, np.float64])
def test_d4_p_is_q_and_candidates_cover_the_residual(kind):
    rows = rational(4, 2, 2) if kind == "rational" else np.array([0.5, 0.25, 0.25], kind)
    for name, lead in (("rheo", 0), ("rheo", 1), ("rheo-rrsw", 1), ("rheo-rrsw", 0)):
        found = certify(rule(name, lead=lead), *both(rows), TreeShape(3, 2, 12), every_target=False)
        assert found.lossless
        assert found.total_variation == 0
        assert found.acceptance_by_depth[1] == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_d5_a_nan_row_never_yields_a_token(dtype):
    bad = alike(np.array([np.nan, 0.5, 0.5], dtype))
    good = alike(np.array([0.5, 0.25, 0.25], dtype))
    for models in ((good, bad), (bad, good)):
        with pytest.raises(ValueError, match=r"^(draft|target)\(\(\)\)\[0\]: got nan, expected a non-negative number$"):
            certify("rheo", *models, TreeShape(2, 1, 2))


def test_d6_a_candidate_of_id_minus_1_is_refused():
    def verify(p, tail, candidates, sampled, lead, chooser, at):
        return algorithm_1(p, None, [-1], -1, lead, chooser, at)

    with pytest.raises(ValueError, match=r"^candidates\[0\]: got -1, expected a token id in 0\.\.2"):
        certify(TreeMethod("twin", None, 1, verify=verify), P, Q, TABLE_1)


def test_e3_a_top_p_law_left_unnormalised_is_refused():
    with pytest.raises(ValueError, match=r"^target\(\(\)\): got .*, expected a law: its sum is 4/5, not exactly 1$"):
        certify("rheo", alike([F(1, 2), F(3, 10), F(0)]), Q, TABLE_1)


def test_a_fault_in_the_rows_of_one_node_shows_only_where_rows_differ():
    """C7: the row of node 0 is read at the root; a target whose rows are all alike hides it."""
    root, below = rational(1, 1), rational(9, 1)

    def target(prefix):
        return below if prefix == (0,) else root

    @method
    def elsewhere(target, draft, prefix, shape, chooser):
        return [chooser.index(target((*prefix, 0)))]

    found = certify(elsewhere, target, alike(root), TreeShape(1, 1, 1), 1)
    assert found.total_variation == F(2, 5)
    assert certify(elsewhere, alike(root), alike(root), TreeShape(1, 1, 1), 1).total_variation == 0
    assert total_variation(found.law(), target_law(target, 1)) == F(2, 5)
