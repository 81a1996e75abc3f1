"""`rheo-exact`: certify, refute and explore, exactly."""

from __future__ import annotations

import sys

import typer

from exact.commands import certify, check, classes, compare, faults, hunt, options, prove, rates, table1
from exact.commands.usage import Version

app = typer.Typer(
    name="rheo-exact",
    help="Is a speculative decoder lossless, and how much does it accept? Exact answers on tiny vocabularies.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command("certify")(certify.command)
app.command("check")(check.command)
app.command("classes")(classes.command)
app.command("compare")(compare.command)
app.command("faults")(faults.command)
app.command("hunt")(hunt.command)
app.command("prove")(prove.command)
app.command("rates")(rates.command)
app.command("table1")(table1.command)


@app.callback(invoke_without_command=True)
def _root(context: typer.Context, version: Version = False) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Entry point of the command `rheo-exact`."""
    sys.exit(options.run(app))


if __name__ == "__main__":
    main()
