"""The user's own code and data of this process: what a journal depends on, and whether the order of a set can matter.

Own are the modules that are neither this project's nor of an installed package or the standard library, and the files
that were opened for reading since the first of them was run.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from dis import get_instructions
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from exact.enumeration.exits import PACKAGES, is_own

NOT_DATA = ("/proc/", "/dev/", "/sys/", "/etc/", "/usr/")
SALTED = {"set", "frozenset", "hash", "__hash__", "exec", "eval"}
"""Names by which code comes to an order, or a number, that PYTHONHASHSEED decides."""
SETS = {"BUILD_SET", "SET_ADD", "SET_UPDATE"}

_opened: dict[str, None] | None = None
_elsewhere: dict[str, str] = {}


@cache
def _listen() -> None:
    sys.addaudithook(_heard)


def note_opened(on: bool) -> None:
    """From here on, note the files that this process opens for reading, or forget them and note no more."""
    global _opened
    if on:
        _listen()
        _opened = {} if _opened is None else _opened
    else:
        _opened = None


def notes_opened() -> bool:
    """Whether the command that is being run has run a user's file."""
    return _opened is not None


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None:
        path, mode = arguments[0], arguments[1]
        if isinstance(path, str | bytes) and not set(mode or "r") & set("wax+"):
            _opened[os.path.abspath(os.fsdecode(path))] = None


def own_modules() -> Iterator[str]:
    """The source files of the user's own modules that are loaded."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        # torch has modules whose file is a bare name and does not exist
        if name != "__main__" and isinstance(path, str) and os.path.isabs(path) and is_own(path):
            yield path


def own_files() -> dict[str, str]:
    """The user's own modules and data files of this process by path, with the digest of each when it was first met."""
    data = [
        path for path in _opened or () if not path.startswith(NOT_DATA) and is_own(path) and not path.endswith(".pyc")
    ]
    found = {path: first_digest(path) for path in [*own_modules(), *data]}
    return _elsewhere | {path: digest for path, digest in found.items() if digest}


def seen_elsewhere(files: dict[str, str]) -> None:
    """Count the own files of a worker process among those of this one."""
    _elsewhere.update(files)


def digest_of(path: str) -> str:
    """The digest of a file as it is now; empty where there is none."""
    try:
        if not Path(path).is_file():
            return ""
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return ""


first_digest = cache(digest_of)
"""The same when it was first asked for."""


@cache
def project_digest() -> str:
    """The digest of this project's own source."""
    files = sorted(path for package in PACKAGES for path in Path(package).rglob("*.py"))
    return hashlib.sha256("".join(digest_of(str(path)) for path in files).encode()).hexdigest()


def order_can_matter() -> bool:
    """Whether the user's own modules make sets or hashes, or code out of text."""
    return any(_makes_sets(path) for path in set(own_modules()))


def _makes_sets(path: str) -> bool:
    try:
        return _in_code(compile(Path(path).read_bytes(), path, "exec"))
    except (OSError, SyntaxError, ValueError):
        return True  # an extension module, or what cannot be read: nothing is known


def _in_code(code: CodeType) -> bool:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    made = any(each.opname in SETS for each in get_instructions(code))
    return made or bool(SALTED & {*code.co_names, *code.co_varnames}) or any(map(_in_code, inner))
