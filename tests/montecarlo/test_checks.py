"""The checks of a simulation: silent on lossless methods, loud on every lossy one, with the power computed first."""

import numpy as np
import pytest

from exact.faults import cases
from exact.methods import methods
from exact.methods.rows_file import shipped_rows
from montecarlo.checks import ACCEPTANCE, AT_ROOT, BELOW, Suite, depth_name, expected_acceptance
from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import Dials, TablePair, rows_pair, synthetic
from montecarlo.planning import WITNESSES, ErrorRates, best_witness, laws, power
from montecarlo.simulation import ALARM, simulate
from montecarlo.simulator import after
from rheo_core import ModelPair, TreeShape, rates
from rheo_core.models import DraftRow
from tests.montecarlo.test_simulator import tree_method

FULL = TreeShape(10, 8, 59)
SMALL = TreeShape(3, 2, 4)
LOSSY = [name for name, method in methods.items() if method.claim == "lossy"]
TREES = ["top-k", "rheo", "rheo-rrsw"]


def of_witness(witness):
    """A witness's rows (by the last token) as a float table."""
    size = len(witness.target(()))
    keys = [(), *((token,) for token in range(size))]

    def state_of(prefixes):
        return prefixes[:, -1] + 1 if prefixes.shape[1] else np.zeros(len(prefixes), dtype=np.int64)

    rows = [np.array([model(key) for key in keys], dtype=np.float64) for model in (witness.target, witness.draft)]
    return TablePair(rows[0], rows[1], state_of)


def alarms(outcome):
    return [verdict.name for verdict in outcome.verdicts if verdict.alarmed]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("dials", [Dials(vocabulary=200, states=16), Dials(vocabulary=60, ties=6, overlap=0.9)])
def test_lossless_methods_raise_no_alarm_at_full_size(name, dials):
    outcome = simulate(Suite(methods[name], synthetic(dials), FULL, Uniforms(11)), 3000)
    assert alarms(outcome) == []
    assert outcome.cycles == 3000
    assert not outcome.stopped_early


@pytest.mark.parametrize("lead", [0, 1, 2, 3])
def test_any_lead_raises_no_alarm(lead):
    pair = synthetic(Dials(vocabulary=8, states=5, overlap=0.8))
    outcome = simulate(Suite(tree_method("rheo", lead=lead), pair, SMALL, Uniforms(12)), 20_000)
    assert alarms(outcome) == []


@pytest.mark.parametrize("name", LOSSY)
def test_every_lossy_method_of_the_catalogue_is_refuted(name):
    """Twice the samples of 99 % computed power, on the built-in rows that show the method best."""
    method = methods[name]
    errors = ErrorRates(ALARM / 50, 0.01)
    witness, found = best_witness(method, list(WITNESSES), 1000, errors)
    cycles = int(2 * found.needed["e-process"]) + 200
    outcome = simulate(Suite(method, of_witness(witness), witness.shape, Uniforms(13)), cycles)
    assert outcome.evidence_of_loss, (found, alarms(outcome))


def test_the_law_of_what_survives_is_the_heart_of_the_matter():
    """Table 1's two proxies: with the right one Y given its slot is q~, with the raw one it is not."""
    pair = of_witness(WITNESSES[0])
    shape = WITNESSES[0].shape
    for name, broken in (("rheo", False), ("rheo-raw", True), ("rheo-adhoc", True)):
        outcome = simulate(Suite(methods[name], pair, shape, Uniforms(14), length=1), 4000)
        assert (AT_ROOT in outcome.broken) == broken


def test_a_wrong_proxy_shows_below_the_root_at_full_size():
    pair = synthetic(Dials(vocabulary=200, states=16))
    outcome = simulate(Suite(methods["rheo-raw"], pair, FULL, Uniforms(15)), 1000)
    assert BELOW in outcome.broken


def test_a_run_stops_at_the_first_alarm():
    witness = WITNESSES[2]
    suite = Suite(methods["rheo-raw"], of_witness(witness), witness.shape, Uniforms(16))
    outcome = simulate(suite, 10**6)
    assert outcome.stopped_early
    assert outcome.cycles < 50_000


def test_a_token_that_the_target_forbids_is_an_alarm():
    """FAULTS D1: coins on a grid accepted with <= let a token of probability 0 through."""
    case = cases["D1b"]
    target, draft = (np.array([model(())], dtype=np.float64) for model in (case.target, case.draft))
    assert (target == 0).any()
    pair = TablePair(target, draft, lambda prefixes: np.zeros(len(prefixes), dtype=np.int64))
    outcome = simulate(Suite(case.method, pair, case.shape, Uniforms(17), length=1), 400)
    alarmed = {verdict.name: verdict.alarmed for verdict in outcome.verdicts}
    assert alarmed["first token"] == alarmed[depth_name(0)] == "forbidden outcome"


@pytest.mark.parametrize(("name", "rate"), [("top-k", "topk_rate"), ("rheo", "rheo_rate"), ("rheo-rrsw", "rrsw_rate")])
def test_one_layer_accepts_as_theorem_3_says(name, rate):
    """D = 1: the pool is fixed. Against another rule's rate the same counts must alarm (planted fault)."""
    pair = synthetic(Dials(vocabulary=40, states=4, overlap=0.6, support=0))
    shape = TreeShape(6, 1, 4)
    suite = Suite(methods[name], pair, shape, Uniforms(18), length=1)
    p, q = pair.target_at(()), pair.draft_at(())
    assert isinstance(q, DraftRow)
    lead = 6 if name == "top-k" else 1
    assert suite.laws[ACCEPTANCE][1] == pytest.approx(float(getattr(rates, rate)(p, q, lead, 4)))
    assert alarms(simulate(suite, 20_000)) == []
    wrong = rates.optimal_rate(p, q, 1, 4) if name == "top-k" else rates.topk_rate(p, q, 1, 4)
    suite.laws[ACCEPTANCE] = np.array([1 - float(wrong), float(wrong)])
    spread = (suite.laws[ACCEPTANCE][1] - float(getattr(rates, rate)(p, q, lead, 4))) ** 2
    spread /= suite.laws[ACCEPTANCE].prod()
    assert power("chi-square", 20_000, 1, spread, ALARM / 100) > 0.999
    assert suite.method.name == name
    assert ACCEPTANCE in simulate(suite, 20_000).broken


def test_small_trees_accept_as_enumerated():
    pair = rows_pair(shipped_rows(arithmetic="float64")[0])
    shape = TreeShape(3, 2, 4)
    for name in TREES:
        law = expected_acceptance(methods[name], pair, (), shape)
        assert law is not None
        assert law.sum() == pytest.approx(1)
        outcome = simulate(Suite(methods[name], pair, shape, Uniforms(19), repeated=False), 8000)
        assert alarms(outcome) == []
        reached = np.append(np.cumsum(law[::-1])[::-1], 0)
        assert outcome.acceptance_by_depth == pytest.approx(reached[:3], abs=0.03)


def test_a_reference_loop_method_is_checked_too():
    pair = synthetic(Dials(vocabulary=12, states=4, overlap=0.8))
    outcome = simulate(Suite(methods["chain"], pair, TreeShape(1, 3, 3), Uniforms(20)), 1500)
    assert alarms(outcome) == []


def test_exact_laws_and_simulated_counts_agree_on_a_lossy_method():
    """The simulator reproduces the wrong law itself, not only its wrongness."""
    witness = WITNESSES[0]
    law, right = laws(methods["rheo-raw"], ModelPair(witness.target, witness.draft), witness.shape, 1)
    assert np.abs(law - right).sum() > 0.3
    suite = Suite(methods["rheo-raw"], of_witness(witness), witness.shape, Uniforms(21), length=1)
    runs = np.arange(30_000)
    tokens = suite.engine.cycles(after((), np.zeros((len(runs), 0), dtype=np.int64)), runs).tokens[:, 0]
    share = np.bincount(tokens, minlength=3) / len(runs)
    assert np.abs(share - law).max() < 5 / np.sqrt(len(runs))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, method in methods.items() if method.claim == "lossless"])
def test_no_lossless_method_of_the_catalogue_raises_an_alarm(name):
    """Chains, trees and block verification alike: conditioning on the depth that was reached is no false alarm."""
    pair = synthetic(Dials(vocabulary=6, states=5, overlap=0.75, support=0))
    outcome = simulate(Suite(methods[name], pair, TreeShape(2, 3, 6), Uniforms(2)), 1500)
    assert alarms(outcome) == []
