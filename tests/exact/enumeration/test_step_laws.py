"""The measured bound: by coupling, two runs differ by at most the expected sum of the distances of their draws."""

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.enumeration.rationals import exact, exact_law, fraction
from exact.enumeration.rounding import judged, most_rounding
from exact.enumeration.step_laws import StepLaws
from exact.enumeration.whole_rows import row_outcomes
from rheo_core.laws import residual

pytestmark = pytest.mark.exact
LAWS = st.lists(st.integers(0, 5), min_size=2, max_size=3).filter(any)


def run(program):
    """The distribution of a program and its draws."""
    steps, law = StepLaws(), dict[Any, F]()
    ended = row_outcomes(lambda chooser, keep: keep(program(chooser)), lambda result, token: token, steps)
    for result, row, weight in ended:
        for token, share in [(result, 1)] if row is None else [(token, row.share(token)) for token in row.support]:
            law[token] = law.get(token, 0) + fraction(weight * share)
    return law, steps


def variation(one, two):
    return sum(abs(one.get(x, 0) - two.get(x, 0)) for x in one.keys() | two.keys()) / 2


@given(st.lists(LAWS, min_size=4, max_size=4), st.lists(LAWS, min_size=4, max_size=4), st.booleans())
@settings(max_examples=60, deadline=None)
def test_two_programs_differ_by_no_more_than_the_bound(one, two, coin):
    """Three draws, the later ones from rows that depend on the earlier results; one program may toss a coin instead."""

    def program(rows, tosses=False):
        def run(chooser):
            first = chooser.index(rows[0])
            second = int(chooser.accept(F(rows[1][0], sum(rows[1])))) if tosses else chooser.index(rows[1 + first % 2])
            return first, second, chooser.index(rows[(first + second) % 4])

        return run

    (law, steps), (other, others) = run(program(one)), run(program(two, coin))
    bound = fraction(steps.expected_distance(others))
    assert variation(law, other) <= bound
    assert (bound == 0) == (law == other and steps.expected_distance(others) == 0)
    assert not steps.expected_distance(steps)


def test_the_bound_is_attained_and_ends_where_the_two_part():
    def program(first, second):
        return run(lambda chooser: (chooser.index(first), chooser.index(second)))

    (law, steps), (other, others) = program([1, 1], [1, 3]), program([1, 1], [1, 1])
    assert steps.expected_distance(others) == variation(law, other) == F(1, 4)
    (law, steps), (other, others) = program([1, 0], [1, 3]), program([0, 1], [1, 1])
    assert steps.expected_distance(others) == variation(law, other) == 1  # and nothing for the second draw
    assert steps.furthest(others) == 1
    ended, longer = run(lambda chooser: 0)[1], run(lambda chooser: chooser.index([1, 1]))[1]
    assert ended.expected_distance(longer) == longer.expected_distance(ended) == 1


def test_no_relative_error_of_p_bounds_a_residual():
    """Moving p by 4d turns the residual from [0, 1] to [1, 0]; only its branch's probability makes the bound small."""
    for power in (4, 12, 24):
        d = F(1, 2**power)
        p, q = [F(1, 2), F(1, 2)], [F(1, 2) + d, F(1, 2) - d]
        moved = [p[0] + 4 * d, p[1] - 4 * d]

        def chain(p, q=q):
            def run(chooser):
                token = chooser.index(q)
                if chooser.accept(min(F(1), p[token] / q[token])):
                    return token
                return chooser.index(residual(np.array(p, dtype=object), np.array(q, dtype=object)))

            return run

        (law, steps), (other, others) = run(chain(p)), run(chain(moved))
        assert fraction(steps.furthest(others)) == 1  # however small d is
        assert variation(law, other) == 4 * d <= steps.expected_distance(others) <= 8 * d
        assert {steps._steps[0, 1].options[1], others._steps[1, 1].options[0]} == {1}


@pytest.mark.parametrize("size", [8, 2_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bound_of_a_right_step_is_far_below_the_largest_that_means_something(size, dtype):
    rng = np.random.default_rng(size)
    p, q = (np.exp(rng.standard_normal(size)).astype(dtype) for _ in range(2))
    q[16:] = 0  # the draft's few tokens are the target's heavy ones
    p[:16] *= size
    p, q = p / p.sum(dtype=dtype), q / q.sum(dtype=dtype)

    def chain(p, q, bias=0):
        def run(chooser):
            token = chooser.index(q)
            if chooser.accept(min(1, p[token] / q[token]) * (1 - exact(bias))):
                return token
            return chooser.index(residual(p, q))

        return run

    (law, steps), (right, others) = run(chain(p, q)), run(chain(exact_law(p), exact_law(q)))
    bound, most = fraction(steps.expected_distance(others)), most_rounding(1, size, float(np.finfo(dtype).eps))
    assert 0 < variation(law, right) <= bound < most
    assert judged(variation(law, right), bound, most) == (True, "")
    biased, tilted = run(chain(p, q, F(1, 10**4)))  # the planted fault, in floats alone
    off = fraction(tilted.expected_distance(others))
    assert judged(variation(biased, right), off, most)[0] is not True


def test_what_is_judged():
    most = F(1, 10**5)
    assert judged(F(1, 10**6), F(1, 10**6), most) == (True, "")
    assert judged(F(1, 10**4), F(1), most)[0] is False
    for variation, bound in ((F(1, 10**6), F(1, 10**4)), (F(1, 10**6), F(1, 10**7))):
        lossless, why = judged(variation, bound, most)
        assert lossless is None
        assert "its draws" in why
