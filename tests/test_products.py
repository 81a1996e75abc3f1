"""A plain run meets every two values of a product; with the marker every combination is run, each once."""

from itertools import chain, combinations, product

import pytest

from tests.conftest import _names
from tests.products import CERTIFICATE, covering, pairwise, spread

SIZES = ((2, 2, 2), (5, 11, 17, 4), (11, 5, 3, 2), (3, 4, 4, 3, 3), (9, 11), (1, 3, 1))


def met(rows):
    return {pair for row in rows for pair in combinations(enumerate(row), 2)}


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_every_two_places_meet_in_few_rows(sizes):
    kept = covering(sizes)
    assert met(kept) == met(product(*map(range, sizes)))
    first, second = sorted(sizes)[-2:]
    assert first * second <= len(kept) <= 2 * first * second
    assert met(row for row in kept if row[:2] != (0, 0)) != met(kept)  # the planted fault: one pair is left out


def plain(mark):
    return [case.values for case in mark.args[1] if CERTIFICATE.mark not in [each.mark for each in case.marks]]


def test_the_whole_product_is_there_and_the_rest_is_marked():
    mark = pairwise("a, b, c", "wxyz", range(3), (True, False)).mark
    assert {case.values for case in mark.args[1]} == set(product("wxyz", range(3), (True, False)))
    assert len(mark.args[1]) == 24
    assert 12 <= len(plain(mark)) < 24


def test_parts_of_one_product_share_it_out():
    parts = [plain(spread("a, b", range(11), range(9), part=part).mark) for part in range(3)]
    assert sorted(chain(*parts)) == sorted(product(range(11), range(9)))
    assert all({row[0] for row in part} == set(range(11)) for part in parts)
    assert all({row[1] for row in part} == set(range(9)) for part in parts)


def test_a_case_is_named_with_or_without_its_parameters():
    assert _names("tests/a.py::test_b", "tests/a.py::test_b[x-1]")
    assert _names("tests/a.py::test_b[x-1]", "tests/a.py::test_b[x-1]")
    assert not _names("tests/a.py::test_b[x-2]", "tests/a.py::test_b[x-1]")
