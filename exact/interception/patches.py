"""Attributes replaced while a run lasts.

The replacements of one interception are built once and put in place around every run, so that whatever happens between
runs sees the libraries as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CellType, CodeType, FrameType
from typing import Any, NamedTuple

from exact.interception.errors import Unsupported

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


def bound_before(originals: Mapping[int, str]) -> list[Patch]:
    """Functions that some module took by name before the call, each to be refused where it is called."""
    patches = []
    modules: dict[str, Any] = dict(sys.modules)
    for module_name, module in modules.items():
        if module is None or module_name.split(".")[0] in ("random", "numpy"):
            continue
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in originals:
                original = originals[id(value)]
                what = f"bound as `{name}` in {module_name} before the call"
                patches.append(Patch(module, name, refuser(original, what, f"{original} called through its module")))
    return patches


def names(code: CodeType) -> set[str]:
    """Global names that a function's code, or a function inside it, mentions."""
    inner = [names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def filled(cell: CellType) -> bool:
    """Whether a closure's cell holds something yet."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
