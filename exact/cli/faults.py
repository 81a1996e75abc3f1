"""`rheo-exact faults`: the kill table, every known fault against the certifier.

A fault that is certified, or a false alarm that is refuted, is a bug in the certifier and not in the case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import typer
from rich.progress import track

from exact.acceptance.one_layer import one_layer
from exact.cli import options
from exact.cli.tables import blank_table, show
from exact.faults import FaultCase, cases
from exact.runtime.executors import in_order
from exact.verdict.certificate import Certificate
from exact.verdict.document import key, number
from rheo_core import InvalidInput, ModelPair

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[CASE]...", help="Keys of cases (A1 ... R6); all of them without.")
]


@dataclass(frozen=True)
class FaultOutcome:
    """One case run: its law, the verdict on everything that one cycle emits, and what a false alarm costs.

    `loses` is the acceptance that is left to gain from the same drafts on one layer; 0 for a fault.
    """

    case: FaultCase
    law: dict[tuple[int, ...], Fraction]
    total_variation: Fraction
    certificate: Certificate
    loses: Fraction

    @property
    def problems(self) -> list[str]:
        """What is not as the case says; nothing where the certifier did its work."""
        found = []
        if self.certificate.lossless != self.case.lossless:
            found.append("false alarm" if self.case.lossless else "SURVIVED")
        if self.case.law is not None and self.law != self.case.law:
            found.append("another law")
        if self.case.acceptance is not None and self.accepted != self.case.acceptance:
            found.append("another acceptance")
        return found

    @property
    def accepted(self) -> Fraction:
        """Probability that a drafted token is accepted."""
        return self.certificate.acceptance_by_depth[1]


def command(
    names: Names = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
) -> int:
    """Run known faults as exact cases: each refuted with the law it has, each false alarm certified.

    Exit code: 0 iff every verdict, law and acceptance is the one on the label.
    """
    for name in names or []:
        if name not in cases:
            raise InvalidInput("case", name, f"one of {', '.join(cases)}")
    chosen = [cases[name] for name in names or cases]
    show = not as_json and options.err.is_terminal
    with options.opened(workers, dask) as executor:
        found = run_all(chosen, executor)
        outcomes = list(
            track(found, total=len(chosen), console=options.err, transient=True, disable=not show),
        )
    if not as_json:
        report(outcomes)
    options.deliver({"command": "faults", "results": [entry(each) for each in outcomes]}, as_json, save)
    return options.LOSSLESS if not any(each.problems for each in outcomes) else options.LOSSY


def run_all(chosen: Sequence[FaultCase], executor: Executor | None = None) -> Iterator[FaultOutcome]:
    """Yield every case, in order; cases of the published list travel by their keys."""
    known = [case.key if cases.get(case.key) is case else case for case in chosen]
    for case, found in zip(chosen, in_order(_measure, known, executor), strict=True):
        yield FaultOutcome(case, *found)


def run(case: FaultCase) -> FaultOutcome:
    """Give one case."""
    return FaultOutcome(case, *_measure(case))


def _measure(case: FaultCase | str) -> tuple[dict[tuple[int, ...], Fraction], Fraction, Certificate, Fraction]:
    """Give the distribution of the case, its total variation, its certificate and what it loses."""
    if isinstance(case, str):
        case = cases[case]
    first = case.certificate(case.length)
    layer = one_layer(
        case.method, ModelPair(case.target, case.draft, case.ids), min(case.shape.width, case.shape.budget)
    )
    loses = max(layer.gap or Fraction(0), Fraction(0)) if case.lossless else Fraction(0)
    return first.law(), first.total_variation, case.certificate(), loses


def report(outcomes: list[FaultOutcome]) -> None:
    """The kill table, a block for each kind."""
    table = blank_table()
    for name in ("case", "fault", "verdict", "law of the first token", "TV", "accepts"):
        table.add_column(name)
    kind = ""
    for each in outcomes:
        if each.case.kind != kind:
            kind = each.case.kind
            table.add_row(f"[bold]{each.case.key[0]}[/]", f"[bold]{kind}[/]")
        colour = "red" if each.problems else "green"
        word = "certified" if each.certificate.lossless else "refuted"
        if each.loses:
            word += f", loses {short(each.loses)}"
        table.add_row(
            each.case.key,
            each.case.what,
            f"[{colour}]{', '.join([word, *each.problems])}[/]",
            law_line(each),
            short(each.total_variation),
            short(each.accepted),
        )
    show(table, "fault", "verdict", "law of the first token")
    killed = sum(1 for each in outcomes if not each.case.lossless and not each.certificate.lossless)
    passed = sum(1 for each in outcomes if each.case.lossless and each.certificate.lossless)
    faulty = sum(1 for each in outcomes if not each.case.lossless)
    wrong = sum(1 for each in outcomes if each.problems)
    options.out.print(
        f"{killed} of {faulty} faults refuted, {passed} of {len(outcomes) - faulty} false alarms certified, "
        f"{wrong} not as labelled. TV: of the first token (R2b: the first two). Verdict: on all that a cycle emits. "
        "Loses: against the optimum of the same drafts.",
        highlight=False,
    )


def law_line(outcome: FaultOutcome) -> str:
    """Give the distribution of the first token, in order of tokens."""
    size = outcome.certificate.vocabulary
    first = [Fraction(0)] * size
    for tokens, mass in outcome.law.items():
        first[tokens[0]] += mass
    return " ".join(short(mass) for mass in first)


def short(value: Fraction) -> str:
    """Give an exact number where it is short, else six digits."""
    text = str(value)
    return text if len(text) <= 9 else f"{float(value):.6f}"


def entry(outcome: FaultOutcome) -> dict[str, Any]:
    """Give one case in the document."""
    return {
        "case": outcome.case.key,
        "kind": outcome.case.kind,
        "fault": outcome.case.what,
        "label": "lossless" if outcome.case.lossless else "lossy",
        "verdict": outcome.certificate.verdict,
        "problems": outcome.problems,
        "length": outcome.case.length,
        "law": {key(tokens): number(mass) for tokens, mass in outcome.law.items()},
        "total_variation": number(outcome.total_variation),
        "acceptance": number(outcome.accepted),
        "loses": number(outcome.loses),
        "scope": outcome.certificate.scope,
    }
