"""Pictures of what a simulation, a plan or an audit says, for those who would rather look at them (extra `plot`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from exact.report import COLOURS, save_figure, style
from exact.report.style import CYCLE, FAINT, INK, MUTED
from montecarlo.auditing import Bias, Report
from montecarlo.planning import ErrorRates, MethodPower, plans, power
from montecarlo.simulation import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = 200
"""Points of a curve."""

TINY = 1e-12
"""A standard error of rounding alone."""

Evidence = Sequence[tuple[int, float]]
"""How the evidence went: tokens so far, log10 of the wealth."""


def draw_outcomes(outcomes: Sequence[tuple[str, Outcome]], path: Path) -> None:
    """Write the picture of simulations to a file."""
    save_figure(outcomes_figure(outcomes), path)


def outcomes_figure(outcomes: Sequence[tuple[str, Outcome]]) -> Figure:
    """Acceptance by depth, and how far each check came towards its radius, a colour for each (name, outcome)."""
    from matplotlib.figure import Figure

    checks = list(dict.fromkeys(each.name for _, outcome in outcomes for each in outcome.verdicts if each.fit.samples))
    with style():
        figure = Figure(figsize=(10, 1.6 + 0.22 * max(len(checks), 8)), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.2])
        for number, (name, outcome) in enumerate(outcomes):
            colour = CYCLE[number % len(CYCLE)]
            said = f"{name}: tau {outcome.acceptance_length:.3f} ± {outcome.standard_error:.3f}"
            left.plot(
                range(len(outcome.acceptance_by_depth)), outcome.acceptance_by_depth, "o-", color=colour, label=said
            )
            for each in outcome.verdicts:
                if each.fit.samples:
                    place = checks.index(each.name) + 0.6 * (number + 0.5) / len(outcomes) - 0.3
                    share = each.fit.total_variation / each.fit.radius
                    right.plot([0, share], [place, place], color=colour, linewidth=1.2, alpha=0.5)
                    right.plot(
                        share, place, "X" if each.alarmed else "o", color=COLOURS["wrong"] if each.alarmed else colour
                    )
                    if each.alarmed:
                        right.annotate(
                            each.alarmed, (share, place), (6, 0), "data", "offset points", va="center", size=7
                        )
        left.set(xlabel="depth d", ylabel="P(at least d accepted)", title="Acceptance", ylim=(0, 1.05))
        left.set_xticks(range(max(len(outcome.acceptance_by_depth) for _, outcome in outcomes)))
        left.legend(loc="upper right")
        right.axvline(1, color=INK, linestyle="--", linewidth=1)
        right.set_yticks(range(len(checks)), checks)
        right.set_xlim(left=0)
        right.grid(visible=False)
        right.invert_yaxis()
        right.set(xlabel="total variation seen, as a share of its radius (crosses: alarms)", title="Checks")
    return figure


def draw_report(report: Report, path: Path, evidence: Evidence = ()) -> None:
    """Write the picture of an audit to a file."""
    save_figure(report_figure(report, evidence), path)


def report_figure(report: Report, evidence: Evidence = ()) -> Figure:
    """The evidence as tokens came, the bias of each function in standard errors, and the leading one by position."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        first, left, right = figure.subplots(1, 3, width_ratios=[1.1, 1, 0.9])
        evidence_axes(first, [evidence], report.alarm)
        first.set_title(f"{report.verdict.capitalize()} in {report.tokens:,} tokens")
        scores = [_score(bias) for bias in report.biases]
        places = np.arange(len(scores))
        left.barh(places, scores, color=[CYCLE[0] if score < 0 else CYCLE[1] for score in scores], height=0.65)
        left.set_yticks(places, [bias.name for bias in report.biases])
        left.axvline(0, color=INK, linewidth=0.8)
        left.invert_yaxis()
        left.grid(visible=True, axis="x")
        left.grid(visible=False, axis="y")
        left.set(xlabel="standard errors", title="Emitted more often than due")
        names = ["0, rejected before" if each.after_rejection else str(each.position) for each in report.positions]
        positions = range(len(names))
        errors = [2 * each.standard_error for each in report.positions]
        right.errorbar(positions, [each.excess for each in report.positions], errors, fmt="o", capsize=3)
        right.axhline(0, color=INK, linewidth=0.8)
        right.set_xticks(positions, names)
        leading = report.leading.name if report.biases else "nothing"
        right.set(xlabel="position in the cycle", ylabel="excess (± 2 s.e.)", title=f"{leading}, by position")
    return figure


def _score(bias: Bias) -> float:
    """The excess in standard errors; 0 for a function that cannot vary (the top-K of a tiny vocabulary)."""
    return bias.excess / bias.standard_error if bias.standard_error > TINY else 0.0


def evidence_axes(ax: Axes, curves: Sequence[Evidence], alarm: float, colours: Sequence[str] = CYCLE) -> None:
    """log10 of the wealth against tokens for each run, the bar that it must pass, and where it first does."""
    bar = -math.log10(alarm)
    wealths = [np.array([0.0, *(value for _, value in curve)]) for curve in curves]
    highest = max(1.4 * bar, 1.1 * max(float(wealth[np.isfinite(wealth)].max()) for wealth in wealths))
    for curve, wealth, colour in zip(curves, wealths, colours, strict=False):
        tokens = [0, *(count for count, _ in curve)]
        ax.plot(tokens, np.minimum(wealth, highest), color=colour)
        over = np.flatnonzero(wealth >= bar)
        if len(over):
            ax.plot(tokens[over[0]], min(float(wealth[over[0]]), highest), "o", color=COLOURS["wrong"], zorder=5)
    ax.axhline(bar, color=COLOURS["wrong"], linestyle="--", linewidth=1)
    ax.text(0, bar, f"alarm ({alarm:g})", color=COLOURS["wrong"], size=8, va="bottom")
    ax.set(xlabel="tokens", ylabel="log10 of the evidence")


def draw_power(found: Sequence[MethodPower], cells: int | None, samples: int, errors: ErrorRates, path: Path) -> None:
    """Write the picture of a plan to a file."""
    save_figure(power_figure(found, cells, samples, errors), path)


def power_figure(found: Sequence[MethodPower], cells: int | None, samples: int, errors: ErrorRates) -> Figure:
    """The chance of seeing each method's loss against samples; with `cells`, also the total variation that they show.

    Solid: chi-square, looked at once; dashed: the e-process, looked at after every batch.
    """
    from matplotlib.figure import Figure

    panels = bool(found) + (cells is not None)
    with style():
        figure = Figure(figsize=(5.2 * panels, 3.6 + 0.1 * len(found)), layout="constrained")
        axes = list(figure.subplots(1, panels, squeeze=False)[0])
        if found:
            _methods(axes.pop(0), found, errors)
        if cells is not None:
            _plans(axes[0], cells, errors)
        for ax in figure.axes:
            ax.set(xscale="log", xlabel="samples")
            ax.axvline(samples, color=MUTED, linewidth=0.8, linestyle=":")
    return figure


def seen(test: str, each: MethodPower, samples: float, errors: ErrorRates) -> float:
    """Probability that a test shows the loss of a method with `samples` cycles."""
    if math.isinf(each.spread):  # the first outcome that the target forbids
        return float(1 - errors.miss ** (samples / each.needed[test]))
    return power(test, int(samples), each.cells - 1, each.spread, errors.alarm)


def _methods(ax: Axes, found: Sequence[MethodPower], errors: ErrorRates) -> None:
    needed = [n for each in found for n in each.needed.values() if math.isfinite(n)]
    ends = min([*needed, 1000.0]) / 10, 3 * max([*needed, 100.0])
    grid = np.unique(np.ceil(np.geomspace(*ends, GRID)).astype(int))
    for number, each in enumerate(found):
        colour = CYCLE[number % len(CYCLE)]
        for test, line in (("chi-square", "-"), ("e-process", "--")):
            values = [seen(test, each, n, errors) for n in grid]
            ax.plot(grid, values, line, color=colour, label=f"{each.method}, {each.rows}" if line == "-" else None)
    ax.axhline(1 - errors.miss, color=FAINT, linewidth=0.8)
    ax.set(ylabel="chance to see the loss", title=f"Power (false alarm {errors.alarm:g})", ylim=(-0.03, 1.03))
    said = "solid: chi-square, dashed: e-process"
    ax.legend(loc="upper left", bbox_to_anchor=(0, -0.17), ncols=2, title=said, title_fontsize=8, alignment="left")


def _plans(ax: Axes, cells: int, errors: ErrorRates) -> None:
    grid = np.unique(np.geomspace(100, 1e7, 40).astype(int)).tolist()
    curves: dict[str, list[float]] = {}
    for n in grid:
        for plan in plans(cells, errors, samples=n):
            curves.setdefault(plan.test, []).append(plan.variation)
    for test, values in curves.items():
        ax.plot(grid, values, label=test)
    ax.set(
        yscale="log",
        ylabel="total variation seen",
        title=f"{cells} cells, whatever the direction (miss {errors.miss:g})",
    )
    ax.legend()
