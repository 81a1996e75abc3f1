"""The condition under which Lemma 7 makes a verifier lossless for every target."""

from fractions import Fraction

import pytest

from exact import law as exact_law
from exact.proofs import enumerated, verifiers
from exact.proofs.dominance import laws
from exact.proofs.layer import candidates
from exact.proofs.symbolic import row_of
from rheo_core import rates
from rheo_core.laws import tail_law
from rheo_core.verification import algorithm_1, rrsw, vanilla

pytestmark = pytest.mark.exact

F = Fraction


def test_the_four_lines():
    found = verifiers.prove_verifiers()
    assert [each.verdict for each in found] == ["proved", "proved", "refuted", "refuted"]
    assert all(each.as_expected for each in found)
    assert found[0].cases == 156


def test_the_trees_on_which_they_lose():
    assert verifiers.RRSW_CASE.first_token(rrsw) == [F(0), F(1, 3), F(2, 3)]
    assert verifiers.OPTIMAL_CASE.first_token(verifiers.optimal_on_one_pool) == [F(1, 9), F(8, 9)]
    for case in (verifiers.RRSW_CASE, verifiers.OPTIMAL_CASE):
        assert tuple(case.first_token(algorithm_1)) == case.p


@pytest.mark.parametrize("size", [2, 3])
def test_the_rule_of_the_optimum_is_the_optimum_on_one_pool(size):
    """It attains A* and is lossless as long as the pool has a fixed size: its failure on trees is no slip."""
    for q in (row for row in laws(size, 3) if all(row[v] >= row[v + 1] for v in range(size - 1))):
        for m in (m for m in range(size) if sum(q[m:])):
            tail = tail_law(row_of(q), range(m))
            for p in laws(size, 3):
                for n in range(m + 1, size + 1):
                    found = enumerated.pool_law(verifiers.optimal_on_one_pool, row_of(p), tail, m, n)
                    emitted = [sum((x for (token, _), x in found.items() if token == v), F(0)) for v in range(size)]
                    accepted = sum((x for (_, child), x in found.items() if child != -1), F(0))
                    assert emitted == p
                    assert accepted == rates.optimal_rate(p, q, m, n)


def test_pools_are_those_of_the_reference():
    assert candidates(5, 1, 3, 4) == (0, 4, 1)
    assert candidates(5, 1, 3, 1) == (0, 1, 2)
    assert candidates(3, 0, 3, 2) == (2, 0, 1)


def test_a_careless_rule_fails_on_numbers():
    for rule in (verifiers.careless, rrsw, verifiers.optimal_on_one_pool):
        assert verifiers.numeric_failure(rule) is not None
    for rule in (algorithm_1, vanilla):
        assert verifiers.numeric_failure(rule) is None


def test_a_failing_rule_is_refuted_on_symbols_too():
    found = verifiers.prove_condition("careless", verifiers.careless, 2, "flint")
    assert found.verdict == "refuted"
    assert found.witness is not None


@pytest.mark.slow
def test_four_tokens_with_every_face():
    for rule in (algorithm_1, vanilla):
        assert verifiers.prove_condition("four tokens", rule, 4, "flint").verdict == "proved"


def test_the_condition_is_about_sets_of_candidates():
    """RRSw passes where every lead is present, and fails where one may be missing."""
    p, tail = row_of([F(1, 4), F(1, 2), F(1, 4)]), row_of([F(0), F(1, 4), F(3, 4)])
    with_lead = verifiers.answers(rrsw, p, tail, (0,), 1, 1, exact_law)
    with_both = verifiers.answers(rrsw, p, tail, (0, 2), 1, 1, exact_law)
    without = verifiers.answers(rrsw, p, tail, (), 1, 1, exact_law)
    assert [verifiers.emitted(with_lead, v) for v in range(3)] == [verifiers.emitted(with_both, v) for v in range(3)]
    assert [verifiers.emitted(with_lead, v) for v in range(3)] != [verifiers.emitted(without, v) for v in range(3)]
