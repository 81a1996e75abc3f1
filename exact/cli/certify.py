"""`rheo-exact certify`: the main job, a verdict on each method and each set of rows.

Without arguments it certifies three of the paper's methods on real rows (`--all`: all, on all shipped rows) and then
refutes the two wrong proxies on Table 1's rows; it ends with 0 iff every verdict is the one that its label claims.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import typer
from rich.table import Table

from exact.acceptance import table1
from exact.acceptance.layer_verdict import LayerVerdict
from exact.cli import options, tables
from exact.cli.certify_report import entries, write
from exact.cli.certify_torch import LIMIT, SECONDS, RunLimits
from exact.cli.certify_torch import run as certify_torch
from exact.cli.sizes import announce, followed
from exact.enumeration.growth_graph import GrowthGraph
from exact.enumeration.rationals import format_distinct
from exact.methods.load import label, load_method, own_errors, with_lead
from exact.methods.rows_file import Rows
from exact.runtime.journal import Journal, resumed
from exact.search.summary import rows_line
from exact.verdict.certificate import CERTIFICATE_KINDS, Certificate
from exact.verdict.certify import CheckedModels, certify_on
from exact.verdict.counterexample import Counterexample
from exact.verdict.graph_certificate import GraphCertificate
from exact.verdict.wide_drafting import MOST_LISTED, Replays
from rheo_core import DEFAULT_SUPPORT, InvalidInput, Method, TreeMethod, TreeShape, methods
from rheo_core.checks import check_count
from rheo_core.models import Prefix

COLUMNS: dict[str, Literal["left", "right"]] = {
    "rows": "left",
    "method": "left",
    "verdict": "left",
    "every p": "left",
    "classes": "right",
    "TV": "right",
    "tau": "right",
    "accepted": "left",
}
Torch = Annotated[
    str | None,
    typer.Option(
        help="path.py:function: code that draws through torch, NumPy or random, certified as it stands against the "
        "name `target` in the same file.",
        show_default=False,
    ),
]
Coins = Annotated[str, typer.Option(help="With --torch: ideal, or grid (the coins that the float type can take).")]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target", help="With --torch: the name in the file that holds what is right.", show_default="target"
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        help="Trees listed at most; classes beyond are merged into a graph. With --torch: outcomes. 0: no limit.",
        show_default=f"{MOST_LISTED:,}; {LIMIT:,}",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option("--seconds", help="With --torch: time at most; 0: no limit.", show_default=f"{SECONDS:g}"),
]
FloatType = Annotated[
    str | None,
    typer.Option(
        "--dtype", help="With --torch: the float type it rounds to where that is not seen: float32, float16, bfloat16."
    ),
]
Eps = Annotated[float | None, typer.Option("--eps", help="With --torch: the same by the type's spacing at 1.")]
Length = Annotated[
    int | None,
    typer.Option("--length", help="Tokens whose joint law is compared.", show_default="depth + 1"),
]
CycleCount = Annotated[int, typer.Option("--cycles", help="Cycles before the text is continued from the target.")]
All = Annotated[
    bool, typer.Option("--all", help="Without a method or rows: all methods of the paper on all shipped rows.")
]
TABLE_1 = "Table 1"
MARKS = {True: "proved", False: "[red]refuted[/]", None: "-"}


@dataclass(frozen=True)
class CertifyJob:
    """Methods that share their draft trees, on one set of rows (None: Table 1's); the numbers keep the order."""

    methods: tuple[tuple[int, Method], ...]
    rows: Rows | None
    shape: TreeShape
    prefix: Prefix = ()
    cycles: int = 1
    length: int | None = None

    def __str__(self) -> str:
        names = ", ".join(label(method) for _, method in self.methods)
        return f"{names} on {self.rows.name if self.rows else TABLE_1}"


@dataclass(frozen=True)
class Result:
    """One certification done."""

    label: str
    rows: str
    certificate: Certificate


KINDS = (Result, *CERTIFICATE_KINDS, GraphCertificate, GrowthGraph, Replays, TreeShape)
"""What the journal holds."""


def command(
    names: options.MethodArguments = None,
    method: options.Methods = None,
    rows: options.RowsPath = None,
    width: options.Width = 3,
    depth: options.Depth = 3,
    budget: options.Budget = 8,
    lead: options.Lead = None,
    temperature: options.Temperature = 1,
    support: options.Support = DEFAULT_SUPPORT,
    arithmetic: options.Arithmetic = "rational",
    as_json: options.AsJson = False,
    save: options.Save = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    prefix: options.PrefixText = "",
    length: Length = None,
    cycles: CycleCount = 1,
    report: options.Report = None,
    plot: options.Plot = None,
    torch: Torch = None,
    target: TargetName = None,
    coins: Coins = "ideal",
    limit: Limit = None,
    seconds: Seconds = None,
    dtype: FloatType = None,
    eps: Eps = None,
    everything: All = False,
) -> int:
    """Certify methods as lossless on given rows, or refute them with a counterexample.

    Without a method or rows: three methods on one shipped row file, and the two wrong proxies of the paper.

    Exit code: 0 lossless, 1 lossy, 3 undecided; without a method or rows, 0 iff every verdict equals its label.
    """
    if torch is not None:
        if names or method or rows is not None:
            raise InvalidInput("torch", torch, "no methods and no rows beside it: the file holds the function's target")
        if workers is not None or dask is not None or resume is not None:
            raise InvalidInput("torch", torch, "no --workers, --dask or --resume beside it: it is one job")
        if length is not None:
            raise InvalidInput("length", length, "no --length beside --torch: the name `length` in the file says it")
        if plot is not None:
            raise InvalidInput("plot", str(plot), "no --plot beside --torch: --report shows its law")
        bounds = RunLimits(LIMIT if limit is None else limit, SECONDS if seconds is None else seconds)
        return certify_torch(torch, target, coins, bounds, as_json, save, report, dtype, eps)
    about = (("target", target), ("seconds", seconds), ("dtype", dtype), ("eps", eps))
    for name, given in about:
        if given is not None:
            raise InvalidInput(name, given, f"--torch beside it: --{name} is about a function")
    chosen = [*(names or []), *(method or [])]
    shape = options.shape_of(width, depth, budget)
    rules = [with_lead(load_method(name), lead) for name in chosen] or default_methods(lead)
    files = options.rows_of(rows, temperature, support, arithmetic)
    labelled = not chosen and rows is None
    if everything and not labelled:
        raise InvalidInput("all", "--all", "no methods and no rows beside it: it names the shipped list")
    if labelled and not everything:
        rules, files = (
            [methods["top-k"], with_lead(methods["rheo"], lead), with_lead(methods["rheo-rrsw"], lead)],
            files[:1],
        )
    start = options.prefix_of(prefix)
    check_count("cycles", cycles, 1)
    listed = None if limit is None else check_count("limit", limit, 0) or sys.maxsize
    if length is not None:
        check_count("length", length, 1)
    sized = partial(replace, prefix=start, cycles=cycles, length=length)
    jobs = [sized(job) for each in files for job in jobs_on(each, rules, shape)]
    journal = Journal(resume, options.fingerprint(chosen, "certify", shape, lead, start, cycles, length, files), KINDS)
    with options.opened(workers, dask, default=2 if everything else 1) as executor:
        if labelled and not everything and not as_json:
            say_what_comes(files[0])
        announce([(job.methods[0][1], job.rows, job.shape, job.prefix) for job in jobs], listed)
        results = run(jobs, executor, journal, show=not as_json, limit=listed)
    refuted = run(jobs_on(None, wrong_proxies(), table1.SHAPE)) if labelled else []
    if not as_json:
        show(results, shape)
        if refuted:
            show_refuted(refuted)
    if report is not None or plot is not None:
        asked: list[tuple[Method, Rows | None]] = [(rule, each) for each in files for rule in rules]
        asked += [(rule, None) for rule in wrong_proxies()] if labelled else []
        sources: list[str | None] = [*chosen * len(files)] or [None] * len(asked)
        certified = [(each.label, each.rows, each.certificate) for each in results + refuted]
        write(report, plot, entries(certified, asked, sources, labelled))
    options.deliver(document(results + refuted), as_json, save)
    if labelled:
        return options.LOSSLESS if all(each.certificate.as_claimed for each in results + refuted) else options.LOSSY
    return exit_code(results)


def say_what_comes(rows: Rows) -> None:
    """Before the first command's work: what it will do, and how long it takes."""
    options.out.print(
        f"Three ways to draft and verify, on real next-token rows ({rows.name}: a small language model as target, the\n"
        "same model without two layers as draft). Each is run through every outcome of its coins and draws, in exact\n"
        "fractions; then two that the paper warns of are refuted. About 3 seconds; --all: every method and row.\n",
        highlight=False,
    )


def default_methods(lead: int | None) -> list[Method]:
    """Give the paper's methods: top-k, rheo with m = 0, 1, 2 (or the given m) and rheo-rrsw."""
    leads = [0, 1, 2] if lead is None else [lead]
    rheo = [with_lead(methods["rheo"], m) for m in leads]
    return [methods["top-k"], *rheo, with_lead(methods["rheo-rrsw"], lead)]


def wrong_proxies() -> list[Method]:
    """Give the two wrong proxies of the paper."""
    return [methods["rheo-adhoc"], methods["rheo-raw"]]


def jobs_on(rows: Rows | None, rules: list[Method], shape: TreeShape) -> list[CertifyJob]:
    """Give the methods on one set of rows, those with the same draft trees together."""
    alike: dict[Hashable, list[tuple[int, Method]]] = {}
    for number, rule in enumerate(rules):
        trees = (rule.leads(shape), id(rule.proxy), rule.construction) if isinstance(rule, TreeMethod) else number
        alike.setdefault(trees, []).append((number, rule))
    return [CertifyJob(tuple(group), rows, shape) for group in alike.values()]


def run(
    jobs: Sequence[CertifyJob],
    executor: Executor | None = None,
    journal: Journal | None = None,
    show: bool = False,
    limit: int | None = None,
) -> list[Result]:
    """Certify each job, with a progress bar on stderr; results by rows, then in the order of the methods."""
    found: list[tuple[int, int, Result]] = []
    first = {job.rows.name if job.rows else TABLE_1: number for number, job in reversed(list(enumerate(jobs)))}
    with options.progress(show) as progress:
        task = progress.add_task("certifying", total=sum(len(job.methods) for job in jobs))
        numbers = {f"{number}: {job}": number for number, job in enumerate(jobs)}
        with followed(progress, task, limit):
            for results in resumed(partial(certify_job, jobs), numbers, executor, journal):
                found += [(first[each.rows], number, each) for number, each in results]
                last = results[-1][1]
                progress.update(task, advance=len(results), description=f"{last.label} on {last.rows}")
    return [each for _, _, each in sorted(found, key=lambda item: item[:2])]


def certify_job(jobs: Sequence[CertifyJob], which: int) -> list[tuple[int, Result]]:
    """Certify the methods of one job; an exception inside a user's own rule becomes one line that names it."""
    job = jobs[which]
    rows = job.rows
    models = (
        CheckedModels.read(rows.target, rows.draft, rows.ids)
        if rows
        else CheckedModels.read(table1.target, table1.draft)
    )
    results = []
    for number, method in job.methods:
        with own_errors(method):
            certificate = certify_on(models, method, job.shape, job.length, prefix=job.prefix, cycles=job.cycles)
        results.append((number, Result(label(method), rows.name if rows else TABLE_1, certificate)))
    return results


def exit_code(results: list[Result]) -> int:
    """0 if all are lossless, 1 if any is lossy, else 3."""
    verdicts = [each.certificate.lossless for each in results]
    if False in verdicts:
        return options.LOSSY
    return options.UNDECIDED if None in verdicts else options.LOSSLESS


def show(results: list[Result], shape: TreeShape) -> None:
    """The table of verdicts, counterexamples below it, and the scope."""
    options.out.print(
        f"width {shape.width}, depth {shape.depth}, budget {shape.budget}; exact TV; tau counts the target's token; "
        "accepted: P(>= 1), P(>= 2), ...",
        highlight=False,
    )
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name, justify in COLUMNS.items():
        table.add_column(name, justify=justify)
    shown = ""
    for each in results:
        certificate = each.certificate
        table.add_row(
            each.rows if each.rows != shown else "",
            each.label,
            verdict(certificate),
            MARKS[certificate.every_target],
            "-" if certificate.classes is None else str(certificate.classes),
            "0" if not certificate.total_variation else f"{float(certificate.total_variation):.3g}",
            *accepted(certificate),
        )
        shown = each.rows
    tables.show(table, "accepted")
    for each in results:
        if each.certificate.counterexample is not None:
            options.out.print(f"{each.label} on {each.rows}: {wrong_line(each.certificate)}", highlight=False)
    for each in results:
        loss = each.certificate.every_target_counterexample
        if each.certificate.lossless and loss is not None:
            said = f"every p, {each.label} on {each.rows}: with p = {rows_line(loss.target)}: {probabilities(loss)}"
            options.out.print(said, highlight=False, markup=False)
    undecided: dict[tuple[str, str], list[str]] = {}
    for each in results:
        if each.certificate.every_target is None and each.certificate.every_target_reason:
            undecided.setdefault((each.label, each.certificate.every_target_reason), []).append(each.rows)
    for each in results:
        if isinstance(each.certificate, GraphCertificate) and each.certificate.every_target:
            options.out.print(f"every p, {each.label} on {each.rows}: {each.certificate.every_target_reason}")
    for (name, reason), where in undecided.items():
        options.out.print(f"every p, {name} on {', '.join(where)}: {reason}")
    for scope in dict.fromkeys(each.certificate.scope for each in results):
        options.out.print(scope, style="dim", highlight=False, soft_wrap=True)


def accepted(certificate: Certificate) -> tuple[str, str]:
    """tau, and P(>= d drafted tokens accepted) for d = 1, 2, ...; a graph of classes does not give them."""
    if isinstance(certificate, GraphCertificate):
        return "-", "-"
    by_depth = certificate.acceptance_by_depth[1:]
    return f"{float(certificate.acceptance_length):.4f}", " ".join(f"{float(mass):.2f}" for mass in by_depth)


def show_refuted(results: list[Result]) -> None:
    """The wrong proxies on Table 1's rows, and whether they are refuted as expected."""
    options.out.print("\nWrong proxies on Table 1's rows (q = 1/2 3/10 1/5, p = 1/2 1/5 3/10, m = 1, K = 3, R = 2):")
    for each in results:
        expected = "as expected" if each.certificate.as_claimed else "[bold red]NOT as expected[/]"
        options.out.print(f"  {each.label}: {verdict(each.certificate)}, {expected}; {wrong_line(each.certificate)}")


def verdict(certificate: Certificate | LayerVerdict) -> str:
    """Give the verdict with its colour."""
    return f"[{'green' if certificate.lossless else 'red'}]{certificate.verdict}[/]"


def wrong_line(certificate: Certificate) -> str:
    """Give the shortest sequence whose probability is wrong."""
    found = certificate.counterexample
    if found is None:
        return "no wrong sequence"
    return f"{probabilities(found)}; TV {_shown(certificate.total_variation)}"


def probabilities(found: Counterexample) -> str:
    """Give the wrong sequence with its two probabilities."""
    actual, expected = format_distinct(found.got, found.right)
    return f"P({', '.join(map(str, found.sequence))}) = {actual}, right is {expected}"


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{float(value):.6g}"  # type: ignore[arg-type]


def document(results: list[Result]) -> dict[str, object]:
    """Give the JSON document of a run."""
    return {
        "command": "certify",
        "results": [
            {
                "method": each.label,
                "rows": each.rows,
                **each.certificate.summary(),
                "certificate": each.certificate.document(),
            }
            for each in results
        ],
    }
