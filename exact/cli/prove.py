"""`rheo-exact prove`: the paper's claims for every p and q, not for given rows.

Each line has its statement, where it holds, how it was decided, and two guards: a point at which its assumptions hold,
and its control, the same with one term changed, which must come out refuted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from exact.cli import options
from exact.cli.tables import blank_table, show
from exact.runtime.journal import Journal, subject
from rheo_core import InvalidInput

if TYPE_CHECKING:
    from exact.proofs.proof import Proof

LARGEST = 14
COLOURS = {"proved": "green", "refuted": "red", "unknown": "yellow"}

MaxVocabulary = Annotated[int, typer.Option("--max-vocabulary", help="Largest V of the proofs cell by cell.")]
Deep = Annotated[
    bool, typer.Option("--deep", help="Survival of the sampled slot up to V = 8, not 6 (for every V: the Coq proofs).")
]
Latex = Annotated[bool, typer.Option("--latex", help="Print the statements as LaTeX.")]


def command(
    max_vocabulary: MaxVocabulary = 12,
    deep: Deep = False,
    latex: Latex = False,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
) -> int:
    """Prove the paper's claims for every target and draft, or refute them with a witness.

    Exit code: 0 iff every verdict is the expected one, every control is refuted and every assumption satisfiable.
    """
    options.need("prove", "sympy", "flint", "z3")
    if not 2 <= max_vocabulary <= LARGEST:
        raise InvalidInput("max-vocabulary", max_vocabulary, f"an int from 2 to {LARGEST} (each one doubles the time)")
    started = time.perf_counter()
    with options.opened(workers, dask, default=0) as executor:
        found = run(max_vocabulary, deep, executor, resume, show=not as_json)
    seconds = time.perf_counter() - started
    if not as_json:
        report(found, seconds)
        if latex:
            report_latex(found)
    options.deliver(document(found, seconds), as_json, save)
    return options.LOSSLESS if all(each.as_expected for each in found) else options.LOSSY


def run(limit: int, deep: bool, executor: Executor | None, resume: Path | None, show: bool) -> list[Proof]:
    """Give all proofs, with a progress bar on stderr."""
    from exact.proofs.pools import jobs
    from exact.proofs.suite import KINDS, prove

    found: list[Proof] = []
    journal = Journal(resume, subject("prove", limit), KINDS)
    with options.progress(show) as progress:
        task = progress.add_task("proving", total=len(jobs(limit=limit)))
        for each in prove(limit, deep, executor, tick=lambda: progress.advance(task), journal=journal):
            progress.update(task, description=escape(each.name))
            found.append(each)
    return found


def report(found: Sequence[Proof], seconds: float) -> None:
    """The table, then the witnesses, the controls that did not come out refuted, and the scope."""
    table = blank_table()
    for name in ("verdict", "claim", "domain", "method"):
        table.add_column(name)
    for name in ("cases", "s"):
        table.add_column(name, justify="right")
    for each in found:
        mark = "" if each.as_expected else " [bold red]NOT as expected[/]"
        verdict = f"[{COLOURS[each.verdict]}]{each.verdict}[/]{mark}"
        cells = (escape(text) for text in (each.name, each.domain, each.method))
        table.add_row(verdict, *cells, str(each.cases), f"{each.seconds:.1f}")
    show(table, "claim", "domain", "method")
    for each in found:
        if each.witness is not None:
            options.out.print(f"{each.name}: {each.witness}", highlight=False, markup=False)
        for problem in problems(each):
            options.out.print(f"{each.name}: {problem}", style="red", highlight=False, markup=False)
    refuted = sum(each.control.verdict == "refuted" for each in found)
    as_expected = sum(each.as_expected for each in found)
    options.out.print(
        f"{as_expected} of {len(found)} as expected in {seconds:.0f} s; {refuted} controls refuted. "
        "Scope: every target and every draft of each line's domain; ideal coins; exact.",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )


def problems(each: Proof) -> list[str]:
    """What is not as it must be."""
    found = [] if each.verdict == each.expected else [f"{each.verdict}, expected {each.expected}"]
    if each.control.verdict != "refuted":
        found.append(f"its control ({each.control.statement}) came out {each.control.verdict}")
    if each.assumptions is None:
        found.append("no point was found at which its assumptions hold")
    return found


def report_latex(found: Sequence[Proof]) -> None:
    """The statements as LaTeX, each once."""
    for latex, name in {each.latex: each.name for each in found}.items():
        options.out.print(f"% {name}\n{latex}", highlight=False, markup=False, soft_wrap=True)


def document(found: Sequence[Proof], seconds: float) -> dict[str, Any]:
    """Give the JSON document of a run."""
    return {
        "command": "prove",
        "as_expected": all(each.as_expected for each in found),
        "seconds": round(seconds, 3),
        "results": [each.to_json() for each in found],
    }
