"""Say in one line what is wrong with a command line that Typer itself refuses, where Typer draws a box.

Typer's exceptions differ between its versions, so only what all of them have is used: the class's name, the parameter,
the context, the message.
"""

from __future__ import annotations

from typing import Any

import typer

# Typer brings its own copy of click or uses an installed one, depending on its version; either way this is its base.
UsageError: Any = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException")

KINDS = {"integer": "an int", "number": "a number", "float": "a number"}
"""Words of Typer's messages, and what they ask for."""


def refusal(error: Any, program: str) -> str:
    """Say in one line why Typer refuses a command line, and where to read on."""
    from exact.methods.load import guessed  # loads all methods, which a right line may not need

    context = getattr(error, "ctx", None)
    option = getattr(error, "option_name", None)
    message = error.format_message()
    path = context.command_path if context is not None else program
    commands = list(getattr(context.command, "commands", ())) if context is not None else []
    if option is not None and context is not None:
        known = [name for each in context.command.params for name in each.opts]
        return f"option: got {guessed(option, known)}, expected one of those that {path} --help lists"
    if option is not None:
        return f"{option.lstrip('-')}: got nothing, expected a value; see {path} --help"
    quoted = message.split("'")[1] if message.count("'") > 1 else ""
    if message.startswith("Missing") and quoted:
        meaning = (getattr(getattr(error, "param", None), "help", None) or "a value").rstrip(".")
        return f"{quoted.lstrip('-')}: got nothing, expected a value: {meaning}; see {path} --help"
    if message.startswith("No such command"):
        return f"command: got {guessed(quoted, commands)}, expected one of {', '.join(commands)}"
    kind = next((kind for word, kind in KINDS.items() if word in message), None)
    if quoted.startswith("--") and kind is not None:
        return f"{quoted.lstrip('-')}: got {refused_value(error, message)}, expected {kind}"
    return f"{message.rstrip('.')}; see {path} --help"


def refused_value(error: Any, message: str) -> str:
    """Give the value that could not be read: the cause has it, or the message in its second pair of quotes."""
    details: list[Any] = getattr(error.__cause__, "errors", list)()
    if details:
        return str(details[0]["input"])
    return message.split("'")[3] if message.count("'") > 3 else "something else"
