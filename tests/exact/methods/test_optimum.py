"""The exact optimum against brute force over cuts, against HiGHS alone, and when HiGHS is of no use at all."""

from fractions import Fraction as F
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.methods import optimum as module
from exact.methods.optimum import cut_value, optimal_float, optimum, pool_law
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact


def subsets(size):
    return [frozenset(each) for each in chain.from_iterable(combinations(range(size), k) for k in range(size + 1))]


@st.composite
def problems(draw):
    size = draw(st.integers(1, 4))
    p = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
    pools = draw(st.dictionaries(st.sampled_from(subsets(size)), st.integers(1, 6), min_size=1))
    mass = sum(pools.values())
    return [F(weight, sum(p)) for weight in p], {pool: F(weight, mass) for pool, weight in pools.items()}


def check(p, pools):
    """The value is the least cut, the flow is feasible and has that value, the named cut attains it."""
    found = optimum(p, pools)
    assert found.value == min(cut_value(p, pools, cut) for cut in subsets(len(p)))
    assert found.value == cut_value(p, pools, found.cut) == sum(found.flow.values())
    for pool, mass in pools.items():
        assert sum(amount for (given, _), amount in found.flow.items() if given == pool) <= mass
    for token, mass in enumerate(p):
        assert sum(amount for (_, taken), amount in found.flow.items() if taken == token) <= mass
    assert all(token in pool and amount > 0 for (pool, token), amount in found.flow.items())
    return found


@given(problems())
def test_the_optimum_is_the_least_cut(problem):
    found = check(*problem)
    if any(problem[1]):
        assert optimal_float(*problem) == pytest.approx(float(found.value), abs=1e-9)


@given(problems())
def test_exact_augmentation_finds_it_without_any_vertex(problem):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_vertex", lambda p, supply: {})
        check(*problem)


@given(problems(), st.data())
def test_exact_augmentation_repairs_a_bad_start(problem, data):
    """Arcs filled in any order, not the vertex's: paths then have to give mass back."""
    arcs = [(pool, token) for pool in problem[1] for token in sorted(pool)]
    order = data.draw(st.permutations(arcs))

    def greedy(p, supply):
        left = {**supply, **dict(enumerate(p))}
        flow = {}
        for arc in order:
            flow[arc] = min(left[end] for end in arc)
            for end in arc:
                left[end] -= flow[arc]
        return flow

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_vertex", greedy)
        check(*problem)


def test_masses_that_floats_cannot_see():
    tiny = F(1, 10**40)
    p = [tiny, F(1, 2) - tiny, F(1, 2)]
    found = check(p, {frozenset([0, 1]): F(1, 2), frozenset([2]): F(1, 2)})
    assert found.value == 1


def test_the_law_over_candidate_sets():
    q = [F(1, 2), F(1, 3), F(1, 6)]
    pools = pool_law(lambda chooser: [chooser.index(q), chooser.index(q)])
    assert pools[frozenset([0, 1])] == F(1, 3)
    assert pools[frozenset([2])] == F(1, 36)


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ({frozenset([0]): F(1, 2)}, "a law over candidate sets"),
        ({frozenset([0]): F(3, 2), frozenset([1]): F(-1, 2)}, "a law over candidate sets"),
        ({frozenset([2]): F(1)}, "token ids in 0..1"),
        ({frozenset([-1]): F(1)}, "token ids in 0..1"),
    ],
)
def test_bad_pools_are_refused(pools, message):
    with pytest.raises(InvalidInput, match=message):
        optimum([F(1, 2), F(1, 2)], pools)
