"""The verdict on a function: rounding or a bias, the shortest wrong sequence, and the command's body."""

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import exact
from exact.cli import certify_torch
from exact.interception import certify_function
from rheo_core import InvalidInput

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
P = torch.tensor([0.5, 0.3, 0.2])
P64 = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
P_NUMPY = np.array([0.5, 0.3, 0.2], dtype=np.float32)


def sampled(p, bias=0.0):
    return torch.multinomial(p + bias * torch.tensor([1.0, -1.0, 0.0]), 1)


def test_float32_inputs_from_outside_are_rounding_and_not_a_bias():
    for function in (lambda: sampled(P), lambda: sampled(P / P.sum()), lambda: sampled(P.log().softmax(-1))):
        found = certify_function(function, target=lambda: sampled(P))
        assert found.verdict.startswith("lossless"), str(found)
    logits = torch.tensor([0.3, -0.2, 1.1])
    found = certify_function(
        lambda: torch.multinomial(logits.softmax(-1), 1),
        target=lambda: torch.multinomial(logits.double().softmax(-1), 1),
    )
    assert found.verdict == "lossless up to rounding"
    assert 0 < found.total_variation < Fraction(1, 10**7)
    assert (found.total_variation_float64 or 0) <= found.bound


@pytest.mark.parametrize("bias", [1e-3, 1e-6, 1e-9, 1e-12])
def test_a_bias_is_told_from_rounding_down_to_the_bound(bias):
    found = certify_function(sampled, P64, bias, target=P64)
    assert found.verdict == "lossy"
    assert abs(float(found.total_variation_float64 or 0) - bias) < 1e-15
    assert certify_function(sampled, P64, 1e-15, target=P64).verdict == "lossless up to rounding"
    assert found.bound == 64 * 1 * 3 * Fraction(1, 2**52)


def test_a_small_difference_from_a_rounded_row_is_undecided():
    right = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    assert certify_function(sampled, P, target=right).verdict == "lossless up to rounding"  # P is that row, rounded
    near = torch.stack([P[0], torch.nextafter(P[1], P[0]), P[2]])  # the planted fault: it is not
    found = certify_function(sampled, near, target=right)
    assert found.lossless is None
    assert found.verdict.startswith("undecided")
    logits = torch.tensor([0.3, -0.2, 1.1])
    found = certify_function(
        lambda: torch.multinomial(logits.softmax(-1), 1), target=logits.double().softmax(-1).float()
    )
    assert found.lossless is not False


def test_numpy_arrays_from_outside_are_widened():
    def pick(p):
        return int(np.searchsorted(np.cumsum(p), np.random.rand() * p.sum(), side="right"))

    for function in (lambda: pick(P_NUMPY), lambda: pick(P_NUMPY.astype(np.float32) / np.float32(1))):
        found = certify_function(function, target=lambda: pick(P_NUMPY.astype(np.float64)))
        assert found.lossless is True, str(found)
    assert certify_function(pick, P_NUMPY, target=P_NUMPY).lossless is True
    wrong = certify_function(lambda: pick(P_NUMPY[::-1]), target=lambda: pick(P_NUMPY))
    assert wrong.verdict == "lossy"


def test_targets_of_every_kind():
    law = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    for target in (law, [0.5, 0.5], torch.tensor([0.5, 0.5]), np.array([0.5, 0.5]), lambda: random.choice([0, 1])):
        found = certify_function(lambda: int(random.random() < 0.5), target=target)
        assert found.verdict == "lossless"
        assert found.total_variation == 0
    model = certify_function(
        lambda: [random.randrange(2) for _ in range(random.randint(1, 3))],
        target=lambda prefix: [0.5, 0.5],
        length=2,
        one_cycle=True,
    )
    assert model.verdict == "lossless"
    assert model.law == {(i, j): Fraction(1, 4) for i in (0, 1) for j in (0, 1)}
    with_model = exact.target_law(lambda prefix: [Fraction(1, 2)] * 2, 2)
    assert certify_function(lambda: (random.randrange(2), random.randrange(2)), target=with_model).lossless is True


def _ends(stops_at_rejected):
    """A chain over (0, 1, end, padding) that ends at an emitted end token, or also at a drafted one (the fault)."""
    p, q = (
        [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5), Fraction(0)],
        [Fraction(2, 5), Fraction(1, 5), Fraction(2, 5), Fraction(0)],
    )

    def text():
        emitted: list[int] = []
        while len(emitted) < 3 and 2 not in emitted:
            x = random.choices(range(4), weights=q)[0]
            if random.random() < min(Fraction(1), p[x] / q[x]):
                emitted.append(x)
                continue
            emitted.append(
                random.choices(range(4), weights=[max(Fraction(0), a - b) for a, b in zip(p, q, strict=True)])[0]
            )
            if stops_at_rejected and x == 2:
                break
        return tuple(emitted)

    return text, lambda prefix: [0, 0, 0, 1] if 2 in prefix else p


def test_a_text_that_ends_where_the_target_goes_on_is_undecided():
    right, target = _ends(False)
    assert certify_function(right, target=target, length=3).lossless is True
    stops, target = _ends(True)
    found = certify_function(stops, target=target, length=3)
    assert found.lossless is None
    assert "undecided: a text ends after (0,), where the target goes on" in found.verdict
    assert certify_function(stops, target=target, length=3, one_cycle=True).lossless is True  # what was said before


def test_the_shortest_wrong_sequence():
    def program():
        first = random.randrange(2)
        return first, int(random.random() < (0.75 if first else 0.5)), 0

    found = certify_function(program, target=lambda prefix: [0.5, 0.5] if len(prefix) < 2 else [1, 0], length=3)
    assert found.verdict == "lossy"
    told: tuple[Any, ...] = (found.sequence, found.got, found.due)
    assert told in [
        ((1, 1), Fraction(3, 8), Fraction(1, 4)),
        ((1, 0), Fraction(1, 8), Fraction(1, 4)),
    ]
    assert found.total_variation == Fraction(1, 8)
    assert "P(1, " in str(found)


def test_a_token_that_the_target_never_emits_is_lossy_however_rare():
    found = certify_function(lambda: 0 if random.random() < 1 - 2**-50 else 1, target=[1.0, 0.0])
    assert found.verdict == "lossy: it emits what the target never does"
    assert found.sequence == 1
    assert found.due == 0


def test_assert_lossless_for_ones_own_tests():
    exact.assert_lossless(sampled, P64, target=P64)
    with pytest.raises(AssertionError, match="lossy"):
        exact.assert_lossless(sampled, P64, 0.01, target=P64)


@pytest.mark.parametrize(
    ("function", "target", "length", "said"),
    [
        (lambda: 0, [0.5, 0.4], None, "sum to 1"),
        (lambda: 0, [1.5, -0.5], None, "non-negative"),
        (lambda: 0, [[0.5, 0.5]], None, "a row"),
        (lambda: 0, 3, None, "a row"),
        (lambda: (0, 1), [0.5, 0.5], None, "one token"),
        (lambda: "a", [0.5, 0.5], None, "token ids"),
        (lambda: (torch.tensor([[0, 1]]), 1), lambda prefix: [0.5, 0.5], 2, "the tokens alone"),
        (lambda: 0, [0.5, 0.5], 2, "a function of the prefix"),
        (lambda: 0, lambda prefix: [0.5, 0.5], 0, "at least 1"),
        (lambda: 0, {0: Fraction(1, 2)}, None, "sum"),
    ],
)
def test_bad_targets_raise(function, target, length, said):
    with pytest.raises(InvalidInput, match=said):
        certify_function(function, target=target, length=length)


SOURCE = """
import random
import torch

P = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
Q = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
target = P
unknown = None


def verify(residual=True):
    x = torch.multinomial(Q, 1)
    if torch.rand(1, dtype=torch.float64) < P[x] / Q[x]:
        return x
    return torch.multinomial((P - Q).clamp(min=0) if residual else P, 1)


def wrong():
    return verify(residual=False)


def coin():
    return random.random() <= 0


def needs(p):
    return p


def broken():
    return 1 // (random.random() < 0.5)
"""


def test_the_command_on_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    certificate, document = certify_torch.certify_file(f"{path}:verify")
    assert certify_torch.exit_code(certificate) == 0
    assert document["verdict"].startswith("lossless")
    json.dumps(document, default=str)
    certificate, document = certify_torch.certify_file(f"{path}:wrong")
    assert certify_torch.exit_code(certificate) == 1
    assert abs(document["total_variation"]["float"] - 0.1) < 1e-15
    assert "lossy" in certify_torch.report(certificate, document)
    certificate, document = certify_torch.certify_file(f"{path}:coin", target="unknown", coins="grid")
    assert certify_torch.exit_code(certificate) == 3
    assert "no verdict" in certify_torch.report(certificate, document)
    assert {key: mass for key, mass, _ in document["law"]}[True] == str(Fraction(1, 2**53))
    refused: list[tuple[str, str | None, str, str]] = [
        (f"{path}:needs", None, "ideal", "without `p`"),
        (f"{path}:P", None, "ideal", "a function"),
        ("nosuch:verify", None, "ideal", "No module named 'nosuch'"),
        (f"{path}:broken", None, "ideal", "ZeroDivisionError"),
        (f"{path}:verify", "none", "ideal", "a name that the file defines"),
        (f"{path}:verify", None, "real", "ideal"),
        (f"{tmp_path}/none.py:verify", None, "ideal", "existing"),
    ]
    for spec, target, coins, said in refused:
        with pytest.raises(InvalidInput, match=said):
            certify_torch.certify_file(spec, target=target, coins=coins)


def test_the_command_prints_and_saves(tmp_path, capsys):
    path, saved = tmp_path / "mine.py", tmp_path / "verdict.json"
    path.write_text(SOURCE)
    assert certify_torch.run(f"{path}:wrong", as_json=True, save=saved) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(saved.read_text())
    assert printed["lossless"] is False
    assert float(Fraction(printed["total_variation"]["exact"])) == printed["total_variation"]["float"]
    assert certify_torch.run(f"{path}:verify") == 0


def test_torch_imported_by_the_function_itself_is_refused():
    code = (
        "from exact.interception import torch_law\n"
        "def f():\n    import torch\n    return torch.rand(()).item() < 0.5\n"
        "try:\n    print(torch_law(f))\nexcept Exception as error:\n    print(type(error).__name__, error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Unsupported import of torch" in out.stdout


@pytest.mark.parametrize("bias", [1e-4, 1e-6])
def test_a_bias_in_float32_code_is_told_from_its_rounding(bias):
    found = certify_function(sampled, P, bias, target=P)
    assert found.verdict == "lossy"  # the row is the function's own input: nothing else lies between the two
    assert abs(float(found.total_variation_float64 or 0) - bias) < 1e-15
    assert certify_function(sampled, P, target=P).lossless is True


def test_code_that_does_not_run_in_float64_is_undecided():
    def program(p):
        if torch.get_default_dtype() == torch.float64:
            raise TypeError("float32 alone")
        return sampled(p / p.sum())

    found = certify_function(program, P, target=lambda p: sampled(p))
    assert found.lossless in (True, None)
    found = certify_function(program, P, target=[0.5, 0.25, 0.25])
    assert found.lossless is None
    assert "does not run in float64 (TypeError: float32 alone)" in found.verdict
    assert found.sequence is not None


def test_a_copied_coin_is_the_same_coin():
    def program():
        coin = random.random()
        return coin < 0.5, copy.deepcopy([coin])[0] < 0.5, copy.copy(coin) < 0.5

    assert exact.torch_law(program) == {(x, x, x): Fraction(1, 2) for x in (True, False)}
