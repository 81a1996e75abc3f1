"""Closed-form acceptance against every outcome of the rule itself, and expected tokens against counted ones."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exact.enumeration.walk import law, outcomes
from gpu_runner.certify.engine_law import cycle_outcomes
from gpu_runner.decode.draws import FromChooser, Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.expected_tokens import ACCEPTANCE, expected_tokens
from gpu_runner.decode.methods import tree_method
from gpu_runner.decode.verification import algorithm_1, rrsw, vanilla
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.tiny import tiny_model
from rheo_core import TreeShape, rates


@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([algorithm_1, vanilla, rrsw]), st.booleans())
def test_acceptance_is_the_rules_own(seed, size, verify, grainy):
    rng = np.random.default_rng(seed)

    def row():
        counts = np.bincount(rng.integers(size, size=8), minlength=size) / 8
        return torch.from_numpy(counts if grainy else rng.dirichlet(np.ones(size)))

    p, q = row(), row()
    lead = int(rng.integers(0, size))
    order = torch.argsort(-q, stable=True).tolist()
    tail = q.clone()
    tail[order[:lead]] = 0
    candidates, sampled = order[:lead], -1
    if float(tail.sum()) > 0:
        tail = tail / tail.sum()
        y = int(rng.choice(size, p=tail.numpy() / tail.numpy().sum()))
        candidates, sampled = [*order[:lead], y], lead
    candidates += [token for token in order if token not in candidates][: int(rng.integers(0, 3))]
    if not candidates:
        return
    verdicts = law(lambda chooser: verify(p, tail, candidates, sampled, lead, FromChooser(chooser), (0, ()))[1])
    got = ACCEPTANCE[verify](p, tail, candidates, sampled).tolist()
    expected = [float(verdicts.get(i, 0)) for i in range(len(candidates))]
    assert np.allclose(got, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("weights", "ahead"), [((1, 0, 2, 1), "rrsw"), ((3, 1, 0, 2), "rheo")])
def test_either_rule_may_accept_more_in_the_layer_of_table_4(weights, ahead):
    """Averaged over Y its expected acceptance is Theorem 3's and Eq. (18)'s, and Algorithm 1 is not always ahead."""
    p, q = [Fraction(weight, sum(weights)) for weight in weights], [Fraction(1, 4)] * 4
    target, tail = torch.tensor([float(x) for x in p], dtype=torch.float64), torch.tensor([0, 1 / 3, 1 / 3, 1 / 3])
    tail = tail.double() / tail.double().sum()
    pools = [[0, y, 1 if y != 1 else 2] for y in (1, 2, 3)]  # top-1, sampled, best of the rest
    rate = {
        rule: sum(float(ACCEPTANCE[rule](target, tail, pool, 1).sum()) for pool in pools) / 3
        for rule in (algorithm_1, rrsw)
    }
    assert rate[algorithm_1] == pytest.approx(float(rates.rheo_rate(p, q, 1, 3)))
    assert rate[rrsw] == pytest.approx(float(rates.rrsw_rate(p, q, 1, 3)))
    assert (rate[algorithm_1] > rate[rrsw] + 1e-3) == (ahead == "rheo")
    assert (rate[rrsw] > rate[algorithm_1] + 1e-3) == (ahead == "rrsw")


@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
def test_expected_tokens_average_to_the_exact_acceptance_length(name):
    target = tiny_model(vocabulary=4, layers=2, seed=3)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method(name), TreeShape(2, 2, 4))
    start = engine.start([1, 2, 0])
    counted = sum(float(weight) * (len(after.tokens) - 3) for after, weight in cycle_outcomes(engine, start))

    trees = outcomes(lambda chooser: _expected(engine, start.copy(), FromChooser(chooser)))
    assert abs(counted - sum(value * float(mass) for value, mass in trees)) < 1e-12


def _expected(engine, session, draws):
    drafted = engine.draft_tree(session, draws)
    target, tail = engine.laws(drafted, engine.score(session, drafted))
    return expected_tokens(drafted.tree, target, tail, engine.parts.verify)


def test_the_engine_reports_it():
    target = tiny_model(vocabulary=4, layers=2, seed=3)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), TreeShape(2, 2, 4), expect=True)
    cycles = engine.generate([1, 2, 0], 200, Seeded(1)).cycles
    counted = np.array([len(cycle.tokens) for cycle in cycles])
    given_trees = np.array([cycle.expected for cycle in cycles])
    assert given_trees.min() >= 1
    assert given_trees.std() < counted.std()
    # their difference has mean 0 given every tree; 5 standard errors: a false alarm once in 2 million runs
    assert abs((counted - given_trees).mean()) < 5 * (counted - given_trees).std() / len(cycles) ** 0.5


def test_nothing_is_expected_after_an_end_token():
    target = tiny_model(vocabulary=4, layers=2, seed=3)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), TreeShape(2, 3, 6), expect=True)
    start = engine.start([1, 2, 0])

    def expected(*end):
        return engine.cycle(start.copy(), Seeded(1), end).expected or 0

    assert expected() > min(expected(token) for token in range(4)) >= expected(*range(4)) == 1
