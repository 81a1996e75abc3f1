"""The rationals that serve where gmpy2 is missing: every operation equals `Fraction`'s, near-ties included."""

import operator
import pickle
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exact.enumeration.rationals import Plain
from exact.enumeration.walk import TooManyOutcomes, law, outcomes

pytestmark = pytest.mark.exact

NEAR = Fraction(1, 3), Fraction(10**40 + 3, 3 * 10**40)  # one float, two values
HUGE = Fraction(10**400), Fraction(10**400 + 1)  # beyond every float
VALUES = st.one_of(
    st.fractions(),
    st.sampled_from([*NEAR, *HUGE, -HUGE[0], Fraction(1, 10**400), Fraction(0)]),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
)
PAIRS = [(*NEAR, False), (*HUGE, False), (HUGE[0], -HUGE[0], False), (Fraction(1, 10**400), Fraction(0), False)]


@given(VALUES, VALUES, st.booleans())
@example(*PAIRS[0])
@example(*PAIRS[1])
@example(*PAIRS[2])
@example(*PAIRS[3])
def test_every_operation_is_that_of_fractions(a, b, mixed):
    x, y = Plain(a), b if mixed else Plain(b)
    for compare in (operator.lt, operator.gt, operator.le, operator.ge, operator.eq, operator.ne):
        assert compare(x, y) == compare(a, b)
        assert compare(x, y) == compare(a, b), "again, with the rounded values kept"
        assert compare(y, x) == compare(b, a)
    for combine in (operator.add, operator.mul):
        for result in (combine(x, y), combine(y, x), combine(x, y)):
            assert result == combine(a, b)
            assert type(result) is Plain
            assert (result.numerator, result.denominator) == (combine(a, b).numerator, combine(a, b).denominator)
    assert x - y == a - b
    assert type(-x) is Plain
    assert (-x, hash(x), str(x), bool(x)) == (-a, hash(a), str(a), bool(a))
    assert pickle.loads(pickle.dumps(x)) == a
    assert sorted([x, Plain(b), x + 1]) == sorted([a, b, a + 1])


def test_ints_keep_the_class_and_floats_do_not_become_exact():
    assert type(2 * Plain(1, 3)) is type(Plain(1, 3) * 2) is type(1 + Plain(1, 3)) is type(Plain(1, 3) + 1) is Plain
    assert type(Plain(1, 3) * 0.5) is float
    assert Plain(1, 3) < 1
    assert not Plain(4, 3) < 1
    with pytest.raises(TypeError):
        Plain(1, 3) < "1"  # noqa: B015


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.data())
def test_the_mass_covered_at_the_limit_is_that_of_the_runs_before_it(widths, data):
    def program(chooser):
        return tuple(chooser.index(range(1, width + 1)) for width in widths)

    masses = [weight for _, weight in outcomes(program)]
    limit = data.draw(st.integers(0, len(masses)))
    if limit == len(masses):
        assert sum(law(program, limit=limit).values()) == 1
        return
    with pytest.raises(TooManyOutcomes) as caught:
        law(program, limit=limit)
    assert caught.value.covered == sum(masses[:limit])
