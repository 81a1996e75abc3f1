"""Figures 3 and 4: the points that are drawn are the results', and a file comes out."""

import math
from dataclasses import fields

import pytest

from gpu_runner.measure.statistics import Interval
from gpu_runner.reproduce.experiments import Arguments, find_experiment
from gpu_runner.reproduce.plots import Point, lead_curve, sweep_figure, temperature_curves
from gpu_runner.reproduce.results import ResultRow
from gpu_runner.reproduce.run import Report
from rheo_core import InvalidInput

SOURCE = {"device": "a machine", "draft_rope_base": None, "target": "tiny", "draft": "smaller", "dtype": "float32"}


def row(method, name, mean, given, half=0.1, cell=""):
    rest = {field.name: None for field in fields(ResultRow)}
    numbers = {"questions": 3, "answers": 3, "cycles": 9, "contexts": 9, "by_depth": (), "given_by_depth": ()}
    difference = None if half is None else Interval(0.2, 0.2 - half, 0.2 + half)
    mine = {"cell": cell, "method": method, "question_set": name, "mean": mean, "given_trees": given}
    return ResultRow(**{**rest, **numbers, **mine, "difference": difference, "given_difference": difference})


def report(name, rows):
    experiment = find_experiment(name)
    arguments = Arguments(
        experiment=name, target="tiny", draft="smaller", dtype="float32", device="cpu", threads=1, rope_base=None,
        plain=False, fault=None, width=10, depth=8, budget=59, temperature=1.0, support=128, length=64, seeds=2, seed=0,
        on="both", asked={"gsm8k": [1, 2, 3], "qa": [1, 2, 3]}, digest="",
    )  # fmt: skip
    return Report(arguments, (SOURCE,), experiment, tuple(rows), None, 1, 1)


def leads(name, given=True):
    shown = (lambda value: value) if given else (lambda value: None)
    base = row("top-k", name, 3.0, shown(3.1), None)
    return [base, *(row(f"rheo m={m}", name, 3.4 - 0.1 * m, shown(3.5 - 0.1 * m)) for m in (0, 1, 2, 10))]


def test_the_points_of_figure_3():
    curve = lead_curve(leads("qa"))
    assert [point.x for point in curve.given] == [0, 1, 2, 10]
    assert (curve.given[1].x, curve.given[1].y, curve.given[1].half) == pytest.approx((1, 3.4, 0.1))
    assert curve.counted[3].y == pytest.approx(2.4)
    assert lead_curve(leads("qa", given=False)).given == ()


def test_a_single_question_has_no_interval():
    curve = lead_curve([row("rheo m=1", "qa", 3.0, 3.0, math.nan)])
    assert curve.given == (Point(1, 3.0, 0.0),)


def test_the_points_of_figure_4():
    cells = find_experiment("figure4").cells
    found = [row(label, "qa", 3 - t, 3 - t, cell=f"T = {t:g}") for t in (1, 0, 0.4) for label in ("top-k", "rheo m=0")]
    base, rheo = temperature_curves(cells, found)
    assert (base.label, rheo.label) == ("top-k", "rheo m=0")
    assert [point.x for point in rheo.given] == [0, 0.4, 1]
    assert [point.y for point in rheo.given] == [3, 2.6, 2]
    assert base.colour != rheo.colour


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("name", ["figure3", "figure4"])
def test_a_file_comes_out(name, given, tmp_path):
    pytest.importorskip("matplotlib")
    found = [*leads("gsm8k", given), *leads("qa", given)]
    if name == "figure4":
        found = [
            row(label, data, 4 - t, 4.1 - t if given else None, cell=f"T = {t:g}")
            for data in ("gsm8k", "qa")
            for t in (0, 0.2, 1)
            for label in ("top-k", "rheo m=0", "rheo m=1")
        ]
    sweep_figure(report(name, found), tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text()
    assert drawn.startswith("<?xml")


def test_nothing_to_draw_is_said(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(InvalidInput, match="plot: got no results"):
        sweep_figure(report("figure3", []), tmp_path / "figure.png")
