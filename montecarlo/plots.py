"""Pictures of what a simulation or an audit saw, for those who would rather look at them (extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from montecarlo.auditing import Report
from montecarlo.simulation import Outcome
from rheo_core import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_outcomes(outcomes: Sequence[tuple[str, Outcome]], path: Path) -> None:
    """Acceptance by depth, and total variation of each check beside its radius, a colour for each method."""
    left, right, save = _two(path)
    names = list(dict.fromkeys(each.name for _, outcome in outcomes for each in outcome.verdicts if each.fit.samples))
    height = 0.8 / len(outcomes)
    for number, (name, outcome) in enumerate(outcomes):
        depths = range(len(outcome.acceptance_by_depth))
        left.plot(depths, outcome.acceptance_by_depth, marker="o", label=f"{name}, tau {outcome.acceptance_length:.3f}")
        seen = [verdict for verdict in outcome.verdicts if verdict.fit.samples]
        places = [names.index(verdict.name) + height * number for verdict in seen]
        right.barh(places, [verdict.fit.total_variation for verdict in seen], height=height)
        right.plot([verdict.fit.radius for verdict in seen], places, "k|", markersize=9)
    left.set(xlabel="depth", ylabel="accepted at least so deep", title="Acceptance")
    right.set_yticks(range(len(names)), names, fontsize=7)
    right.set(xlabel="total variation; mark: its radius", title="Checks")
    right.invert_yaxis()
    left.legend(fontsize=7)
    save()


def draw_report(report: Report, path: Path) -> None:
    """The bias of each function in standard errors, and that of the leading one by position in the cycle."""
    left, right, save = _two(path)
    places = np.arange(len(report.biases))
    left.barh(places, [bias.excess / max(bias.standard_error, 1e-300) for bias in report.biases])
    left.set_yticks(places, [bias.name for bias in report.biases], fontsize=8)
    left.axvline(0, color="black", linewidth=0.8)
    verdict = "evidence of loss" if report.evidence_of_loss else "no loss seen"
    left.set(xlabel="excess in standard errors", title=f"{verdict}: evidence 10^{report.log10_evidence:.1f}")
    positions = [each.position for each in report.positions]
    errors = [2 * each.standard_error for each in report.positions]
    right.set_xticks(positions)
    right.errorbar(positions, [each.excess for each in report.positions], errors, fmt="o")
    right.axhline(0, color="black", linewidth=0.8)
    leading = report.leading.name if report.biases else "nothing"
    right.set(xlabel="position in the cycle", ylabel=f"excess of {leading} (± 2 s.e.)", title="By position")
    save()


def _two(path: Path) -> tuple[Axes, Axes, _Save]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    return left, right, _Save(figure, path)


class _Save:
    """Writes the figure, or refuses in one line."""

    def __init__(self, figure: object, path: Path) -> None:
        self.figure = figure
        self.path = path

    def __call__(self) -> None:
        try:
            self.figure.savefig(self.path)  # type: ignore[attr-defined]
        except (OSError, ValueError) as error:
            expected = f"a file that can be written, .png, .svg or .pdf ({error})"
            raise InvalidInput("plot", str(self.path), expected) from None
