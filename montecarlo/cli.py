"""`rheo-montecarlo`: simulate at full size, plan samples, audit recorded runs."""

from __future__ import annotations

import sys

import typer

from exact.commands import options
from exact.commands.usage import Version
from montecarlo.commands import audit, power, simulate

app = typer.Typer(
    name="rheo-montecarlo",
    help="Is a speculative decoder lossless at full size, or as recorded? Statistical answers with known error rates.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("simulate")(simulate.command)
app.command("power")(power.command)
app.command("audit")(audit.command)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: Version = False) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the command `rheo-montecarlo`."""
    sys.exit(options.run(app))
