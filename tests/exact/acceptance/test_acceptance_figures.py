"""The pictures of acceptance show the numbers that were computed, each at its place."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")

from exact.acceptance.one_layer import acceptance_length
from exact.acceptance.sweeps import Sweep, survival_mean, sweep, sweep_mean, versions_of
from exact.methods import methods
from exact.methods.load import with_lead
from exact.methods.rows_file import parse_rows, shipped_rows
from exact.report.acceptance import PANELS, Measured, comparison_figure, sweep_figure
from rheo_core import ModelPair, TreeShape

SHAPE = TreeShape(2, 2, 3)
LEVELS = (0.5, 1.0)


@pytest.fixture(scope="module")
def swept():
    """Rheo and RRSw at every m, and a method without m, on two files and two temperatures."""
    rules = [each for name in ("rheo", "rheo-rrsw", "chain") for each in versions_of(methods[name], SHAPE)]
    files = [file for level in LEVELS for file in shipped_rows(level) if file.name in ("gsm8k-3", "qa-332")]
    return list(sweep(rules, files, SHAPE))


def curve(ax, name):
    """The points of a line by its label."""
    (line,) = [line for line in ax.lines if line.get_label() == name]
    return list(zip(line.get_xdata(), line.get_ydata(), strict=True))


def test_a_sweep_is_the_acceptance_length_at_each_place(swept):
    (file,) = [file for file in shipped_rows(0.5) if file.name == "qa-332"]
    right = acceptance_length(with_lead(methods["rheo"], 1), ModelPair(file.target, file.draft), SHAPE)
    (point,) = [
        each
        for each in swept
        if (each.method.name, each.lead, each.rows, each.temperature) == ("rheo", 1, "qa-332", 0.5)
    ]
    assert point.acceptance_length == right
    assert len(swept) == 2 * 2 * 7
    both = [each.acceptance_length for each in swept if each.method.name == "chain" and each.temperature == 1]
    assert sweep_mean(swept, "chain", 1) == float(sum(both, Fraction(0)) / 2)


def test_against_m_there_is_a_curve_for_each_method_and_a_line_for_top_k(swept):
    figure = sweep_figure(swept, SHAPE, over=["m"])
    assert [ax.get_title("left") for ax in figure.axes] == ["gsm8k-3", "qa-332", "mean"]
    for ax, rows in zip(figure.axes, ("gsm8k-3", "qa-332", None), strict=True):
        for name in ("rheo", "rheo-rrsw"):
            assert curve(ax, name) == [(m, sweep_mean(swept, f"{name} m={m}", 1, rows)) for m in (0, 1)]
        assert {y for _, y in curve(ax, "top-k")} == {sweep_mean(swept, "rheo m=2", 1, rows)}
        assert {y for _, y in curve(ax, "chain")} == {sweep_mean(swept, "chain", 1, rows)}
    cooler = sweep_figure(swept, SHAPE, over=["m"], temperature=0.5)
    assert curve(cooler.axes[2], "rheo")[1] == (1, sweep_mean(swept, "rheo m=1", 0.5))


def test_survival_is_drawn_against_m(swept):
    figure = sweep_figure(swept, SHAPE, over=["survival"])
    for ax, rows in zip(figure.axes, ("gsm8k-3", "qa-332", None), strict=True):
        for name in ("rheo", "rheo-rrsw"):
            expected: list[tuple[int, Any]] = [(m, survival_mean(swept, f"{name} m={m}", 1, rows)) for m in (0, 1, 2)]
            assert curve(ax, name) == expected
            assert expected[0][1] > expected[2][1] == 0


def test_against_the_temperature_there_is_a_curve_for_each_m(swept):
    figure = sweep_figure(swept, SHAPE, over=["temperature"])
    mean = figure.axes[2]
    assert curve(mean, "rheo m=0") == [(level, sweep_mean(swept, "rheo m=0", level)) for level in LEVELS]
    assert curve(mean, "top-k") == [(level, sweep_mean(swept, "rheo m=2", level)) for level in LEVELS]
    shown = mean.get_legend()
    assert shown is not None
    legend = [text.get_text() for text in shown.get_texts()]
    assert sorted(legend) == sorted(set(legend)) == ["chain", *(f"rheo m={m}" for m in (0, 1)),
                                                     *(f"rheo-rrsw m={m}" for m in (0, 1)), "top-k"]  # fmt: skip


def test_what_was_not_swept_is_not_drawn(swept):
    assert len(sweep_figure(swept, SHAPE).axes) == 9
    one_level = [each for each in swept if each.temperature == 1]
    assert [ax.get_xlabel() for ax in sweep_figure(one_level, SHAPE).axes] == ["m"] * 6
    without_m = [each for each in swept if each.lead is None]
    assert [ax.get_xlabel() for ax in sweep_figure(without_m, SHAPE).axes] == ["temperature"] * 3
    one_file = [each for each in swept if each.rows == "qa-332"]
    assert [ax.get_title("left") for ax in sweep_figure(one_file, SHAPE).axes] == ["qa-332"] * 3
    many = [
        Sweep(each.method, f"{each.rows}/{number}", each.temperature, each.acceptance_length, each.sampled_kept)
        for each in swept
        for number in range(PANELS)
    ]
    assert [ax.get_title("left") for ax in sweep_figure(many, SHAPE).axes] == ["mean"] * 3


def test_bars_stand_for_means_and_marks_for_optima():
    measured = [
        Measured("good", "one", True, 0.5, 0.6, 2.0),
        Measured("good", "two", True, 0.7, 0.8, 3.0),
        Measured("bad", "one", True, 0.9, 0.9, 2.2),
        Measured("bad", "two", False, 0.3, None, 2.0),
    ]
    figure = comparison_figure(measured, "shape")
    layer, tree = figure.axes
    assert [text.get_text() for text in layer.get_yticklabels()] == ["bad", "good"]
    assert [bar.get_path().get_extents(bar.get_patch_transform()).x1 for bar in layer.patches] == pytest.approx(
        [0.6, 0.6]
    )
    assert [bar.get_path().get_extents(bar.get_patch_transform()).x1 for bar in tree.patches] == pytest.approx(
        [2.1, 2.5]
    )
    assert [bool(bar.get_hatch()) for bar in tree.patches] == [True, False]
    marks = [line for line in layer.lines if line.get_linewidth() == 2]
    assert [tuple(np.asarray(line.get_xdata())) for line in marks] == [pytest.approx((0.7, 0.7))]
    assert (layer.get_xlim()[0], tree.get_xlim()[0]) == (0, 1)


def test_a_file_may_have_any_name():
    """No mathematics is made of it."""
    text = json.dumps({"contexts": {"*": {"target": ["1/2", "1/2"], "draft": ["1/4", "3/4"]}}})
    rows = parse_rows(text, "odd $\\frac$ name")
    figure = sweep_figure(list(sweep([with_lead(methods["rheo"], 1)], [rows], SHAPE)), SHAPE)
    figure.draw_without_rendering()
    assert figure.axes[0].get_title("left") == "odd $\\frac$ name"
