"""What the paper says of the rheostat m and of temperature (2.2, 5.3, 5.4), exactly, on rows of a real model."""

from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact import certify
from exact.acceptance.one_layer import acceptance_length, length_and_survival, over_leads
from exact.acceptance.sweeps import survival_mean, sweep, sweep_mean
from exact.enumeration.walk import outcomes
from exact.methods.rows_file import shipped_rows
from rheo_core import SAMPLED, ModelPair, TreeShape, methods, rates
from rheo_core.construction import layered
from tests.pairs import alike, both, drawn_models, rational, rows, rule, shapes

pytestmark = pytest.mark.exact

SHAPE = TreeShape(width=4, depth=3, budget=5)


def swept(leads=None, level=1, shape=SHAPE):
    return list(sweep(over_leads(methods["rheo"], shape, leads), shipped_rows(level), shape))


def tau(found, lead, level=1):
    return sweep_mean(found, f"rheo m={lead}", level)


def test_figure_3_every_m_is_swept_and_m_1_is_best():
    """m = 1 best, m = 0 and 2 above top-K, m = 3 at top-K: as in Figure 3, on the mean of the shipped rows."""
    found = swept()
    assert [each.lead for each in found[: SHAPE.width + 1]] == list(range(SHAPE.width + 1))
    means = [tau(found, m) for m in range(SHAPE.width + 1)]
    assert max(means) == means[1]
    assert min(means[0], means[2]) > means[3] == means[4]
    file = shipped_rows()[0]
    for each in found[: SHAPE.width + 1]:
        mine = replace(rule("rheo"), lead=each.lead)
        oracle = certify(mine, file.target, file.draft, SHAPE, every_target=False)
        assert each.acceptance_length == oracle.acceptance_length
    top_k = acceptance_length(methods["top-k"], ModelPair(file.target, file.draft), SHAPE)
    assert found[SHAPE.width].acceptance_length == top_k


def test_figure_4_tau_rises_as_t_falls_and_only_m_0_meets_top_k():
    """On the mean; of top-K (whose drafts know no temperature) and of m = 0 and 1, at T = 0 against T = 1.

    m = 0 draws nearer to top-K as T falls and meets it at T = 0; m = 1 stays apart, its tree being another one.
    """
    shape = TreeShape(4, 2, 5)
    found = {level: swept([0, 1, 4], level, shape) for level in (0, 0.5, 1)}
    means = {level: [tau(each, m, level) for m in (0, 1, 4)] for level, each in found.items()}
    apart = [means[level][0] - means[level][2] for level in (1, 0.5, 0)]
    assert apart[0] > apart[1] > apart[2] == 0
    assert means[0][1] != means[0][2]
    assert means[0][2] > means[0.5][2] > means[1][2]
    cold = {(each.rows, each.lead): each.acceptance_length for each in found[0]}
    assert all(cold[name, 0] == cold[name, 4] for name, _ in cold)


def test_survival_of_the_sampled_slot_falls_with_m():
    """5.3: from m = 3 on the proxy is so small that pruning takes the sampled token away, everywhere."""
    found = swept()
    means = [survival_mean(found, f"rheo m={m}", 1) for m in range(SHAPE.width + 1)]
    kept = [mean for mean in means if mean is not None]
    assert kept[0] > kept[1] > kept[2] > kept[3] == kept[4] == 0
    top_k = list(sweep([methods["top-k"]], shipped_rows(), SHAPE))
    assert {each.sampled_kept for each in top_k} == {0}


@given(drawn_models(most=3), shapes(width=3, depth=2), st.integers(0, 2))
def test_survival_is_that_of_every_unpruned_tree(models, shape, m):
    """The oracle: the layered construction walked over every draw, its sampled nodes counted."""
    mine = rule("rheo", lead=min(m, shape.width))
    drafter = mine.drafter(models.pair(), shape)
    walked = outcomes(lambda chooser: layered(drafter, (), shape, chooser), limit=3000)
    expected = sum(weight * np.count_nonzero(tree.kind == SAMPLED) for tree, weight in walked)
    assert length_and_survival(mine, models.pair(), shape)[1] == expected


def test_the_bound_grows_in_m_and_the_rate_need_not():
    """5.3: the mass of the leads leaves the denominator of q~, so Theorem 3's bound rises as long as Y is there."""
    grown = 0
    grid = [rational(*weights) for weights in ((4, 3, 2, 1), (1, 1, 1, 1), (5, 2, 2, 1), (7, 1, 1, 1), (0, 5, 1, 1))]
    for p in grid:
        for q in grid[:-1]:
            for n in range(1, 5):
                bounds = [rates.rheo_bound(p, q, m, n) for m in range(n)]
                assert bounds == sorted(bounds)
                grown += len(set(bounds)) > 1
    assert grown > 10
    p, q = rational(0, 5, 1, 1), rational(5, 2, 2, 1)
    assert rates.rheo_rate(p, q, 1, 2) < rates.rheo_rate(p, q, 0, 2)
    assert rates.rheo_bound(p, q, 1, 2) >= rates.rheo_bound(p, q, 0, 2)


class Best:
    """Draws the best token of every tail, or another one where it is told to."""

    def __init__(self, drafter, second=()):
        self.order = lambda weights: sorted(np.flatnonzero(weights), key=lambda v: (-weights[v], v))
        self.second = second

    def index(self, weights, at=None):
        kept = self.order(weights)
        return int(kept[1 if at[2] in self.second and len(kept) > 1 else 0])

    def accept(self, probability, at=None):
        raise AssertionError("no coin is tossed while a tree is drafted")


@given(drawn_models(most=5), shapes(depth=3))
def test_with_m_0_and_y_the_best_token_the_tree_is_top_k(models, shape):
    """5.3: slot for slot and score for score; only the first slot's kind tells that it was drawn."""
    trees = []
    for mine in (rule("rheo", lead=0), rule("top-k")):
        drafter = mine.drafter(models.pair(), shape)
        trees.append(layered(drafter, (), shape, Best(drafter)))
    one, other = trees
    for name in ("token", "parent", "depth", "slot", "score"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_with_m_0_and_y_another_token_the_tree_is_not_top_k():
    shape, pair = TreeShape(2, 2, 3), ModelPair(*both(rational(5, 3, 2)))
    drafter = rule("rheo", lead=0).drafter(pair, shape)
    top_k = layered(rule("top-k").drafter(pair, shape), (), shape, Best(drafter))
    assert layered(drafter, (), shape, Best(drafter, second=[()])).token.tolist() != top_k.token.tolist()


@given(st.integers(2, 5).flatmap(rows), st.integers(1, 5))
def test_top_k_cannot_accept_everything_though_p_is_q(q, n):
    """2.2: top-K accepts q(Top_n) of a target that is the draft; one sampled token alone accepts everything."""
    n = min(n, len(q))
    best = sorted(q, reverse=True)
    expected = sum(best[:n])
    assert rates.topk_rate(q, q, n, n) == expected
    assert acceptance_length(methods["top-k"], ModelPair(*both(q)), TreeShape(n, 1, n)) == 1 + expected
    assert (expected == 1) == (not any(best[n:]))
    assert rates.rheo_rate(q, q, 0, n) == 1
    assert acceptance_length(rule("rheo", lead=0), ModelPair(*both(q)), TreeShape(1, 1, 1)) == 2


def test_over_leads_is_every_m_of_the_pool_unless_given():
    assert [each.lead for each in over_leads(methods["rheo"], TreeShape(3, 1, 1))] == [0, 1, 2, 3]
    (mine,) = over_leads(methods["rheo-rrsw"], TreeShape(3, 1, 1), [2])
    assert (mine.lead, mine.verify) == (2, rule("rheo-rrsw").verify)
    target, draft = alike(rational(1, 2, 3)), alike(rational(3, 2, 1))
    taus = [
        acceptance_length(each, ModelPair(target, draft), TreeShape(2, 2, 3))
        for each in over_leads(methods["rheo"], TreeShape(2, 2, 3))
    ]
    assert len(set(taus)) == 3
    assert all(isinstance(each, F) for each in taus)
