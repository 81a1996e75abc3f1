"""The claims for every V: the closed forms on numbers, lumping, z3, and where Rheo loses to RRSw."""

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Eq, Sum

from exact.proofs import claims, dominance, enumerated, every_vocabulary
from exact.proofs.compiled import compiled, holds
from exact.proofs.symbolic import row_of
from rheo_core import rates
from rheo_core.laws import tail_law

pytestmark = pytest.mark.exact

F = Fraction


@st.composite
def pools(draw, most=6):
    """(p, q sorted falling, m, n) with mass off the lead: zeros and ties are common."""
    size = draw(st.integers(2, most))
    weights = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any)
    p, q = draw(weights), sorted(draw(weights), reverse=True)
    m = draw(st.integers(0, size - 1).filter(lambda m: any(q[m:])))
    n = draw(st.integers(m + 1, size))
    return [F(x, sum(p)) for x in p], [F(x, sum(q)) for x in q], m, n


def letters(p, q, m, n):
    """The letters on numbers at this n."""
    return enumerated.rows(p, tail_law(row_of(q), range(m)).tolist(), m).at("n", n)


@given(pools(most=4))
def test_closed_forms_are_those_of_the_reference(pool):
    """The sympy expressions against rheo_core.rates, and against full enumeration of both verifiers."""
    rows = letters(*pool)
    for expression, rate in (
        (claims.theorem3, rates.rheo_rate),
        (claims.theorem3_bound, rates.rheo_bound),
        (claims.optimum, rates.optimal_rate),
        (claims.equation_18, rates.rrsw_rate),
    ):
        assert compiled(expression)(rows) == rate(*pool)
    assert holds(claims.THEOREM_3.statement, rows)
    assert holds(claims.EQUATION_18.statement, rows)


EVERY = [*claims.POOL_CLAIMS, claims.EQUATION_18, *claims.RRSW_CLAIMS]


@pytest.mark.parametrize("claim", EVERY, ids=lambda claim: claim.name)
def test_proved_for_every_vocabulary(claim):
    found = every_vocabulary.prove_every(claim)
    assert found.verdict == "proved"
    assert found.as_expected, found


def lumped(p, tail, m, n):
    """The pool with all tokens of one role and one side poured together, and its m and n."""
    thin = 1 - sum(p[:m])
    sides = [(x >= y, x >= thin * y) for x, y in zip(p, tail, strict=True)]
    roles = ["L" if v < m else "M" if v < n - 1 else "X" if v == n - 1 else "R" for v in range(len(p))]
    keys = sorted({*zip(roles, sides, strict=True)}, key=lambda key: ("LMXR".index(key[0]), key[1]))
    leads = sum(key[0] == "L" for key in keys)
    return [
        [sum(row[v] for v in range(len(p)) if (roles[v], sides[v]) == key) for key in keys] for row in (p, tail)
    ] + [leads, [key[0] for key in keys].index("X") + 1]


@given(pools(most=9))
def test_lumping_changes_no_side_of_a_claim(pool):
    """The step by hand: both sides of every claim are worth the same on the pool of lumps."""
    p, q, m, n = pool
    tail = tail_law(row_of(q), range(m)).tolist()
    small_p, small_tail, small_m, small_n = lumped(p, tail, m, n)
    large, small = closed_rows(p, tail, m, n), closed_rows(small_p, small_tail, small_m, small_n)
    for expression in (claims.theorem3, claims.theorem3_bound, claims.optimum, claims.equation_18):
        assert compiled(expression)(large) == compiled(expression)(small)


def closed_rows(p, tail, m, n):
    """The letters without the enumeration, which nine tokens would make slow."""
    rows = enumerated.rows([F(1, 2)] * 2, [F(1, 2)] * 2, 0)
    excess = [max(0, x - y) for x, y in zip(p, tail, strict=True)]
    thin = sum(p[m:])
    late = [max(0, x - thin * y) if v >= m else 0 for v, (x, y) in enumerate(zip(p, tail, strict=True))]
    rows.rows.update({"p": p, r"\tilde{q}": tail, "r": [x / (sum(excess) or 1) for x in excess]})
    rows.rows[r"r^{\mathrm{RRSw}}"] = [x / (sum(late) or 1) for x in late]
    rows.integers.update({"V": len(p), "m": m})
    return rows.at("n", n)


def test_what_cannot_be_lumped_is_refused():
    squares = Eq(Sum(claims.p[claims.v] ** 2, (claims.v, 1, claims.V)), claims.p[claims.n], evaluate=False)
    partial = Eq(claims.top(claims.p, claims.n + 2), claims.p[claims.n], evaluate=False)
    for statement in (squares, partial):
        with pytest.raises(every_vocabulary.NotLumpable):
            every_vocabulary.check_lumpable(statement)


def test_the_coordinates_of_rrsw_reach_every_pool():
    """p~ = g + h and q~ between B p~ and p~ is g' + B h' for some g', h' >= 0: here solved for on random numbers."""
    draw = random.Random(5)
    for _ in range(200):
        a = F(draw.randint(1, 9), 10)
        b = 1 - a
        late, share = F(draw.randint(1, 9)), F(draw.randint(0, 9), 9)
        tail = b * late + share * a * late
        g = (tail - b * late) / a
        assert 0 <= g <= late
        assert g + b * (late - g) == tail


def test_every_claim_takes_seconds_together():
    """z3's share of one run, faces included; 5 s on a free machine."""
    every_vocabulary.check_faces.cache_clear()
    found = [every_vocabulary.prove_every(claim) for claim in claims.POOL_CLAIMS]
    assert sum(each.seconds for each in found) < 3 * 5
    assert max(each.cases for each in found) < 20


def test_rheo_does_not_always_dominate():
    found = dominance.refute_dominance()
    assert found.as_expected
    assert found.verdict == "refuted"
    assert found.witness is not None
    case = found.witness.case
    assert (case["V"], case["m"], case["n"]) == (4, 1, 3)
    assert case["q"] == [F(1, 4)] * 4
    assert sorted(case["p"]) == sorted([F(1, 4), F(0), F(1, 2), F(1, 4)])
    assert "29/30 < A_RRSw = 1" in found.witness.what


def test_that_witness_is_the_smallest():
    """No failure on three tokens, nor on four with a smaller common denominator: all pools tried."""
    for size, denominator in ((2, 6), (3, 6), (4, 1), (4, 2), (4, 3)):
        assert list(dominance.failures(size, denominator)) == []
    assert len(list(dominance.failures(4, 4))) == 1


def test_a_false_claim_is_refuted_for_every_vocabulary():
    claim = claims.Claim(
        "A* is attained", "none", claims.OPTIMAL_BELOW_TAIL.statement, claims.THEOREM_3_BOUND.control, "n"
    )
    found = every_vocabulary.prove_every(claim)
    assert found.verdict == "refuted"
    assert found.witness is not None
