"""A command line of this project: a program's commands by their modules, with --help and --version alike in all."""

from __future__ import annotations

from importlib.metadata import version
from types import ModuleType
from typing import Annotated

import typer


def _show(asked: bool) -> None:
    if asked:
        typer.echo(f"rheo-lossless {version('rheo-lossless')}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", help="Print the version and exit.", callback=_show, is_eager=True)]


def application(name: str, about: str, *commands: ModuleType) -> typer.Typer:
    """The program `name`: a command for each module, named as the module is, whose function `command` it runs."""
    app = typer.Typer(name=name, help=about, add_completion=False, pretty_exceptions_enable=False)
    for module in commands:
        app.command(module.__name__.rpartition(".")[2])(module.command)

    @app.callback(invoke_without_command=True)
    def root(context: typer.Context, version: Version = False) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return app
