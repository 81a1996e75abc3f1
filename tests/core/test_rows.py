"""Draft rows and pairs: score law and sampling law, temperature, support, id maps, what is read and what is refused."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from exact.verdict.transcript import plain_row
from rheo_core import DraftRow, InvalidInput, ModelPair, TreeShape, laws, methods, speculate
from tests.exact.laws import replayed_law
from tests.pairs import alike, both, rational, rows

HALVES: Any = 2.5


def tail_of(row: DraftRow, lead: Any) -> Any:
    return row.tail(lead)


@given(st.integers(1, 6).flatmap(rows))
def test_order_is_by_falling_score_then_lower_id(row):
    order = DraftRow.law(row).order.tolist()
    assert order == sorted(range(len(row)), key=lambda token: (-row[token], token))


def test_a_plain_law_stands_for_both():
    row = DraftRow.law(rational(5, 3, 2))
    assert row.score.tolist() == [F(1, 2), F(3, 10), F(1, 5)]
    assert tail_of(row, [0]).tolist() == [0, F(3, 5), F(2, 5)]
    assert tail_of(row, []).tolist() == row.score.tolist()
    assert tail_of(row, [2, 1, 0]) is None


def test_score_law_ranks_and_sampling_law_is_drawn_from():
    row = DraftRow.pair(rational(5, 3, 2), rational(0, 1, 3))
    assert row.order.tolist() == [0, 1, 2]
    assert tail_of(row, row.order[:1]).tolist() == [0, F(1, 4), F(3, 4)]
    assert tail_of(row, np.array([1])).tolist() == [0, 0, 1]


def test_the_sampled_slot_is_absent_iff_the_sampling_law_has_no_mass_off_the_lead():
    """A score law with mass there does not help; the pool is then the plain top-min(K, V)."""
    row = DraftRow.pair(rational(5, 3, 2), [1, 0, 0])
    assert tail_of(row, [0]) is None
    assert tail_of(row, []).tolist() == [1, 0, 0]
    target = alike(rational(1, 1, 1))
    found = replayed_law("rheo", target, alike(row), TreeShape(2, 1, 2))
    assert found == replayed_law("top-k", target, alike(row), TreeShape(2, 1, 2))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logits_score_at_temperature_1_and_sample_at_theirs(dtype):
    x = np.array([2.0, 0.0, 1.0, -1.0], dtype=dtype)
    row = DraftRow.logits(x, temperature=0.5, support=3)
    assert row.score.tolist() == laws.softmax(x).tolist()
    tail = tail_of(row, [0])
    assert tail.tolist() == [0, *laws.softmax(x[[1, 2]], 0.5).tolist(), 0]  # token 3 is not supported
    assert tail.dtype == dtype


def test_the_tail_of_logits_is_a_softmax_of_its_own():
    """Restricting the full softmax would underflow here and lose the sampled slot."""
    row = DraftRow.logits([1000.0, 1.0, 0.0])
    assert row.score.tolist() == [1, 0, 0]
    assert tail_of(row, [0]).tolist() == [0, *laws.softmax([1.0, 0.0]).tolist()]


@pytest.mark.parametrize("support", [1, 2, 3, None])
def test_the_slot_is_absent_iff_no_supported_token_lies_off_the_lead(support):
    row = DraftRow.logits([3.0, 2.0, 1.0, -np.inf], support=support)
    for m in range(4):
        assert (tail_of(row, row.order[:m]) is None) == (m >= min(support or 3, 3))  # -inf is never supported


def test_temperature_0_puts_the_tail_on_the_next_token():
    """Also where scores round to a tie: in float16 these two do, and x_2 is the one of lower id."""
    assert tail_of(DraftRow.logits([0.0, 2.0, 1.0], temperature=0), [1]).tolist() == [0, 0, 1]
    tied = DraftRow.logits(np.array([10, 0.001, 0.002], np.float16), temperature=0)
    assert tied.score[1] == tied.score[2]
    assert tail_of(tied, tied.order[:1]).tolist() == [0, 1, 0]
    for m in range(3):
        assert tail_of(tied, tied.order[:m])[tied.order[m]] == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: DraftRow.pair(rational(1, 1), rational(1, 1, 1)),
            "sampling: got 3 entries, expected 2, as in score",
        ),
        (
            lambda: DraftRow.pair([0.5, 0.5], rational(1, 1)),
            "sampling: got dtype('O'), expected the arithmetic of score, float64",
        ),
        (lambda: DraftRow.pair([0.5, 0.4], [0.5, 0.5]), "score: got [0.5, 0.4], expected a law: its sum is 0.9, not 1"),
        (lambda: DraftRow.logits([1.0], support=0), "support: got 0, expected an int of at least 1"),
        (lambda: DraftRow.logits([1.0], support=HALVES), "support: got 2.5, expected an int of at least 1"),
        (lambda: DraftRow.logits([1.0], temperature=-1), "temperature: got -1, expected a finite number of at least 0"),
    ],
)
def test_draft_rows_that_cannot_be_used(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_rows_are_checked_once_and_kept():
    asked = []

    def model(prefix):
        asked.append(prefix)
        return [0.5, 0.5]

    pair = ModelPair(model, model)
    for _ in range(3):
        pair.p((1,))
        pair.q((1,))
    assert asked == [(1,), (1,)]
    assert list(pair.target_rows) == [(1,)]
    assert list(pair.draft_rows) == [(1,)]


@pytest.mark.parametrize("m", range(4))
def test_a_recorded_row_has_the_same_order_and_tail(m):
    """What a counterexample keeps of a row must draft the same trees."""
    for row in (
        DraftRow.law(rational(2, 3, 2)),
        DraftRow.pair(rational(2, 3, 2), rational(1, 0, 4)),
        DraftRow.pair(rational(2, 3, 2), [0, 1, 0]),
        DraftRow.logits([1.0, 3.0, 2.0], temperature=0.5, support=2),
    ):
        kept = plain_row(row, m)
        again = DraftRow.pair(*kept) if isinstance(kept[0], tuple) else DraftRow.law(kept)
        assert again.order.tolist() == row.order.tolist()
        one, other = tail_of(row, row.order[:m]), tail_of(again, row.order[:m])
        assert (one is None) == (other is None)
        assert one is None or np.allclose(one.astype(float), other.astype(float), rtol=1e-15)


def test_a_map_takes_draft_ids_to_target_ids():
    """F1's pair by the right map: draft ids 0, 1, 2 are target ids 0, 2, 5."""
    p, q = rational(2, 1, 4, 1, 1, 1), rational(5, 3, 2)
    found = replayed_law(methods["rheo"], alike(p), alike(q), TreeShape(2, 1, 2), ids=[0, 2, 5])
    law_of_one = {token: sum(mass for tokens, mass in found.items() if tokens[0] == token) for token in range(6)}
    assert list(law_of_one.values()) == p
    assert {tokens[0] for tokens in found if len(tokens) == 2} == {0, 2, 5}
    assert ModelPair(alike(p), alike(q), [0, 2, 5]).in_target_ids(DraftRow.law(q).score, 6).tolist() == [
        F(1, 2), 0, F(3, 10), 0, 0, F(1, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "ids", [np.array([2, 0, 1]), (2, 0, 1), [np.int64(2), 0, mpz(1)]], ids=["array", "tuple", "mix"]
)
def test_any_sequence_of_whole_numbers_is_a_map(ids):
    p, q = rational(1, 2, 3), rational(5, 3, 2)
    assert replayed_law("rheo", alike(p), alike(q), TreeShape(3, 1, 2), ids=ids) == replayed_law(
        "rheo", alike(p), alike([q[1], q[2], q[0]]), TreeShape(3, 1, 2)
    )


@pytest.mark.parametrize(
    "prefix", [[1, 0], (1, 0), np.array([1, 0]), [np.int32(1), mpz(0)], iter([1, 0])], ids=lambda p: type(p).__name__
)
def test_a_prefix_is_any_sequence_of_whole_numbers(prefix):
    seen = []

    def target(context):
        seen.append(context)
        return [0.5, 0.5]

    class Coins:
        def accept(self, probability, at=None):
            return False

        def index(self, weights, at=None):
            return int(np.flatnonzero(weights)[0])

    speculate(target, target, prefix, "rheo", TreeShape(1, 1, 1), Coins())
    assert seen[0] == (1, 0)
    assert all(type(token) is int for context in seen for token in context)


def test_rows_may_be_lists_tuples_arrays_or_anything_numpy_reads():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.array([0.5, 0.25, 0.25], dtype=np.float32)

    expected = replayed_law("rheo", *both(np.array([0.5, 0.25, 0.25], np.float32)), TreeShape(2, 1, 2))
    assert replayed_law("rheo", *both(Tensor()), TreeShape(2, 1, 2)) == expected
    for row in ([F(1, 2), F(1, 4), F(1, 4)], (F(1, 2), F(1, 4), F(1, 4))):
        assert replayed_law("rheo", alike(row), alike(tuple(row)), TreeShape(2, 1, 2)) == expected
