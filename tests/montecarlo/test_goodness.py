"""The tests of fit against SciPy, exact laws and their own rates: false alarms, power, visible variation."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from montecarlo import goodness
from montecarlo.goodness import LEAST_EXPECTED, fit, log_evidence, merge, variation_radius, visible_variation
from montecarlo.planning import ErrorRates, critical, needed, plans
from montecarlo.planning import power as power_of
from rheo_core import InvalidInput

LAW = np.array([0.4, 0.3, 0.15, 0.1, 0.05])


def shifted(law, variation):
    """The law at a total variation from `law` that chi-square sees last: one half of the mass up, one half down."""
    order = np.argsort(law)[::-1]
    signs = np.ones(len(law))
    mass = 0.0
    for cell in order:
        if mass + law[cell] <= 0.5 + 1e-9:
            mass += law[cell]
        else:
            signs[cell] = -1
    up, down = law[signs > 0].sum(), law[signs < 0].sum()
    return law * np.where(signs > 0, 1 + variation / up, 1 - variation / down)


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=40), st.integers(1, 10**5))
def test_merged_cells_keep_all_counts_and_expect_enough(weights, samples):
    p = np.array(weights) / sum(weights)
    counts = np.random.default_rng(0).multinomial(samples, p)
    merged, q = merge(counts, p, LEAST_EXPECTED)
    assert merged.sum() == samples
    assert q.sum() == pytest.approx(1)
    assert len(q) == 1 or (q * samples >= LEAST_EXPECTED * (1 - 1e-9)).all()


def test_chi_square_and_g_equal_scipy():
    counts = np.array([430, 280, 150, 90, 50])
    found = fit(counts, LAW, alarm=0.01)
    expected = counts.sum() * LAW
    assert found.chi_square == pytest.approx(stats.chisquare(counts, expected).statistic)
    assert found.g == pytest.approx(stats.power_divergence(counts, expected, lambda_="log-likelihood").statistic)
    assert found.degrees == 4


def test_the_e_process_has_mean_one_under_the_null_exactly():
    """All outcomes of four draws, each with its probability: the definition of a fair bet."""
    p = np.array([0.5, 0.3, 0.2])
    mean = 0.0
    for draws in product(range(3), repeat=4):
        counts = np.bincount(draws, minlength=3)
        mean += math.prod(p[list(draws)]) * math.exp(log_evidence(counts, p))
    assert mean == pytest.approx(1, abs=1e-7)


def test_the_e_process_equals_its_sequential_form():
    """Oracle: the same mixture as a product of predictive ratios, draw after draw."""
    draws = np.random.default_rng(1).choice(5, size=60, p=[0.2] * 5)
    total = 0.0
    for c in goodness.CONCENTRATIONS:
        seen, ratio = np.zeros(5), 1.0
        for draw in draws:
            ratio *= (seen[draw] + c * LAW[draw]) / (seen.sum() + c) / LAW[draw]
            seen[draw] += 1
        total += ratio
    expected = math.log(total / len(goodness.CONCENTRATIONS))
    assert log_evidence(np.bincount(draws, minlength=5), LAW) == pytest.approx(expected)


def test_false_alarms_stay_at_their_rate():
    """1,500 lossless tables at alarm rate 0.02: no more alarms than chance allows with probability 1e-6."""
    rng = np.random.default_rng(2)
    tables = rng.multinomial(4000, LAW, size=1500)
    most = stats.binom.isf(1e-6, 1500, 0.02)
    fits = [fit(counts, LAW, alarm=0.02) for counts in tables]
    assert sum(each.p_value < 0.02 for each in fits) <= most
    assert sum(each.total_variation > each.radius for each in fits) <= most
    assert sum(each.log_evidence > math.log(50) for each in fits) <= most


@pytest.mark.parametrize(("samples", "expected"), [(1000, 25.0), (10_000, 25.5), (100_000, 40.0)])
def test_far_tails_keep_to_their_rate_where_few_counts_are_expected(samples, expected):
    """Two cells, every outcome summed: the larger of the two p-values is below a with probability at most a, down to
    1e-8. Planted fault: chi-square alone exceeds its rate several times over."""
    p = expected / samples
    counts = np.arange(300)
    mass = stats.binom.pmf(counts, samples, p)
    fits = [fit([int(k), samples - int(k)], [p, 1 - p], alarm=0.01) for k in counts]
    for rate in (1e-3, 1e-4, 1e-6, 1e-8):
        assert mass[[each.p_value < rate for each in fits]].sum() <= rate
    alone = stats.chi2.sf([each.chi_square for each in fits], 1)
    assert mass[alone < 1e-6].sum() > 3e-6


def test_evidence_looked_at_after_every_batch_stays_at_its_rate():
    """500 lossless runs, each looked at 40 times: Ville's bound holds for the greatest value ever seen."""
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(500):
        counts = np.cumsum(rng.multinomial(50, LAW, size=40), axis=0)
        alarms += max(log_evidence(each, LAW) for each in counts) > math.log(20)
    assert alarms <= stats.binom.isf(1e-6, 500, 0.05)


@pytest.mark.parametrize("test", ["chi-square", "e-process"])
@pytest.mark.parametrize("variation", [0.02, 0.08])
def test_computed_power_is_the_power_that_is_seen(test, variation):
    """Planted faults in the direction that is hardest to see, at 60 % and 99 % computed power."""
    alarm, law = 1e-6, shifted(LAW, variation)
    spread = goodness.divergence(law, LAW)
    assert spread == pytest.approx(4 * variation**2, rel=0.25)
    rng = np.random.default_rng(4)
    for miss in (0.4, 0.01):
        samples = math.ceil(needed(test, 4, spread, ErrorRates(alarm, miss)))
        assert power_of(test, samples, 4, spread, alarm) == pytest.approx(1 - miss, abs=0.01)
        tables = rng.multinomial(samples, law, size=400)
        if test == "chi-square":
            bar = critical(test, 4, alarm)
            seen = sum(((counts - samples * LAW) ** 2 / (samples * LAW)).sum() > bar for counts in tables)
        else:
            seen = sum(log_evidence(counts, LAW) > math.log(1 / alarm) for counts in tables)
        assert seen / 400 == pytest.approx(1 - miss, abs=0.16 if test == "e-process" else 0.1)
        assert seen / 400 >= 0.97 or miss > 0.1


def test_visible_variation_is_seen_and_half_of_it_is_not():
    """The stated smallest discrepancy at the stated samples: rejected then, and not rejected at half of it."""
    samples, alarm = 20_000, 1e-6
    visible = visible_variation(samples, 4, alarm, 0.01)
    rng = np.random.default_rng(5)
    for variation, least, most in ((visible, 0.95, 1.0), (visible / 2, 0.0, 0.3)):
        tables = rng.multinomial(samples, shifted(LAW, variation), size=200)
        share = np.mean([fit(counts, LAW, alarm).p_value < alarm for counts in tables])
        assert least <= share <= most


def test_a_difference_of_kl_below_a_hundredth_is_not_overlooked():
    """FAULTS I3: [57/100, 43/100] against [1/2, 1/2] has KL .0098 and TV .07; the planned samples reject it."""
    law, p = np.array([0.57, 0.43]), np.array([0.5, 0.5])
    (chi_square, e_process, radius) = plans(2, ErrorRates(1e-6, 0.01), variation=0.07)
    rng = np.random.default_rng(6)
    found = fit(rng.multinomial(int(chi_square.samples), law), p, 1e-6)
    assert found.p_value < 1e-6
    assert fit(rng.multinomial(int(e_process.samples), law), p, 1e-6).log_evidence > math.log(1e6)
    wide = fit(rng.multinomial(int(radius.samples), law), p, 1e-6)
    assert wide.total_variation > wide.radius


def test_plans_go_both_ways():
    errors = ErrorRates(1e-6, 0.01)
    for there in plans(50, errors, variation=0.03):
        back = {plan.test: plan for plan in plans(50, errors, samples=int(there.samples))}[there.test]
        assert back.variation == pytest.approx(0.03, rel=1e-3)


def test_a_forbidden_outcome_is_infinite_evidence():
    found = fit([10, 10, 1], [0.5, 0.5, 0.0], alarm=1e-6)
    assert found.impossible == 1
    assert found.log_evidence == math.inf
    assert found.p_value == 0


def test_the_radius_shrinks_and_never_exceeds_one():
    radii = [variation_radius(n, LAW, 1e-6) for n in (0, 1, 100, 10_000, 10**6)]
    assert radii == sorted(radii, reverse=True)
    assert radii[0] == 1
    assert radii[-1] < 0.01
    # sum sqrt(p (1 - p) / n) / 2 + sqrt(log(1 / a) / (2 n)), by hand
    assert variation_radius(100, [0.5, 0.5], 0.01) == pytest.approx(0.05 + math.sqrt(math.log(100) / 200))


@pytest.mark.parametrize(
    ("counts", "law", "message"),
    [
        ([1, 2], [0.5, 0.6], "probabilities: got 1.1, expected non-negative numbers of sum 1"),
        ([1, 2, 3], [0.5, 0.5], r"counts: got \(3,\)"),
        ([1, -2], [0.5, 0.5], "counts: got -2, expected non-negative counts"),
        ([1, 2], [1.5, -0.5], "probabilities: "),
    ],
)
def test_bad_tables_are_refused(counts, law, message):
    with pytest.raises(InvalidInput, match=message):
        fit(counts, law, 0.01)


@pytest.mark.parametrize("tv", [0, -0.1, 1.5, float("nan")])
def test_bad_variations_are_refused(tv):
    with pytest.raises(InvalidInput, match="tv"):
        plans(10, ErrorRates(0.01, 0.01), variation=tv)
