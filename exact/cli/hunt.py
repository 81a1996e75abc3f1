"""`rheo-exact hunt`: the smallest rows and shape on which a rule is lossy, or accepts most more than another.

A counterexample comes with a pytest test that fails until the rule is repaired. Where none is found the command says
what was tried, which is a bound and never a proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from exact.cli import options
from exact.runtime import streams
from exact.runtime.atomic_files import save_text
from exact.search import Bounds, Search, exhaust, search
from exact.search.acceptance_gap import OPTIMUM, Gap, Gaps, widest_gaps
from exact.search.cases import blocks
from exact.search.exhaustive import Progress as Report
from exact.search.exhaustive import Subject
from exact.search.hunt import plan_of
from exact.search.summary import coverage_lines, rough, rows_line
from exact.verdict.counterexample import Counterexample
from exact.verdict.document import key, number
from exact.verdict.transcript import Table
from rheo_core import InvalidInput
from rheo_core.checks import check_count

NOT_FOUND, FOUND = 0, 1

MethodArgument = Annotated[
    str | None, typer.Argument(metavar="METHOD", help="NAME or path.py:name (runs that file).", show_default=False)
]
Method = Annotated[str | None, typer.Option("--method", help="Same as METHOD.", show_default=False)]
Seconds = Annotated[float, typer.Option("--seconds", help="Stop after this long.")]
MaxVocabulary = Annotated[int, typer.Option("--max-vocabulary", help="Largest V that is tried.")]
First = Annotated[
    bool, typer.Option("--first", help="Stop at the first counterexample, without looking for smaller ones.")
]
Pytest = Annotated[
    Path | None,
    typer.Option(
        "--pytest",
        help="Write the counterexample as a pytest file.",
        metavar="FILE",
        callback=options.writable("pytest"),
    ),
]
Against = Annotated[
    str | None,
    typer.Option("--against", help=f"Hunt the widest gaps in acceptance to this method, or to '{OPTIMUM}' (A*)."),
]
AgainstLead = Annotated[int | None, typer.Option("--against-lead", help="m of the method named by --against.")]
Denominator = Annotated[
    int | None,
    typer.Option("--denominator", help="Try all p and q up to this denominator, at V = 2 and 3, and nothing else."),
]
Depth = Annotated[int | None, typer.Option("--depth", help="Largest D (--denominator: 2, --against: 1).")]
Width = Annotated[int, typer.Option("--width", help="Largest K, with --denominator.")]
Budget = Annotated[int, typer.Option("--budget", help="Largest R, with --denominator.")]


def command(
    name: MethodArgument = None,
    method: Method = None,
    seconds: Seconds = 60,
    max_vocabulary: MaxVocabulary = 4,
    denominator: Denominator = None,
    depth: Depth = None,
    width: Width = 2,
    budget: Budget = 3,
    lead: options.Lead = None,
    seed: options.Seed = 0,
    workers: options.Workers = None,
    dask: options.Dask = None,
    first: First = False,
    resume: options.Resume = None,
    pytest: Pytest = None,
    against: Against = None,
    against_lead: AgainstLead = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
) -> int:
    """Hunt for the smallest counterexample of METHOD.

    Exit code: 1 found, 0 not found. A tree method is tried with every m unless --lead gives one.
    """
    if (name is None) == (method is None):
        raise InvalidInput("METHOD", " and ".join(filter(None, (name, method))) or "none", "one: NAME or path.py:name")
    chosen = str(name or method)
    if not 0 < seconds < inf:
        raise InvalidInput("seconds", seconds, "a positive number of seconds")
    check_count("max-vocabulary", max_vocabulary, 2)
    largest = max_vocabulary - 1 if denominator is None else width
    for what, m in (("lead", lead), ("against-lead", against_lead)):
        if m is not None and not 0 <= m <= largest:
            raise InvalidInput(what, m, f"0 to {largest}: beyond it nothing that is tried has a sampled slot")
    for what, count in (("depth", depth), ("width", width), ("budget", budget)):
        check_count(what, 1 if count is None else count, 1)
    if against is not None:
        with options.opened(workers, dask) as executor, _progress(not as_json) as progress:
            gaps = widest_gaps(
                chosen,
                against,
                seconds=seconds,
                max_vocabulary=max_vocabulary,
                depth=depth or 1,
                lead=lead,
                second_lead=against_lead,
                executor=executor,
                resume=resume,
                progress=progress,
            )
        if not as_json:
            _report_gaps(gaps)
        seen = {word: gap is not None for word, gap in (("more", gaps.more), ("less", gaps.less))}
        options.deliver(gaps_document(gaps), as_json, save, compared=seen)
        return NOT_FOUND if gaps.more is None and gaps.less is None else FOUND
    if against_lead is not None:
        raise InvalidInput("against-lead", against_lead, "--against METHOD beside it")
    bounds = None if denominator is None else all_up_to(denominator, max_vocabulary, depth or 2, budget, width)
    with options.opened(workers, dask) as executor, _progress(not as_json) as progress:
        if not as_json:
            progress = _after(partial(_say_plan, chosen, max_vocabulary, lead, seconds, bounds), progress)
        if bounds is None:
            result = search(
                chosen,
                seconds=seconds,
                max_vocabulary=max_vocabulary,
                seed=seed,
                executor=executor,
                lead=lead,
                first=first,
                resume=resume,
                progress=progress,
            )
        else:
            result = exhaust(
                chosen, bounds, seconds=seconds, executor=executor, lead=lead, resume=resume, progress=progress
            )
    found = result.counterexample
    if not as_json:
        _report(result)
    if found is not None and pytest is not None:
        save_text(pytest, found.to_pytest(), "pytest")
    options.deliver(document(result), as_json, save, compared={"counterexample": found is not None})
    return NOT_FOUND if found is None else FOUND


def all_up_to(denominator: int, max_vocabulary: int, depth: int, budget: int, width: int) -> list[Bounds]:
    """Give all p and q up to a denominator, alike and prefix-dependent, at V = 2 and 3."""
    check_count("denominator", denominator, 1)
    return [Bounds(v, depth, budget, width, denominator, denominator) for v in (2, 3) if v <= max_vocabulary]


def _say_plan(chosen: str, max_vocabulary: int, lead: int | None, seconds: float, bounds: list[Bounds] | None) -> None:
    """A size estimate; none for a rule that breaks on the first cases, where the error will say enough."""
    subject = Subject.of(chosen)
    levels = plan_of(subject, max_vocabulary, lead, bounds)
    if subject.evaluator.block(next(blocks(levels)), inf).refusals.broken:
        return
    cases = sum(level.cases for level in levels)
    then = "then cases by chance; " if bounds is None else ""
    options.err.print(
        f"hunting {chosen}: up to {len(levels)} levels, {rough(cases)} cases, {then}at most {seconds:g} s",
        highlight=False,
        soft_wrap=True,
    )


def _after(plan: Callable[[], None], progress: Report | None) -> Report:
    """Give a report of progress that tells the plan at its first call: by then every input has been checked."""
    told = False

    def report(what: str, share: float) -> None:
        nonlocal told
        if not told:
            told = True
            plan()
        if progress is not None:
            progress(what, share)

    return report


@contextmanager
def _progress(show: bool) -> Iterator[Report | None]:
    """A progress bar on stderr where that is a terminal."""
    if not show or not options.err.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=options.err, transient=True) as bar:
        task = bar.add_task("hunting", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _report(result: Search) -> None:
    found = result.counterexample
    say = options.out.print
    if found is None:
        say(f"{result.method}: no counterexample found", style="green", highlight=False)
    else:
        say(f"{result.method} is lossy", style="red", highlight=False)
        for line in _case_lines(found):
            say(line, highlight=False, soft_wrap=True)
        if result.certificate is not None:
            say(f"  TV {result.certificate.total_variation} on the first {result.certificate.length} tokens")
    for line in coverage_lines(result):
        say(line, highlight=False, soft_wrap=True, style="dim")
    if found is not None:
        say("\nAs a test:\n", highlight=False)
        streams.own().write(found.to_pytest())


def _case_lines(found: Counterexample) -> list[str]:
    size = len(next(iter(found.target.values())))
    shape = found.shape
    lead = "" if found.lead is None else f", m = {found.lead}"
    return [
        f"  V = {size}, K = {shape.width}, D = {shape.depth}, R = {shape.budget}{lead}",
        f"  draft  q: {rows_line(found.draft)}",
        f"  target p: {rows_line(found.target)}",
        f"  P({', '.join(map(str, found.sequence))}) = {found.got}, right is {found.right}",
    ]


def _report_gaps(gaps: Gaps) -> None:
    say = options.out.print
    for word, gap in (("more", gaps.more), ("less", gaps.less)):
        if gap is None:
            say(f"{gaps.first} was not seen to accept {word} than {gaps.second}", highlight=False)
            continue
        shape, size = gap.case.shape, abs(gap.value)
        say(f"{gaps.first} accepts up to {size} = {float(size):.6g} {word} than {gaps.second}", highlight=False)
        say(f"  V = {gap.case.vocabulary}, K = {shape.width}, D = {shape.depth}, R = {shape.budget}", highlight=False)
        say(f"  draft  q: {rows_line({(): gap.case.draft.default})}", highlight=False)
        say(f"  target p: {rows_line({(): gap.case.target.default})}", highlight=False)
        say(f"  acceptance lengths {gap.first} and {gap.second}", highlight=False)
    bounds = "all within the bounds" if gaps.finished else "the time was up"
    say(f"scope: {gaps.cases} cases of rows alike at every prefix, {bounds}; exact", style="dim", highlight=False)


def document(result: Search) -> dict[str, Any]:
    """Give the JSON document of a hunt."""
    coverage = result.coverage
    return {
        "command": "hunt",
        "method": result.method,
        "counterexample": None if result.counterexample is None else _entry(result.counterexample),
        "finished": result.finished,
        "seconds": result.seconds,
        "levels": len(coverage.levels),
        "cases_covered": coverage.cases,
        "laws_computed": coverage.computed,
        "cases_by_chance": result.random_cases,
        "levels_too_large": len(coverage.too_large),
        "refused": coverage.refusals.refused,
        "covered": coverage_lines(result),
    }


def _entry(found: Counterexample) -> dict[str, Any]:
    shape = found.shape
    return {
        "shape": {"width": shape.width, "depth": shape.depth, "budget": shape.budget},
        "lead": found.lead,
        "target": _rows(found.target),
        "draft": _rows(found.draft),
        "sequence": list(found.sequence),
        "got": number(found.got),
        "right": number(found.right),
        "pytest": found.to_pytest(),
    }


def _rows(table: Table) -> dict[str, list[str]]:
    return {key(prefix): [str(mass) for mass in row] for prefix, row in table.items()}


def gaps_document(gaps: Gaps) -> dict[str, Any]:
    """Give the JSON document of an acceptance hunt."""
    return {
        "command": "hunt",
        "first": gaps.first,
        "second": gaps.second,
        "more": None if gaps.more is None else _gap_entry(gaps.more),
        "less": None if gaps.less is None else _gap_entry(gaps.less),
        "cases": gaps.cases,
        "finished": gaps.finished,
    }


def _gap_entry(gap: Gap) -> dict[str, Any]:
    shape = gap.case.shape
    return {
        "value": number(gap.value),
        "shape": {"width": shape.width, "depth": shape.depth, "budget": shape.budget},
        "target": [str(mass) for mass in gap.case.target.default],
        "draft": [str(mass) for mass in gap.case.draft.default],
        "acceptance_lengths": [number(gap.first), number(gap.second)],
    }
