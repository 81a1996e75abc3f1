"""`gpu_runner`: the identical algorithm on real models."""

from __future__ import annotations

from exact.cli import agreement
from exact.cli.application import application
from gpu_runner.cli import assisted, audit, bench, certify, data, reproduce, rows, train, tree

app = application(
    "gpu_runner",
    "RheoSampling and the methods it is compared with, on real models: benchmarked, drawn, certified.",
    *(assisted, audit, bench, certify, data, reproduce, rows, train, tree),
)


def main() -> None:
    """Entry point of the command `gpu_runner`."""
    agreement.main(app, "gpu_runner.cli.main", alone=True)
