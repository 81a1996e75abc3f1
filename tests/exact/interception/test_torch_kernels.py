"""Kernels whose coins are inputs: the check by cell edges, on plain functions and on a Triton kernel of our own."""

import importlib
import os
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from exact.interception import check_kernel
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact
P = np.array([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.25, 0.25, 0.5]], dtype=np.float32)
Q = np.array([[0.25, 0.625, 0.125], [0.625, 0.125, 0.25]], dtype=np.float32)
DRAFTED = np.array([1, 0], dtype=np.int32)
THRESHOLDS = np.array([P[i, x] / Q[i, x] for i, x in enumerate(DRAFTED)], dtype=np.float32)


def cumulated():
    """Float32 cumulative residuals of the two positions, and of the bonus row."""
    rows = [np.maximum(P[i] - Q[i], 0) for i in (0, 1)]
    return np.stack([np.cumsum(row / row.sum(), dtype=np.float32) for row in [*rows, P[2]]]).astype(np.float32)


CUMULATED = cumulated()


def reference(*coins):
    """The chain rejection rule on numbers that are only compared."""
    tokens = []
    for position, token in enumerate(DRAFTED.tolist()):
        if not coins[position] < float(THRESHOLDS[position]):
            break
        tokens.append(token)
    row = CUMULATED[len(tokens)].tolist()
    return (*tokens, sum(1 for edge in row[:-1] if coins[-1] >= edge))


def right_law():
    """The law by hand: products of interval lengths, in rationals."""
    a, b = (Fraction(float(t)) for t in THRESHOLDS)
    law: dict[Any, Any] = {}
    for tokens, reach in (((), 1 - a), ((1,), a * (1 - b)), ((1, 0), a * b)):
        edges: list[Fraction] = [Fraction(float(edge)) for edge in CUMULATED[len(tokens)][:-1]]
        for token, (low, high) in enumerate(zip([Fraction(0), *edges], [*edges, Fraction(1)], strict=True)):
            if high > low:
                law[*tokens, token] = reach * (high - low)
    return law


def python_kernel(fault=None):
    """The same in NumPy, vectorised in its own way, with planted faults."""

    def kernel(coins):
        compare = np.less_equal if fault == "<=" else np.less
        first = compare(coins[:, 0], THRESHOLDS[0])
        accepted = first * (1 + compare(coins[:, 1], THRESHOLDS[1]))
        if fault == "off by one ulp":
            accepted = (coins[:, 0] < np.nextafter(THRESHOLDS[0], np.float32(0))) * (1 + (coins[:, 1] < THRESHOLDS[1]))
        rows = CUMULATED[np.zeros_like(accepted) if fault == "wrong row" else accepted]
        token = (coins[:, 2:] >= rows[:, :-1]).sum(1)
        return [(*DRAFTED[:n].tolist(), int(t)) for n, t in zip(accepted, token, strict=True)]

    return kernel


def test_the_edges_and_the_law_follow_from_the_reference():
    found = check_kernel(python_kernel(), reference, 3)
    assert found.agrees, str(found)
    assert found.edges[0] == (Fraction(float(THRESHOLDS[0])),)
    assert found.edges[1] == (Fraction(float(THRESHOLDS[1])),)
    assert {Fraction(float(edge)) for edge in CUMULATED[:, :-1].flatten() if 0 < edge < 1} == set(found.edges[2])
    assert found.law == found.reference_law == right_law()
    assert "agrees" in str(found)


@pytest.mark.parametrize("fault", ["<=", "wrong row", "off by one ulp"])
def test_faults_of_one_float_are_found(fault):
    found = check_kernel(python_kernel(fault), reference, 3)
    assert not found.agrees
    assert found.mismatches
    assert found.verdict == ("differs" if fault == "wrong row" else "agrees up to rounding"), str(found)
    assert (found.total_variation <= found.bound) is (fault != "wrong row")
    assert found.verdict in str(found).replace("with the reference ", "")
    coins = np.array([each.coins for each in found.mismatches], dtype=np.float32)
    if fault in ("<=", "off by one ulp"):  # only at the edge itself, or just below it
        assert set(coins[:, 0]) & {THRESHOLDS[0], np.nextafter(THRESHOLDS[0], np.float32(0))} or fault == "<="
        assert found.law == found.reference_law  # the middles of the cells do not see it: the law is off by an ulp
    else:
        assert found.law != found.reference_law


def test_double_coins_and_monotone_maps():
    found = check_kernel(
        lambda coins: (1 - coins[:, 0] < 0.25).astype(int), lambda u: int(1 - u < 0.25), 1, dtype="float64"
    )
    assert found.agrees
    assert found.edges == ((Fraction(3, 4),),)
    assert found.law == {1: Fraction(1, 4), 0: Fraction(3, 4)}


def test_bad_input():
    with pytest.raises(InvalidInput, match="coins"):
        check_kernel(python_kernel(), reference, 0)
    with pytest.raises(InvalidInput, match="dtype"):
        check_kernel(python_kernel(), reference, 3, dtype="int8")
    with pytest.raises(InvalidInput, match="combinations"):
        check_kernel(python_kernel(), reference, 3, most=10)
    with pytest.raises(InvalidInput, match="one for each row"):
        check_kernel(lambda coins: [0], reference, 3)


def chain_module(monkeypatch, interpreted):
    pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    pytest.importorskip("triton", reason="triton is not installed (no wheel for this platform)")
    if interpreted:
        monkeypatch.setitem(os.environ, "TRITON_INTERPRET", "1")
    else:
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    return importlib.reload(importlib.import_module("tests.exact.interception.triton_chain"))


def triton_kernel(module, fault, device="cpu"):
    return lambda coins: module.run(coins, THRESHOLDS, CUMULATED, DRAFTED, fault=fault, device=device)


@pytest.mark.parametrize("fault", [0, 1, 2, 3])
def test_the_triton_kernel_in_the_interpreter(monkeypatch, fault):
    module = chain_module(monkeypatch, interpreted=True)
    found = check_kernel(triton_kernel(module, fault), reference, 3)
    assert found.agrees is (fault == 0), str(found)
    if fault == 0:
        assert found.law == right_law()
    elif fault != module.LESS_OR_EQUAL:
        assert found.law != found.reference_law


@pytest.mark.gpu
@pytest.mark.parametrize("fault", [0, 1, 2, 3])
def test_the_triton_kernel_on_a_gpu(monkeypatch, fault):
    module = chain_module(monkeypatch, interpreted=False)
    found = check_kernel(triton_kernel(module, fault, device="cuda"), reference, 3)
    assert found.agrees is (fault == 0), str(found)


def test_right_kernels_in_float32_agree_up_to_rounding_and_wrong_ones_differ():
    def check(p, q, shift=0.0):
        kernel = lambda u: (u[:, 0] * q < p * np.float32(1 + shift)).astype(int)  # noqa: E731
        return check_kernel(kernel, lambda u: int(u * float(q) < float(p)), 1)

    pairs = [(np.float32(a / 11), np.float32(b / 11)) for a in range(1, 10) for b in range(a + 1, 11)]
    found = [check(p, q) for p, q in pairs]
    assert {each.verdict for each in found} == {"agrees", "agrees up to rounding"}
    assert all(each.total_variation < Fraction(1, 10**6) for each in found)
    assert all(each.law == each.reference_law for each in found)
    assert {check(p, q, 1e-3).verdict for p, q in pairs} == {"differs"}  # the planted faults
    assert {check(p, q, 1e-4).verdict for p, q in pairs if p / q > 0.2} == {"differs"}


def test_a_token_that_the_reference_never_emits_is_no_rounding():
    found = check_kernel(lambda u: (u[:, 0] <= 0).astype(int), lambda u: int(u < 0.5) * 0, 1)
    assert found.verdict == "differs"
    assert found.total_variation < found.bound  # one coin in 2^24, but the reference never gives it
