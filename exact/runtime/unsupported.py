"""What is said when code cannot be followed exactly.

A law is exact or there is none. Whatever is done to a uniform that is not followed is refused with the name of the
operation and the line of the user's code on which it stands.
"""

from __future__ import annotations

import linecache
import sys
import sysconfig
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any

from exact.enumeration.walk import EnumerationError
from rheo_core import InvalidInput

_ROOT = Path(__file__).parent.parent
OURS = tuple(str(_ROOT / room) for room in ("interception", "runtime", "enumeration"))
"""Files whose frames act for the interception, never for the code under test."""
STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_LIBRARIES = ("torch", "numpy")


class Unsupported(InvalidInput, EnumerationError):
    """An operation on random numbers that is not followed exactly; `.operation` and `.line` say which and where."""

    last: Unsupported | None = None
    """The last one made: code under test that swallows every exception does not swallow this one."""

    def __init__(self, operation: str, value: object, expected: str, line: str | None = None) -> None:
        Unsupported.last = self
        self.operation = operation
        self.line = user_line() if line is None else line
        super().__init__(f"{operation} at {self.line}", value, expected)

    def __reduce__(self) -> Any:
        return type(self), (self.operation, self.value, self.expected, self.line)


def invalid(operation: str, value: object, expected: str) -> InvalidInput:
    """The error for numbers that no draw can use (NaN, a negative weight), with the user's line."""
    return InvalidInput(f"{operation} at {user_line()}", value, expected)


def user_line() -> str:
    """`file:line (source)` of the innermost frame outside this package, torch, NumPy and the standard library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _internal(frame.f_code.co_filename):
        frame = frame.f_back
    return "an unknown line" if frame is None else format_line(frame, frame.f_lineno)


def line_of(error: BaseException) -> str:
    """The same of the innermost such frame that an exception passed through."""
    passed = [(f, n) for f, n in walk_tb(error.__traceback__) if not _internal(f.f_code.co_filename)]
    return format_line(*passed[-1]) if passed else "an unknown line"


def format_line(frame: FrameType, number: int) -> str:
    """`file:line (source)` of a line of a frame."""
    path = frame.f_code.co_filename
    source = linecache.getline(path, number, frame.f_globals).strip()
    source = source if len(source) <= 80 else f"{source[:77]}..."
    return f"{Path(path).name}:{number}" + (f" `{source}`" if source else "")


def in_a_library(frame: FrameType) -> bool:
    """Whether a frame is of this package, torch, NumPy or the standard library."""
    return _internal(frame.f_code.co_filename)


def _internal(path: str) -> bool:
    if path.startswith((*OURS, "<frozen")):
        return True
    if any(f"/site-packages/{library}/" in path.replace("\\", "/") for library in _LIBRARIES):
        return True
    return "site-packages" not in path and path.startswith(STANDARD_LIBRARY)
