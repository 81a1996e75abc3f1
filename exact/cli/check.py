"""`rheo-exact check`: re-check a saved certificate with the separate checker, which shares no code with its maker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exact import check
from exact.enumeration.rationals import long_numbers


def command(file: Annotated[Path, typer.Argument(help="A document saved by certify.", metavar="FILE")]) -> int:
    """Recompute every derived figure of a certificate from its recorded inputs.

    Exit code: 0 all hold, 1 one does not, 2 not a certificate, 3 a rule of the user's own was taken as recorded.
    """
    with long_numbers():
        return check.main(str(file))
