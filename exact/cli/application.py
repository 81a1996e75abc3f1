"""A command line of this project: a program's commands, with --help and --version alike in all.

Each command is a module that is loaded when it is called; the list of them in --help needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup


def _show(asked: bool) -> None:
    if asked:
        typer.echo(f"rheo-lossless {version('rheo-lossless')}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", help="Print the version and exit.", callback=_show, is_eager=True)]


class _BareFlags:
    """A command whose flags stand in --help by their names alone, without a type."""

    def get_params(self, ctx: Any) -> Any:
        """Give the parameters."""
        found = super().get_params(ctx)  # type: ignore[misc]
        for parameter in found:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return found


class Command(_BareFlags, TyperCommand):
    """One command."""


class _Unloaded(TyperCommand):
    """A command of which only the line of help is known."""


class Commands(_BareFlags, TyperGroup):
    """The commands of a program: a line of help for each, until one is called."""

    modules: str
    """The package whose modules they are."""
    lines: Mapping[str, str]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: _Unloaded(name, help=line) for name, line in self.lines.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that a line calls."""
        self.load(*args[:1])
        return super().resolve_command(ctx, args)

    def load(self, *names: str) -> None:
        """Load the modules of commands that are still lines of help."""
        for name in names:
            if isinstance(self.commands.get(name), _Unloaded):
                self.commands[name] = loaded(self.modules, name)


def loaded(modules: str, name: str) -> Any:
    """Give the command of a module, which runs its function `command`."""
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name, cls=Command)(import_module(f"{modules}.{name}").command)
    return typer.main.get_command(alone)


def application(name: str, about: str, modules: str, lines: Mapping[str, str]) -> typer.Typer:
    """Give the program `name`: a command for each line of help in `lines`, named as its module in `modules` is."""
    group = type("Commands", (Commands,), {"modules": modules, "lines": lines})
    app = typer.Typer(name=name, help=about, cls=group, pretty_exceptions_enable=False)

    @app.callback(invoke_without_command=True)
    def root(context: typer.Context, version: Version = False) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return app
