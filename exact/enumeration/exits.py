"""Code under test that ends the program instead of returning: a refusal with its line, never a verdict.

`sys.exit(0)` inside a rule would otherwise end a command with the code of a proof, and a `StopIteration` would end a
sweep early as if it were done. Both become `Ended`, which neither a rule's own `except Exception` nor a search that
tolerates refusals takes for an answer.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dis import opmap
from pathlib import Path
from traceback import walk_tb

from rheo_core import InvalidInput

PACKAGES = tuple(str(Path(__file__).parents[2] / name) for name in ("rheo_core", "exact", "montecarlo", "gpu_runner"))
LIBRARIES = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
_SILENT = (StopIteration, StopAsyncIteration)  # what a loop around the call takes for its own end


class EnumerationError(Exception):
    """A program whose outcomes cannot be enumerated."""


class Ended(InvalidInput, EnumerationError):
    """Code under test ended the program, or a loop around it, instead of returning."""


class Stop(BaseException):
    """An end that this project itself asks for, such as a time limit; it passes through the code under test."""


def is_own(path: str) -> bool:
    """Whether a file is the user's: neither this project's, nor a library's, nor made up."""
    return not path.startswith(("<", *PACKAGES, *LIBRARIES)) and "site-packages" not in path


def where(error: BaseException) -> tuple[str, str]:
    """(function, `file.py:line`) where an exception was raised in the user's own code, else where at all."""
    passed = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    found = [each for each in passed if is_own(each[0].co_filename)] or passed
    if not found:
        return "the code under test", "an unknown line"
    code, line = found[-1]
    return code.co_name, f"{Path(code.co_filename).name}:{line}"


def told(error: BaseException) -> str:
    """An exception in one line: its type, its message, its place, and the branch of the walk where it was raised."""
    name, text = type(error).__name__, " ".join(str(error).split())
    said = f"{name}: {text}" if text else name
    if not isinstance(error, SyntaxError):  # which says its place itself
        said += f" at {where(error)[1]}"
    return "; ".join([said, *getattr(error, "__notes__", [])])


def checked(name: str | None, error: BaseException) -> BaseException:
    """The exception itself, or `Ended` where it would end more than the code under test.

    `name` is what ended; None: the function that the exception was raised in.
    A Ctrl-C arrives between two instructions; a `KeyboardInterrupt` of the code's own comes from a `raise`.
    """
    if isinstance(error, Stop) or (isinstance(error, Exception) and not isinstance(error, _SILENT)):
        return error
    if isinstance(error, KeyboardInterrupt) and not _by_raise(error):
        return error
    ended = Ended(name or where(error)[0], told(error), "code that returns a result, or raises an Exception")
    ended.__cause__ = error
    return ended


def _by_raise(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return True
    code = trace.tb_frame.f_code
    return not code.co_filename.startswith(PACKAGES) and code.co_code[trace.tb_lasti] == opmap["RAISE_VARARGS"]


@contextmanager
def contained(name: str | None) -> Iterator[None]:
    """Turn what would end the program inside the block into `Ended`; any other exception passes as it is."""
    try:
        yield
    except BaseException as error:
        found = checked(name, error)
        if found is error:
            raise
        raise found from error
