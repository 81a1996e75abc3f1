"""`rheo-montecarlo power`: how many samples show a loss, before any are drawn."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from exact.cli import options
from exact.cli.tables import show
from exact.methods.load import load_method
from montecarlo.cli import sources
from montecarlo.planning import ErrorRates, MethodPower, Plan, Powers, plans
from montecarlo.simulation import ALARM, MISS
from rheo_core import DEFAULT_SUPPORT, Method
from rheo_core.checks import check_count

DEFAULT_SAMPLES = 10_000

Samples = Annotated[int | None, typer.Option("--samples", help="Samples at hand: what TV do they show?")]


def command(
    names: options.MethodArguments = None,
    method: options.Methods = None,
    tv: Annotated[float | None, typer.Option("--tv", help="Total variation: how many samples show it?")] = None,
    samples: Samples = None,
    cells: Annotated[int, typer.Option("--cells", help="Cells that the samples fall into, e.g. V.")] = 1000,
    rows: sources.RowsFile = None,
    width: options.Width = 3,
    depth: options.Depth = 2,
    budget: options.Budget = 4,
    temperature: options.Temperature = 1,
    support: options.Support = DEFAULT_SUPPORT,
    false_alarm: Annotated[float, typer.Option("--false-alarm", help="False-alarm probability of the test.")] = ALARM,
    miss: Annotated[float, typer.Option("--miss", help="Probability of overlooking the loss.")] = MISS,
    workers: options.Workers = None,
    dask: options.Dask = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
    plot: options.Plot = None,
) -> int:
    """Samples needed to see a total variation, the one visible with given samples, and the power against lossy methods.

    Methods: those named, or every lossy one of the catalogue, each on the rows (--rows, or small built-in ones) that
    show it best. A sample is one cycle started from the empty prefix.
    """
    errors = ErrorRates(false_alarm, miss)
    check_count("cells", cells, 2)
    listed = planned(cells, errors, tv, samples)
    chosen = [*(names or []), *(method or [])]
    asked_plan = tv is not None or samples is not None
    found: list[MethodPower] = []
    if chosen or rows is not None or not asked_plan or samples is not None:
        files = [] if rows is None else options.rows_of(rows, temperature, support)
        shape = options.shape_of(width, depth, budget)
        powers = Powers(tuple(rules(chosen)), tuple(files), shape, samples or DEFAULT_SAMPLES, errors)
        with options.opened(workers, dask) as executor:
            found = powers.all(executor)
    if not as_json:
        report(listed, found, cells, samples or DEFAULT_SAMPLES, errors)
    if plot is not None:
        from montecarlo.plots import draw_power

        draw_power(found, cells if asked_plan else None, samples or DEFAULT_SAMPLES, errors, plot)
    options.deliver(document(listed, found, cells, samples or DEFAULT_SAMPLES, errors), as_json, save)
    return 0


def planned(cells: int, errors: ErrorRates, tv: float | None, samples: int | None) -> list[Plan]:
    """The plans asked for; none where neither is given."""
    listed: list[Plan] = []
    if tv is not None:
        listed += plans(cells, errors, variation=tv)
    if samples is not None:
        listed += plans(cells, errors, samples=samples)
    return listed


def rules(chosen: list[str]) -> list[Method]:
    """The methods named, or every lossy one of the catalogue."""
    from exact.methods import methods

    if chosen:
        return [load_method(name, methods) for name in chosen]
    return [rule for rule in methods.values() if rule.claim == "lossy"]


def report(listed: list[Plan], found: list[MethodPower], cells: int, samples: int, errors: ErrorRates) -> None:
    """Print plans and powers."""
    rates = f"false alarm {errors.alarm:g}, miss {errors.miss:g}"
    if listed:
        table = Table(box=box.SIMPLE_HEAD, title=f"{cells} cells, any direction; {rates}", title_justify="left")
        for name in ("test", "samples", "total variation"):
            table.add_column(name, justify="left" if name == "test" else "right")
        for plan in listed:
            table.add_row(plan.test, f"{plan.samples:,.0f}", f"{plan.variation:.6g}")
        show(table)
    if found:
        title = f"power with {samples:,} samples; {rates}"
        table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
        for name in ("method", "rows"):
            table.add_column(name)
        for name in ("length", "TV", "chi-square", "e-process", "needed: chi-square", "e-process", "audit"):
            table.add_column(name, justify="right")
        for each in found:
            table.add_row(
                each.method,
                each.rows,
                str(each.length),
                f"{each.variation:.4g}",
                *(f"{each.power[test]:.4g}" for test in ("chi-square", "e-process")),
                *(_count(each.needed[test]) for test in ("chi-square", "e-process")),
                _count(each.audit_tokens),
            )
        show(table)
    options.out.print(
        "Scope: chi-square by its noncentral law, the e-process by its large-sample value, total variation by "
        "concentration (rigorous, and therefore conservative); methods by the exact law on the rows named "
        "(length: tokens of the joint law; audit: recorded first tokens of a cycle; -: no loss to see).",
        highlight=False,
    )


def _count(value: float) -> str:
    return "-" if math.isinf(value) else f"{math.ceil(value):,}"


def document(
    listed: list[Plan], found: list[MethodPower], cells: int, samples: int, errors: ErrorRates
) -> dict[str, Any]:
    """Plans and powers for --json and --save; a number of samples that does not exist is null."""
    methods = []
    for each in found:
        entry = asdict(each)
        entry["needed"] = {test: None if math.isinf(n) else math.ceil(n) for test, n in each.needed.items()}
        entry["audit_tokens"] = None if math.isinf(each.audit_tokens) else math.ceil(each.audit_tokens)
        entry["spread"] = None if math.isinf(each.spread) else each.spread
        methods.append(entry)
    return {
        "command": "power",
        "cells": cells,
        "false_alarm": errors.alarm,
        "miss": errors.miss,
        "plans": [asdict(plan) for plan in listed],
        "samples": samples,
        "methods": methods,
    }
