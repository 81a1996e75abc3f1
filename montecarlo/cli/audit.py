"""`rheo-montecarlo audit`: is the engine that recorded these runs lossless?"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.progress import SpinnerColumn, TextColumn
from rich.table import Table

from exact.cli import options
from exact.cli.tables import show
from montecarlo.auditing import ALARM, TOP, Audit, Bias, Position, Report
from montecarlo.chunks import Chunker
from montecarlo.cli import sources
from montecarlo.cli.simulate import to_json_value
from montecarlo.copies import RATE
from montecarlo.functions import FUNCTIONS
from montecarlo.recording import TOLERANCE, read
from rheo_core import InvalidInput
from rheo_core.checks import check_count

SCOPE = (
    "these tokens; it trusts the recorded rows (a wrong row that was also recorded is invisible) and looks at what the "
    "functions above can see"
)

MUCH_UNLISTED = 0.1
PLAIN = {each.name for each in FUNCTIONS if not (each.one_sided or each.history or each.needs_draft)}

CURVE = 4096
"""Most points that are kept of how the evidence went; beyond them every other one is dropped."""


def command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="JSON lines or npz, gzipped or not; - for standard input.")
    ],
    false_alarm: sources.Alarm = ALARM,
    top: Annotated[int, typer.Option("--top", help="K of the draft's top-K.")] = TOP,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Total variation by which a token's law may differ from its row.")
    ] = 0,
    sum_tolerance: Annotated[
        float, typer.Option("--sum-tolerance", help="How far a row's sum may be from 1.")
    ] = TOLERANCE,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    save: options.Save = None,
    plot: options.Plot = None,
) -> int:
    """Audit recorded runs of any engine (format: docs/recording.md). Exit code: 1 evidence of loss, 0 none seen.

    All files together are one run. The evidence is valid whenever it is looked at. A recording that could make a
    lossless engine look lossy, or hide a loss, is refused by name (exit code 2).
    """
    check_count("top", top, 1)
    if not 0 <= sum_tolerance < 1:
        raise InvalidInput("sum-tolerance", sum_tolerance, "a number in [0, 1)")
    for number, file in enumerate(files):
        if file.resolve() in [other.resolve() for other in files[:number]]:
            raise InvalidInput("FILE", str(file), "each record once: one counted twice counts its evidence twice")
    unused: set[str] = set()
    running = Audit(false_alarm, seed, tolerance=tolerance)
    evidence: list[tuple[int, float]] = []
    columns = (SpinnerColumn(), TextColumn("{task.completed} tokens"))
    with options.progress(not as_json, *columns) as progress:
        task = progress.add_task("auditing", total=None)
        records = (record for file in files for record in read(file, sum_tolerance, unused))
        for chunk in Chunker(top, tolerance).chunks(records):
            running.update(chunk)
            evidence.append((running.tokens, running.log_wealth / math.log(10)))
            if len(evidence) > CURVE:
                del evidence[1::2]
            progress.update(task, completed=running.tokens)
    found = running.report(unused)
    if not as_json:
        report(found)
    if plot is not None:
        from montecarlo.plots import draw_report

        draw_report(found, plot, evidence)
    options.deliver(document(found, files), as_json, save)
    if found.refusal is not None:
        raise InvalidInput(", ".join(map(str, files)), "no verdict", f"a recording without this: {found.refusal}")
    return options.LOSSY if found.evidence_of_loss else options.LOSSLESS


def report(found: Report) -> None:
    """Print verdict, evidence, biases, positions and scope."""
    out = options.out
    out.print(f"[bold]{verdict_line(found)}[/]", highlight=False)
    if found.impossible:
        certain = "" if found.tolerance else ": certain loss"
        first = f"{found.impossible} tokens of probability 0{certain}, the first at {found.first_impossible}"
        out.print(first, highlight=False, markup=False)
    for pattern in found.patterns if found.evidence_of_loss else ():
        out.print(f"also seen, and no explanation: {pattern}", style="yellow", highlight=False, markup=False)
    for count, what in (
        (found.copies_by_key, "came again under their request and seed: left out"),
        (found.copies_by_text, f"repeat an earlier text by more than chance: left out, at a rate of {RATE:g}"),
        (found.repeated, "are the beginning of an earlier text, or all of it, as may be by chance: kept"),
    ):
        if count:
            out.print(f"{count} texts {what}", highlight=False)
    if found.unlisted > MUCH_UNLISTED:
        out.print(
            f"the rows leave {found.unlisted:.0%} to tokens that they do not list, which are not told apart: list more",
            style="yellow",
            highlight=False,
        )
    if found.unused_fields:
        out.print(f"fields not used: {', '.join(found.unused_fields)}", highlight=False, markup=False)
    show(_biases(found.biases), "function of the token")
    if found.positions:
        show(_positions(found.positions, found.leading.name))
    else:
        out.print("no cycle or position recorded: positions were not told apart")
    if found.biases:
        out.print(leading_line(found), highlight=False)
    out.print(f"Scope: {SCOPE}.", highlight=False)


def verdict_line(found: Report) -> str:
    """The verdict and its evidence in one line."""
    if found.refusal is not None:
        return f"NO VERDICT on {found.tokens} tokens: {found.refusal}"
    bar = -math.log10(found.alarm)
    within = f" beyond a tolerance of {found.tolerance:g}" if found.tolerance else ""
    if not found.evidence_of_loss:
        seen = max((bias.visible for bias in found.biases if bias.name in PLAIN), default=math.inf)
        return (
            f"no loss seen in {found.tokens} tokens{within}; a bias of {seen:.4f} a token would have been (99 %): "
            f"evidence 10^{found.log10_evidence:.1f}, bar 10^{bar:.1f}"
        )
    return (
        f"EVIDENCE OF LOSS in {found.tokens} tokens{within}: evidence 10^{found.log10_evidence:.1f} against "
        f"losslessness (bar 10^{bar:.1f}, false alarm <= {found.alarm:g}), passed at {found.alarmed_at}"
    )


def leading_line(found: Report) -> str:
    """The direction and size of the bias that carries the most evidence."""
    bias = found.leading
    size = f"{bias.excess:+.4f} ± {bias.standard_error:.4f} a token over {bias.tokens} tokens"
    if not found.evidence_of_loss:
        return f"largest: {bias.name} {size}; a bias of {bias.visible:.4f} would have been seen (99 %)"
    far = f"a token's law is off by at least {found.variation_at_least:.4f} in total variation on average (4 s.e.)"
    return f"bias: {bias.meaning} ({bias.name}: {size}); {far}"


def _biases(biases: tuple[Bias, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("function of the token")
    for name in ("tokens", "excess", "± s.e.", "log10 evidence", "visible"):
        table.add_column(name, justify="right")
    for bias in sorted(biases, key=lambda each: -each.log10_evidence):
        numbers = (f"{bias.excess:+.4f}", f"{bias.standard_error:.4f}", f"{bias.log10_evidence:.1f}")
        table.add_row(bias.name, str(bias.tokens), *numbers, f"{bias.visible:.4f}")
    return table


def _positions(positions: tuple[Position, ...], function: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("position in the cycle", justify="right")
    for name in ("tokens", "log10 evidence", f"excess of {function}", "± s.e."):
        table.add_column(name, justify="right")
    for each in positions:
        numbers = (f"{each.log10_evidence:.1f}", f"{each.excess:+.4f}", f"{each.standard_error:.4f}")
        table.add_row(str(each.position), str(each.tokens), *numbers)
    return table


def document(found: Report, files: list[Path]) -> dict[str, Any]:
    """Everything found, for --json and --save."""
    return {
        "command": "audit",
        "files": [str(file) for file in files],
        "verdict": found.verdict,
        "refusal": found.refusal,
        **to_json_value({key: value for key, value in asdict(found).items() if key not in ("biases", "positions")}),
        "variation_at_least": found.variation_at_least,
        "biases": [to_json_value(asdict(bias)) for bias in found.biases],
        "positions": [to_json_value(asdict(position)) for position in found.positions],
        "scope": SCOPE,
    }
