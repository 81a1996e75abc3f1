"""The layout of draft trees: what makes a drawing readable holds for every tree that is drawn."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.report.layout import tree_layout

pytestmark = pytest.mark.exact


@st.composite
def trees(draw):
    """(parents, slots) of up to 30 nodes in which every parent stands before its children; slots in any order."""
    parents = [draw(st.integers(-1, node - 1)) for node in range(draw(st.integers(0, 30)))]
    slots = draw(st.permutations(range(len(parents))))
    return parents, slots


@settings(max_examples=200, deadline=None)
@given(trees(), st.sampled_from([0, 0.25]))
def test_nothing_overlaps_and_nothing_crosses(tree, gap):
    parents, slots = tree
    rows = range(len(parents))
    layout = tree_layout(parents, slots, gap)
    for depth in range(1, layout.columns):
        column = sorted((layout.place(row)[1], row) for row in rows if layout.depth[row] == depth)
        assert column, "no column is empty"
        for (above, upper), (below, lower) in pairwise(column):
            assert below - above >= 1, "nodes of a column stand apart"
            assert layout.place(parents[upper])[1] <= layout.place(parents[lower])[1], "branches do not cross"
    for row in (-1, *rows):
        children = sorted((child for child in rows if parents[child] == row), key=slots.__getitem__)
        lines = [layout.place(child)[1] for child in children]
        assert lines == sorted(lines), "siblings stand in slot order"
        if children:
            assert layout.place(row)[1] == (lines[0] + lines[-1]) / 2
            assert {layout.depth[child] for child in children} == {layout.place(row)[0] + 1}
        assert 0 <= layout.place(row)[1] <= layout.lines
    leaves = sorted(layout.line[row] for row in rows if row not in parents)
    assert all(apart in (1, 1 + gap) for apart in (b - a for a, b in pairwise(leaves)))


def test_families_of_leaves_stand_apart_by_the_gap():
    layout = tree_layout([-1, -1, 0, 0, 1], [0, 1, 0, 1, 0], gap=0.5)
    assert layout.line == (0.5, 2.5, 0.0, 1.0, 2.5)
    assert (layout.root, layout.lines) == (1.5, 2.5)


def test_an_empty_tree_is_its_root():
    layout = tree_layout([], [])
    assert (layout.root, layout.lines, layout.columns) == (0.0, 0.0, 1)
