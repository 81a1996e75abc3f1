"""`rheo-montecarlo`: simulate at full size, plan samples, audit recorded runs."""

from __future__ import annotations

from exact.cli import agreement
from exact.cli.application import application
from montecarlo.cli import audit, power, simulate

app = application(
    "rheo-montecarlo",
    "Is a speculative decoder lossless at full size, or as recorded? Statistical answers with known error rates.",
    *(simulate, power, audit),
)


def main() -> None:
    """Entry point of the command `rheo-montecarlo`."""
    agreement.main(app, "montecarlo.cli.main")
