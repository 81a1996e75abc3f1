"""`rheo-montecarlo simulate`: the claims of losslessness at full size."""

from __future__ import annotations

import math
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from exact.commands import options
from exact.executors import pack, processes, unpack
from montecarlo.checkpoint import Checkpoint
from montecarlo.checks import Suite, Tally
from montecarlo.commands import sources
from montecarlo.commands.sources import Job, sources_of
from montecarlo.goodness import Fit, samples_needed
from montecarlo.pairs import Dials, Ints
from montecarlo.simulation import ALARM, MISS, Bars, Outcome, simulate
from rheo_core import DEFAULT_SUPPORT, InvalidInput
from rheo_core.errors import check_count

Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        help="Keep the counts in FILE, and go on from those that are there.",
        metavar="FILE",
        callback=options.writable("resume"),
    ),
]

SCOPE = "these models and this shape; ideal coins; statistical"


def command(
    names: options.MethodArguments = None,
    method: options.Methods = None,
    cycles: Annotated[int, typer.Option("--cycles", help="Cycles to run at most.")] = 10_000,
    tokens: Annotated[int, typer.Option("--tokens", help="Tokens whose joint law is checked.")] = 3,
    rows: sources.RowsFile = None,
    real: sources.Real = False,
    pair: sources.PairSpec = None,
    vocabulary: sources.Vocabulary = 1000,
    overlap: sources.Overlap = 0.7,
    peak: sources.Peak = 1.0,
    ties: sources.Ties = 0,
    states: sources.States = 64,
    width: options.Width = 10,
    depth: options.Depth = 8,
    budget: options.Budget = 59,
    lead: options.Lead = None,
    temperature: options.Temperature = 1,
    support: options.Support = DEFAULT_SUPPORT,
    false_alarm: sources.Alarm = ALARM,
    seed: options.Seed = 0,
    resume: Resume = None,
    workers: options.Workers = 1,
    as_json: options.AsJson = False,
    save: options.Save = None,
    plot: options.Plot = None,
) -> int:
    """Simulate methods and test every claim of losslessness. Exit code: 1 a claim is broken, 0 no sign of it.

    Without --rows, --real or --pair the models are synthetic, set by the dials.
    """
    chosen = [*(names or []), *(method or [])] or ["rheo"]
    check_count("cycles", cycles, 1)
    check_count("tokens", tokens, 1)
    if not 0 < false_alarm < 1:
        raise InvalidInput("false-alarm", false_alarm, "a number between 0 and 1")
    if plot is not None:
        options.need("plot", "matplotlib")
    shape = options.shape_of(width, depth, budget)
    dials = Dials(vocabulary, overlap, peak, ties, support, states, seed)
    found = sources_of(rows, real, pair, dials, temperature, support)
    jobs = [Job(name, lead, source, shape, seed, tokens) for source in found for name in chosen]
    if resume is not None and len(jobs) > 1:
        raise InvalidInput("resume", f"{len(jobs)} simulations", "one method on one pair of models")
    results = []
    for job in jobs:
        outcome = run(job, cycles, false_alarm, workers, resume, show=not as_json)
        results.append((job, outcome))
        if not as_json:
            report(job, outcome)
    if plot is not None:
        from montecarlo.plots import draw_outcomes

        draw_outcomes([(f"{job.method}, {job.source.name}", outcome) for job, outcome in results], plot)
    options.deliver({"command": "simulate", "results": [document(*result) for result in results]}, as_json, save)
    refuted = any(outcome.evidence_of_loss or outcome.broken for _, outcome in results)
    return options.LOSSY if refuted else options.LOSSLESS


def run(job: Job, cycles: int, alarm: float, workers: int, resume: Path | None, show: bool) -> Outcome:
    """Run one job with a progress bar on stderr, in as many processes as asked for (0: one a processor)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    quiet = not show or not options.err.is_terminal
    suite = job.build()
    checkpoint = Checkpoint(suite, resume)
    tally = checkpoint.load() or suite.nothing()
    bar = Progress(*columns, console=options.err, transient=True, disable=quiet)
    with bar as progress, processes(workers) as executor:
        task = progress.add_task(escape(f"{job.method} on {job.source.name}"), total=cycles)

        def note(counted: Tally) -> None:
            progress.update(task, completed=counted.cycles)
            checkpoint.save(counted)

        try:
            return simulate(
                suite,
                cycles,
                alarm=alarm,
                executor=executor,
                count=None if executor is None else partial(_count, pack(job)),
                start=tally,
                progress=note,
            )
        finally:
            checkpoint.save(tally, now=True)


_suites: dict[bytes, Suite] = {}


def _count(packed: bytes, runs: Ints) -> Tally:
    """Counts of a packed job, built once in each process."""
    if packed not in _suites:
        _suites.clear()
        _suites[packed] = unpack(packed).build()
    return _suites[packed].count(runs)


def report(job: Job, outcome: Outcome) -> None:
    """Print what was seen."""
    shape = job.shape
    out = options.out
    early = ", stopped at the first alarm" if outcome.stopped_early else ""
    out.print(
        f"[bold]{escape(job.method)}[/] on {escape(job.source.name)}, K={shape.width} D={shape.depth} "
        f"R={shape.budget}: {outcome.cycles} cycles{early}",
        highlight=False,
    )
    accepted = " ".join(f"{share:.3f}" for share in outcome.acceptance_by_depth[1:])
    out.print(
        f"acceptance length {outcome.acceptance_length:.4f} ± {outcome.standard_error:.4f} tokens a cycle; "
        f"accepted at least d = 1..{shape.depth}: {accepted}",
        highlight=False,
    )
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("check", "samples", "cells", "p", "log10 evidence", "TV", "radius", "TV visible", "alarm"):
        table.add_column(name, justify="left" if name in ("check", "alarm") else "right", overflow="fold")
    for verdict in outcome.verdicts:
        fit = verdict.fit
        if not fit.samples:
            continue
        numbers = (f"{fit.p_value:.2g}", f"{fit.log_evidence / math.log(10):.1f}", f"{fit.total_variation:.4f}")
        table.add_row(
            verdict.name,
            str(fit.samples),
            str(fit.cells),
            *numbers,
            f"{fit.radius:.4f}",
            f"{fit.visible:.4f}",
            f"[red]{verdict.alarmed}[/]" if verdict.alarmed else "-",
        )
    out.print(table)
    out.print(verdict_line(outcome), highlight=False)


def verdict_line(outcome: Outcome) -> str:
    """The verdict and its scope in one line."""
    said = "EVIDENCE OF LOSS" if outcome.evidence_of_loss else "no loss seen in the emitted tokens"
    if outcome.broken:
        said += f", CLAIM BROKEN: {', '.join(outcome.broken)}"
    bars = Bars(outcome.alarm, len(outcome.verdicts))
    bar = bars.log_evidence / math.log(10)
    return (
        f"{said} (false alarm <= {outcome.alarm:g} over all checks: e-process bar 10^{bar:.1f}, "
        f"p bar {bars.at_end:.1e}; TV visible is missed with probability {MISS:g}). Scope: {SCOPE}."
    )


def document(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Everything that was seen, for --json and --save."""
    return {
        "method": job.method,
        "lead": job.lead,
        "models": job.source.name,
        "dials": None if job.source.dials is None else asdict(job.source.dials),
        "shape": asdict(job.shape),
        "seed": job.seed,
        "cycles": outcome.cycles,
        "stopped_early": outcome.stopped_early,
        "acceptance_length": outcome.acceptance_length,
        "standard_error": outcome.standard_error,
        "acceptance_by_depth": list(outcome.acceptance_by_depth),
        "false_alarm": outcome.alarm,
        "evidence_of_loss": outcome.evidence_of_loss,
        "broken_claims": list(outcome.broken),
        "checks": [
            {"name": verdict.name, "alarm": verdict.alarmed or None}
            | plain(asdict(verdict.fit))
            | {"samples_needed_for_tv_0.01": needed_for(verdict.fit, outcome)}
            for verdict in outcome.verdicts
        ],
        "scope": SCOPE,
    }


def needed_for(fit: Fit, outcome: Outcome, variation: float = 0.01) -> int | None:
    """Samples with which this check would see a total variation, whatever its direction; None without cells."""
    if fit.degrees < 1:
        return None
    return samples_needed(variation, fit.degrees, Bars(outcome.alarm, len(outcome.verdicts)).at_end, MISS)


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has: an infinite one becomes the string "inf"."""
    return {key: "inf" if value == float("inf") else value for key, value in values.items()}
