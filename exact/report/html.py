"""The page that a person sends to a colleague: one file, readable without scripts, network or this software."""

from __future__ import annotations

from collections.abc import Sequence

from exact.report.html_certificates import Entry, article, every_mark, mark, tone
from exact.report.markup import Html, joined, number, shortened, table, tag
from exact.report.page_style import CSS
from exact.report.svg import bar
from exact.runtime.provenance import Provenance

WORDS = (
    ("lossless", "The text that comes out has exactly the target model's law, for sequences of every length."),
    ("on these rows", "Decided by the exact joint law of the first tokens, all random outcomes enumerated."),
    ("every target", "The same for whatever target at this draft law and shape; undecided is not lossy."),
    ("total variation", "Half the sum of all differences between the two laws: 0 if and only if they are equal."),
    ("τ", "Tokens that one draft-and-verify cycle emits on average, the target's own token included."),
    ("class", "Draft trees that are the same after pruning; their probabilities sum to 1."),
)


def certificates_page(entries: Sequence[Entry], made: Provenance) -> str:
    """The page of one or many certifications."""
    labelled = any(each.labelled for each in entries)
    anchors = [f"r{place}" for place in range(1, len(entries) + 1)]
    summary = [tag("h2", "Verdicts"), _summary(entries, anchors)]
    sections = []
    for rows in dict.fromkeys(each.rows for each in entries):
        sections.append(tag("h2", f"Rows: {rows}"))
        sections += [article(each, anchor) for each, anchor in zip(entries, anchors, strict=True) if each.rows == rows]
    scopes = list(dict.fromkeys(each.certificate.scope for each in entries))
    verdict, words, below = _overall(entries, labelled)
    return page("Certificate of losslessness", verdict, words, [below, *scopes], [*summary, *sections], made)


def _overall(entries: Sequence[Entry], labelled: bool) -> tuple[bool | None, str, str]:
    """The verdict on the whole, in words, and what it is of."""
    count = f"{len(entries)} certification{'s' if len(entries) != 1 else ''}"
    if labelled:
        right = sum(each.certificate.as_claimed for each in entries)
        if right == len(entries):
            return (
                True,
                f"All {right} verdicts are as claimed",
                "Lossless where that is claimed, lossy where it must be.",
            )
        return False, f"{len(entries) - right} of {len(entries)} verdicts are NOT as claimed", "See the table."
    verdicts = [each.certificate.lossless for each in entries]
    if False in verdicts:
        lossy = verdicts.count(False)
        return False, "Lossy" if lossy == len(entries) else f"Lossy: {lossy} of {count}", _names(entries, False)
    if None in verdicts:
        return None, "Undecided", _names(entries, None)
    return (
        True,
        entries[0].certificate.verdict.capitalize() if len(entries) == 1 else f"Lossless: all {count}",
        _names(entries, True),
    )


def _names(entries: Sequence[Entry], verdict: bool | None) -> str:
    return "; ".join(f"{each.label} on {each.rows}" for each in entries if each.certificate.lossless is verdict)


def _summary(entries: Sequence[Entry], anchors: Sequence[str]) -> Html:
    longest = max(each.certificate.acceptance_length for each in entries)
    lines = []
    for each, anchor in zip(entries, anchors, strict=True):
        certificate = each.certificate
        length = certificate.acceptance_length
        lines.append(
            [
                tag("a", each.label, href=f"#{anchor}"),
                each.rows,
                mark(each),
                every_mark(certificate) or "-",
                number(certificate.total_variation),
                "-" if certificate.classes is None else certificate.classes,
                f"{float(length):.4f}",
                tag("td", bar(length, None, "plain", f"tau {shortened(length)}", longest), class_="bar"),
            ]
        )
    return table(["method", "rows", "on these rows", "every target", "total variation", "classes", "τ", ""], lines)


def page(
    title: str, verdict: bool | None, words: str, below: Sequence[str], body: Sequence[Html], made: Provenance
) -> str:
    """A whole document around its body."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content="rheo-exact certify --report"),
        tag("title", f"{words} - {title}"),
        Html(f"<style>{CSS}</style>"),
    )
    banner = tag("div", tag("p", words), *(tag("p", line) for line in below), class_=f"banner {tone(verdict)}")
    words_meant = [piece for term, meaning in WORDS for piece in (tag("dt", term), tag("dd", meaning))]
    content = tag(
        "body",
        tag("h1", title),
        tag(
            "p",
            "A speculative decoder drafts tokens with a cheap model and verifies them with the target model. This page "
            "says whether what comes out still has exactly the target's law, and how many drafted tokens are accepted.",
        ),
        banner,
        joined(body),
        tag("h2", "What the words mean"),
        tag("dl", *words_meant),
        tag("h2", "Where this comes from"),
        _made(made),
    )
    return f"<!doctype html>\n{tag('html', head, content, lang='en')}\n"


def _made(made: Provenance) -> Html:
    lines: list[tuple[str, object]] = [
        ("command", tag("code", made.command)),
        ("time", made.time),
        ("commit", tag("code", made.commit) if made.commit else "not from a checkout"),
        ("versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
    ]
    again = tag(
        "p",
        "To have it checked by code that shares nothing with what made it: add ",
        tag("code", "--save certificate.json"),
        " to the command, then ",
        tag("code", "rheo-exact check certificate.json"),
        ".",
    )
    return joined(
        [tag("dl", *(piece for name, value in lines for piece in (tag("dt", name), tag("dd", value)))), again]
    )
