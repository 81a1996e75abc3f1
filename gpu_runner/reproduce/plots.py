"""Figures 3 and 4 from a run's results: acceptance length against m, and against temperature (extra `plot`).

What matters is the distance to top-k, so bars are the paired 95 % intervals of that difference, drawn around each
method's own value; a method's own spread, mostly that between questions, would hide it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exact.report.style import CYCLE, INK, MUTED, save_figure, style
from gpu_runner.decode.methods import BASELINE
from gpu_runner.reproduce.experiments import Cell
from gpu_runner.reproduce.paper import FINDINGS
from gpu_runner.reproduce.results import ResultRow
from gpu_runner.reproduce.tables import heading, title_of
from rheo_core import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpu_runner.reproduce.run import Report

GIVEN, COUNTED = "given trees, on the same contexts", "counted, on own texts"
SHIFT, APART = 0.08, 0.012
"""How far points of one x stand apart: counted from expected ones (figure 3), methods from each other (figure 4)."""


@dataclass(frozen=True)
class Point:
    """A value at `x`; `half` is half the interval of its difference to top-k, 0 where there is none."""

    x: float
    y: float
    half: float = 0.0


@dataclass(frozen=True)
class Curve:
    """One method's points, by what was measured."""

    label: str
    colour: str
    given: tuple[Point, ...]
    counted: tuple[Point, ...]


def sweep_figure(report: Report, path: Path) -> None:
    """Draw figure 3 or 4 to a file (png, svg or pdf): a panel for each question set that has results."""
    from matplotlib.figure import Figure

    sets = list(dict.fromkeys(row.question_set for row in report.rows if row.question_set is not None))
    if not sets:
        raise InvalidInput("plot", "no results", "at least one question that every method has answered")
    columns = 2 if len(sets) == 4 else min(len(sets), 3)
    rows = math.ceil(len(sets) / columns)
    with style():
        figure = Figure(figsize=(max(6.4, 3.7 * columns), 0.9 + 2.8 * rows))
        panels = figure.subplots(rows, columns, squeeze=False)
        draw = _draw_leads if report.experiment.name == "figure3" else _draw_temperatures
        for panel, name in zip(panels.flat, sets, strict=False):
            draw(panel, report, [row for row in report.rows if row.question_set == name])
            panel.set_title(title_of(name))
        for panel in panels.flat[len(sets) :]:
            panel.remove()
        for row in panels[:, 0]:
            row.set_ylabel("acceptance length τ")
        title, pair, setting = heading(report.arguments, report.sources)[:3]
        figure.suptitle(f"{title}\n\n", x=0.01, ha="left", fontsize=11, weight="bold", linespacing=1.45)
        said = f"{pair}\n{setting}\nthe paper, on its own pairs: {FINDINGS[report.experiment.name]}"
        figure.text(0.01, 1 - 0.47 / figure.get_figheight(), said, fontsize=7, color=MUTED, va="center")
        handles, labels = panels.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2 if rows > 1 or columns == 1 else 5)
    save_figure(figure, path)


def lead_curve(rows: Sequence[ResultRow]) -> Curve:
    """Figure 3: rheo's points at x = m."""
    mine = [(int(row.method.rpartition("=")[2]), row) for row in rows if row.method.startswith("rheo m=")]
    return _curve("rheo", CYCLE[0], sorted(mine, key=lambda pair: pair[0]))


def temperature_curves(cells: Sequence[Cell], rows: Sequence[ResultRow]) -> list[Curve]:
    """Figure 4: a curve for each method, at x = T."""
    temperatures = {cell.name: cell.temperature for cell in cells}
    curves = []
    colours = iter(CYCLE)
    for label in dict.fromkeys(row.method for row in rows):
        mine = [(temperatures[row.cell], row) for row in rows if row.method == label]
        colour = MUTED if label == BASELINE else next(colours)
        curves.append(_curve(label, colour, sorted(mine, key=lambda pair: pair[0])))
    return curves


def _curve(label: str, colour: str, rows: Sequence[tuple[float, ResultRow]]) -> Curve:
    given = tuple(_point(x, e.given_trees, e.given_difference) for x, e in rows if e.given_trees is not None)
    counted = tuple(_point(x, e.mean, e.difference) for x, e in rows if e.mean is not None)
    return Curve(label, colour, given, counted)


def _point(x: float, y: float | None, difference: Any) -> Point:
    assert y is not None
    half = 0.0 if difference is None or math.isnan(difference.low) else difference.high - difference.mean
    return Point(x, y, half)


def _draw_leads(panel: Axes, report: Report, rows: Sequence[ResultRow]) -> None:
    curve = lead_curve(rows)
    baseline = next((row for row in rows if row.method == BASELINE), None)
    if baseline is not None and baseline.given_trees is not None:
        panel.axhline(baseline.given_trees, color=CYCLE[0], linestyle="--", linewidth=1.2, label=f"top-k, {GIVEN}")
    if baseline is not None and baseline.mean is not None:
        panel.axhline(baseline.mean, color=MUTED, linestyle=":", linewidth=1.2, label=f"top-k, {COUNTED}")
    _bars(panel, curve.given, CYCLE[0], f"rheo, {GIVEN}", 0.0)
    _bars(panel, curve.counted, MUTED, f"rheo, {COUNTED}", SHIFT if curve.given else 0.0, hollow=bool(curve.given))
    panel.set_xticks([int(point.x) for point in curve.given or curve.counted])
    panel.set_xlabel("m, deterministic leads before the sampled slot")


def _draw_temperatures(panel: Axes, report: Report, rows: Sequence[ResultRow]) -> None:
    curves = temperature_curves(report.experiment.cells, rows)
    for number, curve in enumerate(curves):
        shift = APART * (number - (len(curves) - 1) / 2)
        _bars(panel, curve.given or curve.counted, curve.colour, curve.label, shift)
        if curve.given:
            places = [point.x + shift for point in curve.counted]
            panel.plot(places, [point.y for point in curve.counted], "o", mfc="none", mec=curve.colour)
    if any(curve.given and curve.counted for curve in curves):
        panel.plot([], [], "o", mfc="none", mec=INK, label=COUNTED)
    greedy = next(iter(curves[0].given or curves[0].counted), None)
    if greedy is not None and greedy.x == 0:
        panel.axhline(greedy.y, color=MUTED, linestyle="--", linewidth=1.0, label=f"{curves[0].label} at T = 0")
    panel.set_xticks([cell.temperature for cell in report.experiment.cells])
    panel.set_xlabel("temperature T")


def _bars(panel: Axes, points: Sequence[Point], colour: str, label: str, shift: float, hollow: bool = False) -> None:
    """Points with their intervals, joined by a line; hollow ones are not joined."""
    if points:
        panel.errorbar(
            [point.x + shift for point in points],
            [point.y for point in points],
            [point.half for point in points],
            fmt="o" if hollow else "o-",
            mfc="white" if hollow else colour,
            color=colour,
            elinewidth=1.0,
            capsize=2.5,
            label=label,
        )
