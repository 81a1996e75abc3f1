"""The symbol that stands for a uniform: its exact law against brute force over a fine grid of u."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.interception import Interception, Unsupported
from exact.interception.session import Tracer
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact
N = 1 << 10
numbers = st.integers(-8, 8).map(lambda k: k / 4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("+"), numbers),
        st.tuples(st.just("*"), numbers),
        st.tuples(st.just("from"), numbers),
        st.tuples(st.just("over"), numbers.filter(bool)),
        st.tuples(st.just("max"), numbers),
        st.tuples(st.just("min"), numbers),
        st.tuples(st.just("floor"), st.none()),
    ),
    max_size=4,
)


def mapped(u, path):
    """The same arithmetic on a symbol or on a Fraction."""
    for name, c in path:
        c = Fraction(c) if c is not None and isinstance(u, Fraction) else c
        if name == "+":
            u = u + c
        elif name == "*":
            u = u * c
        elif name == "from":
            u = c - u
        elif name == "over":
            u = u / c
        elif name == "max":
            u = u.at_least(c) if hasattr(u, "at_least") else max(u, c)
        elif name == "min":
            u = u.at_most(c) if hasattr(u, "at_most") else min(u, c)
        elif name == "floor":
            u = u.floor() if hasattr(u, "floor") else math.floor(u)
        if isinstance(u, int):
            u = Fraction(u)
    return u


def uniform_law(program, coins="ideal"):
    """The law of a program of one uniform."""
    session = Tracer(coins)
    law: dict[Any, Any] = {}

    def run():
        session.begin()
        return program(session.uniform())

    for result, weight in session.walk.runs(run):
        law[result] = law.get(result, 0) + Fraction(int(weight.numerator), int(weight.denominator))
    return law


def brute_force(program, points=N):
    """The law of the same program over the middles of a fine grid: exact where every edge lies on the grid."""
    law: dict[Any, Any] = {}
    for k in range(points):
        result = program(Fraction(2 * k + 1, 2 * points))
        law[result] = law.get(result, 0) + Fraction(1, points)
    return law


@given(steps, st.lists(st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=="]), numbers), min_size=1, max_size=3))
def test_comparisons_of_mapped_uniforms_have_the_law_of_brute_force(path, questions):
    compare = {
        "<": lambda x, t: x < t,
        "<=": lambda x, t: x <= t,
        ">": lambda x, t: x > t,
        ">=": lambda x, t: x >= t,
        "==": lambda x, t: x == t,
    }

    def program(u):
        value = mapped(u, path)
        return tuple(bool(compare[name](value, t)) for name, t in questions)

    exact, rough = uniform_law(program), brute_force(program)
    edges = 8 * sum(len(path) + 1 for _ in questions)  # each question moves at most a few edges off the grid
    assert sum(exact.values()) == 1
    for result in exact.keys() | rough.keys():
        assert abs(exact.get(result, 0) - rough.get(result, 0)) <= Fraction(edges, N)


def test_a_coin_compared_twice_keeps_its_memory():
    law = uniform_law(lambda u: (u < 0.5, u < 0.25, 1 - u > 0.875))
    assert law == {
        (True, True, True): Fraction(1, 8),
        (True, True, False): Fraction(1, 8),
        (True, False, False): Fraction(1, 4),
        (False, False, False): Fraction(1, 2),
    }


def test_logarithms_and_exponentials_to_a_hundred_digits():
    law = uniform_law(lambda u: bool(-u.log() < 1))
    assert abs(float(law[True]) - (1 - math.exp(-1))) < 1e-15
    assert law[True].denominator > 10**90
    assert uniform_law(lambda u: bool(u.log().exp() < 0.25))[True] == Fraction(1, 4)
    assert uniform_law(lambda u: bool(u.log() < 0))[True] == 1


def test_an_integer_is_drawn_by_its_value():
    assert uniform_law(lambda u: int(u * 3)) == {k: Fraction(1, 3) for k in range(3)}
    assert uniform_law(lambda u: math.floor(4 * u - 2)) == {k: Fraction(1, 4) for k in range(-2, 2)}
    assert uniform_law(lambda u: math.ceil(2 * u)) == {1: Fraction(1, 2), 2: Fraction(1, 2)}
    assert uniform_law(lambda u: int(4 * u - 2)) == {-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}


def test_on_the_grid_the_edge_itself_has_mass():
    grid = Fraction(1, 2**53)
    assert uniform_law(lambda u: bool(u <= 0.0), "grid")[True] == grid
    assert uniform_law(lambda u: bool(u < 0.0), "grid") == {False: 1}
    assert uniform_law(lambda u: bool(u <= 0.25), "grid")[True] == Fraction(1, 4) + grid
    assert uniform_law(lambda u: bool(u < 0.25), "grid")[True] == Fraction(1, 4)
    assert uniform_law(lambda u: bool(u == 0.25), "grid")[True] == grid
    third = uniform_law(lambda u: bool(u < Fraction(1, 3)), "grid")[True]
    assert 0 < third - Fraction(1, 3) < grid
    assert third.denominator <= 2**53


def test_a_sum_of_the_same_coin_is_followed():
    assert uniform_law(lambda u: bool(u + u < 1))[True] == Fraction(1, 2)
    assert uniform_law(lambda u: bool(u < 1 - u))[True] == Fraction(1, 2)
    assert uniform_law(lambda u: bool(u - u == 0)) == {True: 1}
    assert uniform_law(lambda u: bool(3 * u > u + 1))[True] == Fraction(1, 2)


@pytest.mark.parametrize(
    ("act", "name"),
    [
        (lambda u: u * u, r"\*"),
        (lambda u: u**2, r"\*\*"),
        (lambda u: float(u), "float"),
        (lambda u: [0, 1][u], "index"),
        (lambda u: round(u), "round"),
        (lambda u: {u: 1}, "hash"),
        (lambda u: u % 1, "%"),
        (lambda u: u.hex(), "hex"),
        (lambda u: math.sin(u), "float"),
        (lambda u: np.sqrt(u), "sqrt"),
    ],
)
def test_what_is_not_followed_is_refused_by_name_and_line(act, name):
    with pytest.raises(Unsupported, match=name) as error:
        uniform_law(act)
    assert "test_torch_uniforms.py:" in str(error.value)


def test_nan_is_refused():
    with pytest.raises(InvalidInput, match="NaN"):
        uniform_law(lambda u: u < math.nan)
    assert uniform_law(lambda u: (u < math.inf, u < -math.inf)) == {(True, False): 1}


def test_two_uniforms_are_not_compared():
    session = Tracer()
    with pytest.raises(Unsupported, match="uniform 1 against uniform 2"):
        _ = session.uniform() < session.uniform()


def test_coins_are_ideal_or_on_the_grid():
    with pytest.raises(InvalidInput, match="'ideal' or 'grid'"):
        Interception(coins="real")  # type: ignore[arg-type]
