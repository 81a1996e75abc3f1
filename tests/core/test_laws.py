"""Rows: what is a law, how sums are taken, softmax at every temperature, residuals and tails."""

from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpq, mpz
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rheo_core import InvalidInput, checks, laws
from tests.pairs import rational, rows

FLOATS = (np.float16, np.float32, np.float64)


def oracle_total(values):
    """Left to right in Python floats (binary64), one rounding at the end."""
    running = 0.0
    for value in values.tolist():
        running += value
    return values.dtype.type(running)


@pytest.mark.parametrize("dtype", FLOATS)
@given(st.data())
def test_total_is_float64_from_left_to_right_rounded_once(dtype, data):
    entries = st.floats(0, 1, width=np.dtype(dtype).itemsize * 8)
    values = data.draw(arrays(dtype, st.integers(0, 300), elements=entries))
    found = laws.total(values)
    assert type(found) is dtype
    assert found == oracle_total(values)


def test_total_is_not_numpys_pairwise_sum():
    """The order is part of the contract: pairwise summation differs on this row."""
    values = np.array([1.0] + [2.0**-53] * 1000)
    assert laws.total(values) == oracle_total(values) == 1
    assert values.sum() > 1


def test_total_of_rationals_is_exact_in_any_mixture():
    row = np.empty(4, dtype=object)
    row[:] = [F(1, 3), mpq(1, 6), 1, mpz(2)]
    assert laws.total(row) == F(7, 2)
    assert laws.total(np.array([], dtype=object)) == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_float_row_is_a_law_within_v_eps_of_1_by_its_exact_sum(dtype):
    eps = float(np.finfo(dtype).eps)
    row = np.array([0.5, 0.25, 0.25, 0], dtype=dtype)
    within, beyond = row.copy(), row.copy()
    within[0] += dtype(4 * eps)  # 4 entries: the border itself
    beyond[0] += dtype(4.5 * eps)
    assert checks.check_law(within, "q").dtype == dtype
    with pytest.raises(InvalidInput, match=rf"^q: got .*a law: its sum is .*, not 1 within .*{within.dtype}, 4"):
        checks.check_law(beyond, "q")


def test_the_border_is_judged_on_the_exact_sum():
    """A float sum of these entries rounds to the border; the exact one lies beyond it."""
    eps = 2.0**-52
    row = np.array([1 + 3 * eps, 2.0**-80, 0.0])
    assert float(row.sum()) - 1 == 3 * eps
    with pytest.raises(InvalidInput, match="a law: its sum is"):
        checks.check_law(row, "q")
    row[1] = 0
    assert checks.check_law(row, "q") is not row


@pytest.mark.parametrize(
    "row",
    [
        [F(1, 3), F(2, 3)],
        (F(1, 3), F(2, 3)),
        [mpq(1, 3), F(2, 3)],
        [mpq(1, 3), mpq(2, 3), mpz(0), 0],
        [1, 0],
        np.array([0, 1]),
        np.array([1, 0], dtype=np.uint8),
        [mpz(1)],
    ],
    ids=repr,
)
def test_rationals_and_ints_become_exact_rows(row):
    law = checks.check_law(row, "q")
    assert law.dtype == object
    assert sum(law.tolist()) == 1
    assert (law / 3).tolist()[0] * 3 == law[0]  # no float division of ints


def test_a_checked_row_is_a_read_only_copy():
    given_row = np.array([0.5, 0.5])
    law = checks.check_law(given_row, "q")
    given_row[0] = 7
    assert law.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        law[0] = 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([], "q: got [], expected at least one entry"),
        ([[0.5, 0.5]], "q: got [[0.5, 0.5]], expected a 1-D row, not shape (1, 2)"),
        (1.0, "q: got 1.0, expected a 1-D row, not shape ()"),
        (None, "q: got None, expected a 1-D row, not shape ()"),
        ([[1.0], [0.5, 0.5]], "q: got [[1.0], [0.5, 0.5]], expected a 1-D row of numbers"),
        (["a"], "q: got ['a'], expected float64, float32, float16 or rationals, not <U1"),
        ([1 + 0j], "q: got [(1+0j)], expected float64, float32, float16 or rationals, not complex128"),
        ([True, False], "q: got [True, False], expected float64, float32, float16 or rationals, not bool"),
        ([F(1, 2), 0.5], "q[1]: got 0.5, expected an int or a rational: object rows hold nothing else"),
        ([F(1), False], "q[1]: got False, expected an int or a rational: object rows hold nothing else"),
        ([Decimal(1)], "q[0]: got Decimal('1'), expected an int or a rational: object rows hold nothing else"),
        ([float("inf"), 0.0], "q: got [inf, 0.0], expected finite entries"),
        ([0.5, float("nan")], "q[1]: got nan, expected a non-negative number"),
        ([F(3, 2), F(-1, 2)], "q[1]: got Fraction(-1, 2), expected a non-negative number"),
        ([2, 0], "q: got [Fraction(2, 1), Fraction(0, 1)], expected a law: its sum is 2, not exactly 1"),
    ],
)
def test_what_is_no_law_is_refused_in_one_line(row, message):
    with pytest.raises(InvalidInput) as caught:
        checks.check_law(row, "q")
    assert str(caught.value) == message


def test_residual_and_without_are_none_where_nothing_is_left():
    residual: Any = laws.residual
    without: Any = laws.without
    p, q = checks.check_law([F(1, 3), F(2, 3)], "p"), checks.check_law([F(1, 2), F(1, 2)], "q")
    assert residual(p, p) is None
    assert residual(p, q).tolist() == [0, 1]
    assert without(p, [0]).tolist() == [0, 1]
    assert without(p, [0, 1]) is None
    assert without(p, []).tolist() == p.tolist()
    assert without(checks.check_law([1, 0], "p"), [0]) is None


@given(st.integers(1, 6).flatmap(lambda size: st.tuples(rows(size), rows(size))), st.integers(0, 6))
def test_the_law_functions_against_their_definitions(pair, m):
    p, q = (checks.check_law(row, "row") for row in pair)
    positive = [max(F(0), x - y) for x, y in zip(p, q, strict=True)]
    r = laws.residual(p, q)
    assert (None if r is None else r.tolist()) == ([x / sum(positive) for x in positive] if sum(positive) else None)
    lead = sorted(range(len(q)), key=lambda token: (-q[token], token))[:m]
    z = sum(q[token] for token in range(len(q)) if token not in lead)
    if z:
        expected = [F(0) if token in lead else q[token] / z for token in range(len(q))]
        assert laws.tail_law(q, lead).tolist() == expected
        return
    with pytest.raises(InvalidInput, match="a draft law with mass outside the lead"):
        laws.tail_law(q, lead)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("temperature", [0, 0.25, 1, 2, F(1, 2), np.float32(0.5)])
def test_softmax_against_the_definition(dtype, temperature):
    logits = np.array([2.0, -1.0, 0.5, -np.inf, 2.0], dtype=dtype)
    law = checks.check_law(laws.softmax(logits, temperature), "softmax")
    assert law.dtype == dtype
    if temperature == 0:
        assert law.tolist() == [1, 0, 0, 0, 0]  # ties to the lowest id
        return
    weights = np.exp(logits.astype(np.float64) / float(temperature))
    assert law.astype(np.float64) == pytest.approx(weights / weights.sum(), abs=4 * float(np.finfo(dtype).eps))
    assert law[3] == 0


def test_softmax_takes_ints_as_float64_and_any_finite_size():
    assert laws.softmax([0, 0]).tolist() == [0.5, 0.5]
    assert laws.softmax([1e308, -1e308, 0]).tolist() == [1, 0, 0]
    assert laws.softmax(np.array([6e4, -6e4], np.float16)).tolist() == [1, 0]
    assert laws.softmax([0.0, -1.0], 1e-300).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("logits", "temperature", "message"),
    [
        ([1.0, float("nan")], 1, "logits: got [1.0, nan], expected finite logits (-inf for a masked token, "),
        ([1.0, float("inf")], 1, "logits: got [1.0, inf], expected finite logits"),
        ([-float("inf")], 1, "logits: got [-inf], expected finite logits (-inf for a masked token, but not for all)"),
        ([], 1, "logits: got [], expected a non-empty 1-D row of floats"),
        ([[1.0], [1.0, 2.0]], 1, "logits: got [[1.0], [1.0, 2.0]], expected a non-empty 1-D row of floats"),
        ([F(1, 2)], 1, "logits: got [Fraction(1, 2)], expected a non-empty 1-D row of floats"),
        ([1.0], -1, "temperature: got -1, expected a finite number of at least 0"),
        ([1.0], float("nan"), "temperature: got nan, expected a finite number of at least 0"),
        ([1.0], float("inf"), "temperature: got inf, expected a finite number of at least 0"),
        ([1.0], "hot", "temperature: got hot, expected a finite number of at least 0"),
        ([1.0], None, "temperature: got None, expected a finite number of at least 0"),
        ([1.0], True, "temperature: got True, expected a finite number of at least 0"),
        (
            np.array([1, 2], np.float32),
            1e-50,
            "temperature: got 1e-50, expected 0 or a number within the range of float32",
        ),
        (
            np.array([1, -np.inf], np.float32),
            1e50,
            "temperature: got 1e+50, expected 0 or a number within the range of float32",
        ),
    ],
)
def test_logits_and_temperatures_that_cannot_be_used(logits, temperature, message):
    with pytest.raises(InvalidInput) as caught:
        laws.softmax(logits, temperature)
    assert str(caught.value).startswith(message)


def test_a_top_p_law_left_unnormalised_is_refused_and_not_repaired():
    """E3."""
    for row in ([F(1, 2), F(3, 10), F(0)], [0.5, 0.3, 0.0]):
        with pytest.raises(InvalidInput, match="a law: its sum is"):
            checks.check_law(row, "target(())")


def test_error_messages_stay_on_one_line_and_short():
    message = str(InvalidInput("p", np.arange(1000.0), "a law"))
    assert "\n" not in message
    assert len(message) < 200
    assert rational(1, 1) == [F(1, 2), F(1, 2)]
