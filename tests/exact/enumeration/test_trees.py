"""Trees as values: equality, paths, children and pruning, which every other check of trees relies on."""

from dataclasses import replace

import numpy as np
import pytest

from rheo_core import InvalidInput, Tree, TreeShape

pytestmark = pytest.mark.exact


def tree():
    """Root with slots 0 (token 5) and 1 (token 7, sampled); below slot 1 a fill in slot 2 and a lead in slot 0."""
    return Tree(
        token=np.array([5, 7, 3, 4]),
        parent=np.array([-1, -1, 1, 1]),
        depth=np.array([1, 1, 2, 2]),
        slot=np.array([0, 1, 2, 0]),
        kind=np.array([0, 1, 2, 0]),
        score=np.array([0.5, 0.4, 0.2, 0.1]),
    )


def test_trees_are_equal_when_all_that_makes_a_class_and_all_scores_are():
    assert tree() == tree()
    assert hash(tree()) == hash(tree())
    assert len({tree(), tree()}) == 1
    for name in ("token", "parent", "slot", "kind", "score"):
        changed = getattr(tree(), name).copy()
        changed[-1] = 0 if name == "parent" else changed[-1] + 1
        other = replace(tree(), **{name: changed})
        assert other != tree()
        assert (other.key() == tree().key()) == (name == "score")
    assert tree() != "a tree"


def test_paths_children_and_pruning():
    assert [tree().path(node) for node in (-1, 0, 1, 2, 3)] == [(), (0,), (1,), (1, 2), (1, 0)]
    assert [tree().tokens_to(node) for node in (-1, 2)] == [(), (7, 3)]
    assert [tree().children(node) for node in (-1, 0, 1)] == [[0, 1], [], [3, 2]]
    assert tree().first(4) == tree()
    pruned = tree().first(3)
    assert len(pruned) == 3
    assert pruned.token.tolist() == [5, 7, 3]
    assert pruned.score.tolist() == [0.5, 0.4, 0.2]


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, True), (1, 1.0, 1)])
def test_a_shape_of_nothing_is_refused(shape):
    with pytest.raises(InvalidInput, match="an int of at least 1"):
        TreeShape(*shape)
