"""Methods of every kind pass the same door: 1 to D+1 ids a cycle, each accepted token the candidate that it names."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from exact import certify
from exact.enumeration import fixed_trees
from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods import methods
from rheo_core import Cycle, InvalidInput, SamplingChooser, TreeMethod, TreeShape, generate, method, speculate
from rheo_core.tree import Nodes
from tests.pairs import alike, rational

pytestmark = pytest.mark.exact

TARGET, DRAFT = alike(rational(1, 2, 3)), alike(rational(3, 2, 1))
SHAPE = TreeShape(2, 1, 2)
FIXED: Any = next(each for each in methods.values() if isinstance(each, FixedTreeMethod))
NO_TREE = Nodes().tree(np.dtype(object))


@dataclass(frozen=True)
class Returning:
    """A method of no known kind: a class with a cycle."""

    tokens: Any
    name: str = "own"
    claim: None = None

    def cycle(self, target, draft, prefix, shape, chooser, ids=None):
        return self.tokens


RESULTS = {
    "none": [],
    "too many": [0, 0, 0],
    "out of range": [3],
    "negative": [-1],
    "bool": [True],
    "float": [0.0],
    "a float array": np.array([0.0]),
    "a table": np.array([[0]]),
    "a number": 1,
    "no result": None,
    "text": "0",
    "a set": {0},
    "a cycle of none": Cycle((), 0, NO_TREE),
    "a cycle too long": Cycle((0, 0, 0), 2, NO_TREE),
    "a cycle of a bool": Cycle((True,), 0, NO_TREE),
}


@pytest.mark.parametrize("given", RESULTS.values(), ids=RESULTS)
def test_a_cycle_emits_one_to_depth_plus_one_ids_whatever_kind_of_method_it_is(given):
    marked = method(lambda target, draft, prefix, shape, chooser: given)
    for rule in (Returning(given), marked):
        with pytest.raises(InvalidInput, match=r"^(tokens|token|result)"):
            certify(rule, TARGET, DRAFT, SHAPE)
        with pytest.raises(InvalidInput, match=r"^(tokens|token|result)"):
            speculate(TARGET, DRAFT, (), rule, SHAPE, SamplingChooser(np.random.default_rng(0)))
        with pytest.raises(InvalidInput, match=r"^(tokens|token|result)"):
            generate(TARGET, DRAFT, (), rule, SHAPE, SamplingChooser(np.random.default_rng(0)), 3)


VERDICTS = {
    "another token": lambda node, candidates, chooser: (chooser.index(node.p), 0 if candidates else -1),
    "a bool as child": lambda node, candidates, chooser: (candidates[0], False) if candidates else (0, -1),
    "a float as child": lambda node, candidates, chooser: (candidates[0], 0.0) if candidates else (0, -1),
    "an index beyond": lambda node, candidates, chooser: (0, len(candidates)),
    "a list": lambda node, candidates, chooser: [0, -1],
    "an id beyond": lambda node, candidates, chooser: (len(node.p), -1),
    "a candidate put in": lambda node, candidates, chooser: (candidates.insert(0, 0), (0, 0))[1],
}


@pytest.mark.parametrize("verify", VERDICTS.values(), ids=VERDICTS)
def test_what_is_accepted_is_the_candidate_that_it_names_in_every_kind_of_tree(verify):
    fixed = replace(FIXED, name="own", verify=verify)

    def of_tree(p, tail, candidates, sampled, lead, chooser, at):
        return verify(fixed_trees.Node(p, p, (), len(candidates), at), candidates, chooser)

    for rule in (fixed, TreeMethod("own", None, lead=1, verify=of_tree)):
        with pytest.raises(InvalidInput, match=r"^(child|token emitted|result of verify)"):
            certify(rule, TARGET, DRAFT, SHAPE)


def test_what_is_drafted_fits_its_slots():
    for siblings in ([(0, 0)] * 3, [(3, 0)], [(0.5, 0)], [0], None):
        rule = replace(FIXED, name="own", draft=lambda node, chooser, drafted=siblings: drafted)
        with pytest.raises(InvalidInput, match=r"^(siblings|token) drafted by own"):
            certify(rule, TARGET, DRAFT, TreeShape(2, 1, 2))


def test_without_the_door_another_token_than_the_child_named_would_pass(monkeypatch):
    """Planted fault: the text goes on below the child, whose token was never emitted, and no law shows it."""
    rule = replace(FIXED, name="own", verify=VERDICTS["another token"])
    monkeypatch.setattr(fixed_trees, "check_verdict", lambda verdict, candidates, size: verdict)
    assert certify(rule, TARGET, DRAFT, SHAPE).lossless
