"""The results of an experiment in the layout of the paper's own table: sets as columns, methods as rows.

Under each method's figure stand its paired difference to top-k, the same two given the trees, and the paper's own
value where the pair is the paper's. Table 5 has supports as rows, as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from exact.cli.tables import blank_table
from gpu_runner.decode.methods import AUTOREGRESSIVE, BASELINE
from gpu_runner.measure.statistics import Interval
from gpu_runner.reproduce.experiments import Cell, Experiment
from gpu_runner.reproduce.question_sets import SETS
from gpu_runner.reproduce.results import FEWEST, ResultRow

if TYPE_CHECKING:
    from gpu_runner.reproduce.experiments import Arguments

AVERAGE = "average"


@dataclass(frozen=True)
class Unit:
    """How a figure is written: its name, a factor, digits, a sign behind.

    >>> Unit("accepted", 100, 1, "%").show(0.0672, 0.01, "+")
    '+6.7±1.0%'
    """

    name: str
    factor: float
    digits: int
    sign: str

    def show(self, value: float, spread: float | None = None, plus: str = "") -> str:
        """A value and its spread."""
        around = "" if spread is None else f"±{self.factor * spread:.{self.digits}f}"
        return f"{self.factor * value:{plus}.{self.digits}f}{around}{self.sign}"


TAU, SHARE = Unit("τ", 1, 2, ""), Unit("accepted", 100, 1, "%")
UNITS = {"emitted": TAU, "accepted": SHARE}
Paper = Mapping[tuple[str, str], str]
"""The paper's values as text: (method label, a set or "average", "speed-up", "coverage", "drafting") -> value."""

NOTES = {
    "emitted": "τ: emitted / cycles over all own texts, the target's token included; ± std over seeds",
    "accepted": "accepted: share of the cycles in which a drafted token was accepted, on own texts; ± std over seeds",
}
GIVEN = "given trees: expected given each cycle's tree, all methods on the same contexts"
PAIRED = "to top-k: paired within questions, ± half the 95 % interval; the average weighs the sets alike"
ROUNDING = 1e-5
SPEED = "speed-up: mean of the questions' ratios to autoregressive; time with the prefill, same counting on both sides"


def tables(experiment: Experiment, found: Sequence[ResultRow], paper: Paper | None) -> list[Table]:
    """The tables to print, one a cell (Table 5: one a set); cells without results are left out."""
    if experiment.name == "table5":
        sets = dict.fromkeys(entry.question_set for entry in found if entry.question_set is not None)
        return [_supports(name, [entry for entry in found if entry.question_set == name], paper) for name in sets]
    made = []
    for cell in experiment.cells:
        mine = [entry for entry in found if entry.cell == cell.name]
        if mine:
            made.append(_grid(experiment, cell, mine, paper))
    return made


def heading(arguments: Arguments, sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was measured, in three lines; a fourth where the code was changed between starts."""
    experiment, first = arguments.made(), sources[0]
    devices = ", ".join(dict.fromkeys(str(source["device"]) for source in sources))
    base = first["draft_rope_base"]
    rope = "" if base is None else f" (RoPE base {base:g})"
    shape = experiment.shape
    tree = f"width {shape.width}, depth {shape.depth}, budget {shape.budget}"
    temperature = "" if len(experiment.cells) > 1 else f", T = {experiment.cells[0].temperature:g}"
    support = "" if arguments.experiment == "table5" else f", support {arguments.support or 'full'}"
    seeds = f"{arguments.seeds} seeds from {arguments.seed}"
    most = max(len(ids) for ids in arguments.asked.values())
    commits = dict.fromkeys(str(source.get("commit"))[:9] for source in sources)
    return [
        experiment.title,
        f"{first['target']}, {first['dtype']}, {devices}; draft {first['draft']}{rope}",
        f"{tree}{temperature}{support}; up to {most} questions a set, {seeds}, {arguments.length} tokens a turn",
        *([f"answers by different commits: {', '.join(commits)}"] if len(commits) > 1 else []),
    ]


def notes(experiment: Experiment, found: Sequence[ResultRow]) -> list[str]:
    """What the columns mean."""
    said = [NOTES[experiment.count]] if any(entry.mean is not None for entry in found) else []
    if any(entry.given_trees is not None for entry in found):
        said.append(GIVEN)
    said.append(PAIRED)
    if any(entry.speed_up for entry in found):
        said.append(SPEED)
    surplus = [e.surplus for e in found if e.question_set is not None and e.surplus]
    judged = [each for each in surplus if not math.isnan(each.low)]
    if surplus:
        inside = sum(each.low - ROUNDING <= 0 <= each.high + ROUNDING for each in judged)
        few = len(surplus) - len(judged)
        said.append(
            f"counted minus expected tokens of the own cycles: {inside} of {len(judged)} means within 95 % of 0"
            + (f" (farthest: {max((each.mean for each in judged), key=abs):+.3f})" if judged else "")
            + (f"; {few} cannot be judged: fewer than {FEWEST} acceptances expected" if few else "")
        )
    return said


def title_of(question_set: str | None) -> str:
    """The heading of a set's column."""
    if question_set is None:
        return AVERAGE
    return SETS[question_set].columns[1] if question_set in SETS else question_set


def _grid(experiment: Experiment, cell: Cell, found: Sequence[ResultRow], paper: Paper | None) -> Table:
    """Methods as rows, sets as columns, their average and the speed-up."""
    columns = list(dict.fromkeys(entry.question_set for entry in found))
    speed = any(entry.speed_up for entry in found)
    table = _table(("method", "", *map(title_of, columns), *(["speed-up"] if speed else [])), cell.name)
    for method in cell.methods:
        mine = [entry for entry in found if entry.method == method.label]
        if method.label == AUTOREGRESSIVE or not mine:
            continue
        for place, (what, cells, after) in enumerate(_rows(mine, experiment.count, paper)):
            table.add_row("" if place else method.label, what, *cells, *([after] if speed else []))
        table.add_section()
    return table


def _rows(mine: Sequence[ResultRow], count: str, paper: Paper | None) -> Iterator[tuple[str, list[str], str]]:
    """The rows of one method: what they show, a cell for each set, the speed-up."""
    unit = UNITS[count]
    label = mine[0].method
    if any(entry.mean is not None for entry in mine):
        yield unit.name, [_spread(entry.mean, entry.std, unit) for entry in mine], _speed(mine[-1].speed_up)
        if label != BASELINE:
            yield "  to top-k", [_difference(entry.difference, unit) for entry in mine], ""
    if any(entry.given_trees is not None for entry in mine):
        yield "given trees", [_spread(entry.given_trees, None, unit) for entry in mine], ""
        if label != BASELINE:
            yield "  to top-k", [_difference(entry.given_difference, unit) for entry in mine], ""
    if paper is not None:
        values = [paper.get((label, entry.question_set or AVERAGE), "-") for entry in mine]
        yield "paper", values, paper.get((label, "speed-up"), "-")


def _supports(name: str, found: Sequence[ResultRow], paper: Paper | None) -> Table:
    """Table 5: one support a row."""
    headings = ["method", "coverage of q", "τ", "to top-k", "given trees", "to top-k", "drafting"]
    table = _table((*headings, *(["paper: coverage", "τ", "drafting"] if paper else [])), title_of(name))
    for entry in found:
        cells = [
            entry.method,
            "-" if entry.coverage is None else SHARE.show(entry.coverage),
            _spread(entry.mean, entry.std, TAU),
            _difference(entry.difference, TAU),
            _spread(entry.given_trees, None, TAU),
            _difference(entry.given_difference, TAU),
            "-" if entry.drafting is None else f"{1000 * entry.drafting:.1f} ms",
        ]
        if paper:
            cells += [paper.get((entry.method, column), "-") for column in ("coverage", name, "drafting")]
        table.add_row(*cells)
    return table


def _table(headings: Sequence[str], title: str) -> Table:
    table = blank_table(title or None)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place == 0 or not heading else "right")
    return table


def _spread(value: float | None, std: float | None, unit: Unit) -> str:
    return "-" if value is None else unit.show(value, std)


def _difference(value: Interval | None, unit: Unit) -> str:
    if value is None:
        return "-"
    return unit.show(value.mean, None if math.isnan(value.low) else value.high - value.mean, "+")


def _speed(value: Interval | None) -> str:
    if value is None:
        return "-"
    half = "" if math.isnan(value.low) else f"±{value.high - value.mean:.2f}"
    return f"{value.mean:.2f}x{half}"
