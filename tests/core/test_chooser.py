"""Choosers: one uniform number a call, strict coins, exact tails of the float types, replay by address."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpq
from scipy.stats import chi2, ncx2

from rheo_core import InvalidInput, SamplingChooser
from tests.recording import RecordingChooser


class Uniforms:
    """A generator that gives these numbers and counts them."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)
        self.given = 0

    def random(self):
        self.given += 1
        return self.numbers.pop(0)


def given(*numbers: float) -> SamplingChooser:
    """A chooser on these uniform numbers."""
    source: Any = Uniforms(*numbers)
    return SamplingChooser(source)


LARGEST = 1 - 2**-53  # of what Generator.random() gives
KINDS = (np.float16, np.float32, np.float64, np.longdouble, F, mpq, int, float)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_probability_1_is_always_accepted_and_0_never(kind):
    assert given(LARGEST).accept(kind(1))
    assert not given(0.0).accept(kind(0))


@pytest.mark.parametrize("kind", [each for each in KINDS if each is not int], ids=lambda kind: kind.__name__)
def test_coins_compare_strictly_and_at_full_width(kind):
    quarter = kind(1) / 4
    assert not given(0.25).accept(quarter)  # `<=` would accept
    assert given(0.25 - 2**-54).accept(quarter)
    assert not given(0.25 + 2**-54).accept(quarter)
    tiny = kind(2**-24) if kind not in (F, mpq) else kind(1, 2**24)
    assert given(2.0**-25).accept(tiny)
    assert not given(2.0**-24).accept(tiny)


def test_a_coin_in_an_array_or_tensor_is_compared_at_full_width():
    assert given(LARGEST).accept(np.array(1, dtype=np.float16))


def test_exactly_one_number_a_call():
    source: Any = Uniforms(*[0.5] * 6)
    chooser = SamplingChooser(source)
    calls = (
        lambda: chooser.accept(0),
        lambda: chooser.accept(1),
        lambda: chooser.accept(F(1, 2)),
        lambda: chooser.index([1]),
        lambda: chooser.index([0, 0, 1]),
        lambda: chooser.index([F(1, 3), F(2, 3)]),
    )
    for count, call in enumerate(calls, start=1):
        call()
        assert source.given == count


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, object])
def test_positions_follow_the_cumulative_weights(dtype):
    row = np.array([0, 1, 0, 2, 1, 0], dtype=dtype)
    at = [given(u).index(row) for u in (0.0, 0.25 - 2**-54, 0.25, 0.75 - 2**-53, 0.75, LARGEST)]
    assert at == [1, 1, 3, 3, 4, 4]


@pytest.mark.parametrize(
    "weights",
    [[1e308] * 4, [5e-324] * 4, [2**70] * 4, [F(1, 2**80)] * 4, np.full(4, 6e-8, np.float16), [mpq(1, 7)] * 4],
    ids=["huge", "subnormal", "long ints", "tiny rationals", "float16 subnormal", "mpq"],
)
def test_any_positive_sum_is_divided_evenly(weights):
    assert [given(u).index(weights) for u in (0.1, 0.3, 0.6, 0.9)] == [0, 1, 2, 3]


def test_a_position_of_positive_weight_even_at_the_edge():
    """0.1 + 0.2 + 0.7 times the largest u rounds to the whole sum; the zeros behind it are never drawn."""
    for row in ([0.1, 0.2, 0.7, 0.0], [0.3, 0.3, 0.0, 0.0], np.array([0.1] * 10 + [0.0], np.float32)):
        assert np.asarray(row)[given(LARGEST).index(row)] > 0
        assert np.asarray(row)[given(0.0).index([0, *row]) - 1] > 0


SAMPLES = 20_000
WEIGHTS = np.array([10, 4, 3, 2, 1])
LEVEL = 1e-6


def statistic(counts, law):
    return float(((counts - SAMPLES * law) ** 2 / (SAMPLES * law)).sum())


def test_draws_follow_the_weights_and_a_planted_fault_does_not():
    """Pearson's test at level 1e-6; a shift of 3 % from one token to another is seen with power above 0.999."""
    law = WEIGHTS / WEIGHTS.sum()
    bar = chi2.ppf(1 - LEVEL, len(law) - 1)
    faulty = law + np.array([-0.03, 0.03, 0, 0, 0])
    power = 1 - ncx2.cdf(bar, len(law) - 1, SAMPLES * float(((faulty - law) ** 2 / law).sum()))
    assert power > 0.999
    for weights, passes in ((WEIGHTS, True), (faulty, False)):
        chooser = SamplingChooser(np.random.default_rng(20))
        counts = np.bincount([chooser.index(weights) for _ in range(SAMPLES)], minlength=len(law))
        assert bool(statistic(counts, law) < bar) == passes


def test_coins_follow_their_probability_and_a_planted_fault_does_not():
    """The same for a coin of 3/10; the fault is one of 33/100."""
    law = np.array([0.7, 0.3])
    bar = chi2.ppf(1 - LEVEL, 1)
    faulty = np.array([0.67, 0.33])
    assert 1 - ncx2.cdf(bar, 1, SAMPLES * float(((faulty - law) ** 2 / law).sum())) > 0.999
    for probability, passes in ((F(3, 10), True), (F(33, 100), False)):
        chooser = SamplingChooser(np.random.default_rng(21))
        counts = np.bincount([chooser.accept(probability) for _ in range(SAMPLES)], minlength=2)
        assert bool(statistic(counts, law) < bar) == passes


def test_recorded_outcomes_come_again_whatever_the_order():
    first = RecordingChooser(SamplingChooser(np.random.default_rng(3)))
    asked = [("tail", 0, (), 0), ("tail", 0, (1,), 0), ("coin", 0, (), 1), ("emit", 0, (), 0)]
    draws = {at: first.accept(0.5, at) if at[0] == "coin" else first.index([1, 2, 3, 4], at) for at in asked}
    again = RecordingChooser(SamplingChooser(np.random.default_rng(99)), first.record)
    for at in reversed(asked):
        assert draws[at] == (again.accept(0.5, at) if at[0] == "coin" else again.index([1, 2, 3, 4], at))
    assert first.record == draws


def test_calls_without_an_address_go_to_the_source_and_are_not_recorded():
    chooser = RecordingChooser(given(0.1, 0.9))
    assert (chooser.index([1, 1]), chooser.index([1, 1])) == (0, 1)
    assert not chooser.record


def test_an_impossible_record_is_refused():
    chooser = RecordingChooser(given(), {"coin": True, "draw": 1, "far": 7})
    with pytest.raises(InvalidInput, match=r"record: got \{'coin': True\}, expected an outcome possible at probab"):
        chooser.accept(0, "coin")
    with pytest.raises(InvalidInput, match=r"record: got \{'draw': 1\}, expected a position of positive weight"):
        chooser.index([1, 0], "draw")
    with pytest.raises(InvalidInput, match=r"record: got \{'far': 7\}"):
        chooser.index([1, 1], "far")
    assert chooser.accept(F(1, 100), "coin")


@pytest.mark.parametrize("probability", [-1e-9, 1 + 2**-52, F(-1, 3), F(4, 3), float("nan"), 2])
def test_a_probability_outside_0_to_1_is_refused(probability):
    with pytest.raises(InvalidInput, match=r"^probability: got .*, expected a number in \[0, 1\]$"):
        given(0.5).accept(probability)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([], "a non-empty 1-D row of numbers"),
        ([[1, 2]], "a non-empty 1-D row of numbers"),
        ([[1], [1, 2]], "a non-empty 1-D row of numbers"),
        (3, "a non-empty 1-D row of numbers"),
        (["1"], "a non-empty 1-D row of numbers"),
        ([1, -1, 1], "finite non-negative numbers"),
        ([F(1), F(-1, 2)], "finite non-negative numbers"),
        ([1.0, float("nan")], "finite non-negative numbers"),
        ([1.0, float("inf")], "finite non-negative numbers"),
        ([0, 0], "a positive sum"),
    ],
)
def test_weights_that_are_no_weights_are_refused(weights, expected):
    with pytest.raises(InvalidInput, match=rf"^weights: got .*, expected {expected}$"):
        given(0.5).index(weights)
