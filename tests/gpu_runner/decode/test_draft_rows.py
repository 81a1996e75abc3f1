"""Rows, ranking and draws of the twin against rheo_core's and against slow oracles."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_runner.decode.draft_rows import DraftRows
from gpu_runner.decode.draws import Seeded, keyed_chooser
from gpu_runner.decode.laws import best, position, softmax
from gpu_runner.decode.processing import Processing
from montecarlo.keyed_random import TAIL, child_code, number_word, signed
from rheo_core import DraftRow, InvalidInput

WORDS = st.integers(0, 2**64 - 1)


@given(st.lists(st.lists(st.integers(0, 4), min_size=7, max_size=7), min_size=1, max_size=4), st.integers(1, 9))
def test_best_is_the_stable_order(rows, k):
    score = torch.tensor(rows, dtype=torch.float32)
    expected = [[i for _, i in sorted((-value, i) for i, value in enumerate(row))][:k] for row in rows]
    assert best(score, k).tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("support", [None, 1, 3, 6, 50])
@pytest.mark.parametrize("temperature", [0, 0.4, 1, 2.5])
def test_rows_from_logits_are_the_references(dtype, support, temperature):
    rng = np.random.default_rng(5)
    logits = rng.normal(scale=3, size=(20, 12)).astype(dtype)
    logits[3, 4:] = logits[3, 4]  # ties
    logits[5, 2:] = -np.inf  # masked tokens
    logits[6] = [90.0, *[0.0] * 11]  # the lead holds all mass that the type can show
    rows = DraftRows.logits(torch.from_numpy(logits), temperature, support)
    for m in range(5):
        tails = rows.tails(rows.best(8)[:, :m])
        for number, row in enumerate(logits):
            reference = DraftRow.logits(row, temperature, support)
            assert rows.best(8)[number].tolist() == reference.order[:8].tolist()
            assert np.allclose(rows.score[number].numpy(), reference.score, rtol=1e-5, atol=0)
            expected = reference.tail(reference.order[:m].tolist())
            if expected is None:
                assert tails is None or not tails.present[number]
            else:
                assert tails is not None
                assert tails.present[number]
                assert np.allclose(tails.row(number).dense(12)[0].numpy(), expected, rtol=1e-5, atol=0)


@given(state=st.integers(0, 2**64 - 1), code=st.integers(0, 2**64 - 1), i=st.integers(0, 2**20))
def test_ints_arrays_and_tensors_have_the_same_words(state, code, i):
    as_tensors = (torch.tensor([signed(state)]), TAIL, torch.tensor([signed(code)]), torch.tensor([i]))
    as_arrays = (np.array([state], np.uint64), TAIL, np.array([code], np.uint64), np.array([i], np.uint64))
    expected = number_word(state, TAIL, code, i)
    assert int(number_word(*as_tensors)[0]) % 2**64 == int(number_word(*as_arrays)[0]) == expected
    assert int(child_code(torch.tensor([signed(code)]), torch.tensor([i]))[0]) % 2**64 == child_code(code, i)


def test_position_is_the_inverse_distribution_function():
    weights = torch.tensor([[0.0, 1.0, 0.0, 3.0, 0.0]] * 5, dtype=torch.float64)
    u = torch.tensor([0.0, 0.2499, 0.25, 0.9999999, 1 - 2**-53], dtype=torch.float64)
    assert position(weights, u).tolist() == [1, 1, 3, 3, 3]
    assert position(torch.zeros(1, 3), torch.tensor([0.5], dtype=torch.float64)).tolist() == [0]


def test_seeded_coin_and_draw_are_the_keyed_choosers():
    for i in range(50):
        at = ("emit", i, (1, 2), 0)
        weights = np.random.default_rng(i).dirichlet(np.ones(6))
        assert Seeded(4).index(torch.from_numpy(weights), at) == keyed_chooser(4).index(weights, at)
        assert Seeded(4).accept(0.5, at) == keyed_chooser(4).accept(0.5, at)
    assert keyed_chooser(4, cycle=9).accept(0.5, ("coin", 0, (), 0)) == Seeded(4).accept(0.5, ("coin", 9, (), 0))


@pytest.mark.parametrize(
    "processing",
    [
        Processing(0.7),
        Processing(1.3, top_k=3),
        Processing(1, top_p=0.6),
        Processing(0.5, top_k=6, top_p=0.9),
        Processing(1, top_p=1e-9),
    ],
    ids=str,
)
def test_the_processed_law_is_transformers_own(processing):
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = torch.randn(50, 12, generator=torch.Generator().manual_seed(3)) * 3
    expected = TemperatureLogitsWarper(float(processing.temperature))(None, logits)
    if processing.top_k is not None:
        expected = TopKLogitsWarper(processing.top_k)(None, expected)
    if processing.top_p is not None:
        expected = TopPLogitsWarper(processing.top_p)(None, expected)
    assert torch.allclose(processing.law(logits), torch.softmax(expected, -1), atol=1e-6)


def test_softmax_at_temperature_0_takes_the_lowest_id():
    assert softmax(torch.tensor([[1.0, 2.0, 2.0]]), 0).tolist() == [[0.0, 1.0, 0.0]]


def test_refusals():
    for bad in ({"temperature": -1}, {"temperature": float("nan")}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            Processing(**bad)
    with pytest.raises(InvalidInput, match="support: got 0"):
        DraftRows.logits(torch.zeros(1, 3), support=0)
    with pytest.raises(InvalidInput, match="float32 or float64"):
        DraftRows.laws(torch.zeros(1, 3, dtype=torch.float16))
    for seed in (-1, 2**63, True, 0.5):
        with pytest.raises(InvalidInput, match="seed"):
            Seeded(seed)  # type: ignore[arg-type]
