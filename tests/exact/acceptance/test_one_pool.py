"""One layer by closed forms on whole numbers, held to the enumeration of every draw and every coin."""

import random
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

import rheo_core.verification
from exact.acceptance.layer_verdict import WIDE, LayerVerdict
from exact.acceptance.one_layer import drafted_sets, one_layer
from exact.acceptance.one_pool import CLOSED, ENUMERATED, OneLayerTree, WholePool, WholeRows, path_of
from exact.enumeration.cycle_law import acceptance_by_depth, cycle_law
from exact.enumeration.rationals import fraction, rational_models
from exact.methods import methods
from exact.methods.optimum import optimum
from exact.methods.rows_file import Rows
from rheo_core import SAMPLED, DraftRow, ModelPair, TreeShape, rates
from rheo_core.verification import algorithm_1, vanilla
from tests.pairs import alike, both, rational, rule

pytestmark = pytest.mark.exact

NAMES = ("rheo", "rheo-rrsw", "top-k", "rheo-next", "rheo-z", "rheo-adhoc", "rheo-raw", "rheo-half", "rheo-rrsw-z")


def drawn_row(rng, size):
    """A row with zeros and ties."""
    weights = [rng.choice([0, 0, 1, 1, 2, 3, 5, 8]) for _ in range(size)]
    weights[rng.randrange(size)] += not any(weights)
    return rational(*weights)


def drawn_case(seed):
    """(method, pair, shape): any built-in parts, two-law drafts and id maps among them."""
    rng = random.Random(seed)
    size, width, budget = rng.randint(1, 5), rng.randint(1, 5), rng.randint(1, 6)
    p, q = drawn_row(rng, size), drawn_row(rng, size)
    draft = DraftRow.pair(q, drawn_row(rng, size)) if rng.random() < 0.4 else q
    ids = None
    if rng.random() < 0.3:
        ids = rng.sample(range(size + 2), size)
        p = drawn_row(rng, size + 2)
    method = rule(rng.choice([*NAMES, "rheo-raw", "rheo-raw"]))
    if method.lead is not None:
        method = replace(method, lead=rng.randint(0, width))
    if rng.random() < 0.1:
        method = replace(method, verify=vanilla)
    return method, ModelPair(alike(p), alike(draft), ids), TreeShape(width, 1, budget)


def layer_of(method, pair, shape) -> Any:
    """The layer in closed form, which these methods have."""
    return OneLayerTree.of(method, pair, shape)


def agrees(seed):
    """Whether everything that the closed forms say of one case is what enumeration says."""
    method, pair, shape = drawn_case(seed)
    exact = rational_models(pair)
    emitted, classes = cycle_law(method, exact, (), shape)
    law = [F(0)] * len(exact.p(()))
    for tokens, weight in emitted.items():
        law[tokens[0]] += fraction(weight)
    kept = sum((fraction(each.probability) for each in classes or () if (each.tree.kind == SAMPLED).any()), F(0))
    found = layer_of(method, pair, shape)
    best = optimum(exact.p(()), drafted_sets(method, exact, shape.width)).value
    accepted = sum(acceptance_by_depth(emitted, 1)) - 1
    right = (law, accepted, kept, best)
    return (found.emitted.law(), found.acceptance, found.sampled_kept, found.optimum) == right


def rates_agree(seed):
    """Whether the rates of pools of n are those of `rheo_core.rates`."""
    method, pair, shape = drawn_case(seed)
    exact = rational_models(pair)
    p, q, m = exact.p(()), exact.q(()), method.leads(shape)
    n = random.Random(seed).randint(1, len(q.score))
    pool = WholeRows(p, q, pair.ids).pool(m)
    found = [pool.rate("algorithm_1", n), pool.rate("rrsw", n), pool.top_k(n), pool.optimum(n), pool.bound(n)]
    forms = (rates.rheo_rate, rates.rrsw_rate, rates.topk_rate, rates.optimal_rate, rates.rheo_bound, rates.rrsw_bound)
    return [*found, pool.bound(n, thinned=True)] == [fraction(form(p, q, m, n, ids=pair.ids)) for form in forms]


@pytest.mark.parametrize("block", range(4))
def test_a_layer_is_what_enumeration_finds(block):
    seeds = range(100 * block, 100 * block + 100)
    assert [seed for seed in seeds if not agrees(seed)] == []
    assert [seed for seed in seeds if not rates_agree(seed)] == []


def test_lossy_layers_are_among_the_cases():
    """Proxies that prune Y by what it is lose at depth 1: the comparison is not of lossless layers alone."""
    wrong = [seed for seed in range(200) if layer_of(*drawn_case(seed)).emitted.wrong is not None]
    assert len(wrong) >= 3


def test_a_faulty_closed_form_would_be_seen(monkeypatch):
    """Planted: x_n is never a candidate, as if no Y of Top_{n-1} made room for it."""
    right = WholePool.layer

    def without_the_last(self, name, n, kept):
        order = self.rows.order
        self.rows.order = [*order[: n - 1], *order[n:], order[n - 1]]
        try:
            return right(self, name, n, kept)
        finally:
            self.rows.order = order

    monkeypatch.setattr(WholePool, "layer", without_the_last)
    assert not all(agrees(seed) for seed in range(100))


def test_other_parts_than_the_papers_take_the_general_path(monkeypatch):
    def mine(*arguments):
        return algorithm_1(*arguments)

    pair, shape = ModelPair(*both(rational(3, 2, 1))), TreeShape(2, 1, 2)
    own = rule("rheo", verify=mine)
    assert OneLayerTree.of(own, pair, shape) is None
    assert path_of(own, shape) == path_of(methods["chain"], shape) == ENUMERATED
    assert path_of(rule("rheo"), shape) == CLOSED
    assert path_of(rule("rheo"), TreeShape(2, 2, 2)) == ENUMERATED
    assert one_layer(own, pair, 2) == one_layer(rule("rheo"), pair, 2)
    monkeypatch.setattr(rheo_core.verification, "ratio", lambda p, q: 1)
    assert OneLayerTree.of(rule("rheo"), pair, shape) is None


@pytest.mark.parametrize(("name", "lossless"), [("rheo", True), ("rheo-rrsw", True), ("rheo-raw", False)])
def test_a_wide_layer_is_judged_without_classes(name, lossless):
    """At V = 64 with room for few slots; "rheo-raw" prunes rare Y and loses."""
    rng = np.random.default_rng(1)
    rows = Rows(
        "wide", {None: {side: rng.standard_normal(WIDE).tolist() for side in ("target_logits", "draft_logits")}}
    )
    pair, shape = ModelPair(rows.target, rows.draft), TreeShape(4, 1, 3)
    judged: Any = LayerVerdict.of(rule(name), pair, shape)
    emitted, _ = cycle_law(rule(name), rational_models(pair), (), shape)
    law: dict[int, F] = {}
    for tokens, weight in emitted.items():
        law[tokens[0]] = law.get(tokens[0], F(0)) + fraction(weight)
    right = [fraction(mass) for mass in pair.p(())]
    assert judged.lossless is lossless is all(law[v] == right[v] for v in range(WIDE))
    assert judged.total_variation == sum(abs(law[v] - right[v]) for v in range(WIDE)) / 2
    assert judged.acceptance_length == sum(acceptance_by_depth(emitted, 1))
    assert CLOSED in judged.scope
    if not lossless:
        wrong = judged.counterexample
        assert (wrong.got, wrong.right) == (law[wrong.sequence[0]], right[wrong.sequence[0]])
        assert wrong.got != wrong.right
    assert LayerVerdict.of(rule(name), ModelPair(*both(rational(2, 1))), shape) is None
