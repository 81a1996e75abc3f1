"""Faults that happened: refuted with exactly the law they have; false alarms certified; bad input refused; counting.

The third part needs no engine: it pins the arithmetic of counting and of statistical bars that such engines' tests get
wrong, each on numbers small enough to check by hand.
"""

import math
from collections import Counter
from fractions import Fraction as F
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from exact import certify, law, target_law
from exact.enumeration.fixed_trees import node_at
from exact.faults import cases
from exact.faults.case import W_DRAFT, W_TARGET
from exact.faults.coins import SharedCoin
from exact.methods.parts import one_by_one
from rheo_core import (
    DraftRow,
    InvalidInput,
    ModelPair,
    SamplingChooser,
    TreeMethod,
    TreeShape,
    generate,
    method,
    methods,
    rates,
    speculate,
)
from rheo_core.verification import algorithm_1, rrsw, vanilla
from tests.pairs import alike, rational

pytestmark = pytest.mark.exact

PUBLISHED = {
    "A1", "A2", "A4", "A5", "B1", "B2", "B3", "C1", "C3", "C5", "C7", "C9", "C11", "D1", "D3", "E1", "F1", "F3",
    "R1", "R2", "R4", "R5", "R6",
}  # fmt: skip


def test_every_published_fault_has_its_case_and_every_kind_two_more():
    assert set(cases) >= PUBLISHED
    kinds = Counter(case.kind for key, case in cases.items() if "X" in key and not case.lossless)
    assert set(kinds) == {case.kind for case in cases.values()}
    assert all(count >= 2 for count in kinds.values())


@pytest.mark.parametrize("key", cases)
def test_the_verdict_is_the_label(key):
    case = cases[key]
    certificate = case.certificate()
    assert certificate.lossless == case.lossless
    assert case.method.claim == ("lossless" if case.lossless else "lossy")
    if case.acceptance is not None:
        assert certificate.acceptance_by_depth[1] == case.acceptance
    if not case.lossless:
        found = certificate.counterexample
        assert found is not None
        assert found.got != found.right


@pytest.mark.parametrize("key", [key for key, case in cases.items() if case.law is not None])
def test_the_law_is_exactly_the_one_given(key):
    case = cases[key]
    assert case.run() == case.law


TOTAL_VARIATIONS = {
    "A1": F(3, 14), "A2": F(1, 5), "A4": F(4, 25), "B2": F(1, 10), "B3": F(1, 50), "B3b": F(1, 6), "C1": F(2, 25),
    "C1b": F(1, 20), "C3": F(1, 5), "C7": F(2, 5), "C9": F(1, 2), "C11": F(1, 5), "E1": F(1, 5), "F1": F(1, 4),
    "F3": F(1, 6), "R1": F(9, 50), "R4": F(1, 2), "R4b": F(3, 50), "R6": F(1, 4), "A5": 0, "C5": 0, "F1b": 0,
}  # fmt: skip


@pytest.mark.parametrize("key", TOTAL_VARIATIONS)
def test_the_total_variation_is_the_one_given(key):
    case = cases[key]
    right = target_law(case.target, case.length)
    got = case.run()
    distance = sum((abs(got.get(tokens, F(0)) - right.get(tokens, F(0))) for tokens in right | got), F(0)) / 2
    assert case.certificate(case.length).total_variation == distance == TOTAL_VARIATIONS[key]


def test_the_softmax_residual_to_six_digits():
    got = [float(cases["B1"].run()[token,]) for token in range(3)]
    assert got == pytest.approx([0.562299, 0.268851, 0.168851], abs=5e-7)


def test_a_point_mass_verifier_loses_acceptance_and_says_how_much():
    p, q = np.array(W_TARGET, dtype=object), np.array(W_DRAFT, dtype=object)
    accepted = cases["A5"].certificate().acceptance_by_depth[1]
    assert rates.rheo_rate(p, q, 0, 1) - accepted == F(37, 100)


def test_rows_alike_hide_a_shifted_row():
    rule = cases["C7"].method
    assert certify(rule, alike(rational(1, 1)), alike(rational(2, 1)), TreeShape(1, 1, 1)).lossless


def test_the_first_token_alone_hides_faults_of_later_ones():
    for key in ("AX2", "DX2", "EX2"):
        assert cases[key].certificate(1).lossless
        assert not cases[key].certificate().lossless


def test_a_float32_coin_on_its_own_grid():
    """u in {0, 1, ..., 2^24 - 1} / 2^24: with <= a token of p = 0 is accepted with probability 2^-24, with < never."""
    grid = 2**24
    assert F(sum(1 for u in range(2) if u / grid <= 0), grid) == F(1, 2**24)
    assert not any(u / grid < 0 for u in range(2))

    zero: Any = SimpleNamespace(random=lambda: 0.0)
    assert not SamplingChooser(zero).accept(0)
    assert not SamplingChooser(zero).accept(np.float32(0))


def test_a_shared_coin_is_one_uniform_number():
    asked = law(lambda chooser: (lambda coin: (coin.below(F(1, 2)), coin.below(F(3, 4))))(SharedCoin(chooser)))
    assert asked == {(True, True): F(1, 2), (False, True): F(1, 4), (False, False): F(1, 4)}


# Part 2: must raise, or must not break.

RULES = [algorithm_1, vanilla, rrsw]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [object, np.float64, np.float32, np.float16])
def test_equal_laws_and_full_coverage_never_divide_by_zero(rule, dtype):
    """D4: p = q and every candidate of the residual's support is there; every warning is an error."""
    row = [F(1, 4), F(1, 2), F(1, 4)] if dtype is object else np.array([0.25, 0.5, 0.25], dtype=dtype)
    with np.errstate(all="raise"):
        certificate = certify(
            TreeMethod("rule", None, lead=1, verify=rule), alike(row), alike(row), TreeShape(3, 2, 12)
        )
    assert certificate.lossless
    assert certificate.acceptance_length == pytest.approx(3, abs=1e-3)


@pytest.mark.parametrize("rule", RULES)
def test_residuals_that_floats_empty_still_end_in_a_token(rule):
    """D4's relative: p <= q~ everywhere in floats although p != q~, and leads that already hold all of p."""
    p = np.array([1.0, 0.0, 0.0], dtype=np.float32)
    tail = np.array([0.0, 1.0, np.float32(6e-8)], dtype=np.float32)
    with np.errstate(all="raise"):
        outcomes = law(lambda chooser: rule(p, tail, [0, 1, 2], 1, 1, chooser, (0, ())))
    assert set(outcomes) == {(0, 0)}
    below = np.array([0.3, 0.7], dtype=np.float32)
    above = np.nextafter(below, np.float32(2))
    with np.errstate(all="raise"):
        kept = law(lambda chooser: algorithm_1(below, above, [0], 0, 0, chooser, (0, ())))
    assert kept == {(0, 0): 1}


@pytest.mark.parametrize("rule", RULES)
def test_an_entry_that_rounds_above_1_is_a_sure_coin(rule):
    """D4's relative: a float law within its tolerance whose first entry is 1 + eps, and more than nothing is left."""
    p = np.array([1 + 2.2e-16, 1e-16])
    outcomes = law(lambda chooser: rule(p, None, [0], -1, 1, chooser, (0, ())))
    assert outcomes == {(0, 0): 1}


@pytest.mark.parametrize("name", methods)
def test_a_nan_row_fails_loudly(name):
    """D5: for q and, as its relative, for p."""
    good, bad = np.array([0.5, 0.5]), np.array([np.nan, 1.0])
    chooser = SamplingChooser(np.random.default_rng(0))
    with pytest.raises(InvalidInput, match=r"draft\(\(\)\)\[0\]: got nan"):
        speculate(alike(good), alike(bad), (), name, TreeShape(2, 1, 2), chooser)
    with pytest.raises(InvalidInput, match=r"target\(\(\)\)\[0\]: got nan"):
        speculate(alike(bad), alike(good), (), name, TreeShape(2, 1, 2), chooser)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("candidate", [-1, 3, 1.0, True])
def test_a_candidate_that_is_no_id_is_refused(rule, candidate):
    """D6: -1 would be read from the end in silence; so would True as 1, and 3 is past the end."""
    p = np.array(W_TARGET, dtype=object)
    with pytest.raises(InvalidInput, match=r"candidates\[0\]"):
        law(lambda chooser: rule(p, None, [candidate], -1, 1, chooser, (0, ())))


@pytest.mark.parametrize(
    "row",
    [
        [F(1, 2), F(3, 10), F(0)],
        np.array([0.5, 0.3, 0.0]),
        [F(3, 2), F(-1, 2), F(0)],
        [[F(1, 2), F(1, 2), F(0)]],
        np.array([0.5, np.inf, 0.0]),
        ["1/2", "1/2", "0"],
    ],
)
def test_a_row_that_is_no_law_is_refused_and_not_repaired(row):
    """E3 (a top-p law left unnormalised) and its relatives: negative, two-dimensional, infinite, not numbers."""
    good = W_TARGET if not isinstance(row, np.ndarray) else np.array([0.5, 0.25, 0.25])
    with pytest.raises(InvalidInput, match="target"):
        certify("rheo", alike(row), alike(good), TreeShape(2, 1, 2))


def test_rows_of_two_arithmetics_and_a_map_that_is_not_one_to_one_are_refused():
    with pytest.raises(InvalidInput, match="arithmetic"):
        certify("rheo", alike(W_TARGET), alike(np.array([0.5, 0.25, 0.25])), TreeShape(2, 1, 2))
    with pytest.raises(InvalidInput, match="a target id of its own"):
        certify("rheo", alike(W_TARGET), alike(rational(1, 1)), TreeShape(2, 1, 2), ids=[0, 0])


@pytest.mark.parametrize("position", [(), (0,), (1,)])
def test_every_position_is_checked_by_itself(position):
    """E5: a processor given to one position only, be it the first, a verified one or the bonus row."""
    raw, minimal = rational(5, 3, 2), rational(5, 3, 0)
    shifted = lambda prefix: minimal if prefix == position else raw  # noqa: E731
    engine = methods["rheo"]

    @method(name="one-position", claim="lossy")
    def reads_shifted(target, draft, prefix, shape, chooser):
        return engine.cycle(shifted, draft, prefix, shape, chooser).tokens

    certificate = certify(reads_shifted, alike(raw), alike(rational(2, 3, 5)), TreeShape(2, 1, 2))
    assert certificate.lossless is False
    assert certificate.counterexample is not None
    assert certificate.counterexample.sequence[: len(position)] == position


def test_a_one_hot_draft_row_has_no_sampled_slot():
    """R10: z = 0 with one lead; the pool is the plain top-min(K, V)."""
    row = DraftRow.law([1, 0, 0])
    assert row.tail([0]) is None
    certificate = certify("rheo", alike(W_TARGET), alike([1, 0, 0]), TreeShape(2, 1, 2))
    assert certificate.lossless
    assert certificate.acceptance_by_depth[1] == F(4, 5)


# Part 3: counting and statistics.


def test_only_the_accepted_prefix_counts():
    """H1: a mask [1, 0, 1, 1] over a chain accepts one token; what lies below a rejection does not count."""
    wanted = iter([True, False, True, True])

    class Mask:
        def accept(self, probability, at=None):
            return next(wanted)

        def index(self, weights, at=None):
            return int(np.flatnonzero(np.asarray(weights, dtype=float))[0])

    pair = alike(np.array([0.5, 0.5]))
    other = alike(np.array([0.25, 0.75]))
    cycle = speculate(pair, other, (), TreeMethod("chain", None, lead=1), TreeShape(1, 4, 4), Mask())
    assert cycle.accepted == 1
    assert len(cycle.tokens) == 2


def test_the_acceptance_length_counts_the_target_s_own_token():
    """H2: with nothing ever accepted tau is 1, not 0."""
    certificate = certify("top-k", alike([0, 1]), alike([1, 0]), TreeShape(1, 1, 1))
    assert list(certificate.acceptance_by_depth) == [1, 0]
    assert certificate.acceptance_length == 1
    text = generate(
        alike([0, 1]), alike([1, 0]), (), "top-k", TreeShape(1, 1, 1), SamplingChooser(np.random.default_rng(0)), 5
    )
    assert text.acceptance_length == 1


def test_an_end_token_inside_the_accepted_prefix_ends_the_text():
    """H3: six tokens in one cycle, the third is the end: 3 are emitted, and count; as its relative, the very first."""

    @method
    def six(target, draft, prefix, shape, chooser):
        return [0, 0, 1, 0, 0, 0]

    def text(end):
        rows = alike(rational(1, 1))
        return generate(rows, rows, (), six, TreeShape(1, 5, 5), SamplingChooser(np.random.default_rng(0)), 9, end=end)

    assert text({1}).tokens == (0, 0, 1)
    assert text({1}).acceptance_length == 3
    assert text({0}).tokens == (0,)
    assert len(text(()).tokens) == 9
    assert [cycle.accepted for cycle in text(()).cycles] == [5, 5]


def test_the_mean_of_ratios_is_not_the_pooled_ratio():
    """H4: 9 tokens in 3 cycles and 2 in 2: pooled 11/5, the mean of the two ratios 2."""
    requests = [(9, 3), (2, 2)]
    pooled = F(sum(tokens for tokens, _ in requests), sum(cycles for _, cycles in requests))
    assert pooled == F(11, 5)
    assert sum(F(*request) for request in requests) / 2 == 2


def test_a_bar_at_the_typical_value_fails_half_of_the_time():
    """I1: true rate 1/10, n = 2000; and a bar taken from the tail fails as rarely as it says."""
    assert binom.cdf(199, 2000, 0.1) == pytest.approx(0.489, abs=5e-4)
    bar = int(binom.ppf(1e-6, 2000, 0.1))
    assert binom.cdf(bar - 1, 2000, 0.1) <= 1e-6 < binom.cdf(199, 2000, 0.1)


def test_a_small_difference_of_divergences_is_no_small_distance():
    """I3: KL of [.57, .43] from [.5, .5] is below .01, the total variation is .07."""
    p, q = [0.57, 0.43], [0.5, 0.5]
    divergence = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    assert divergence < 0.01
    assert sum(abs(F(a).limit_denominator() - F(b)) for a, b in zip(p, q, strict=True)) / 2 == F(7, 100)


def test_a_hundred_checks_rarely_all_pass():
    """I5: at level .05 each; Bonferroni's level keeps the whole family at .05."""
    assert round(0.95**100, 4) == 0.0059
    assert 1 - (1 - 0.05 / 100) ** 100 < 0.05


def test_conditioning_on_how_a_token_came_about_is_a_false_alarm():
    """I6: pair W's law given "residual" is [0, 1/2, 1/2], and given the draft it is not p either; overall it is p."""
    node = node_at(ModelPair(alike(W_TARGET), alike(W_DRAFT)), (), (), 1)

    def program(chooser):
        drafted = chooser.index(node.q)
        token, child = one_by_one(node, [drafted], [node.q], chooser)
        return token, child, drafted

    joint: dict[Any, F] = law(program)

    def given(keep):
        kept = {outcome: weight for outcome, weight in joint.items() if keep(outcome)}
        return [
            sum((weight for outcome, weight in kept.items() if outcome[0] == token), F(0)) / sum(kept.values())
            for token in range(3)
        ]

    assert given(lambda outcome: outcome[1] == -1) == [0, F(1, 2), F(1, 2)]
    assert given(lambda outcome: outcome[2] == 0) == [F(5, 7), F(1, 7), F(1, 7)]
    assert given(lambda outcome: True) == list(W_TARGET)
