"""The layout of draft trees: what makes a drawing readable holds for every tree that is drawn."""

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.classes import classes
from exact.tree_layout import tree_layout
from rheo_core import Pair, Tree, TreeShape, methods

pytestmark = pytest.mark.exact


@st.composite
def trees(draw):
    """Trees of up to 30 nodes in which every parent stands before its children and slots differ among siblings."""
    size = draw(st.integers(0, 30))
    parent = [draw(st.integers(-1, node - 1)) for node in range(size)]
    depth, slots, counts = [], [], {}
    for above in parent:
        depth.append(1 if above == -1 else depth[above] + 1)
        slots.append(counts.setdefault(above, 0))
        counts[above] += 1
    columns = [np.array(column, dtype=np.int64) for column in (range(size), parent, depth, slots, [0] * size)]
    return Tree(*columns, np.zeros(size))


@settings(max_examples=200, deadline=None)
@given(trees())
def test_nothing_overlaps_and_nothing_crosses(tree):
    layout = tree_layout(tree)
    assert layout.width == max(1, sum(node not in set(tree.parent.tolist()) for node in range(len(tree))))
    assert layout.height == max(tree.depth.tolist(), default=0)
    for depth in range(1, layout.height + 1):
        level = sorted((layout.place(node)[0], node) for node in range(len(tree)) if tree.depth[node] == depth)
        assert all(b[0] - a[0] >= 1 for a, b in zip(level, level[1:], strict=False)), "nodes of a level stand apart"
        parents = [layout.place(int(tree.parent[node]))[0] for _, node in level]
        assert parents == sorted(parents), "edges between two levels do not cross"
    for node in (-1, *range(len(tree))):
        below = [layout.place(child)[0] for child in tree.children(node)]
        assert below == sorted(below), "siblings stand in slot order"
        if below:
            assert layout.place(node)[0] == (below[0] + below[-1]) / 2
        assert 0 <= layout.place(node)[0] <= layout.width - 1


def test_every_class_of_a_real_method_is_laid_out():
    row = [F(1, 2), F(1, 4), F(1, 4)]
    shape = TreeShape(3, 3, 6)
    drafter = methods["rheo"].drafter(Pair(lambda prefix: row, lambda prefix: row), shape)
    for each in classes(drafter, (), shape):
        layout = tree_layout(each.tree)
        assert len(layout.x) == len(layout.edges) == 6
        assert len({layout.place(node) for node in range(-1, 6)}) == 7
