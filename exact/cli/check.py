"""`rheo-exact check`: re-check a saved certificate with the separate checker, which shares no code with its maker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from exact import check
from exact.cli import options
from exact.enumeration.rationals import long_numbers
from exact.proofs import extracted
from exact.verdict.graph_certificate import recorded
from rheo_core import InvalidInput


def command(
    file: Annotated[Path, typer.Argument(help="A document saved by certify.", metavar="FILE")],
    verified: Annotated[
        bool, typer.Option("--verified", help="Also ask the program extracted from the Coq proof (exact/rocq).")
    ] = False,
) -> int:
    """Recompute every derived figure of a certificate from its recorded inputs.

    Exit code: 0 all hold, 1 one does not, 2 not a certificate, 3 a rule of the user's own, or classes merged into a
    graph, was taken as recorded.
    """
    try:
        said = [recorded(each) for each in certificates(file)]
    except InvalidInput as error:
        options.out.print(f"REJECTED: {file}: {error}", highlight=False, markup=False)
        return 1
    if not said or None in said:
        with long_numbers():
            code = check.main(str(file))
            return verify(file, code) if verified and code not in (1, 2) else code
    if verified:
        raise InvalidInput("verified", str(file), "a certificate that lists its classes: one by a graph does not")
    for each in said:
        line = f"holds: form and digest of a certificate by a graph\n  as recorded, not checked: {each}"
        options.out.print(line, highlight=False, markup=False, soft_wrap=True)
    return 3


def verify(file: Path, code: int) -> int:
    """Hold the figures of certificates against the program extracted from the Coq proof; the exit code."""
    document = json.loads(file.read_text(encoding="utf-8"))
    for result in document.get("results", [{"certificate": document}]):
        answer, wrong = extracted.differences(result["certificate"])
        if wrong:
            options.out.print(f"REJECTED: {check.shown(str(file), 500)}: {wrong[0]}", highlight=False, markup=False)
            return 1
        count = f"{len(answer.classes)} classes and the law of {len(answer.emitted)} texts"
        options.out.print(f"verified: the program extracted from the Coq proof gives the same {count}", highlight=False)
    return code


def certificates(file: Path) -> list[Any]:
    """The documents in a file that may hold certificates by a graph; none where it is for the checker to say why."""
    try:
        with file.open("rb") as opened:
            text = opened.read(check.MOST_BYTES + 1)
        found = json.loads(text) if len(text) <= check.MOST_BYTES and b"rheo-graph" in text else {}
        return [each["certificate"] for each in found.get("results", [{"certificate": found}])]
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return []
