"""The law() engine: every outcome with its exact weight, and what it refuses."""

from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpq, mpz
from hypothesis import given
from hypothesis import strategies as st

from exact import EnumerationError, NotReproducible, TooManyOutcomes, UnhashableResult, law
from exact.enumeration.rationals import exact, exact_row, fraction
from exact.enumeration.walk import outcomes
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact


def test_a_coin_has_its_probability_and_an_index_its_share():
    assert law(lambda chooser: chooser.accept(F(1, 3))) == {True: F(1, 3), False: F(2, 3)}
    assert law(lambda chooser: chooser.index([1, 0, 3])) == {0: F(1, 4), 2: F(3, 4)}


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(any), max_size=4))
def test_sequences_of_draws_against_the_product_of_their_weights(rows):
    """The later rows are asked for only after the first draws, and in an order that depends on them."""

    def program(chooser):
        drawn: list[int] = []
        waiting = list(rows)
        while waiting:
            row = waiting.pop(sum(drawn) % len(waiting))
            drawn.append(chooser.index(row))
        return tuple(drawn)

    expected: dict[tuple[int, ...], F] = {}
    for choices in product(*(range(len(row)) for row in rows)):
        weight, waiting = F(1), list(range(len(rows)))
        order: list[int] = []
        while waiting:
            row = waiting.pop(sum(order) % len(waiting))
            order.append(choices[row])
            weight *= F(rows[row][choices[row]], sum(rows[row]))
        if weight:
            expected[tuple(order)] = weight
    assert law(program) == expected


def test_branches_of_probability_0_never_run():
    ran = []

    def program(chooser):
        accepted = chooser.accept(0), chooser.accept(1)
        ran.append((*accepted, chooser.index([0, 2, 0])))
        return ran[-1]

    assert law(program) == {(False, True, 1): 1}
    assert ran == [(False, True, 1)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_float_weights_are_the_exact_values_that_they_are(dtype):
    tenth = dtype(0.1)
    p = F(*tenth.as_integer_ratio())
    assert law(lambda chooser: chooser.accept(tenth)) == {True: p, False: 1 - p}
    row = np.array([0.1, 0.2, 0.4], dtype)
    weights = [F(*entry.as_integer_ratio()) for entry in row]
    assert law(lambda chooser: chooser.index(row)) == {i: weight / sum(weights) for i, weight in enumerate(weights)}


@pytest.mark.parametrize(
    "probability",
    [1, True, 0.25, np.float16(0.25), np.float64(0.25), np.longdouble(0.25), F(1, 4), mpq(1, 4), np.int8(1), mpz(0)],
    ids=lambda value: type(value).__name__,
)
def test_any_number_with_an_exact_value_is_a_probability(probability):
    assert law(lambda chooser: chooser.accept(probability)).get(True, F(0)) == F(float(probability))


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        ([2**70 + 1, 2**70 - 1], [F(2**70 + 1, 2**71), F(2**70 - 1, 2**71)]),
        ([2**53 + 1, 0.5], [F(2**54 + 2, 2**54 + 3), F(1, 2**54 + 3)]),  # NumPy's row of these would round the first
        ([F(1, 3), mpq(1, 3), 1], [F(1, 5), F(1, 5), F(3, 5)]),
        ([5e-324, 1.5e-323], [F(1, 4), F(3, 4)]),
        ([1e308, 1e308], [F(1, 2), F(1, 2)]),
        ((1, 3), [F(1, 4), F(3, 4)]),
        (np.array([1, 3], np.uint8), [F(1, 4), F(3, 4)]),
        (np.array([F(1, 8), F(3, 8)], dtype=object), [F(1, 4), F(3, 4)]),
    ],
    ids=["long ints", "int beside float", "rationals", "subnormal", "huge", "tuple", "uint8", "object"],
)
def test_index_weights_of_any_positive_sum(weights, shares):
    assert list(law(lambda chooser: chooser.index(weights)).values()) == shares


@pytest.mark.parametrize("probability", [-0.5, 1.5, F(-1, 9), float("nan"), float("inf")])
def test_probabilities_outside_0_to_1_are_refused(probability):
    with pytest.raises(InvalidInput, match=r"^probability: got .*, expected a number in \[0, 1\]\n"):
        law(lambda chooser: chooser.accept(probability))


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [[1]], [float("nan")], [float("inf"), 1]])
def test_weights_without_a_law_are_refused(weights):
    with pytest.raises(InvalidInput, match=r"^weights: got "):
        law(lambda chooser: chooser.index(weights))


def test_a_law_has_no_zero_entries_sums_to_1_and_is_of_fractions():
    found = law(lambda chooser: chooser.accept(0.3) + chooser.accept(0.7) + chooser.index([1, 0, 2]))
    assert sum(found.values()) == 1
    assert all(type(weight) is F and weight > 0 for weight in found.values())


def test_a_program_that_draws_nothing_has_one_outcome():
    assert law(lambda chooser: "done") == {"done": 1}


def test_equal_results_are_merged_and_addresses_never_merge_outcomes():
    def program(chooser):
        return chooser.index([1, 1], at="here") + chooser.index([1, 1], at="here")

    assert law(program) == {0: F(1, 4), 1: F(1, 2), 2: F(1, 4)}
    assert len(list(outcomes(program))) == 4


def test_an_exception_propagates_with_its_branch_and_weight():
    def program(chooser):
        if chooser.accept(F(1, 4), at=("coin", 0, (), 2)) and chooser.index([1, 2], at="row") == 1:
            raise KeyError("lost")

    with pytest.raises(KeyError, match="lost") as caught:
        law(program)
    assert caught.value.__notes__ == [
        "in the branch [accept -> 0 at ('coin', 0, (), 2), index -> 1 at row], of weight 1/6"
    ]


def test_a_bad_call_propagates_with_the_branch_before_it():
    with pytest.raises(InvalidInput, match=r"^weights") as caught:
        law(lambda chooser: chooser.accept(F(1, 3)) and chooser.index([0]))
    assert caught.value.__notes__ == ["in the branch [accept -> 0], of weight 1/3"]


class Counter:
    def __init__(self):
        self.runs = 0

    def next(self):
        self.runs += 1
        return self.runs


def test_another_call_on_replay_is_an_error():
    for fault in (
        lambda chooser, run: (chooser.accept(F(1, 1 + run)), chooser.accept(F(1, 2))),  # another probability
        lambda chooser, run: (chooser.accept(F(1, 2)) if run == 1 else chooser.index([1, 1]), chooser.accept(F(1, 2))),
        lambda chooser, run: [chooser.accept(F(1, 2)) for _ in range(3 if run == 1 else 1)],  # fewer calls
        lambda chooser, run: chooser.index([1, 1] if run == 1 else [1, 1, 1]),
    ):
        count = Counter()
        with pytest.raises(NotReproducible, match=r"call 1 was .* when replayed|the run ended after 1 calls; 3"):
            law(lambda chooser, fault=fault, count=count: (fault(chooser, count.next()), 0)[1])  # type: ignore[misc]


@pytest.mark.parametrize("result", [[1], {}, np.array([1]), ([],)], ids=repr)
def test_an_unhashable_result_is_an_error(result):
    with pytest.raises(UnhashableResult, match=r"^result: got .*, expected something hashable$"):
        law(lambda chooser: result)


def test_more_outcomes_than_the_limit_is_an_error_with_the_mass_covered():
    def program(chooser):
        return chooser.index([1, 2, 5])

    with pytest.raises(
        TooManyOutcomes, match=r"more than 2 outcomes \(those enumerated hold 0\.375 of the mass\)"
    ) as caught:
        law(program, limit=2)
    assert (caught.value.limit, caught.value.covered) == (2, F(3, 8))
    assert len(law(program, limit=3)) == 3


def test_engine_errors_are_their_own_and_no_bad_input():
    for error in (NotReproducible, UnhashableResult, TooManyOutcomes):
        assert issubclass(error, EnumerationError)
        assert not issubclass(error, ValueError)


def test_long_programs_need_no_recursion():
    found = law(lambda chooser: sum(chooser.accept(1) + chooser.index([0, 1]) for _ in range(5000)))
    assert found == {10_000: 1}


def test_exact_values():
    assert [fraction(value) for value in (0.5, np.float16(0.1), 3, True, mpq(1, 3), F(2, 7), np.int64(4))] == [
        F(1, 2), F(*np.float16(0.1).as_integer_ratio()), 3, 1, F(1, 3), F(2, 7), 4,
    ]  # fmt: skip
    assert [type(fraction(value)) for value in (1, mpq(1), 0.5)] == [F, F, F]
    assert exact_row([0.5, F(1, 3)]).tolist() == [F(1, 2), F(1, 3)]
    for value, message in (
        (float("inf"), "a finite number"),
        (float("nan"), "a finite number"),
        ("1", "a number with"),
    ):
        bad: Any = value
        with pytest.raises(InvalidInput, match=f"^number: got .*, expected {message}"):
            exact(bad)


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
