"""tau and the first token by closed forms at each node, held to the enumeration of every coin."""

import random
from dataclasses import replace
from fractions import Fraction as F
from typing import Any

import pytest

from exact.acceptance.layer_verdict import WIDE, LayerVerdict
from exact.acceptance.tree_sums import TreeSums, _NodeRates
from exact.enumeration.cycle_law import acceptance_by_depth, cycle_law
from exact.enumeration.rationals import fraction, rational_models
from rheo_core import SAMPLED, ModelPair, TreeShape
from rheo_core.verification import algorithm_1, vanilla
from tests.exact.acceptance.test_one_pool import drawn_row
from tests.pairs import both, rational, rule, varied

pytestmark = pytest.mark.exact
NAMES = ("rheo", "rheo-next", "rheo-z", "top-k", "rheo-rrsw", "rheo-rrsw-z")


def drawn_case(seed):
    rng = random.Random(seed)
    size, width = rng.randint(1, 5), rng.randint(1, 4)
    method = rule(rng.choice(NAMES))
    if method.lead is not None:
        method = replace(method, lead=min(width, rng.choice([0, 1, 1, 2, 3])))
    if rng.random() < 0.1:
        method = replace(method, verify=vanilla)
    ids = rng.sample(range(size + 1), size) if rng.random() < 0.3 else None
    target = varied(*(drawn_row(rng, size + (ids is not None)) for _ in range(3)))
    draft = varied(*(drawn_row(rng, size) for _ in range(3)))
    return method, ModelPair(target, draft, ids), TreeShape(width, rng.randint(1, 3), rng.randint(1, 8))


def agrees(seed):
    """Whether the sums of one case are those of its enumeration; True where it has too many classes."""
    method, pair, shape = drawn_case(seed)
    found: Any = TreeSums.of(method, pair, shape)
    if found.classes > 300:
        return True
    exact = rational_models(pair)
    emitted, classes = cycle_law(method, exact, (), shape)
    law = [F(0)] * len(exact.p(()))
    for tokens, weight in emitted.items():
        law[tokens[0]] += fraction(weight)
    kept = sum((fraction(each.probability) * int((each.tree.kind == SAMPLED).sum()) for each in classes or ()), F(0))
    right = law, sum(acceptance_by_depth(emitted, shape.depth)), kept
    return (found.first.law(), found.acceptance_length, found.sampled_kept) == right


@pytest.mark.parametrize("block", range(3))
def test_the_sums_are_those_of_every_coin(block):
    assert [seed for seed in range(100 * block, 100 * block + 100) if not agrees(seed)] == []


def test_a_faulty_rate_would_be_seen(monkeypatch):
    """Planted: RRSw's leads are not taken out of p before Y is tested."""
    monkeypatch.setattr(_NodeRates, "left", lambda self, context, leads: 1)
    assert not all(agrees(seed) for seed in range(100))


def test_other_parts_take_the_general_path():
    def mine(*arguments):
        return algorithm_1(*arguments)

    pair, shape = ModelPair(*both(rational(3, 2, 1))), TreeShape(2, 2, 3)
    assert TreeSums.of(rule("rheo", verify=mine), pair, shape) is None
    assert TreeSums.of(rule("rheo-raw"), pair, shape) is None


def test_the_first_token_of_a_wide_tree_is_judged():
    row, other = rational(*range(1, WIDE + 1)), rational(*range(WIDE + 40, 40, -1))
    pair = ModelPair(varied(row, other), varied([F(1, 2), F(1, 3), F(1, 6), *[F(0)] * (WIDE - 3)]))
    judged: Any = LayerVerdict.of(rule("rheo"), pair, TreeShape(2, 2, 4))
    emitted, classes = cycle_law(rule("rheo"), rational_models(pair), (), TreeShape(2, 2, 4))
    assert (judged.lossless, judged.classes) == (True, len(classes or ()))
    assert judged.acceptance_length == sum(acceptance_by_depth(emitted, 2))
    assert "first 1 tokens" in judged.scope
