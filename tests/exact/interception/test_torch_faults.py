"""Faults of public speculative decoders, in torch: each refuted with its exact law, and false alarms cleared."""

from fractions import Fraction
from typing import Any

import pytest

from exact.interception import Interception, certify_function, torch_law
from rheo_core import InvalidInput

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytestmark = pytest.mark.exact
F64 = torch.float64
W_P, W_Q = torch.tensor([0.5, 0.3, 0.2], dtype=F64), torch.tensor([0.7, 0.2, 0.1], dtype=F64)


def row(*values):
    return torch.tensor(values, dtype=F64)


def draw(weights):
    return int(torch.multinomial(weights, 1))


def normalised(weights):
    return weights / weights.sum()


def residual(p, q):
    return (p - q).clamp(min=0)


def chain(p, q, proposal=None, ratio_q=None, rest=residual, accept=torch.lt):
    """One drafted token, verified: each fault is one argument that is not as it should be."""
    x = draw(q if proposal is None else proposal)
    ratio = p[x] / (q if ratio_q is None else ratio_q)[x]
    if accept(torch.rand((), dtype=p.dtype), ratio):
        return x
    return draw(rest(p, q) if rest is not only_entry else only_entry(p, x))


def only_entry(p, x):
    left = p.clone()
    left[x] = 0
    return left


def law_of(function, *args, size=3, **kwargs):
    law = torch_law(function, *args, **kwargs)
    return [law.get(token, Fraction(0)) for token in range(size)]


def close(law, expected, tolerance=1e-15):
    return all(abs(float(got) - float(Fraction(due))) <= tolerance for got, due in zip(law, expected, strict=True))


def certified(function, target, **kwargs):
    return certify_function(function, target=target, **kwargs)


def test_the_right_rule_is_lossless_in_float64_and_up_to_rounding_in_float32():
    assert close(law_of(chain, W_P, W_Q), ["1/2", "3/10", "1/5"])
    for kind in (torch.float64, torch.float32):
        p, q = W_P.to(kind), W_Q.to(kind)
        assert certified(lambda p=p, q=q: chain(p, q), p).lossless is True
    dyadic_p, dyadic_q = row(0.5, 0.25, 0.25), row(0.25, 0.75, 0.0)
    exact = certified(lambda: chain(dyadic_p, dyadic_q, rest=lambda p, q: normalised(residual(p, q))), dyadic_p)
    assert exact.lossless is True


@pytest.mark.parametrize(
    ("fault", "expected", "variation"),
    [
        ("A1 drafted by argmax, ratio with the soft q", ["5/7", "1/7", "1/7"], "3/14"),
        ("B1 residual through softmax", [".562299", ".268851", ".168851"], ".062299"),
        ("B2 resample from p", ["3/5", "13/50", "7/50"], "1/10"),
        ("B3 only the rejected entry zeroed", ["1/2", "8/25", "9/50"], "1/50"),
        ("D3 the coin is always 0", ["7/10", "1/5", "1/10"], "1/5"),
        ("C9 the first token committed unverified", ["1", "0", "0"], "1/2"),
        ("C11 typical acceptance", ["7/10", "1/5", "1/10"], "1/5"),
        ("the coin of the rejection again for the residual draw", ["1/2", "1/5", "3/10"], "1/10"),
    ],
)
def test_faults_of_one_candidate(fault, expected, variation):
    def program():
        match fault[:2]:
            case "A1":
                return chain(W_P, W_Q, proposal=torch.nn.functional.one_hot(W_Q.argmax(), 3).double())
            case "B1":
                return chain(W_P, W_Q, rest=lambda p, q: residual(p, q).softmax(-1))
            case "B2":
                return chain(W_P, W_Q, rest=lambda p, q: p)
            case "B3":
                return chain(W_P, W_Q, rest=only_entry)
            case "D3":
                return chain(W_P, W_Q, accept=lambda coin, ratio: coin * 0 < ratio)
            case "C9":
                return int(W_Q.argmax())
        x = draw(W_Q)
        if fault.startswith("C11"):
            entropy = -(W_P * W_P.log()).sum()
            return x if W_P[x] > torch.minimum(row(0.09)[0], 0.3 * torch.exp(-entropy)) else draw(W_P)
        coin = torch.rand((), dtype=F64)
        if coin < W_P[x] / W_Q[x]:
            return x
        return int(torch.searchsorted(normalised(residual(W_P, W_Q)).cumsum(0), coin.reshape(1), right=True))

    tolerance = 1e-6 if fault.startswith("B1") else 1e-15
    assert close(law_of(program), expected, tolerance)
    found = certified(program, W_P)
    assert found.lossless is False
    assert abs(float(found.total_variation) - float(Fraction(variation))) < 1e-6
    assert found.total_variation_float64 > found.bound


def test_b3_of_four_tokens():
    p, q = row(0.1, 0.4, 0.3, 0.2), row(0.4, 0.1, 0.3, 0.2)
    assert close(law_of(lambda: chain(p, q, rest=only_entry), size=4), ["1/10", "7/30", "2/5", "4/15"])


def test_a2_drawn_from_the_top_k_law_tested_with_the_raw_q():
    p, q = row(0.5, 0.3, 0.2, 0), row(0.4, 0.3, 0.2, 0.1)
    values, ids = q.topk(2)
    processed = normalised(torch.zeros_like(q).scatter(0, ids, values))
    assert close(law_of(lambda: chain(p, q, proposal=processed), size=4), ["4/7", "3/7", 0, 0])
    assert close(law_of(lambda: chain(p, processed, proposal=processed), size=4), ["1/2", "3/10", "1/5", 0])


def test_a4_a_token_dropped_for_its_own_probability():
    def program():
        x = draw(W_P)
        return draw(W_P) if W_P[x] < 0.25 else x

    assert close(law_of(program), ["3/5", "9/25", "1/25"])


def test_a5_and_c5_false_alarms_of_point_masses():
    accepted = []

    def program():
        x = draw(W_Q)
        accepted.append(bool(torch.rand((), dtype=F64) < W_P[x]))
        return (x, True) if accepted[-1] else (draw(only_entry(W_P, x)), False)

    law: dict[Any, Fraction] = dict(torch_law(program))
    assert abs(sum(float(mass) for (_, taken), mass in law.items() if taken) - 0.43) < 1e-15
    assert close([law[x, True] + law[x, False] for x in range(3)], ["1/2", "3/10", "1/5"])
    p = row(0.51, 0.49)
    c5 = certified(lambda: 0 if torch.rand((), dtype=F64) < p[0] else draw(only_entry(p, 0)), p)
    assert c5.lossless is True


C1_P, C1_Q = row(0.2, 0.4, 0.4), row(0.5, 0.3, 0.2)


def several(drawn_with, verified_with):
    """C1: two candidates, each drawn and verified with or without replacement."""
    candidates = torch.multinomial(C1_Q, 2, replacement=drawn_with).tolist()
    p, q = C1_P, C1_Q
    for x in candidates:
        if q[x] > 0 and torch.rand((), dtype=F64) < p[x] / q[x]:
            return x
        if q[x] > 0 or verified_with:
            p = normalised(residual(p, q))
        if not verified_with:
            q = normalised(only_entry(q, x))
    return draw(p)


@pytest.mark.parametrize(
    ("drawn_with", "verified_with", "expected"),
    [
        (False, False, ["1/5", "2/5", "2/5"]),
        (True, True, ["1/5", "2/5", "2/5"]),
        (False, True, ["1/5", "12/25", "8/25"]),
    ],
)
def test_c1_with_and_without_replacement(drawn_with, verified_with, expected):
    assert close(law_of(several, drawn_with, verified_with), expected)
    lossless = drawn_with == verified_with
    assert certified(several, C1_P, drawn_with=drawn_with, verified_with=verified_with).lossless is lossless


def test_c1_drawn_with_verified_without_replacement():
    def program():
        x, y = torch.multinomial(C1_Q, 2, replacement=True).tolist()
        if torch.rand((), dtype=F64) < C1_P[x] / C1_Q[x]:
            return x
        p, q = normalised(residual(C1_P, C1_Q)), normalised(only_entry(C1_Q, x))
        if q[y] > 0 and torch.rand((), dtype=F64) < p[y] / q[y]:
            return y
        return draw(residual(p, q))

    assert close(law_of(program), ["1/5", "7/20", "9/20"])
    assert certified(program, C1_P).lossless is False


def test_c3_one_coin_reused_over_the_renormalised_siblings():
    def program(one_coin):
        left, coin = W_P, torch.rand((), dtype=F64)
        for x in (0, 1):
            if coin < left[x]:
                return x
            left = normalised(only_entry(left, x))
            coin = coin if one_coin else torch.rand((), dtype=F64)
        return draw(left)

    assert close(law_of(program, True), ["1/2", "1/10", "2/5"])
    assert close(law_of(program, False), ["1/2", "3/10", "1/5"])


def test_c7_the_target_row_of_another_node():
    logits = torch.stack([row(0.5, 0.5), row(0.9, 0.1)]).log()

    def program(shift):
        return draw(logits[shift].softmax(-1))

    wrong = certified(program, row(0.5, 0.5), shift=1)
    assert wrong.lossless is False
    assert abs(float(wrong.total_variation) - 0.4) < 1e-15
    assert certified(program, row(0.5, 0.5), shift=0).lossless is True


def test_e1_top_p_given_to_the_draft_only():
    nucleus = row(0.625, 0.375, 0)
    assert close(law_of(lambda: chain(W_P, nucleus)), ["1/2", "3/10", "1/5"])
    wrong = certified(lambda: chain(W_P, nucleus), nucleus)
    assert wrong.verdict == "lossy: it emits what the target never does"
    assert wrong.sequence == 2


def test_f1_token_by_the_true_map_and_row_by_the_wrong_one():
    p, q = row(0.2, 0.1, 0.4, 0.1, 0.1, 0.1), row(0.5, 0.3, 0.2)
    true, wrong = torch.tensor([0, 2, 5]), torch.tensor([0, 1, 3])

    def program(token_map, row_map):
        spread = torch.zeros(6, dtype=F64).scatter(0, row_map, q)
        x = int(token_map[draw(q)])
        if spread[x] == 0 or torch.rand((), dtype=F64) < p[x] / spread[x]:
            return x
        return draw(residual(p, spread))

    assert close(law_of(program, true, true, size=6), p.tolist())
    assert close(law_of(program, wrong, wrong, size=6), p.tolist())
    assert close(law_of(program, true, wrong, size=6), ["1/5", 0, "1/2", 0, "1/20", "1/4"])


def test_f3_a_padded_logit_in_the_softmax():
    logits, p = row(0.5, 0.25, 0.25).log(), row(0.5, 0.5, 0)
    drawn = logits.masked_fill(torch.tensor([False, False, True]), float("-inf")).softmax(-1)
    assert close(law_of(lambda: chain(p, logits.softmax(-1), proposal=drawn)), ["2/3", "1/3", 0])
    assert close(law_of(lambda: chain(p, drawn)), ["1/2", "1/2", 0])


def test_d1_a_token_of_probability_zero_accepted_with_coin_zero():
    for kind, mass in ((torch.float32, Fraction(1, 2**24)), (torch.bfloat16, Fraction(1, 2**9) + Fraction(1, 2**24))):
        p, q = torch.tensor([0.5, 0.5, 0.0], dtype=kind), torch.tensor([0.25, 0.25, 0.5], dtype=kind)
        strict, loose = (lambda act=act, p=p, q=q: chain(p, q, accept=act) for act in (torch.lt, torch.le))
        assert Interception(coins="grid").law(loose)[2] == mass / 2
        assert 2 not in Interception(coins="grid").law(strict)
        assert 2 not in torch_law(loose)  # for ideal coins the two are the same
        found = certified(loose, p, coins="grid")
        assert found.verdict == "lossy: it emits what the target never does"
        assert (found.sequence, found.got, found.due) == (2, mass / 2, 0)
        assert certified(strict, p, coins="grid").lossless is True


def test_a_half_precision_draw_with_a_float32_ratio():
    p, q = W_P.float(), W_Q.float()
    found = certified(lambda: chain(p, q, proposal=q.half().float()), p)
    assert found.verdict == "lossless up to rounding in float16 (found inside)"  # what it loses is said
    drawn = [Fraction(x) for x in q.half().tolist()]
    drawn = [x / sum(drawn) for x in drawn]
    accepted = [min(Fraction(1), Fraction(float(p[x] / q[x]))) for x in range(3)]
    assert found.law[0] == drawn[0] * accepted[0]  # exact: the ratio is a float32, the weights are float16
    assert 1e-5 < found.total_variation < 1e-3
    assert found.total_variation_float64 <= found.bound


def test_an_all_zero_half_precision_residual():
    p = torch.tensor([0.5, 0.125, 0.125, 0.125, 0.125])
    q = torch.tensor([0.50008, 0.12498, 0.12498, 0.12498, 0.12498])
    assert not residual(p.half(), q.half()).any()

    def raced():
        rest = residual(p.half(), q.half()).float()
        return chain(p, q, rest=lambda p, q: torch.nn.functional.one_hot((rest / noise(rest)).argmax(), 5).float())

    def noise(like):
        return torch.empty_like(like).exponential_()

    found = certified(raced, p)
    assert found.lossless is None  # too little for a loss in float16, but one draw is not the right one at all
    assert "one of its draws is off by TV 1" in found.verdict
    rejected = Fraction(float(q[0])) - Fraction(float(p[0]))
    assert abs(found.law[0] - Fraction(float(q[0]))) < Fraction(1, 10**7)  # the rejected mass comes back to token 0
    assert abs(found.total_variation - rejected) < Fraction(1, 10**6)
    with pytest.raises(InvalidInput, match="nan"):
        torch_law(lambda: chain(p, q, rest=lambda p, q: normalised(residual(p.half(), q.half()))))


R_P, R_Q = row(0.5, 0.2, 0.3), row(0.5, 0.3, 0.2)


def rheo_pool(fault):
    """R4-R6: one pool of RheoSampling, the lead 0, the sampled token Y and a fill, of width 2 (3 for the fill)."""
    tail = normalised(only_entry(R_Q, 0))
    y = draw(tail)
    claimed = {"R4 q": R_Q, "R4 proxy": torch.full_like(R_Q, 0.5)}.get(fault, tail)
    if torch.rand((), dtype=F64) < R_P[y] / claimed[y]:
        return y
    left = R_P if fault == "R6" else normalised(residual(R_P, R_Q if fault == "R4 q" else tail))
    return 0 if torch.rand((), dtype=F64) < left[0] else draw(only_entry(left, 0))


def test_rheo_verified_with_the_true_tail_law_and_with_others():
    assert close(law_of(rheo_pool, "right"), ["1/2", "1/5", "3/10"])
    assert close(law_of(rheo_pool, "R4 q"), [0, "2/5", "3/5"])
    assert close(law_of(rheo_pool, "R4 proxy"), ["13/25", "6/25", "6/25"])
    assert close(law_of(rheo_pool, "R6"), ["1/4", "3/10", "9/20"])
    assert certified(rheo_pool, R_P, fault="right").lossless is True
    for fault in ("R4 q", "R4 proxy", "R6"):
        assert certified(rheo_pool, R_P, fault=fault).lossless is False
