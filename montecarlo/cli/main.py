"""`rheo-montecarlo`: simulate at full size, plan samples, audit recorded runs."""

from __future__ import annotations

from exact.cli import agreement
from exact.cli.application import application

app = application(
    "rheo-montecarlo",
    "Is a speculative decoder lossless at full size, or as recorded? Statistical answers with known error rates.",
    "montecarlo.cli",
    {
        "simulate": "Simulate methods and test every claim of losslessness. Exit code: 1 a claim is broken, 0 no sign "
        "of it.",
        "power": "Samples needed to see a total variation, the one visible with given samples, and the power "
        "against lossy methods.",
        "audit": "Audit recorded runs of any engine (format: docs/recording.md). Exit code: 1 evidence of loss, 0 "
        "none seen.",
    },
)


def main() -> None:
    """Entry point of the command `rheo-montecarlo`."""
    agreement.main(app, "montecarlo.cli.main")
