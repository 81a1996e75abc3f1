"""The transcript of wrong calls, read and run again.

tests/wrong_calls.txt is what a newcomer sees who gets something wrong: `$ cat FILE` shows a file that is given, `$ ...`
is a command, `>>> ...` is Python; below it stands what was said. To add a call, write its line there; to bring all
answers up to date: `python -m tests.wrong_calls`, and read the difference.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import exact.cli.main
import gpu_runner.cli.main
import montecarlo.cli.main
from exact.cli import options
from exact.enumeration.walk import EnumerationError
from rheo_core import InvalidInput

TRANSCRIPT = Path(__file__).with_name("wrong_calls.txt")
APPS = {
    "rheo-exact": exact.cli.main.app,
    "rheo-montecarlo": montecarlo.cli.main.app,
    "gpu_runner": gpu_runner.cli.main.app,
}


@dataclass
class Step:
    """One entry of the transcript: its first line, and the lines below it."""

    line: str
    below: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([self.line, *self.below])

    @property
    def is_call(self) -> bool:
        """Whether something wrong is asked here; the rest gives files and names, or is a remark."""
        return self.is_command or (self.line.startswith(">>> ") and not self.is_set_up)

    @property
    def is_command(self) -> bool:
        """Whether it is a command line of this project."""
        return self.line.startswith("$ ") and self.line.split()[1] in APPS

    @property
    def is_set_up(self) -> bool:
        """Whether it is a Python statement: it gives a name, and nothing is said."""
        try:
            compile(self.line.removeprefix(">>> "), "transcript", "eval")
        except SyntaxError:
            return True
        return False


def steps(text: str) -> list[Step]:
    """The entries of a transcript."""
    found: list[Step] = []
    for line in text.rstrip("\n").split("\n"):
        if not line or line.startswith(("$ ", ">>> ", "# ")):
            found.append(Step(line))
        else:
            found[-1].below.append(line)
    return found


def again(before: list[Step]) -> Iterator[Step]:
    """The same entries with what is said now, in a folder of their own."""
    names: dict[str, Any] = {}
    old = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"HF_HUB_OFFLINE": "1"}):
        os.chdir(folder)
        try:
            for step in before:
                if step.is_command:
                    yield Step(step.line, answer(step.line.removeprefix("$ ")))
                elif step.line.startswith(">>> "):
                    yield Step(step.line, evaluated(step, names))
                else:
                    given(step)
                    yield step
        finally:
            os.chdir(old)


def given(step: Step) -> None:
    """Write the file or make the folder that an entry shows."""
    words = step.line.split()
    if words[:2] == ["$", "cat"]:
        Path(words[2]).write_text("".join(f"{line}\n" for line in step.below), encoding="utf-8")
    elif words[:2] == ["$", "mkdir"]:
        Path(words[2]).mkdir()


def answer(command: str) -> list[str]:
    """What a command says, with a mark before what goes to stdout, and its exit code."""
    program, *arguments = shlex.split(command)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = options.run(APPS[program], arguments)
    return [*(f"stdout: {line}" for line in out.getvalue().splitlines()), *err.getvalue().splitlines(), f"exit {code}"]


def evaluated(step: Step, names: dict[str, Any]) -> list[str]:
    """What a line of Python raises; nothing where it gives a name."""
    code = step.line.removeprefix(">>> ")
    if step.is_set_up:
        exec(code, names)
        return []
    try:
        return [f"gives {eval(code, names)!r}"]
    except (InvalidInput, EnumerationError) as error:
        return f"{type(error).__name__}: {error}".splitlines()


def main() -> None:
    """Bring the transcript up to date."""
    told = [str(step) for step in again(steps(TRANSCRIPT.read_text(encoding="utf-8")))]
    TRANSCRIPT.write_text("\n".join(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
