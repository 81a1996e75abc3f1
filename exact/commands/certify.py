"""`rheo-exact certify`: the main job, a verdict on each method and each set of rows.

Without arguments it certifies the paper's methods on the shipped real rows and then refutes the two wrong proxies on
Table 1's rows; it ends with 0 iff every verdict is the one that its label claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.progress import Progress
from rich.table import Table

from exact import table1
from exact.certificate import Certificate
from exact.certifying import Study
from exact.commands import options
from exact.plugins import label, load_method, own_errors, with_lead
from rheo_core import DEFAULT_SUPPORT, Method, TreeShape, methods

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
MARKS = {True: "proved", False: "[red]refuted[/]", None: "-"}


@dataclass(frozen=True)
class Case:
    """One certification to run."""

    method: Method
    where: str
    study: Study
    shape: TreeShape


@dataclass(frozen=True)
class Result:
    """One certification done."""

    label: str
    rows: str
    certificate: Certificate

    @property
    def as_claimed(self) -> bool:
        """Whether the verdict is the method's own claim."""
        return self.certificate.lossless is not None and self.certificate.lossless == (
            self.certificate.claim == "lossless"
        )


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
) -> int:
    """Certify methods as lossless on given rows, or refute them with a counterexample.

    Exit code: 0 lossless, 1 lossy, 3 undecided; without a method or rows, 0 iff every verdict equals its label.
    """
    chosen = [*(names or []), *(method or [])]
    shape = options.shape_of(width, depth, budget)
    rules = [with_lead(load_method(name), lead) for name in chosen] or default_methods(lead)
    files = options.rows_of(rows, temperature, support, arithmetic)
    studies = [(each.name, Study(each.target, each.draft, each.ids)) for each in files]
    cases = [Case(rule, name, study, shape) for name, study in studies for rule in rules]
    labelled = not chosen and rows is None
    controls = wrong_proxies() if labelled else []
    results = list(run(cases, show=not as_json))
    refuted = list(run(controls, show=False))
    if not as_json:
        report(results, shape)
        if refuted:
            report_refuted(refuted)
    options.deliver(document(results + refuted), as_json, save)
    if labelled:
        return options.LOSSLESS if all(each.as_claimed for each in results + refuted) else options.LOSSY
    return exit_code(results)


def default_methods(lead: int | None) -> list[Method]:
    """The paper's methods: top-k, rheo with m = 0, 1, 2 (or the given m) and rheo-rrsw."""
    leads = [0, 1, 2] if lead is None else [lead]
    rheo = [with_lead(methods["rheo"], m) for m in leads]
    return [methods["top-k"], *rheo, with_lead(methods["rheo-rrsw"], lead)]


def wrong_proxies() -> list[Case]:
    """The two wrong proxies of the paper on Table 1's rows."""
    study = Study(table1.target, table1.draft)
    return [Case(methods[name], "Table 1", study, table1.SHAPE) for name in ("rheo-adhoc", "rheo-raw")]


def run(cases: list[Case], show: bool) -> Iterator[Result]:
    """Certify each case, with a progress bar on stderr."""
    with Progress(console=options.err, transient=True, disable=not show or not options.err.is_terminal) as progress:
        task = progress.add_task("certifying", total=len(cases))
        for case in cases:
            progress.update(task, description=f"{label(case.method)} on {case.where}")
            yield Result(label(case.method), case.where, certify_case(case))
            progress.advance(task)


def certify_case(case: Case) -> Certificate:
    """Certify one case; an exception inside a user's own rule becomes one line that names it."""
    with own_errors(case.method):
        return case.study.certify(case.method, case.shape)


def exit_code(results: list[Result]) -> int:
    """0 if all are lossless, 1 if any is lossy, else 3."""
    verdicts = [each.certificate.lossless for each in results]
    if False in verdicts:
        return options.LOSSY
    return options.UNDECIDED if None in verdicts else options.LOSSLESS


def report(results: list[Result], shape: TreeShape) -> None:
    """The table of verdicts, counterexamples below it, and the scope."""
    options.out.print(
        f"width {shape.width}, depth {shape.depth}, budget {shape.budget}; exact TV; tau counts the target's token; "
        "accepted: P(>= 1), P(>= 2), ...",
        highlight=False,
    )
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), show_edge=False)
    for name, justify in COLUMNS.items():
        table.add_column(name, justify=justify, no_wrap=name != "verdict")
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
            f"{float(certificate.acceptance_length):.4f}",
            " ".join(f"{float(mass):.2f}" for mass in certificate.acceptance_by_depth[1:]),
        )
        shown = each.rows
    options.out.print(table)
    for each in results:
        if each.certificate.counterexample is not None:
            options.out.print(f"{each.label} on {each.rows}: {wrong_line(each.certificate)}", highlight=False)
    for scope in dict.fromkeys(each.certificate.scope for each in results):
        options.out.print(scope, style="dim", highlight=False, soft_wrap=True)


def report_refuted(results: list[Result]) -> None:
    """The wrong proxies on Table 1's rows, and whether they are refuted as expected."""
    options.out.print("\nWrong proxies on Table 1's rows (q = 1/2 3/10 1/5, p = 1/2 1/5 3/10, m = 1, K = 3, R = 2):")
    for each in results:
        expected = "as expected" if each.as_claimed else "[bold red]NOT as expected[/]"
        options.out.print(f"  {each.label}: {verdict(each.certificate)}, {expected}; {wrong_line(each.certificate)}")


def verdict(certificate: Certificate) -> str:
    """The verdict with its colour."""
    return f"[{'green' if certificate.lossless else 'red'}]{certificate.verdict}[/]"


def wrong_line(certificate: Certificate) -> str:
    """The shortest sequence whose probability is wrong."""
    found = certificate.counterexample
    if found is None:
        return "no wrong sequence"
    tokens = ", ".join(str(token) for token in found.sequence)
    return (
        f"P({tokens}) = {_shown(found.got)}, right is {_shown(found.right)}; TV {_shown(certificate.total_variation)}"
    )


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{float(value):.6g}"  # type: ignore[arg-type]


def document(results: list[Result]) -> dict[str, object]:
    """The JSON document of a run."""
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
