"""One certificate as a section of a page: verdicts, counterexample, acceptance, laws, trees, rows and scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from exact.acceptance.one_layer import OneLayer
from exact.enumeration.tree_classes import TreeClass
from exact.report.html_laws import certificate_laws, rows_table, wrong_box
from exact.report.markup import Html, figure, joined, number, sequence, shortened, table, tag
from exact.report.svg import bar, class_pictures, legend
from exact.verdict.certificate import Certificate
from exact.verdict.counterexample import Counterexample

EVERY = {
    True: ("good", "proved for every target"),
    False: ("bad", "refuted for some target"),
    None: ("unsure", "every target: undecided"),
}


@dataclass(frozen=True)
class Entry:
    """What a page shows of one certification.

    `label` and `rows` say what was certified on what; `source` is where a counterexample's test finds the rule (None:
    by the certificate's own name); `trees` are the classes (None: the method has none), `names` the tokens' texts,
    `layer` the acceptance at the root beside the optimum (None: not computed), `labelled` whether the verdict is to be
    held against the method's claim.
    """

    label: str
    rows: str
    certificate: Certificate
    source: str | None = None
    trees: Sequence[TreeClass] | None = None
    names: Sequence[str] | None = None
    layer: OneLayer | None = None
    labelled: bool = False


def tone(lossless: bool | None) -> str:
    """The colour of a verdict."""
    return {True: "good", False: "bad", None: "unsure"}[lossless]


def mark(entry: Entry) -> Html:
    """The first verdict as a label."""
    words = entry.certificate.verdict
    if entry.labelled:
        words += ", as claimed" if entry.certificate.as_claimed else ", NOT as claimed"
    good = entry.certificate.as_claimed if entry.labelled else entry.certificate.lossless
    return tag("span", words, class_=f"mark {tone(good)}")


def every_mark(certificate: Certificate) -> Html | None:
    """The second verdict as a label; none where it was not asked for."""
    if not certificate.every_target_reason:
        return None
    colour, words = EVERY[certificate.every_target]
    return tag("span", words, class_=f"mark {colour}")


def article(entry: Entry, anchor: str) -> Html:
    """The section of one certification."""
    certificate = entry.certificate
    title = tag("h3", entry.label, tag("small", f" on {entry.rows}"))
    return tag(
        "article",
        tag("header", title, mark(entry), every_mark(certificate)),
        tag("p", certificate.scope, class_="scope"),
        tag("p", "Rule: ", tag("code", entry.source)) if entry.source and ":" in entry.source else None,
        _shape(certificate),
        wrong(certificate.counterexample, certificate.total_variation, entry, "These rows refute it"),
        _losing(entry),
        tag("p", "Every target: ", certificate.every_target_reason, ".") if certificate.every_target_reason else None,
        _acceptance(entry),
        certificate_laws(certificate, entry.names),
        _trees(entry),
        _figures(entry),
        _rows(entry),
        id=anchor,
    )


def _shape(certificate: Certificate) -> Html:
    shape = certificate.shape
    lead = "" if certificate.lead is None else f", m = {certificate.lead} lead tokens"
    bound = certificate.rounding_bound
    return tag(
        "p",
        f"Width K = {shape.width}, depth D = {shape.depth}, budget R = {shape.budget}{lead}; vocabulary of "
        f"{certificate.vocabulary} tokens; {certificate.arithmetic} arithmetic. Total variation from the target: ",
        figure(certificate.total_variation),
        None if bound is None else joined([", rounding bound ", figure(bound)]),
        ".",
    )


def wrong(found: Counterexample | None, variation: Fraction | None, entry: Entry, title: str) -> Html | None:
    """A counterexample: what comes out, what should, and a test that shows it."""
    if found is None:
        return None
    return wrong_box(
        title,
        sequence(found.sequence),
        found.got,
        found.right,
        tag("p", "Total variation ", figure(variation), ".") if variation is not None else None,
        tag(
            "details",
            tag("summary", "Reproduce it: a test that fails until the rule is repaired"),
            tag(
                "p",
                "Save as ",
                tag("code", "test_counterexample.py"),
                ", then ",
                tag("code", "pytest test_counterexample.py"),
                ".",
            ),
            tag("pre", found.to_pytest(entry.source)),
        ),
    )


def _losing(entry: Entry) -> Html | None:
    """The target that refutes losslessness elsewhere, where the given rows do not."""
    certificate = entry.certificate
    if not certificate.lossless or certificate.every_target_counterexample is None:
        return None
    return wrong(
        certificate.every_target_counterexample, None, entry, "Lossless on these rows, but another target refutes it"
    )


def _acceptance(entry: Entry) -> Html:
    certificate = entry.certificate
    lines = [
        [f"at least {depth}", number(mass), tag("td", bar(mass, None, "plain", f"{shortened(mass)}"), class_="bar")]
        for depth, mass in enumerate(certificate.acceptance_by_depth)
        if depth
    ]
    said = tag(
        "p",
        "A cycle emits ",
        figure(certificate.acceptance_length),
        " tokens on average (τ, the target's own token included).",
    )
    return joined(
        [
            tag("h4", "Acceptance"),
            said,
            table(["drafted tokens accepted", "probability", ""], lines),
            _optimum(entry.layer),
        ]
    )


def _optimum(layer: OneLayer | None) -> Html | None:
    if layer is None or layer.optimum is None:
        return None
    gap = layer.optimum - layer.acceptance
    pieces = [
        "At the root, with all slots kept, it accepts ",
        figure(layer.acceptance),
        "; the most that any lossless rule could accept from the same drafts is ",
        figure(layer.optimum),
    ]
    if gap == 0:
        pieces.append(": the optimum")
    elif gap < 0:
        pieces.append(": more than any lossless rule could")
    return tag("p", *pieces, ".")


def _trees(entry: Entry) -> Html:
    if entry.trees is None:
        return joined(
            [
                tag("h4", "Draft trees"),
                tag("p", "This method has no draft trees that can be enumerated without the target."),
            ]
        )
    count = len(entry.trees)
    words = "One draft tree, whatever is drawn" if count == 1 else f"Draft trees: {count} classes"
    holding = [name for name, holds in entry.certificate.lemmas.items() if holds]
    failing = [name for name, holds in entry.certificate.lemmas.items() if not holds]
    lemmas = []
    if holding:
        lemmas.append(f"Hold on every class: {', '.join(holding)} of the paper's appendix C.")
    if failing:
        lemmas.append(f"Do not hold: {', '.join(failing)}.")
    pictures = class_pictures(entry.trees, entry.names)
    return joined([tag("h4", words), legend(), pictures, tag("p", " ".join(lemmas), class_="soft") if lemmas else None])


def _figures(entry: Entry) -> Html:
    """Every figure of the sentences above, in full."""
    certificate, layer = entry.certificate, entry.layer
    lines = [["total variation", number(certificate.total_variation)], ["τ", number(certificate.acceptance_length)]]
    if certificate.rounding_bound is not None:
        lines.append(["rounding bound", number(certificate.rounding_bound)])
    if layer is not None and layer.optimum is not None:
        lines += [["accepted at the root", number(layer.acceptance)], ["the optimum there", number(layer.optimum)]]
    for title, found in (
        ("", certificate.counterexample),
        ("of another target: ", certificate.every_target_counterexample),
    ):
        if found is not None:
            named = sequence(found.sequence)
            lines.append([f"{title}{named} comes out", number(found.got)])
            lines.append([f"{title}{named} should be", number(found.right)])
    return tag("details", tag("summary", "The figures in full"), table(["figure", "exactly"], lines), class_="more")


def _rows(entry: Entry) -> Html:
    certificate = entry.certificate
    pieces = [tag("summary", f"The rows that were read ({len(certificate.target_rows)} of the target)")]
    for title, rows in (("Target", certificate.target_rows), ("Draft", certificate.draft_rows)):
        pieces += [tag("h4", title), rows_table(rows, entry.names)]
    return tag("details", *pieces, class_="more")
