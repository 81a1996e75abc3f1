"""The bound on rounding: it holds for right steps, is far below what a bias needs, and does not grow with V."""

from fractions import Fraction as F

import numpy as np
import pytest

from exact.enumeration.rationals import exact_law, exact_row
from exact.enumeration.rounding import LEAST_PRACTICAL, MOST, most_rounding, worst_rounding
from rheo_core.laws import residual

pytestmark = pytest.mark.exact
EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


@pytest.mark.parametrize("name", EPS)
def test_the_bound_never_grows_past_what_a_bias_of_practical_size_needs(name):
    eps = EPS[name]
    for size in (2, 8, 2_000, 50_000, 10**7):
        one = most_rounding(1, size, eps)
        assert most_rounding(3, size, eps) == 3 * one
        assert F(eps) <= one <= max(LEAST_PRACTICAL, min(8 * F(eps), MOST))
        assert one <= worst_rounding(1, size, eps) <= 1
    if name in ("float64", "float32"):
        assert most_rounding(4, 50_000, eps) < F(1, 10**4)  # a bias of 1e-4 is no rounding over four tokens
    assert worst_rounding(2, 50_000, EPS["float32"]) > F(1, 2)  # what the bound would be if it grew with V


@pytest.mark.parametrize("size", [8, 2_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_right_step_in_floats_stays_far_within_the_bound(dtype, size):
    """One token of a chain in closed form: the accepted mass min(p, q) and the rejected mass on the residual."""
    rng = np.random.default_rng(size)
    p, q = (np.exp(rng.standard_normal(size)).astype(dtype) for _ in range(2))
    p, q = p / p.sum(dtype=dtype), q / q.sum(dtype=dtype)
    rest = residual(p, q)
    assert rest is not None
    target, drawn, after = (exact_law(row.tolist()) for row in (p, q, rest))
    accepted = drawn * exact_row(np.minimum(dtype(1), p / q).tolist())
    emitted = accepted + (1 - sum(accepted)) * after
    bound = most_rounding(1, size, float(np.finfo(dtype).eps))
    assert 0 < sum(abs(emitted - target)) / 2 < bound
    emitted[:2] += [2 * bound, -2 * bound]  # the planted fault
    assert sum(abs(emitted - target)) / 2 > bound
