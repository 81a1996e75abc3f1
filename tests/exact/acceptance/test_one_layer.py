"""Acceptance of one layer and of whole trees, the rheostat, and the choice of a way to run."""

from fractions import Fraction as F

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact import certify
from exact.acceptance.one_layer import (
    Costs,
    acceptance_length,
    choices,
    drafted_sets,
    one_layer,
    over_leads,
    shapes_within,
)
from exact.methods import methods
from exact.methods.rows_file import shipped_rows
from rheo_core import InvalidInput, ModelPair, TreeMethod, TreeShape, rates
from tests.pairs import HAND_MADE, alike, both, drawn_models, rational, shapes

pytestmark = pytest.mark.exact

SHAPE = TreeShape(3, 2, 5)


@pytest.mark.parametrize("name", ["rheo", "rheo-rrsw", "top-k", "rrsw", "block", "opt-tree"])
@pytest.mark.parametrize("models", HAND_MADE[:6], ids=repr)
def test_the_length_is_the_certificate_s(name, models):
    length = acceptance_length(methods[name], models.pair(), TreeShape(2, 2, 4))
    assert length == certify(name, models.target, models.draft, TreeShape(2, 2, 4)).acceptance_length


@given(drawn_models(most=3), shapes(width=3, depth=2))
@settings(max_examples=40)
def test_m_of_the_width_is_the_plain_top_k(models, shape):
    *_, last = over_leads(methods["rheo"], shape)
    assert last.lead == shape.width
    assert acceptance_length(last, models.pair(), shape) == acceptance_length(methods["top-k"], models.pair(), shape)


@given(drawn_models(most=4), st.integers(0, 4), st.integers(1, 4))
@settings(max_examples=60)
def test_one_layer_of_rheo_is_theorem_3(models, m, width):
    width = min(width, models.size)
    m = min(m, width)
    (rule,) = over_leads(methods["rheo"], TreeShape(width, 1, width), [m])
    layer = one_layer(rule, models.pair(), width)
    p, q = models.target(()), models.draft(())
    assert layer.acceptance == rates.rheo_rate(p, q, m, width)
    assert layer.optimum == rates.optimal_rate(p, q, m, width)
    assert layer.gap == layer.optimum - layer.acceptance


def test_the_drafted_sets_of_a_fixed_topology_are_those_of_its_cycle():
    pair = ModelPair(*both(rational(3, 2, 1)))
    for name in ("rrs", "rrsw", "spechub", "greedy-hybrid", "static"):
        method = methods[name]
        whole = TreeMethod.cycle if isinstance(method, TreeMethod) else type(method).cycle
        quick = drafted_sets(method, pair, 2)

        class Hidden:
            name, claim = "hidden", None

            def cycle(self, *arguments, rule=method, run=whole):
                return run(rule, *arguments)

        assert drafted_sets(Hidden(), pair, 2) == quick


def test_at_temperature_0_the_rheostat_at_0_meets_top_k():
    """Section 5.5: greedy target; m = 0 drafts the draft's best token twice over and so accepts as top-K does."""
    for rows in shipped_rows(temperature=0):
        pair = ModelPair(rows.target, rows.draft, rows.ids)
        shape = TreeShape(3, 3, 8)
        zero, one = over_leads(methods["rheo"], shape, [0, 1])
        top = acceptance_length(methods["top-k"], pair, shape)
        assert acceptance_length(zero, pair, shape) == top
        assert acceptance_length(one, pair, shape) >= top


def test_the_best_way_to_run_depends_on_the_costs():
    pair = ModelPair(alike(rational(5, 2, 3)), alike(rational(5, 3, 2)))
    rules = list(over_leads(methods["rheo"], SHAPE, [0, 1]))
    options = shapes_within(SHAPE)
    assert {shape.depth for shape in options} == {1, 2}
    assert max(shape.budget for shape in options if shape.depth == 1) == 3

    def best(costs):
        return max(choices(rules, [pair], options, costs), key=lambda choice: choice.speed)

    cheap, dear = best(Costs(0.01, 1.0)), best(Costs(10.0, 1.0))
    assert cheap.shape.depth == 2
    assert dear.shape.depth == 1
    assert cheap.speed == pytest.approx(float(cheap.acceptance_length) / 1.02)
    assert best(Costs(0.01, 1.0, node=10.0)).shape.budget == 1
    assert best(Costs(0.0, 1.0)).acceptance_length == max(
        acceptance_length(rule, pair, shape) for rule in rules for shape in options
    )


def test_tau_is_averaged_over_the_rows():
    pairs = [ModelPair(*both(rational(1, 1))), ModelPair(alike([1, 0]), alike([0, 1]))]
    (choice,) = choices([methods["top-k"]], pairs, [TreeShape(1, 1, 1)], Costs(1, 1))
    assert choice.acceptance_length == (F(3, 2) + 1) / 2


@pytest.mark.parametrize("costs", [(-1, 1), (1, float("nan")), (0, 0), (float("inf"), 1)])
def test_costs_that_mean_nothing_are_refused(costs):
    with pytest.raises(InvalidInput, match="cost"):
        Costs(*costs)


def test_only_methods_with_a_lead_are_swept():
    with pytest.raises(InvalidInput, match="a lead m to sweep"):
        list(over_leads(methods["top-k"], SHAPE))


def test_a_cycle_without_a_tree_has_no_optimum_to_be_held_against():
    from exact.acceptance.one_layer import one_layer
    from rheo_core import ModelPair, method
    from tests.pairs import alike, rational

    @method
    def bare(target, draft, prefix, shape, chooser):
        p, q = target(prefix), draft(prefix)
        x = chooser.index(q)
        if chooser.accept(min(1, p[x] / q[x])):
            return [x, chooser.index(target((*prefix, x)))]
        return [chooser.index([max(0, a - b) for a, b in zip(p, q, strict=True)])]

    layer = one_layer(bare, ModelPair(alike(rational(5, 3, 2)), alike(rational(7, 2, 1))), 1)
    assert (layer.acceptance, layer.optimum, layer.gap) == (rational(4, 1)[0], None, None)
