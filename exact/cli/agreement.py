"""A command line that names a user's file: run in children, and answered when all of them agree.

What `exact/runtime/child.py` starts and waits for is compared here: exit code and what was delivered. A difference is a
rule whose law depends on the order of a set, on `hash` or on uninitialised memory, and is refused with its place.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import typer

from exact.cli import options
from exact.runtime import atomic_files, child
from rheo_core import InvalidInput

CODE = re.compile(r"[^\W\d][\w.]*:[^\W\d]\w*")


def main(app: typer.Typer, module: str, alone: bool = False) -> None:
    """Entry point of a program, whose `app` stands in `module`; it ends the process.

    A line that names a user's file is run in child processes, `alone` in one of them only (nothing is compared then).
    """
    words = sys.argv[1:]
    if f"_{(app.info.name or '').replace('-', '_').upper()}_COMPLETE" in os.environ:
        app()  # a shell asks how a line can go on
    if not _runs_own_code(words):
        sys.exit(options.run(app, words))
    if sys.stdout is None:
        sys.exit(options.refuse(options.CLOSED))
    shown = {"module": module, "terminal": options.out.is_terminal, "width": options.out.width}
    line = [app.info.name or Path(sys.argv[0]).name, *words]
    sys.exit(agreed("exact.cli.agreement:in_child", line, shown, alone))


def names_code(word: str) -> bool:
    """Tell whether a word of a command line names a user's code: `path.py:name` or `package.module:name`."""
    return ".py:" in word or CODE.fullmatch(word.rpartition("=")[2]) is not None


def _runs_own_code(words: list[str]) -> bool:
    """Tell whether a command line may run code of a user's: a file that it names, or methods of installed packages."""
    if len(words) < 2 and not set(words) - {"--help", "--version"}:
        return False
    from exact.methods import GROUP  # with all methods, which --help does not need

    return any(map(names_code, words)) or bool(entry_points(group=GROUP))


def agreed(work: str, line: list[str], shown: dict[str, Any], alone: bool) -> int:
    """Give the exit code in which all children agree, with what they say and save; 2 where they do not."""
    first: dict[str, Any] = {}
    seed, note = 0, ""
    try:
        for process, answer in child.answers(work, line, shown, alone):
            if answer is None:
                named = next((word.rpartition("=")[2] for word in line if names_code(word)), "the code under test")
                return options.refuse(f"{named}: got {process.end()}, expected code that returns")
            if answer["message"] is not None:
                return options.refuse(answer["message"])
            if not first:
                first, seed, note = answer, process.seed, process.note()
            elif (answer["code"], answer["compared"]) != (first["code"], first["compared"]):
                found = difference([first["compared"], first["code"]], [answer["compared"], answer["code"]])
                return options.refuse(
                    f"the code under test: got {found[0]} with PYTHONHASHSEED={seed} and {found[1]} with "
                    f"PYTHONHASHSEED={process.seed}{found[2]}, expected results that do not depend on the order of a "
                    "set, hash() or uninitialised memory"
                )
        sys.stdout.write(first["out"])
        sys.stdout.flush()
        atomic_files.save_waiting(first["files"])
    except KeyboardInterrupt:
        return options.interrupted()
    except BrokenPipeError:
        options.nowhere()
    except InvalidInput as error:
        return options.refuse(str(error))
    except (OSError, ValueError) as error:
        options.nowhere()
        return options.refuse(
            f"output: got {getattr(error, 'strerror', None) or error}, expected streams that can be used"
        )
    if note and sys.stderr is not None:
        sys.stderr.write(note + "\n")
    code: int = first["code"]
    return code


def difference(one: Any, other: Any, place: str = "") -> tuple[str, str, str]:
    """Give the first two values that differ in two JSON values, and where they stand."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        key = next(key for key in one if one[key] != other[key])
        return difference(one[key], other[key], f"{place}.{key}")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        at = next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        return difference(one[at], other[at], f"{place}[{at}]")
    return f"{json.dumps(one)[:60]}", f"{json.dumps(other)[:60]}", f" (at {place})" if place else ""


def in_child(job: Mapping[str, Any]) -> dict[str, Any]:
    """Give the answer of a child to a command line: its exit code, the refusal, and what must be alike in all."""
    app = import_module(job["module"]).app
    options.out.width = job["width"]
    code, message = options.outcome(app, job["argv"])
    if message is None and code == options.INTERRUPTED:
        message = "the code under test: got an interruption of its own, expected code that returns"
    return {"code": code, "message": message, "compared": options.compared()}
