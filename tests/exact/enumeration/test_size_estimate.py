"""Sizes told before long work: of the right order, and said only where they matter."""

import pytest

from exact.cli import options
from exact.enumeration.rationals import rational_models
from exact.enumeration.size_estimate import Work, unpruned_outcomes, work
from exact.enumeration.tree_classes import grown_classes
from rheo_core import ModelPair, TreeShape
from tests.pairs import both, rational, rule

pytestmark = pytest.mark.exact


def drafter(name, shape, row, **changes):
    """The pools of a built-in method on one row."""
    return rule(name, **changes).drafter(rational_models(ModelPair(*both(row))), shape)


@pytest.mark.parametrize(
    ("shape", "row"), [(TreeShape(3, 3, 8), rational(5, 3, 2)), (TreeShape(4, 2, 10), [1 / 8] * 8)]
)
def test_classes_are_estimated_within_a_factor_of_two(shape, row):
    pools = drafter("rheo", shape, row)
    right = sum(1 for _ in grown_classes(pools, (), shape))
    found = work(pools, (), shape)
    assert found.kind == "classes"
    assert right / 2 <= found.count <= right * 2


def test_unpruned_trees_are_counted_where_growth_cannot_follow():
    shape = TreeShape(3, 2, 4)
    pools = drafter("rheo-raw", shape, rational(4, 3, 2, 1))
    assert work(pools, (), shape) == Work("unpruned trees", 3**4)
    assert unpruned_outcomes(pools, (), shape) == 81


@pytest.mark.parametrize(("count", "said"), [(1000, "some 0 s"), (2_000_000, "some 5 min"), (10**12, "many hours")])
def test_the_size_is_said_in_words(count, said):
    assert said in str(Work("unpruned trees", count))


def test_long_work_is_announced_and_short_work_is_not(monkeypatch, capsys):
    from exact.cli.main import app

    monkeypatch.setattr("exact.cli.certify.run", lambda *_, **__: [])
    assert options.run(app, ["certify", "rheo-raw", "--width", "5"]) == 0
    assert "unpruned trees" in capsys.readouterr().err
    assert options.run(app, ["certify", "rheo"]) == 0
    assert capsys.readouterr().err == ""
