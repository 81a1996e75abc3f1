"""Generators made before the call, and functions bound before it: seen where they can be, and refused by name.

They hold numbers that were not drawn in the call, so no law can be taken of what they give. Looked at are the
arguments, the closure, the defaults and the object of the function, one attribute deep, and the names of all loaded
modules.
"""

from __future__ import annotations

import random
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from exact.runtime.patches import Patch, filled, names, refuser
from exact.runtime.unsupported import Unsupported

_STANDARD_LIBRARY = sysconfig.get_paths()["stdlib"]
_KINDS: tuple[type, ...] = (np.random.Generator, np.random.RandomState, random.Random)


class PriorGenerator:
    """What stands for a generator of a module while code runs: any use of it is refused."""

    def __init__(self, kind: str, place: str) -> None:
        self.__dict__.update(_kind=kind, _place=place)

    def __getattr__(self, name: str) -> Any:
        kind, place = self.__dict__["_kind"], self.__dict__["_place"]
        raise Unsupported(f"{kind}.{name}", f"{place}, made before the call", "one made during the call")


def bound_before(originals: Mapping[int, str], patches: Sequence[Patch], stand_ins: Mapping[int, Any]) -> list[Patch]:
    """What modules hold from before: functions and generators are refused where they are used, classes replaced.

    `stand_ins` take the place of what the user's own modules hold, by the id of the original.
    """
    classes = {id(vars(each.owner).get(each.name)): each.value for each in patches if each.name in _CLASS_NAMES}
    kinds = set(generator_kinds())
    found = []
    modules: dict[str, Any] = dict(sys.modules)
    for module_name, module in modules.items():
        if module is None or module_name.split(".")[0] in _LEFT:
            continue
        for name, value in _candidates(module_name, module, originals.keys() | classes.keys(), stand_ins.keys(), kinds):
            place = f"bound as `{name}` in {module_name} before the call"
            if id(value) in stand_ins:
                found.append(Patch(module, name, stand_ins[id(value)]))
            elif id(value) in originals:
                original = originals[id(value)]
                found.append(Patch(module, name, refuser(original, place, f"{original} called through its module")))
            elif id(value) in classes:
                found.append(Patch(module, name, classes[id(value)]))
            elif type(value) in kinds:
                found.append(Patch(module, name, PriorGenerator(type(value).__name__, f"`{name}` of {module_name}")))
            elif isinstance(value, type):
                found += _of_class(value, kinds)
    return found


_LEFT = ("random", "numpy", "torch", "exact", "tempfile")
_CLASS_NAMES = ("Generator", "RandomState", "Random")
_LIBRARIES: dict[str, tuple[int, list[str]]] = {}
"""Of each library module, how many names it had when it was looked through, and those that matter."""


def _candidates(module_name: str, module: Any, ids: Set[int], own: Set[int], kinds: set[type]) -> list[tuple[str, Any]]:
    """Names of a module whose values matter, and for the user's own modules their classes as well.

    A library's module is looked through once for each number of names that it has; the user's own every time.
    """
    scope = getattr(module, "__dict__", {})
    path = getattr(module, "__file__", None) or ""
    library = "site-packages" in path or path.startswith(_STANDARD_LIBRARY)
    if library and (known := _LIBRARIES.get(module_name)) is not None and known[0] == len(scope):
        return [(name, scope[name]) for name in known[1] if name in scope]
    ids = ids if library else ids | own
    found = [(name, value) for name, value in list(scope.items()) if id(value) in ids or type(value) in kinds]
    if library:
        _LIBRARIES[module_name] = (len(scope), [name for name, _ in found])
        return found
    return found + [
        (name, value) for name, value in list(scope.items()) if type(value) is type and value.__module__ == module_name
    ]


def _of_class(owner: type, kinds: set[type]) -> Iterator[Patch]:
    for name, value in list(vars(owner).items()):
        if type(value) in kinds:
            yield Patch(owner, name, PriorGenerator(type(value).__name__, f"`{owner.__name__}.{name}`"))


def refuse_made_before(function: Any, args: Any, kwargs: Mapping[str, Any], originals: Mapping[int, str]) -> None:
    """Raise for a generator made before, or a random function bound before, that the function can be seen to use."""
    inner = function
    seen: dict[str, Any] = {}
    while hasattr(inner, "func") and not hasattr(inner, "__code__"):  # functools.partial
        seen |= {f"argument {i + 1}": value for i, value in enumerate(inner.args)}
        seen |= {f"argument `{name}`": value for name, value in inner.keywords.items()}
        inner = inner.func
    seen |= {f"argument {i + 1}": value for i, value in enumerate(args)}
    seen |= {f"argument `{name}`": value for name, value in kwargs.items()}
    seen |= held(inner)
    for place, value in list(seen.items()):
        if isinstance(value, list | tuple):
            seen |= {f"{place}[{i}]": item for i, item in enumerate(value)}
        elif isinstance(value, dict):
            seen |= {f"{place}[{key!r}]": item for key, item in value.items()}
        elif not isinstance(value, type | types.ModuleType | types.FunctionType):
            seen |= {f"{place}, `{name}`": item for name, item in getattr(value, "__dict__", {}).items()}
    for place, value in seen.items():
        made = originals.get(id(value)) if "global" not in place else None
        made = made or _made_before(value)
        if made is not None:
            raise Unsupported(made, f"{place}, made before the call", "one made during the call", line=_where(inner))


def held(function: Any) -> dict[str, Any]:
    """What a function holds: globals that it reads, closure, defaults, and the object it is a method of."""
    owner = getattr(function, "__self__", None)
    held = {} if owner is None else {"the object of the method": owner}
    code = getattr(function, "__code__", None)
    if code is None:
        return held | {"the function itself": function}
    reads = function.__globals__
    held |= {f"global `{name}`": reads[name] for name in names(code) if name in reads}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    held |= {f"`{name}`": cell.cell_contents for name, cell in cells if filled(cell)}
    held |= {f"default {i + 1}": value for i, value in enumerate(function.__defaults__ or ())}
    return held | {f"default `{name}`": value for name, value in (function.__kwdefaults__ or {}).items()}


def generator_kinds() -> tuple[type, ...]:
    """The classes of generators, torch's where it is imported."""
    torch = sys.modules.get("torch")
    return _KINDS if torch is None else (*_KINDS, torch._C.Generator)


def _made_before(value: Any) -> str | None:
    """The name of a generator, or of a method bound to one; None for anything else."""
    kinds = generator_kinds()
    bound = isinstance(value, types.BuiltinMethodType | types.MethodType)
    if bound or type(value).__name__ == "cython_function_or_method":
        owner = getattr(value, "__self__", None)
        if isinstance(owner, kinds):
            return f"{type(owner).__name__}.{value.__name__}"
    return f"{type(value).__module__}.{type(value).__name__}" if isinstance(value, kinds) else None


def _where(function: Any) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return name if code is None else f"{name} ({code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno})"
