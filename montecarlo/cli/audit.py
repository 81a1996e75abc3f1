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
from montecarlo.auditing import ALARM, TOP, Audit, Bias, Report
from montecarlo.causes import Position
from montecarlo.chunks import CHUNK, Chunker
from montecarlo.cli import sources
from montecarlo.cli.simulate import to_json_value
from montecarlo.copies import RATE
from montecarlo.recording import TOLERANCE, read
from rheo_core import InvalidInput
from rheo_core.checks import check_count

SCOPE = (
    "these tokens; it trusts the recorded rows (a wrong row that was also recorded is invisible) and looks at what the "
    "functions above can see"
)

MUCH_UNLISTED = 0.1
SIZES = (0.05, 0.02, 0.01, 0.005)
"""Biases for which the tokens needed are listed."""

FOLLOWED = 16
"""Tokens after which the evidence of a growing file is looked at."""

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
    control: Annotated[
        list[Path] | None,
        typer.Option("--control", metavar="RUN", help="The same engine without speculation, scored likewise."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="The one FILE is still being written: stop where the evidence passes.")
    ] = False,
    idle: Annotated[float, typer.Option("--idle", help="--follow ends after so many seconds without a token.")] = 60,
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
    once = [*files, *(control or [])]
    for number, file in enumerate(once):
        if file.resolve() in [other.resolve() for other in once[:number]]:
            raise InvalidInput("FILE", str(file), "each record once: one counted twice counts its evidence twice")
    if follow and len(files) > 1:
        raise InvalidInput("follow", f"{len(files)} files", "one FILE, or - for a pipe")
    if not idle > 0:
        raise InvalidInput("idle", idle, "a number of seconds above 0")

    def audited(some: list[Path], until_alarm: bool = False) -> tuple[Report, list[tuple[int, float]]]:
        unused: set[str] = set()
        running = Audit(false_alarm, seed, tolerance=tolerance)
        evidence: list[tuple[int, float]] = []
        columns = (SpinnerColumn(), TextColumn("{task.completed} tokens"))
        with options.progress(not as_json, *columns) as progress:
            task = progress.add_task("auditing", total=None)
            wait = idle if until_alarm else None
            records = (record for file in some for record in read(file, sum_tolerance, unused, wait))
            for chunk in Chunker(top, tolerance, FOLLOWED if until_alarm else CHUNK).chunks(records):
                running.update(chunk)
                evidence.append((running.tokens, running.log_wealth / math.log(10)))
                if len(evidence) > CURVE:
                    del evidence[1::2]
                progress.update(task, completed=running.tokens)
                if until_alarm and running.alarmed_at is not None and running.report().evidence_of_loss:
                    break
        return running.report(unused), evidence

    beside = audited(control)[0] if control else None
    found, evidence = audited(files, follow)
    if not as_json:
        report(found, beside)
    if plot is not None:
        from montecarlo.plots import draw_report

        draw_report(found, plot, evidence)
    options.deliver(document(found, files, beside), as_json, save)
    if beside is not None and beside.verdict != "no loss seen":
        raise InvalidInput(
            ", ".join(map(str, control or [])),
            f"a control with a verdict of its own ({verdict_line(beside)})",
            "no loss without speculation: the rows or how they were made are wrong, so the run has no verdict; "
            "record both again with the same model, precision, temperature and filters",
        )
    if found.refusal is not None:
        raise InvalidInput(", ".join(map(str, files)), "no verdict", f"a recording without this: {found.refusal}")
    return options.LOSSY if found.evidence_of_loss else options.LOSSLESS


def report(found: Report, control: Report | None = None) -> None:
    """Print verdict, the control's verdict, evidence, biases, positions and scope."""
    out = options.out
    out.print(f"[bold]{verdict_line(found)}[/]", highlight=False)
    if control is None:
        out.print("control: none; audit the same engine without speculation beside it (--control)", highlight=False)
    else:
        out.print(f"control: {verdict_line(control)}", highlight=False, markup=False)
    for sentence in found.points_to:
        out.print(f"points to: {sentence}", highlight=False, markup=False)
    if found.verdict == "no loss seen":
        out.print(needed_line(found), highlight=False)
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
        return (
            f"no loss seen{within}, down to a bias of {found.visible:.4f} a token (99 %), in {found.tokens} tokens: "
            f"evidence 10^{found.log10_evidence:.1f}, bar 10^{bar:.1f}"
        )
    return (
        f"EVIDENCE OF LOSS in {found.tokens} tokens{within}: evidence 10^{found.log10_evidence:.1f} against "
        f"losslessness (bar 10^{bar:.1f}, false alarm <= {found.alarm:g}), passed at {found.alarmed_at}"
    )


def needed_line(found: Report) -> str:
    """How many tokens show a bias of given sizes."""
    counts = [(size, found.tokens_needed(size)) for size in SIZES]
    listed = ", ".join(f"{size:g}: {'never' if count is None else f'{count:,}'}" for size, count in counts)
    return f"tokens needed to see a bias a token of {listed} (99 %)"


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
        name = "0, after a rejection" if each.after_rejection else str(each.position)
        table.add_row(name, str(each.tokens), *numbers)
    return table


def document(found: Report, files: list[Path], control: Report | None = None) -> dict[str, Any]:
    """Everything found, for --json and --save."""
    needed = {f"{size:g}": found.tokens_needed(size) for size in SIZES}
    return {
        "command": "audit",
        "files": [str(file) for file in files],
        "control": None if control is None else to_json_value(asdict(control)) | {"verdict": control.verdict},
        "visible": to_json_value({"visible": found.visible})["visible"],
        "tokens_needed": needed,
        "verdict": found.verdict,
        "refusal": found.refusal,
        **to_json_value({key: value for key, value in asdict(found).items() if key not in ("biases", "positions")}),
        "variation_at_least": found.variation_at_least,
        "biases": [to_json_value(asdict(bias)) for bias in found.biases],
        "positions": [to_json_value(asdict(position)) for position in found.positions],
        "scope": SCOPE,
    }
