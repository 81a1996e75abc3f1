"""`rheo-montecarlo simulate`: the claims of losslessness at full size."""

from __future__ import annotations

import hashlib
import math
import time
from concurrent.futures import Executor
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from exact.cli import options
from exact.cli.tables import show
from exact.methods.load import own_errors
from exact.runtime.journal import Journal, subject
from montecarlo.checks import Suite, Tally
from montecarlo.cli import sources
from montecarlo.cli.sources import Count, Job, sources_of
from montecarlo.goodness import Fit, samples_needed
from montecarlo.pairs import Dials
from montecarlo.simulation import ALARM, MISS, Bars, Outcome, simulate
from rheo_core import DEFAULT_SUPPORT, InvalidInput
from rheo_core.checks import check_count

SECONDS = 5.0
"""How often the journal is brought up to date."""

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
    resume: options.Resume = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
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
    suites = [job.build() for job in jobs]
    journal = Journal(resume, subject("simulate", *(digest(suite) for suite in suites)), (Tally,))
    results = []
    with options.opened(workers, dask) as executor:
        for number, (job, suite) in enumerate(zip(jobs, suites, strict=True), 1):
            outcome = run(job, suite, cycles, false_alarm, executor, journal, f"{number}: {job}", show=not as_json)
            results.append((job, outcome))
            if not as_json:
                report(job, outcome)
    if plot is not None:
        from montecarlo.plots import draw_outcomes

        draw_outcomes([(f"{job.method}, {job.source.name}", outcome) for job, outcome in results], plot)
    options.deliver({"command": "simulate", "results": [document(*result) for result in results]}, as_json, save)
    refuted = any(outcome.evidence_of_loss or outcome.broken for _, outcome in results)
    return options.LOSSY if refuted else options.LOSSLESS


def run(
    job: Job,
    suite: Suite,
    cycles: int,
    alarm: float,
    executor: Executor | None,
    journal: Journal,
    key: str,
    show: bool,
) -> Outcome:
    """Run one job with a progress bar on stderr; the journal keeps its counts under `key`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    tally = journal.known.get(key) or suite.nothing()
    if tally.cycles > cycles:
        raise InvalidInput("cycles", cycles, f"at least {tally.cycles}, which the journal holds of {job}")
    written = time.monotonic()
    with options.progress(show, *columns) as progress:
        task = progress.add_task(escape(str(job)), total=cycles)

        def note(counted: Tally) -> None:
            nonlocal written
            progress.update(task, completed=counted.cycles)
            if time.monotonic() - written > SECONDS:
                journal.note(key, counted)
                written = time.monotonic()

        count = None if executor is None else Count.of(job, suite)
        try:
            with own_errors(suite.method):
                return simulate(suite, cycles, alarm=alarm, executor=executor, count=count, start=tally, progress=note)
        finally:
            journal.note(key, tally)


def digest(suite: Suite) -> str:
    """What a suite counts, as a hash."""
    lead = getattr(suite.method, "lead", None)
    named = (suite.method.name, lead, suite.shape, suite.uniforms.seed, suite.prefix, suite.length, suite.repeated)
    seen = hashlib.sha256(repr(named).encode())
    for name, law in sorted(suite.laws.items()):
        seen.update(name.encode())
        seen.update(law.tobytes())
    return seen.hexdigest()


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
        table.add_column(name, justify="left" if name in ("check", "alarm") else "right")
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
    show(table)
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
            | to_json_value(asdict(verdict.fit))
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


def to_json_value(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has: an infinite one becomes the string "inf"."""
    return {key: "inf" if value == float("inf") else value for key, value in values.items()}
