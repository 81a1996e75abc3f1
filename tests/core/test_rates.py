"""The closed forms of section 4 and appendix D against the enumerated rules on explicit pools."""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.enumeration.rationals import exact_law, fraction
from exact.enumeration.walk import outcomes
from exact.methods.optimum import optimum, pool_law
from rheo_core import DraftRow, InvalidInput, proxies, rates
from rheo_core.pool import Pool
from rheo_core.verification import algorithm_1, rrsw, vanilla

pytestmark = pytest.mark.exact


def compositions(parts, size):
    """Every law on `size` tokens whose entries are multiples of 1/parts."""
    return [
        tuple(F(weight, parts) for weight in weights)
        for weights in product(range(parts + 1), repeat=size)
        if sum(weights) == parts
    ]


def pool_of(q, m, n):
    """Candidates and the index of Y for each Y, straight from the pool's definition, cut to n survivors."""
    row = DraftRow.law(np.array(q, dtype=object))
    return Pool(row, max(len(q), n), m, proxies.RHEO)


def drafted(pool, n, chooser):
    """The first n slots of the pool, and where Y is among them."""
    sampled = chooser.index(pool.tail) if pool.tail is not None and n > pool.m else None
    slots = list(pool.slots(sampled))[:n]
    return [slot[2] for slot in slots], next((i for i, slot in enumerate(slots) if slot[1] == 1), -1)


def enumerated(p, q, m, n, verify):
    """Acceptance by walking every draw and every coin."""
    pool = pool_of(q, m, n)
    p = np.array(p, dtype=object)

    def program(chooser):
        candidates, sampled = drafted(pool, n, chooser)
        return verify(p, pool.tail, candidates, sampled, m, chooser, (0, ()))[1] != -1

    return sum((fraction(weight) for accepted, weight in outcomes(program) if accepted), F(0))


def all_rates(p, q, m, n):
    return {
        "rheo": rates.rheo_rate(p, q, m, n),
        "rrsw": rates.rrsw_rate(p, q, m, n),
        "top-k": rates.topk_rate(p, q, m, n),
        "optimal": rates.optimal_rate(p, q, m, n),
    }


def check(p, q, m, n):
    """Every closed form on one pool against its oracle, and the inequalities between them."""
    found = all_rates(p, q, m, n)
    assert found["rheo"] == enumerated(p, q, m, n, algorithm_1)
    assert found["rrsw"] == enumerated(p, q, m, n, rrsw)
    order = sorted(range(len(q)), key=lambda token: -q[token])
    assert found["top-k"] == sum(p[token] for token in order[:n])
    pool = pool_of(q, m, n)
    assert found["optimal"] == optimum(p, pool_law(lambda chooser: drafted(pool, n, chooser)[0])).value
    assert found["rheo"] <= rates.rheo_bound(p, q, m, n)
    assert found["rrsw"] <= rates.rrsw_bound(p, q, m, n)
    assert max(found["rheo"], found["rrsw"]) <= found["optimal"] <= 1
    assert rates.approximate_gain(p, q, m, n) >= 0


FALLING = tuple(q for q in compositions(3, 3) if list(q) == sorted(q, reverse=True))


@pytest.mark.parametrize(
    "drafts", [FALLING, pytest.param(compositions(3, 3), marks=pytest.mark.certificate)], ids=["falling", "any"]
)
def test_closed_forms_on_a_grid_with_zeros_and_ties(drafts):
    for p, q, m, n in product(compositions(3, 3), drafts, range(5), range(1, 4)):
        check(p, q, m, n)


weights = st.integers(1, 5).flatmap(
    lambda size: st.tuples(*[st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)] * 2)
)


@given(weights, st.integers(0, 5), st.data())
def test_closed_forms_on_any_rows(pair, m, data):
    p, q = ([F(weight, sum(row)) for weight in row] for row in pair)
    check(p, q, m, data.draw(st.integers(1, len(p))))


def test_vanilla_accepts_the_mass_of_the_top():
    p, q = [F(1, 2), F(3, 10), F(1, 5)], [F(1, 5), F(1, 2), F(3, 10)]
    assert enumerated(p, q, 3, 2, vanilla) == rates.topk_rate(p, q, 3, 2) == F(1, 2)


def test_rheo_does_not_always_dominate_rrsw():
    p, q = [F(1, 4), F(0), F(1, 2), F(1, 4)], [F(1, 4)] * 4
    assert (rates.rheo_rate(p, q, 1, 3), rates.rrsw_rate(p, q, 1, 3)) == (F(29, 30), 1)
    assert rates.approximate_gain(p, q, 1, 3) >= 0


def test_acceptance_is_not_monotone_in_m():
    p, q = [F(0), F(5, 7), F(1, 7), F(1, 7)], [F(1, 2), F(1, 5), F(1, 5), F(1, 10)]
    assert rates.rheo_rate(p, q, 1, 2) == F(24, 35)
    assert rates.rheo_rate(p, q, 0, 2) == F(823, 910)


def test_the_optimum_is_attained_by_rheo_exactly_where_said():
    """A* = A_Rheo when n = m + 1 or p(x_n) <= q~(x_n); elsewhere the gap reaches 1/3 on this grid."""
    laws = compositions(3, 3)
    widest = F(0)
    for p, q, m, n in product(laws, laws, range(3), range(1, 4)):
        pool = pool_of(q, m, n)
        gap = rates.optimal_rate(p, q, m, n) - rates.rheo_rate(p, q, m, n)
        widest = max(widest, gap)
        order = sorted(range(3), key=lambda token: -q[token])
        if n <= m or pool.tail is None or n == m + 1 or p[order[n - 1]] <= pool.tail[order[n - 1]]:
            assert gap == 0
    assert widest == F(1, 3)


def test_no_mass_off_the_lead_is_the_plain_top_n():
    p, q = [F(1, 2), F(1, 4), F(1, 4)], [F(1), F(0), F(0)]
    assert set(all_rates(p, q, 1, 2).values()) == {F(3, 4)}


def test_certain_leads_are_all_that_rrsw_needs():
    p, q = [F(1), F(0), F(0)], [F(1, 2), F(1, 4), F(1, 4)]
    assert rates.rrsw_rate(p, q, 1, 2) == 1


def test_an_id_map_moves_the_draft_into_the_target():
    p = [F(1, 5), F(1, 10), F(2, 5), F(1, 10), F(1, 10), F(1, 10)]
    q = [F(1, 2), F(3, 10), F(1, 5)]
    spread = [F(1, 2), F(0), F(3, 10), F(0), F(0), F(1, 5)]
    for m, n in product(range(3), range(1, 4)):
        assert rates.rheo_rate(p, q, m, n, ids=[0, 2, 5]) == rates.rheo_rate(p, spread, m, n)
        assert rates.optimal_rate(p, q, m, n, ids=[0, 2, 5]) == rates.optimal_rate(p, spread, m, n)
    assert rates.rheo_rate(p, q, 0, 1, ids=[0, 2, 5]) == F(3, 5)


def test_a_row_of_two_laws_ranks_by_one_and_draws_from_the_other():
    score, sampling = [F(1, 2), F(3, 10), F(1, 5)], [F(1, 5), F(1, 5), F(3, 5)]
    p = [F(1, 4), F(1, 4), F(1, 2)]
    row = DraftRow.pair(np.array(score, dtype=object), np.array(sampling, dtype=object))
    assert rates.rheo_rate(p, row, 1, 2) == F(1, 4) + F(1, 4) + F(1, 2)
    assert rates.optimal_rate(p, row, 1, 1) == F(1, 4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_floats_agree_with_rationals_to_their_precision(dtype):
    rng = np.random.default_rng(5)
    eps = float(np.finfo(dtype).eps)
    for _ in range(50):
        p, q = (rng.dirichlet(np.full(5, 0.4)).astype(dtype) for _ in range(2))
        p[-1] += 1 - p.astype(np.float64).sum()
        q[-1] += 1 - q.astype(np.float64).sum()
        if min(p.min(), q.min()) < 0:
            continue
        exact_p, exact_q = exact_law(p), exact_law(q)
        for m, n in product(range(5), range(1, 6)):
            right = all_rates(exact_p, exact_q, m, n)
            for name, value in all_rates(p, q, m, n).items():
                assert value.dtype == dtype
                assert abs(float(value) - float(right[name])) <= 200 * eps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([F(1, 2), F(1, 2)], [F(1)], 0, 1), "draft vocabulary"),
        (([F(1, 2), F(1, 2)], [F(1, 2), F(1, 2)], -1, 1), "m: got -1"),
        (([F(1, 2), F(1, 2)], [F(1, 2), F(1, 2)], 0, 0), "n: got 0"),
        (([F(1, 2), F(1, 2)], [F(1, 2), F(1, 2)], 0, 3), "n: got 3"),
        (([F(1, 2), F(1, 3)], [F(1, 2), F(1, 2)], 0, 1), "p: got"),
        (([0.5, 0.5], [F(1, 2), F(1, 2)], 0, 1), "q: got"),
        (([F(1, 2), F(1, 2)], [F(1, 2), F(1, 2)], True, 1), "m: got True"),
    ],
)
def test_bad_input_is_one_line(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        rates.rheo_rate(*arguments)
