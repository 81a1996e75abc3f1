"""What a command says, apart from what the code under test prints, and files that wait for the verdict.

A `print` in a user's file must neither stand in a JSON document nor pass for a verdict. While a command runs, its own
output goes to `own()`; as soon as a user's file is run, `sys.stdout` is another stream, of which the first lines are
kept for a note.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from exact.runtime.own_code import note_opened

KEPT = 3
"""Printed lines that are shown; the others are counted."""
SHOWN = 200
"""Characters of a printed line that are shown."""


def visible(text: str) -> str:
    """A text whose control characters, line ends and lone surrogates are written as escapes.

    >>> visible("red: \\x1b[31m")
    'red: \\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


class Printed(io.StringIO):
    """A text stream that keeps its first lines and its last one, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self.first: list[str] = []
        self.last = ""
        self.count = 0
        self._open = ""

    def write(self, text: str) -> int:
        """Take a text; a line is counted when its end comes."""
        *whole, rest = (self._open + text).split("\n")
        for line in whole:
            self._take(line)
        self._open = rest[-SHOWN - 1 :]
        return len(text)

    def _take(self, line: str) -> None:
        if line.strip():
            self.count += 1
            self.last = line[: SHOWN + 1]
            if self.count <= KEPT:
                self.first.append(self.last)

    def note(self) -> str:
        """The one line that says what was printed; empty where nothing was."""
        self.write("\n")
        lines = [f"'{shortened(each)}'" for each in self.first]
        more = f" and {self.count - KEPT} more lines" if self.count > KEPT else ""
        return f"note: printed by the code under test: {', '.join(lines)}{more}" if lines else ""


def shortened(line: str) -> str:
    """A printed line as it can be shown."""
    return visible(line if len(line) <= SHOWN else f"{line[:SHOWN]}...")


@dataclass
class _Streams:
    own: TextIO | None = None
    err: TextIO | None = None
    theirs: TextIO = field(default_factory=Printed)


_STREAMS = _Streams()


def own() -> Any:
    """Where the command that is being run writes."""
    return sys.stdout if _STREAMS.own is None else _STREAMS.own


def running() -> bool:
    """Whether a command is being run."""
    return _STREAMS.own is not None


def own_err() -> Any:
    """Where it says what is no result."""
    return sys.stderr if _STREAMS.err is None else _STREAMS.err


def seclude() -> None:
    """From here on, what goes to `sys.stdout` is the user's, where a command is being run."""
    if _STREAMS.own is not None:
        sys.stdout = _STREAMS.theirs
        note_opened(True)


@contextmanager
def kept_apart(theirs: TextIO) -> Iterator[None]:
    """Within, a command writes to what `sys.stdout` is now, and a user's file that is run prints to `theirs`."""
    before = sys.stdout, _STREAMS.own, _STREAMS.err
    _STREAMS.own, _STREAMS.err, _STREAMS.theirs = sys.stdout, sys.stderr, theirs
    try:
        yield
    finally:
        sys.stdout, _STREAMS.own, _STREAMS.err = before
        note_opened(False)
