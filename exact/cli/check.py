"""`rheo-exact check`: re-check a saved certificate with the separate checker, which shares no code with its maker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from exact import check
from exact.proofs import extracted


def command(
    file: Annotated[Path, typer.Argument(help="A document saved by certify.", metavar="FILE")],
    verified: Annotated[
        bool, typer.Option("--verified", help="Also ask the program extracted from the Coq proof (exact/rocq).")
    ] = False,
) -> int:
    """Recompute every derived figure of a certificate from its recorded inputs.

    Exit code: 0 all hold, 1 one does not, 2 not a certificate, 3 a rule of the user's own was taken as recorded.
    """
    code = check.main(str(file))
    if not verified or code in (1, 2):
        return code
    document = json.loads(file.read_text(encoding="utf-8"))
    for result in document.get("results", [{"certificate": document}]):
        answer, wrong = extracted.differences(result["certificate"])
        if wrong:
            print(f"REJECTED: {check.shown(str(file), 500)}: {wrong[0]}")
            return 1
        count = f"{len(answer.classes)} classes and the law of {len(answer.emitted)} texts"
        print(f"verified: the program extracted from the Coq proof gives the same {count}")
    return code
