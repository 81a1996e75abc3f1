"""Files that a command writes: whole or not at all, and refused before the work where they cannot be written.

An hour of enumeration must not end in "no such folder". What is written goes to a part file beside the target and is
then put in its place in one step, so a reader never sees half of it.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path

from rheo_core import InvalidInput

FIGURES = (".png", ".svg", ".pdf")
"""Endings of the files that figures are drawn to."""
PAGES = (".html", ".htm")
"""Endings of the files that pages are written to."""

WAITING: list[tuple[str, str, str]] | None = None
"""In a process whose verdict is still to be compared: (path, base64 of the data, option) of what is to be written."""
SUFFIX = ""
"""What is added to the names of journals, so that two processes that do the same each have one."""


def check_writable(path: Path, name: str = "save") -> None:
    """Raise `InvalidInput`, with the option's `name`, where `path` cannot be written; leaves nothing behind."""
    try:
        part = _part(path, name)
        if part is not None:
            part.open("xb").close()
            part.unlink()
    except OSError as error:
        raise _refusal(path, name, error) from None


def check_figure(path: Path, name: str = "plot") -> None:
    """The same for a figure, which needs one of the known endings."""
    if path.suffix.lower() not in FIGURES:
        raise InvalidInput(name, str(path), f"a file that ends in {', '.join(FIGURES[:-1])} or {FIGURES[-1]}")
    check_writable(path, name)


def save_text(path: Path, text: str, name: str = "save") -> None:
    """Write text (UTF-8) whole or not at all."""
    save_bytes(path, text.encode(errors="backslashreplace"), name)


def save_waiting(files: Iterable[tuple[str, str, str]]) -> None:
    """Write what waited in another process."""
    for path, data, name in files:
        save_bytes(Path(path), b64decode(data), name)


def save_bytes(path: Path, data: bytes, name: str = "save") -> None:
    """Write bytes whole or not at all; straight to a device or a pipe, which nothing can be put in the place of."""
    if WAITING is not None:
        WAITING.append((str(path), b64encode(data).decode("ascii"), name))
        return
    write_now(path, data, name)


def write_now(path: Path, data: bytes, name: str = "save") -> None:
    """The same, whether a verdict is still to be compared or not."""
    part = None
    try:
        part = _part(path, name)
        (part or path).write_bytes(data)
        if part is not None:
            part.replace(os.path.realpath(path))
    except OSError as error:
        if part is not None:
            part.unlink(missing_ok=True)
        raise _refusal(path, name, error) from None


def _part(path: Path, name: str) -> Path | None:
    """The part file, in the folder of the file that is meant (a link's own target); None for a device or a pipe."""
    if not path.name or "\0" in str(path) or path.is_dir():
        raise InvalidInput(name, str(path), "the name of a file")
    if path.exists() and not path.is_file():
        return None
    meant = Path(os.path.realpath(path))
    return meant.with_name(f".{meant.name}.{os.getpid()}.part")


def _refusal(path: Path, name: str, error: OSError) -> InvalidInput:
    folder = path.parent
    reason = error.strerror if folder.is_dir() else f"there is no folder {folder}"
    return InvalidInput(name, str(path), f"a file that can be written ({reason})")
