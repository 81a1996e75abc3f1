"""Float runs: the same code in float64, float32 and float16, with exact branch weights, lossless up to rounding."""

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from exact import certify, target_law
from rheo_core import DraftRow, TreeShape, laws
from tests.exact.laws import emitted_law, replayed_law, total_variation
from tests.pairs import HAND_MADE, Models, alike, both, drawn_models, draws, floats, rational, rule, shapes, varied
from tests.products import pairwise

pytestmark = pytest.mark.exact

FLOATS = (np.float16, np.float32, np.float64)
DTYPES = pytest.mark.parametrize("dtype", FLOATS)
LOSSLESS = ("rheo", "rheo-rrsw", "rheo-next", "rheo-z", "top-k")


def bound(length, size, dtype):
    unit = F(float(np.finfo(dtype).eps))
    return length * max(8 * unit, min(64 * size * unit, F(1, 10**5)))


def named(name, lead):
    return rule(name) if name == "top-k" else rule(name, lead=lead)


@pairwise("pair, name, dtype, lead", HAND_MADE, LOSSLESS, FLOATS, [0, 1])
def test_lossless_methods_are_lossless_up_to_rounding(pair: Models, name, dtype, lead):
    target, draft = floats(pair.target, dtype), floats(pair.draft, dtype)
    found = certify(named(name, lead), target, draft, TreeShape(2, 2, 4), every_target=False)
    assert found.verdict == "lossless up to rounding"
    assert found.rounding_most == bound(3, pair.size, dtype)
    assert found.total_variation <= (found.rounding_bound or 0) <= (found.rounding_most or 0)
    assert found.arithmetic == str(np.dtype(dtype))
    assert f"up to {np.dtype(dtype)} rounding" in found.scope


@given(drawn_models(), shapes(width=3, depth=2), st.integers(0, 2), st.sampled_from(LOSSLESS), st.sampled_from(FLOATS))
@settings(max_examples=40)
def test_drawn_pairs_are_lossless_up_to_rounding(pair: Models, shape, lead, name, dtype):
    assume(draws(pair, shape, 0) <= 300)
    mine = named(name, min(lead, shape.width))
    found = certify(mine, floats(pair.target, dtype), floats(pair.draft, dtype), shape, every_target=False)
    assert found.lossless, (found.total_variation, found.counterexample)


@DTYPES
def test_the_float_run_is_the_float_code_with_exact_weights(dtype):
    """Its distance from the target is that of a replay of the float program, to the last bit."""
    target, draft = floats(alike(rational(5, 2, 3)), dtype), floats(alike(rational(5, 4, 2)), dtype)
    shape = TreeShape(2, 1, 2)
    found = certify("rheo", target, draft, shape, 2, every_target=False)
    replayed = replayed_law("rheo", target, draft, shape)
    assert emitted_law("rheo", target, draft, shape) == replayed
    right = target_law(target, 2)
    rows = {token: target_law(target, 1, (token,)) for token in range(3)}
    continued: dict[tuple[int, ...], F] = {}
    for tokens, mass in replayed.items():
        rest = {(): F(1)} if len(tokens) == 2 else rows[tokens[0]]
        for more, share in rest.items():
            continued[tokens + more] = continued.get(tokens + more, F(0)) + mass * share
    assert found.total_variation == total_variation(continued, right)
    assert found.law() == continued
    assert found.total_variation > 0


@DTYPES
def test_a_lossy_method_is_lossy_in_floats_too(dtype):
    target, draft = floats(alike(rational(5, 2, 3)), dtype), floats(alike(rational(5, 3, 2)), dtype)
    found = certify("rheo-adhoc", target, draft, TreeShape(3, 1, 2), every_target=False)
    assert found.verdict == "lossy"
    assert float(found.total_variation) == pytest.approx(9 / 50, abs=0.01)
    assert found.counterexample is not None
    assert found.counterexample.sequence == (0,)


def test_a_rational_loss_is_not_forgiven_for_being_small():
    """Lossless up to rounding needs the rational run to be lossless: a loss below the bound is still one."""
    tiny = 2.0**-40
    target, draft = alike(np.array([0.5, 0.5])), alike(np.array([0.5 + tiny, 0.5 - tiny]))
    found = certify(rule("rheo-raw", lead=0), target, draft, TreeShape(2, 1, 1), every_target=False)
    assert not found.lossless
    single = certify(
        rule("rheo-half", lead=0),
        *both(np.array([1 - 2.0**-20, 2.0**-20], np.float32)),
        TreeShape(2, 2, 2),
        every_target=False,
    )
    assert single.rounding_bound is not None
    assert single.rounding_most is not None
    assert single.rounding_bound < single.total_variation <= single.rounding_most
    assert not single.lossless
    assert single.counterexample is not None


@pairwise(
    "dtype, temperature, support, name, lead",
    FLOATS, [0, 0.5, 1, 1.7], [1, 2, 3, None], ["rheo", "rheo-rrsw", "top-k"], [0, 1, 2],
)  # fmt: skip
def test_logits_with_temperature_and_sparse_support(dtype, temperature, support, name, lead):
    """Score law at T = 1 over all tokens, tail law at T over the supported ones, the target at T."""
    target_logits = varied(np.array([1, 0.5, -1, 2], dtype), np.array([0, 3, 0, -np.inf], dtype))
    draft_logits = varied(np.array([1, 0.7, -0.5, 1], dtype), np.array([2, 2, -np.inf, 0], dtype))

    def target(prefix):
        return laws.softmax(target_logits(prefix), temperature)

    def draft(prefix):
        return DraftRow.logits(draft_logits(prefix), temperature, support)

    found = certify(named(name, lead), target, draft, TreeShape(2, 2, 4), every_target=False)
    assert found.lossless, found.counterexample
    assert temperature or found.total_variation == 0


@pairwise("name, lead, budget", LOSSLESS, [0, 1, 2], [1, 2, 3, 6])
def test_score_and_sampling_laws_that_differ_are_lossless_exactly(name, lead, budget):
    draft = varied(
        DraftRow.pair(rational(5, 3, 2), rational(0, 1, 3)),
        DraftRow.pair(rational(1, 1, 1), [0, 0, 1]),
        DraftRow.pair(rational(2, 3, 3), [1, 0, 0]),
    )
    target = varied(rational(1, 2, 3), rational(3, 0, 1))
    found = certify(named(name, lead), target, draft, TreeShape(2, 2, budget), every_target=False)
    assert found.lossless, found.counterexample
    assert found.total_variation == 0
