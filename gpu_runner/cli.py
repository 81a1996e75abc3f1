"""`gpu_runner`: the identical algorithm on real models."""

from __future__ import annotations

import sys

import typer

from exact.commands import options
from exact.commands.usage import Version
from gpu_runner.commands import assisted, audit, bench, certify, data, reproduce, rows, train, tree

app = typer.Typer(
    name="gpu_runner",
    help="RheoSampling and the methods it is compared with, on real models: benchmarked, drawn, certified.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("assisted")(assisted.command)
app.command("audit")(audit.command)
app.command("bench")(bench.command)
app.command("certify")(certify.command)
app.command("data")(data.command)
app.command("reproduce")(reproduce.command)
app.command("rows")(rows.command)
app.command("train")(train.command)
app.command("tree")(tree.command)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: Version = False) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the command `gpu_runner`."""
    sys.exit(options.run(app))
