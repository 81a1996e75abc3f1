"""What is said of a command line that Typer itself refuses: one line, with what was given and what was expected.

Typer draws boxes, and leaves out the value that it could not read. Its exceptions differ between its versions, so only
what all of them have is used: the class's name, the parameter, the context, the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer

# Typer brings its own copy of click or uses an installed one, depending on its version; either way this is its base.
UsageError: Any = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException")

KINDS = {"integer": "an int", "number": "a number", "float": "a number"}
"""Words of Typer's messages, and what they ask for."""


def line(error: Any, program: str, arguments: Sequence[str]) -> str:
    """The one line of a refused command line, with where to read on."""
    from exact.methods.load import guessed  # loads all methods, which a right line may not need

    context = getattr(error, "ctx", None)
    parameter = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    message = error.format_message()
    path = context.command_path if context is not None else " ".join([program, *arguments[:1]])
    commands = list(getattr(context.command, "commands", ())) if context is not None else []
    if option is not None and context is not None:
        known = [name for each in context.command.params for name in each.opts]
        return f"option: got {guessed(option, known)}, expected one of those that {path} --help lists"
    if option is not None:
        return f"{option.lstrip('-')}: got nothing, expected a value; see {path} --help"
    quoted = message.split("'")[1] if message.count("'") > 1 else ""
    if message.startswith("Missing") and quoted:
        meaning = (getattr(parameter, "help", None) or "a value").rstrip(".")
        return f"{quoted.lstrip('-')}: got nothing, expected a value: {meaning}; see {path} --help"
    if message.startswith("No such command"):
        return f"command: got {guessed(quoted, commands)}, expected one of {', '.join(commands)}"
    names = getattr(parameter, "opts", [])
    values = given(names, arguments)
    kinds = [kind for word, kind in KINDS.items() if word in message]
    if len(values) == 1 and kinds:
        return f"{names[0].lstrip('-')}: got {values[0]}, expected {kinds[0]}"
    return f"{message.rstrip('.')}; see {path} --help"


def given(names: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """The values that an option has on a command line, as `--name value` and as `--name=value`."""
    after = [value for name, value in pairwise(arguments) if name in names]
    return after + [each.partition("=")[2] for each in arguments if each.partition("=")[0] in names and "=" in each]
