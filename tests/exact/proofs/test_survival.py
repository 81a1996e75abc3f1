"""Survival of the sampled slot: the tree code on unknown rows, and the wrong proxies that it refutes with a row."""

from fractions import Fraction

import numpy as np
import pytest

from exact.proofs import survival
from exact.proofs.forks import Forks, Linear
from rheo_core import SAMPLED, ModelPair, TreeShape, proxies
from rheo_core.construction import expand
from rheo_core.pool import Drafter

pytestmark = pytest.mark.exact

F = Fraction


def test_depth_one_at_small_vocabularies():
    assert survival.prove_depth_one("paper", proxies.RHEO, 4).verdict == "proved"
    for proxy in (proxies.TAIL_MASS, proxies.NEXT_TOKEN):
        assert survival.prove_depth_one("in the interval", proxy, 4).verdict == "proved"


@pytest.mark.slow
def test_depth_one_to_eight_tokens():
    assert all(each.as_expected for each in survival.depth_one(survival.DEEP_VOCABULARY))


@pytest.mark.parametrize("proxy", [proxies.ADHOC, proxies.RAW, survival.HALF_NEXT])
def test_wrong_proxies_are_refuted_with_a_law(proxy):
    """The witness is a law on which rheo_core's own pool, in rationals, ranks the slot by its token."""
    found = survival.prove_depth_one("wrong", proxy, 4, "refuted")
    assert found.as_expected
    assert found.witness is not None
    case = found.witness.case
    q, m = case["q"], case["m"]
    assert sum(q) == 1
    assert q == sorted(q, reverse=True)
    ranks = set()
    for y in range(m, len(q)):
        if q[y]:
            ranks.add(rank_of_y(q, y, case["K"], m, proxy))
    assert len(ranks) > 1


def rank_of_y(q, y, width, m, proxy):
    """The rank that rheo_core gives the sampled slot of one pool on rationals when Y = y."""
    drafter = Drafter(ModelPair(lambda prefix: q, lambda prefix: q), width, m, proxy)
    tree = expand(drafter, (), TreeShape(width, 1, 1), survival.Drawn(lambda at, options: y))
    return int(np.flatnonzero(tree.kind == SAMPLED)[0])


def test_table_1_at_depth_one():
    q = [F(1, 2), F(3, 10), F(1, 5)]
    for proxy, expected in ((proxies.RHEO, {1}), (proxies.ADHOC, {1, 2})):
        assert {rank_of_y(q, y, 3, 1, proxy) for y in (1, 2)} == expected


def test_lemma_4():
    found = survival.prove_lemma_4()
    assert found.as_expected
    assert found.domain.startswith("every V")


def test_forks_take_both_sides_and_only_possible_ones():
    forks = Forks(["x", "y"], [(0, 1, 0), (0, 0, 1), (1, -1, -1)])  # x, y >= 0, x + y <= 1
    x, y = (Linear((0, *unit), forks) for unit in ((1, 0), (0, 1)))
    found = list(forks.runs(lambda: (x < y, y < x, x + y > 1)))
    assert sorted(found) == [(False, False, False), (False, True, False), (True, False, False)]
