"""`rheo-exact rates`: how much is accepted, on one pool in closed form and in the whole tree by enumeration.

Sweeps the rheostat m and the temperature on real rows, and, told what a draft step and a verify step cost, says which
method, m, budget and depth bring the most tokens a unit of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from exact.acceptance.one_layer import Choice, Costs, choices, shapes_within
from exact.acceptance.one_pool import in_closed_form
from exact.acceptance.sweeps import Sweep, survival_mean, sweep, sweep_mean, versions_of
from exact.cli import options
from exact.cli.rates_tables import PoolRates, pool_line, pools_of, rationals
from exact.cli.tables import blank_table, show
from exact.enumeration.rationals import rational_models
from exact.enumeration.size_estimate import ANNOUNCED, spelled, work
from exact.methods.load import label, load_method, own_errors
from exact.methods.rows_file import Rows
from exact.runtime.journal import Journal
from exact.verdict.document import number
from rheo_core import DEFAULT_SUPPORT, InvalidInput, Method, ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix

Law = Annotated[str | None, typer.Option(help="A law as numbers or a/b, joined by commas.", show_default=False)]
PoolSize = Annotated[int | None, typer.Option("--pool", help="n: candidates in the pool.", show_default=False)]
Temperatures = Annotated[str, typer.Option(help="Temperatures to sweep, joined by commas; '' for none.")]
Cost = Annotated[float | None, typer.Option(help="Cost in any unit of time.", show_default=False)]


@dataclass(frozen=True)
class SweepOptions:
    """Where a sweep looks, and how it runs."""

    prefix: Prefix
    shape: TreeShape
    executor: Executor | None
    journal: Journal
    show: bool

    @property
    def bar(self) -> dict[str, Any]:
        """How `track` shows progress: on stderr where that is a terminal."""
        return {
            "console": options.err,
            "transient": True,
            "disable": not self.show or not options.err.is_terminal,
        }


TEMPERATURES = "0,0.25,0.5,0.75,1"
PROBES = 3
"""Random growths of each estimate: there are many of them, and only their sum is told."""


def command(
    names: options.MethodArguments = None,
    method: options.Methods = None,
    target: Law = None,
    draft: Law = None,
    pool: PoolSize = None,
    rows: options.RowsPath = None,
    prefix: options.PrefixText = "",
    width: options.Width = 3,
    depth: options.Depth = 3,
    budget: options.Budget = 8,
    lead: options.Lead = None,
    temperature: options.Temperature = 1,
    support: options.Support = DEFAULT_SUPPORT,
    temperatures: Temperatures = TEMPERATURES,
    draft_cost: Cost = None,
    verify_cost: Cost = None,
    node_cost: Cost = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
    plot: options.Plot = None,
) -> int:
    """Print acceptance rates: one pool in closed form (--target, --draft), or rows of a file with sweeps of m and T.

    With --draft-cost and --verify-cost: which method, m, budget and depth give the most tokens a unit of time.
    """
    if (target is None) != (draft is None):
        raise InvalidInput("target and draft", target or draft, "both laws, or neither")
    if target is not None and draft is not None:
        if plot is not None:
            raise InvalidInput("plot", str(plot), "rows to sweep over: nothing is drawn of one given pair of laws")
        if workers is not None or dask is not None or resume is not None:
            raise InvalidInput("workers", "given", "rows to sweep over: one given pair of laws is no sweep")
        return one_pool(target, draft, pool, lead, as_json, save)
    shape = options.shape_of(width, depth, budget)
    costs = costs_of(draft_cost, verify_cost, node_cost)
    chosen = [*(names or []), *(method or [])] or ["rheo"]
    rules = [load_method(name) for name in chosen]
    files = options.rows_of(rows, temperature, support)
    place = options.prefix_of(prefix)
    pools = [each for file in files for each in pools_of(file, place, shape.width, lead, pool)]
    levels = levels_of(files, temperature, temperatures)
    versions = [each for rule in rules for each in versions_of(rule, shape, lead)]
    at_levels = [file for level in levels for file in options.rows_of(rows, level, support)]
    journal = Journal(resume, options.fingerprint(chosen, "rates", files, place, levels, support, shape, lead))
    with options.opened(workers, dask) as executor:
        announce(versions, files, place, shape, len(levels), costs)
        work_on = SweepOptions(place, shape, executor, journal, show=not as_json)
        swept = sweeps(versions, at_levels, work_on)
        best = ranked(versions, files, costs, work_on) if costs is not None else []
    if not as_json:
        report_pools(pools, f"T = {temperature:g}, at prefix {place}")
        report_sweeps(swept, shape)
        if costs is not None:
            report_choices(best, costs)
    if plot is not None:
        from exact.report import save_figure
        from exact.report.acceptance import sweep_figure

        save_figure(sweep_figure(swept, shape, temperature=temperature), plot)
    document = {
        "command": "rates",
        "pools": [each.document() for each in pools],
        "sweeps": [each.document() for each in swept],
        "choices": [_choice(each) for each in best],
    }
    options.deliver(document, as_json, save)
    return 0


def one_pool(target: str, draft: str, n: int | None, m: int | None, as_json: bool, save: Path | None) -> int:
    """Closed forms for one given pair of distributions, at every m and n unless given."""
    p, q = rationals(target, "target"), rationals(draft, "draft")
    leads = range(len(q) + 1) if m is None else [m]
    sizes = range(1, len(q) + 1) if n is None else [n]
    pools = [pool_line("given laws", p, q, lead, size) for lead in leads for size in sizes]
    if not as_json:
        report_pools(pools, "the given laws")
    options.deliver({"command": "rates", "pools": [each.document() for each in pools]}, as_json, save)
    return 0


def costs_of(draft: float | None, verify: float | None, node: float | None) -> Costs | None:
    """Give the costs, if any was given."""
    if draft is None and verify is None and node is None:
        return None
    if draft is None or verify is None:
        raise InvalidInput("costs", (draft, verify), "both --draft-cost and --verify-cost")
    return Costs(draft, verify, node or 0.0)


def levels_of(files: Sequence[Rows], temperature: float, temperatures: str) -> list[float]:
    """Give the temperatures of the sweep: only the given one where a file holds laws, not logits."""
    asked = [float(value) for value in rationals(temperatures, "temperatures")] if temperatures else []
    return sorted({float(temperature), *asked}) if all(has_logits(file) for file in files) else [float(temperature)]


def announce(
    versions: Sequence[Method],
    files: Sequence[Rows],
    prefix: Prefix,
    shape: TreeShape,
    levels: int,
    costs: Costs | None,
) -> None:
    """Say on stderr about how much there is to enumerate, where it will take a while."""
    trees = [each for each in versions if isinstance(each, TreeMethod) and not in_closed_form(each, shape)]
    pairs = [rational_models(ModelPair(file.target, file.draft, file.ids)) for file in files]
    seconds = 0.0
    for each in trees:
        with own_errors(each):
            seconds += levels * sum(work(each.drafter(pair, shape), prefix, shape, PROBES).seconds for pair in pairs)
            if costs is not None:
                for smaller in shapes_within(shape):
                    seconds += len(pairs) * work(each.drafter(pairs[0], smaller), prefix, smaller, PROBES).seconds
    if seconds > ANNOUNCED:
        runs = len(versions) * len(files) * (levels + (len(shapes_within(shape)) if costs is not None else 0))
        options.err.print(f"{runs:,} exact runs, some {spelled(seconds)}; Ctrl-C stops", highlight=False)


def sweeps(versions: Sequence[Method], files: Sequence[Rows], how: SweepOptions) -> list[Sweep]:
    """tau of every version on every file, each file at its temperature."""
    points = sweep(versions, files, how.shape, how.prefix, executor=how.executor, journal=how.journal)
    return list(track(points, "enumerating trees", len(versions) * len(files), **how.bar))


def has_logits(file: Rows) -> bool:
    """Tell whether another temperature than 1 makes sense for a file."""
    return all("target_logits" in context and "draft_logits" in context for context in file.contexts.values())


def ranked(versions: Sequence[Method], files: Sequence[Rows], costs: Costs, how: SweepOptions) -> list[Choice]:
    """Give every way to run, the fastest first."""
    pairs = [ModelPair(file.target, file.draft, file.ids) for file in files]
    shapes = shapes_within(how.shape)
    found = choices(versions, pairs, shapes, costs, how.prefix, executor=how.executor, journal=how.journal)
    listed = track(found, "choosing", len(versions) * len(shapes), **how.bar)
    return sorted(listed, key=lambda choice: choice.speed, reverse=True)


def report_pools(pools: Sequence[PoolRates], title: str) -> None:
    """Closed forms side by side."""
    table = blank_table()
    columns = ("rows", "m", "n", "Rheo", "bound", "RRSw", "top-K", "A*", "A*-Rheo", "A*-RRSw", "D.3")
    for name in columns:
        table.add_column(name, justify="left" if name == "rows" else "right")
    shown = ""
    for each in pools:
        table.add_row(each.rows if each.rows != shown else "", *each.cells())
        shown = each.rows
    options.out.print(
        f"Acceptance of one pool of n, {title}: Theorem 3 and its bound, Eq. (18), p(Top_n), the optimum A* and the "
        "gaps to it, D.3's approximate gain of Rheo over RRSw. All exact.",
        highlight=False,
    )
    show(table)


def report_sweeps(swept: Sequence[Sweep], shape: TreeShape) -> None:
    """tau by m, a line for each file and temperature, and the mean over files."""
    versions = list(dict.fromkeys(label(each.method) for each in swept))
    table = blank_table()
    table.add_column("rows")
    table.add_column("T", justify="right")
    for name in versions:
        table.add_column(name, justify="right")
    files = list(dict.fromkeys(each.rows for each in swept))
    levels = list(dict.fromkeys(each.temperature for each in swept))
    for name in [*files, *(["mean"] if len(files) > 1 else [])]:
        for level in levels:
            values = [sweep_mean(swept, version, level, None if name == "mean" else name) for version in versions]
            best = max(values)
            cells = [f"[bold]{value:.4f}[/]" if value == best else f"{value:.4f}" for value in values]
            table.add_row(name if level == levels[0] else "", f"{level:g}", *cells)
    options.out.print(
        f"\ntau of the whole tree (width {shape.width}, depth {shape.depth}, budget {shape.budget}), the target's own "
        "token included; exact, ideal coins; m = K is the plain top-K pool; by "
        f"{' and '.join(dict.fromkeys(each.path for each in swept))}:",
        highlight=False,
    )
    show(table)
    report_survival(swept, versions, max(levels))


def report_survival(swept: Sequence[Sweep], versions: Sequence[str], level: float) -> None:
    """Survival of the sampled slot by m (section 5.3), the mean over files: pruning takes it away as m grows."""
    table = blank_table()
    for name in ("method", "sampled slots kept"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for version in versions:
        kept = survival_mean(swept, version, level)
        table.add_row(version, "-" if kept is None else f"{kept:.4f}")
    options.out.print(
        f"\nSampled slots that survive pruning, expected number of the tree's nodes at T = {level:g}:", highlight=False
    )
    show(table)


def report_choices(best: Sequence[Choice], costs: Costs, most: int = 10) -> None:
    """The best ways to run."""
    table = blank_table()
    for name in ("method", "depth", "budget", "tau", "cost of a cycle", "tokens a unit of time"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for each in best[:most]:
        table.add_row(
            label(each.method),
            str(each.shape.depth),
            str(each.shape.budget),
            f"{float(each.acceptance_length):.4f}",
            f"{costs.cycle(each.shape):g}",
            f"{each.speed:.4f}",
        )
    options.out.print(
        f"\nTokens a unit of time at draft step {costs.draft:g}, verify step {costs.verify:g}, node {costs.node:g} "
        f"(tau averaged over the rows; best {min(most, len(best))} of {len(best)} ways to run):",
        highlight=False,
    )
    show(table)


def _choice(each: Choice) -> dict[str, Any]:
    return {
        "method": label(each.method),
        "lead": each.method.lead if isinstance(each.method, TreeMethod) else None,
        "depth": each.shape.depth,
        "budget": each.shape.budget,
        "width": each.shape.width,
        "acceptance_length": number(each.acceptance_length),
        "tokens_per_time": each.speed,
    }
