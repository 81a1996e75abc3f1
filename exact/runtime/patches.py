"""Attributes replaced while a run lasts.

The replacements of one interception are built once and put in place around every run, so that whatever happens between
runs sees the libraries as they are.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import CellType, CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from exact.runtime.unsupported import Unsupported

_MISSING = object()


class Patch(NamedTuple):
    """`owner.name = value` for a while; a module's dictionary stands for the module."""

    owner: Any
    name: str
    value: Any


class Replacements:
    """Patches that are put in place again and again: those of a module all at once."""

    def __init__(self, patches: Sequence[Patch]) -> None:
        self._others = [each for each in patches if not _is_plain_module(each.owner)]
        modules: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}
        for owner, name, value in patches:
            if _is_plain_module(owner):
                modules.setdefault(id(owner), (vars(owner), {}))[1][name] = value
        self._modules = list(modules.values())

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Put the patches in place, and everything back at the end."""
        before = [vars(owner).get(name, _MISSING) for owner, name, _ in self._others]
        held = [{name: scope.get(name, _MISSING) for name in values} for scope, values in self._modules]
        try:
            for scope, values in self._modules:
                scope.update(values)
            for owner, name, value in self._others:
                setattr(owner, name, value)
            yield
        finally:
            for (owner, name, _), value in zip(self._others, before, strict=True):
                if value is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, value)
            for (scope, _), values in zip(self._modules, held, strict=True):
                scope.update(values)
                for name in [name for name, value in values.items() if value is _MISSING]:
                    del scope[name]


def _is_plain_module(owner: Any) -> bool:
    return isinstance(owner, ModuleType) and type(owner).__setattr__ is ModuleType.__setattr__


def applied(patches: Sequence[Patch]) -> AbstractContextManager[None]:
    """Put some patches in place for a while."""
    return Replacements(patches).applied()


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
