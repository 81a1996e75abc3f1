"""Laws as tables: what comes out beside what should, exact and as bars, the wrong lines marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from exact.report.markup import Html, figure, joined, number, shortened, signed, table, tag
from exact.report.svg import bar, shown_token
from exact.verdict.certificate import Certificate
from rheo_core import InvalidInput

WRONG, RIGHT = 16, 8
"""Lines of a table where something differs, and where nothing does; the others are summed up below it."""
SEQUENCES = 700
"""Sequences up to which a joint law is tabulated."""
WIDEST = 64
"""Tokens of a row that is listed."""
NONE = Fraction(0)


def law_table(
    law: Mapping[Any, Fraction], right: Mapping[Any, Fraction], shown: Callable[[Any], str], lossless: bool | None
) -> Html:
    """A law against the right one: the most different lines where it is not lossless, else the most probable.

    What differs is marked unless the verdict is that it is rounding.
    """
    keys = list({**right, **law})
    differ = not lossless and any(law.get(key, NONE) != right.get(key, NONE) for key in keys)
    most = WRONG if differ else RIGHT
    if len(keys) > most:
        keys.sort(key=lambda key: (differ and -abs(law.get(key, NONE) - right.get(key, NONE)), -right.get(key, NONE)))
    kept, rest = keys[:most], keys[most:]
    whole = max((max(law.get(key, NONE), right.get(key, NONE)) for key in kept), default=NONE) or 1
    lines = [_line(shown(key), law.get(key, NONE), right.get(key, NONE), whole, differ) for key in kept]
    pieces = [table(["tokens", "comes out", "should", "difference", "bar: comes out, mark: should"], lines)]
    if rest:
        order = "most different" if differ else "most probable"
        got, due = (sum((each.get(key, NONE) for key in rest), NONE) for each in (law, right))
        said = f"The {most} {order} of {len(keys)}; the others hold "
        pieces.append(tag("p", said, figure(got), ", and should hold ", figure(due), "."))
    return joined(pieces)


def _line(label: str, got: Fraction, due: Fraction, whole: Fraction | int, differ: bool) -> list[Html]:
    off = differ and got != due
    said = f"{label}: comes out {float(got):.6g}, should {float(due):.6g}"
    return [
        tag("td", label),
        tag("td", number(got), class_="off" if off else None),
        tag("td", number(due)),
        tag("td", signed(got - due), class_="off" if off else None),
        tag("td", bar(got, due, "off" if off else "right", said, whole), class_="bar"),
    ]


def wrong_box(title: str, named: str, got: Fraction, due: Fraction, *below: Html | None) -> Html:
    """One result whose probability is wrong: in words, as a bar, and what there is to say below it."""
    said = f"{named}: comes out {shortened(got)}, should {shortened(due)}"
    return tag(
        "div",
        tag("h4", title),
        tag("p", tag("b", named), " comes out as ", figure(got), ", should be ", figure(due), "."),
        bar(got, due, "off", said, max(got, due) or 1),
        *below,
        class_="wrong",
    )


def certificate_laws(certificate: Certificate, names: Sequence[str] | None = None) -> Html:
    """The law of the first token, and the joint law of as many tokens as can be tabulated."""
    pieces = []
    for length in _lengths(certificate):
        try:
            law, right = certificate.law(length), certificate.right(length)
        except InvalidInput:  # rows off the emitted text, which the certificate did not need
            continue
        title = "Law of the first token" if length == 1 else f"Joint law of the first {length} tokens"
        pieces += [tag("h4", title), law_table(law, right, partial(_tokens, names), certificate.lossless)]
    return joined(pieces)


def _tokens(names: Sequence[str] | None, tokens: Sequence[int]) -> str:
    return ", ".join(shown_token(token, names) for token in tokens)


def _lengths(certificate: Certificate) -> list[int]:
    """1, and the greatest length above it whose sequences are few enough."""
    fitting = [n for n in range(2, certificate.length + 1) if certificate.vocabulary**n <= SEQUENCES]
    return [1, *fitting[-1:]]


def rows_table(rows: Mapping[tuple[int, ...], tuple[Any, ...]], names: Sequence[str] | None, most: int = 40) -> Html:
    """Rows as they were read, a line for each prefix (score law over sampling law where they are two)."""
    size = max((len(row[0]) if row and isinstance(row[0], tuple) else len(row) for row in rows.values()), default=0)
    if size > WIDEST:
        return tag("p", f"Rows of {size} tokens are too wide for a page; --save keeps them, in full.")
    lines: list[list[object]] = []
    for prefix, row in list(rows.items())[:most]:
        parts = [("", row)] if not isinstance(row[0], tuple) else [("score ", row[0]), ("sampling ", row[1])]
        at = ",".join(map(str, prefix)) or "(empty)"
        lines += [[f"{name}{at}", *(number(mass) for mass in law)] for name, law in parts]
    more = tag("p", f"{len(rows) - most} further rows were read.") if len(rows) > most else None
    return joined([table(["prefix", *(shown_token(token, names) for token in range(size))], lines), more])
