"""`rheo-exact compare`: the methods of the literature side by side on the same rows.

Each gets its verdict, its exact acceptance on one layer and in the tree, and the gap to the most that any lossless rule
could accept from the same drafts. A label that exact arithmetic contradicts is reported, and is the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import track

from exact.acceptance.layer_verdict import LayerVerdict, WrongToken
from exact.acceptance.one_layer import OneLayer, one_layer
from exact.acceptance.one_pool import path_of
from exact.cli import options
from exact.cli.certify import Job, jobs_on, verdict
from exact.cli.tables import blank_table, show
from exact.methods import methods, references
from exact.methods.load import label, load_method, own_errors, with_lead
from exact.methods.rows_file import Rows
from exact.methods.witnesses import witnesses
from exact.runtime.journal import Journal, resumed
from exact.verdict.certificate import CERTIFICATE_KINDS, Certificate
from exact.verdict.certify import Study, certify
from exact.verdict.document import number
from rheo_core import DEFAULT_SUPPORT, Method, TreeMethod, TreeShape

KINDS = (*CERTIFICATE_KINDS, LayerVerdict, WrongToken, OneLayer, TreeShape)
"""What the journal holds."""


@dataclass(frozen=True)
class Entry:
    """One method on one set of rows."""

    method: Method
    rows: str
    certificate: Certificate | LayerVerdict
    layer: OneLayer

    @property
    def contradicts(self) -> bool:
        """Labelled lossless and refuted. (A lossy method may well do no harm on given rows.)"""
        return self.method.claim == "lossless" and not self.certificate.lossless


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
    journal = Journal(resume, options.fingerprint(specs, "compare", shape, lead, files), KINDS)
    with options.opened(workers, dask) as executor:
        found = compare(rules, files, shape, executor=executor, journal=journal)
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
    *,
    executor: Executor | None = None,
    journal: Journal | None = None,
) -> Iterator[Entry]:
    """Every method on every file, file by file; those that share their draft trees are one job."""
    jobs = [job for file in files for job in jobs_on(file, list(rules), shape)]
    keys = {f"{which}: {job}": which for which, job in enumerate(jobs)}
    measured = resumed(partial(_measure, jobs), keys, executor, journal)
    for file in files:
        entries: dict[int, Entry] = {}
        while len(entries) < len(rules):
            for place, certificate, layer in next(measured):
                entries[place] = Entry(rules[place], file.name, certificate, layer)
        yield from (entries[place] for place in range(len(rules)))


def _measure(jobs: Sequence[Job], which: int) -> tuple[tuple[int, Certificate | LayerVerdict, OneLayer], ...]:
    """Certify the methods of a job and measure one layer of each."""
    job = jobs[which]
    assert job.rows is not None
    study = Study(job.rows.target, job.rows.draft, job.rows.ids)
    results: list[tuple[int, Certificate | LayerVerdict, OneLayer]] = []
    for place, rule in job.methods:
        with own_errors(rule):
            judged = LayerVerdict.of(rule, study.given, job.shape)
            certificate = judged or study.certify(rule, job.shape, second=False)
            layer = one_layer(rule, study.given, min(job.shape.width, job.shape.budget))
        results.append((place, certificate, layer))
    return tuple(results)


def certify_witness(name: str) -> Certificate:
    """The verdict on a lossy method where its loss must show."""
    witness = witnesses[name]
    return certify(witness.method, witness.target, witness.draft, witness.shape, second=False)


def report(entries: list[Entry], shape: TreeShape) -> None:
    """A table for each set of rows, the most accepting method first."""
    options.out.print(
        f"width {shape.width}, depth {shape.depth}, budget {shape.budget}. One layer: all {shape.width} slots kept; "
        "optimum: the most that any lossless rule accepts from the same drafts (-: a cycle that returns no tree).\n"
        "tau: expected tokens of a cycle, the target's own included. All exact.",
        highlight=False,
    )
    for name in dict.fromkeys(each.rows for each in entries):
        table = blank_table(name)
        for column in ("method", "label", "verdict", "one layer", "optimum", "gap", "tau"):
            table.add_column(column, justify="right" if column in ("one layer", "optimum", "gap", "tau") else "left")
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
            )
        show(table)


def report_labels(entries: list[Entry], refuted: dict[str, Certificate]) -> None:
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


def draw(entries: list[Entry], shape: TreeShape, path: Path) -> None:
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


def _entry(each: Entry) -> dict[str, Any]:
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
        **each.certificate.summary(),
    }


def _labels(refuted: dict[str, Certificate]) -> list[dict[str, Any]]:
    return [{"method": name, **certificate.summary()} for name, certificate in refuted.items()]
