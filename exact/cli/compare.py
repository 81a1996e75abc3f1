"""`rheo-exact compare`: the methods of the literature side by side on the same rows.

Each gets its verdict, its exact acceptance on one layer and in the tree, and the gap to the most that any lossless rule
could accept from the same drafts. A label that exact arithmetic contradicts is reported, and is the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import track

from exact.acceptance.layer_verdict import LayerVerdict, WrongToken
from exact.acceptance.one_layer import OneLayer, one_layer
from exact.acceptance.one_pool import path_of
from exact.acceptance.tree_optimum import best_rules
from exact.cli import options
from exact.cli.certify import CertifyJob, jobs_on, verdict
from exact.cli.tables import blank_table, show
from exact.methods import methods, references
from exact.methods.load import label, load_method, own_errors, with_lead
from exact.methods.rows_file import Rows
from exact.methods.witnesses import witnesses
from exact.runtime.journal import Journal, resumed
from exact.verdict.certificate import CERTIFICATE_KINDS, Certificate
from exact.verdict.certify import CheckedModels, certify, certify_on
from exact.verdict.document import number
from rheo_core import DEFAULT_SUPPORT, Method, TreeMethod, TreeShape

KINDS = (*CERTIFICATE_KINDS, LayerVerdict, WrongToken, OneLayer, TreeShape)
"""What the journal holds."""


@dataclass(frozen=True)
class CompareRow:
    """One method on one set of rows."""

    method: Method
    rows: str
    certificate: Certificate | LayerVerdict
    layer: OneLayer
    best: tuple[Fraction, Fraction] | None = None
    """The largest tau of a lossless rule on the same draft trees: knowing the whole tree, and layer by layer."""

    @property
    def contradicts(self) -> bool:
        """Labelled lossless and refuted. (A lossy method may well do no harm on given rows.)"""
        return self.method.claim == "lossless" and not self.certificate.lossless


TreeOptimumOption = Annotated[
    bool,
    typer.Option(
        "--tree-optimum",
        help="Also the largest tau that any lossless rule reaches on the method's own draft trees (tree methods).",
    ),
]


def command(
    names: options.MethodArguments = None,
    method: options.Methods = None,
    rows: options.RowsPath = None,
    width: options.Width = 3,
    depth: options.Depth = 2,
    budget: options.Budget = 4,
    lead: options.Lead = None,
    temperature: options.Temperature = 1,
    support: options.Support = DEFAULT_SUPPORT,
    workers: options.Workers = None,
    dask: options.Dask = None,
    resume: options.Resume = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
    plot: options.Plot = None,
    tree_optimum: TreeOptimumOption = False,
) -> int:
    """Compare methods on the same rows: verdict, exact acceptance, gap to the optimum of their own drafts.

    Exit code: 0 iff no label is contradicted: lossless ones hold on all rows, lossy ones are refuted on rows that must
    show it.
    """
    shape = options.shape_of(width, depth, budget)
    specs = [*(names or []), *(method or [])]
    chosen = [load_method(name) for name in specs] or list(methods.values())
    rules = [
        with_lead(rule, lead) if isinstance(rule, TreeMethod) and rule.lead is not None else rule for rule in chosen
    ]
    files = options.rows_of(rows, temperature, support)
    wrong = [rule.name for rule in chosen if rule.name in witnesses]
    journal = Journal(resume, options.fingerprint(specs, "compare", shape, lead, files, tree_optimum), KINDS)
    with options.opened(workers, dask) as executor:
        found = compare(rules, files, shape, tree_optimum, executor=executor, journal=journal)
        entries = list(
            track(
                found,
                "comparing",
                len(files) * len(rules),
                console=options.err,
                transient=True,
                disable=as_json or not options.err.is_terminal,
            )
        )
        jobs = {f"witness against {name}": name for name in wrong}
        refuted = dict(zip(wrong, resumed(certify_witness, jobs, executor, journal), strict=True))
    if not as_json:
        report(entries, shape)
        report_labels(entries, refuted)
    if plot is not None:
        draw(entries, shape, plot)
    document = {"command": "compare", "results": [_entry(each) for each in entries], "lossy_labels": _labels(refuted)}
    options.deliver(document, as_json, save)
    good = not any(each.contradicts for each in entries) and not any(each.lossless for each in refuted.values())
    return options.LOSSLESS if good else options.LOSSY


def compare(
    rules: Sequence[Method],
    files: Sequence[Rows],
    shape: TreeShape,
    tree_optimum: bool = False,
    *,
    executor: Executor | None = None,
    journal: Journal | None = None,
) -> Iterator[CompareRow]:
    """Yield every method on every file, file by file; those that share their draft trees are one job."""
    jobs = [job for file in files for job in jobs_on(file, list(rules), shape)]
    keys = {f"{which}: {job}": which for which, job in enumerate(jobs)}
    measured = resumed(partial(_measure, jobs, tree_optimum), keys, executor, journal)
    for file in files:
        entries: dict[int, CompareRow] = {}
        while len(entries) < len(rules):
            for place, certificate, layer, best in next(measured):
                entries[place] = CompareRow(rules[place], file.name, certificate, layer, best)
        yield from (entries[place] for place in range(len(rules)))


Measures = tuple[int, Certificate | LayerVerdict, OneLayer, tuple[Fraction, Fraction] | None]


def _measure(jobs: Sequence[CertifyJob], tree_optimum: bool, which: int) -> tuple[Measures, ...]:
    """Certify the methods of a job, measure one layer of each and, if told, the best rules on its trees."""
    job = jobs[which]
    assert job.rows is not None
    models = CheckedModels.read(job.rows.target, job.rows.draft, job.rows.ids)
    results: list[Measures] = []
    best, first = None, job.methods[0][1]  # the methods of a job share their draft trees
    if tree_optimum and isinstance(first, TreeMethod) and LayerVerdict.of(first, models.given, job.shape) is None:
        best = best_rules(first, models.given, job.shape)
    for place, rule in job.methods:
        with own_errors(rule):
            judged = LayerVerdict.of(rule, models.given, job.shape)
            certificate = judged or certify_on(models, rule, job.shape, every_target=False)
            layer = one_layer(rule, models.given, min(job.shape.width, job.shape.budget))
        results.append((place, certificate, layer, best))
    return tuple(results)


def certify_witness(name: str) -> Certificate:
    """Give the verdict on a lossy method where its loss must show."""
    witness = witnesses[name]
    return certify(witness.method, witness.target, witness.draft, witness.shape, every_target=False)


def report(entries: list[CompareRow], shape: TreeShape) -> None:
    """A table for each set of rows, the most accepting method first."""
    options.out.print(
        f"width {shape.width}, depth {shape.depth}, budget {shape.budget}. One layer: all {shape.width} slots kept; "
        "optimum: the most that any lossless rule accepts from the same drafts (-: a cycle that returns no tree).\n"
        "tau: expected tokens of a cycle, the target's own included. All exact.",
        highlight=False,
    )
    with_best = any(each.best for each in entries)
    if with_best:
        options.out.print(
            "best by layer, best: the largest tau of any lossless rule on the same draft trees, seeing them layer by "
            "layer or whole (-: no draft tree, or too many).",
            highlight=False,
        )
    figures = ("one layer", "optimum", "gap", "tau", *(("best by layer", "best") if with_best else ()))
    for name in dict.fromkeys(each.rows for each in entries):
        table = blank_table(name)
        for column in ("method", "label", "verdict", *figures):
            table.add_column(column, justify="right" if column in figures else "left")
        listed = [each for each in entries if each.rows == name]
        for each in sorted(listed, key=lambda each: each.certificate.acceptance_length, reverse=True):
            lossless = each.certificate.lossless
            table.add_row(
                label(each.method),
                each.method.claim or "-",
                verdict(each.certificate) + (" [bold red]against its label[/]" if each.contradicts else ""),
                f"{float(each.layer.acceptance):.4f}",
                f"{float(each.layer.optimum):.4f}" if lossless and each.layer.optimum is not None else "-",
                f"{float(each.layer.gap):.4f}" if lossless and each.layer.gap is not None else "-",
                f"{float(each.certificate.acceptance_length):.4f}",
                *_best(each, with_best),
            )
        show(table)


def _best(entry: CompareRow, shown: bool) -> list[str]:
    if not shown:
        return []
    return (
        [f"{float(tau):.4f}" for tau in reversed(entry.best)]
        if entry.best and entry.certificate.lossless
        else ["-"] * 2
    )


def report_labels(entries: list[CompareRow], refuted: dict[str, Certificate]) -> None:
    """Which labels hold."""
    against = [each for each in entries if each.contradicts]
    for each in against:
        options.out.print(f"[bold red]{label(each.method)} is labelled lossless and is lossy on {each.rows}[/]")
    if not against:
        options.out.print("Every method labelled lossless is lossless on all these rows.", highlight=False)
    for name, certificate in refuted.items():
        found = certificate.counterexample
        said = f"refuted, {found}" if found is not None else "[bold red]NOT refuted[/]"
        options.out.print(f"Labelled lossy: {name}, on rows that must show it: {said}", highlight=False)
    for scope in dict.fromkeys(each.certificate.scope for each in entries):
        options.out.print(scope, style="dim", highlight=False, soft_wrap=True)


def draw(entries: list[CompareRow], shape: TreeShape, path: Path) -> None:
    """The same as bars, each with the optimum of its own drafts."""
    from exact.report import save_figure
    from exact.report.acceptance import Measured, comparison_figure

    measured = [
        Measured(
            label(each.method),
            each.rows,
            each.certificate.lossless is True,
            float(each.layer.acceptance),
            None if each.layer.optimum is None else float(each.layer.optimum),
            float(each.certificate.acceptance_length),
        )
        for each in entries
    ]
    save_figure(comparison_figure(measured, f"K = {shape.width}, D = {shape.depth}, R = {shape.budget}; exact"), path)


def _entry(each: CompareRow) -> dict[str, Any]:
    lossless = each.certificate.lossless
    return {
        "method": label(each.method),
        "rows": each.rows,
        "label": each.method.claim,
        "reference": references.get(each.method.name),
        "contradicts_label": each.contradicts,
        "one_layer": number(each.layer.acceptance),
        "optimum": number(each.layer.optimum) if lossless and each.layer.optimum is not None else None,
        "gap": number(each.layer.gap) if lossless and each.layer.gap is not None else None,
        "one_layer_path": path_of(each.method, TreeShape(1, 1, 1)),
        **({"tree_optimum": dict(zip(("whole", "layered"), map(number, each.best), strict=True))} if each.best else {}),
        **each.certificate.summary(),
    }


def _labels(refuted: dict[str, Certificate]) -> list[dict[str, Any]]:
    return [{"method": name, **certificate.summary()} for name, certificate in refuted.items()]
