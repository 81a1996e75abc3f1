"""`gpu_runner`: the identical algorithm on real models."""

from __future__ import annotations

import sys

from exact.commands import options
from exact.commands.application import application
from gpu_runner.commands import assisted, audit, bench, certify, data, reproduce, rows, train, tree

app = application(
    "gpu_runner",
    "RheoSampling and the methods it is compared with, on real models: benchmarked, drawn, certified.",
    *(assisted, audit, bench, certify, data, reproduce, rows, train, tree),
)


def main() -> None:
    """Entry point of the command `gpu_runner`."""
    sys.exit(options.run(app))
