"""Attributes replaced while a run lasts.

The replacements of one interception are built once and put in place around every run, so that whatever happens between
runs sees the libraries as they are.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CellType, CodeType, FrameType
from typing import Any, NamedTuple

from exact.runtime.unsupported import Unsupported

_MISSING = object()


class Patch(NamedTuple):
    """`owner.name = value` for a while; a module's dictionary stands for the module."""

    owner: Any
    name: str
    value: Any


@contextmanager
def applied(patches: Sequence[Patch]) -> Iterator[None]:
    """Put the patches in place, and everything back at the end."""
    before = [vars(owner).get(name, _MISSING) for owner, name, _ in patches]
    try:
        for owner, name, value in patches:
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name, _), value in zip(patches, before, strict=True):
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def refuser(name: str, value: object, expected: str) -> Callable[..., Any]:
    """A function that refuses to be called, by name."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(name, value, expected)

    return refused


def importing() -> bool:
    """Whether a module is being imported: what it draws then is no draw of the function."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def names(code: CodeType) -> set[str]:
    """Global names that a function's code, or a function inside it, reads."""
    own = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(names(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def filled(cell: CellType) -> bool:
    """Whether a closure's cell holds something yet."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
