"""All that code can reach and change, laid out flat, so that two moments can be compared.

A rule that keeps something from one call to the next (in a closure, a global, an attribute, a default argument, a
cache, an iterator) is no function of its draws, and an enumeration of its calls would pass for a law that it has not.
So its state is compared after every call. Followed are closures, defaults, attributes, slots, containers, arrays,
iterators, generators, and the globals that the user's own functions name; libraries are not looked into.
"""

from __future__ import annotations

import builtins
import functools
import os
import random
import re
import sys
import types
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from exact.runtime.patches import filled
from rheo_core import InvalidInput

_ROOT = Path(__file__).parent.parent.parent
_OURS = tuple(str(_ROOT / package) + os.sep for package in ("rheo_core", "exact", "montecarlo", "gpu_runner"))
_STANDARD = os.path.dirname(os.__file__) + os.sep
_REFLECTION = {"globals", "vars", "eval", "exec", "sys", "gc", "inspect", "importlib", "modules", "__import__"}

LARGE = 1 << 16
"""Bytes of an array that are compared after every call; a larger one at the end alone."""

MOST = 300_000
"""Values that are looked at; a rule that reaches more is refused."""

_DESCRIPTORS = (
    types.GetSetDescriptorType,
    types.WrapperDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
)
_NUMBERS = (bool, int, float, complex, Fraction, np.generic)
_CONSTANTS = (type(None), re.Pattern, str, bytes, range, slice, type(...), type(NotImplemented), np.dtype, np.ufunc)
_ATOMS: tuple[type, ...] = (
    *(*_NUMBERS, *_CONSTANTS, *_DESCRIPTORS),
    *(types.CodeType, types.FrameType, types.GenericAlias),
)
_CACHED: Any = type(functools.lru_cache(lambda: None))


def is_ours(path: str) -> bool:
    """Whether a file belongs to this project's packages."""
    return path.startswith(_OURS)


def _is_library(path: str, homes: frozenset[str]) -> bool:
    """Whether a file is one that is not looked into; `homes` are packages that are, wherever they are installed."""
    if is_ours(path) or path.startswith(("<frozen", "<__array_function__")):
        return True
    _, installed, inside = path.replace("\\", "/").rpartition("site-packages/")
    if installed:
        return inside.partition("/")[0].removesuffix(".py") not in homes
    return path.startswith(_STANDARD)


def _file_of(module: str) -> str:
    found = sys.modules.get(module)
    path = getattr(found, "__file__", None)
    if path is None:  # built in, or made by hand: `__main__`, a plug-in's file while it runs
        return "<user>" if module == "__main__" or found is None or not _is_builtin(found) else "<frozen>"
    return str(path)


def _is_builtin(module: Any) -> bool:
    return getattr(getattr(module, "__spec__", None), "origin", None) in ("built-in", "frozen")


@functools.cache
def _names(code: types.CodeType) -> frozenset[str]:
    """Names of globals and attributes in a function's code and in the functions inside it."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


class _Walker:
    """One look at everything reachable: `leaves` to compare, and with `named` the place of each."""

    def __init__(self, homes: frozenset[str], named: bool = False, whole: bool = False) -> None:
        self.homes = homes
        self.whole = whole
        self.leaves: list[Any] = []
        self.places: list[str] | None = [] if named else None
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is used twice
        self._waiting: list[tuple[Any, Any]] = []

    def walk(self, roots: Mapping[str, Any]) -> _Walker:
        """Look at everything that can be reached from the roots, by name."""
        self._add((name, value) for name, value in roots.items())
        while self._waiting:
            place, value = self._waiting.pop()
            self._visit(value, place)
            if len(self.leaves) > MOST:
                raise InvalidInput(_said(place), f"more than {MOST:,} values", "a rule whose state can be compared")
        return self

    def _add(self, items: Iterable[tuple[Any, Any]]) -> None:
        self._waiting += reversed(list(items))

    def _leaf(self, place: Any, leaf: Any) -> None:
        self.leaves.append(leaf)
        if self.places is not None:
            self.places.append(_said(place))

    def _visit(self, value: Any, place: Any) -> None:
        kind: Any = type(value)
        if issubclass(kind, _ATOMS) or kind.__module__ in ("gmpy2", "decimal"):
            exactly = repr(value) if issubclass(kind, float | complex | np.inexact) else value
            self._leaf(place, (kind, exactly))
            return
        if id(value) in self._seen:
            self._leaf(place, self._seen[id(value)])
            return
        self._seen[id(value)] = len(self.leaves)
        self._kept.append(value)
        _look_of(kind)(self, value, place)

    def _sequence(self, value: Any, place: Any) -> None:
        self._leaf(place, (type(value), len(value)))
        self._add(((place, i), each) for i, each in enumerate(value))
        self._attributes(value, place)

    def _set(self, value: Any, place: Any) -> None:
        self._leaf(place, (type(value), frozenset(value)))
        self._add((place, each) for each in value)

    def _mapping(self, value: Any, place: Any) -> None:
        self._leaf(place, (type(value), len(value)))
        self._add(item for key, each in list(value.items()) for item in ((place, key), ((place, key), each)))
        self._attributes(value, place)

    def _array(self, value: Any, place: Any) -> None:
        self._leaf(place, (value.dtype, value.shape, bool(value.flags.writeable)))
        if value.dtype.hasobject:
            self._add(((place, i), each) for i, each in enumerate(value.ravel().tolist()))
        else:
            self._bytes(value.nbytes, value.tobytes, place)
        self._attributes(value, place)

    def _bytes(self, size: int, read: Callable[[], bytes], place: Any) -> None:
        if size <= LARGE:
            self._leaf(place, read())
        elif self.whole:
            self._leaf(place, blake2b(read()).digest())

    def _buffer(self, value: Any, place: Any) -> None:
        view = memoryview(value)
        self._leaf(place, (type(value), view.nbytes))
        self._bytes(view.nbytes, view.tobytes, place)

    def _tensor(self, value: Any, place: Any) -> None:
        self._leaf(place, (value.dtype, tuple(value.shape), value._version))
        flat = value.detach().cpu().contiguous().reshape(-1)
        self._bytes(flat.nbytes, lambda: flat.view(sys.modules["torch"].uint8).numpy().tobytes(), place)

    def _function(self, value: Any, place: Any) -> None:
        path = value.__code__.co_filename
        self._leaf(place, value.__code__)
        cells = list(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        self._add((f"`{name}`", cell.cell_contents) for name, cell in cells if filled(cell))
        self._leaf(place, tuple(name for name, cell in cells if not filled(cell)))
        self._add((f"default {i + 1} of {value.__name__}", each) for i, each in enumerate(value.__defaults__ or ()))
        keywords = (value.__kwdefaults__ or {}).items()
        self._add((f"default `{name}` of {value.__name__}", each) for name, each in keywords)
        if value.__dict__:
            self._add((f"attribute `{name}` of {value.__name__}", each) for name, each in value.__dict__.items())
        if not _is_library(path, self.homes):
            scope, names = value.__globals__, _names(value.__code__)
            chosen = set(scope) if names & _REFLECTION else names & scope.keys()
            chosen = [name for name in sorted(chosen) if name not in _OF_MODULES and not name.startswith("@")]
            self._add((f"global `{name}`", scope[name]) for name in chosen)

    def _method(self, value: Any, place: Any) -> None:
        self._add([(place, value.__func__), (f"the object of {value.__name__}", value.__self__)])

    def _builtin(self, value: Any, place: Any) -> None:
        owner = getattr(value, "__self__", None)
        self._leaf(place, getattr(value, "__qualname__", None))
        if owner is not None and not isinstance(owner, types.ModuleType):
            self._add([(place, owner)])

    def _partial(self, value: Any, place: Any) -> None:
        self._add([(place, value.func), (place, value.args), (place, value.keywords)])

    def _cache(self, value: Any, place: Any) -> None:
        self._leaf(f"the cache of {getattr(value, '__name__', place)}", tuple(value.cache_info())[1:])
        self._add([(place, value.__wrapped__)])

    def _class(self, value: Any, place: Any) -> None:
        self._leaf(place, value)
        path = _file_of(value.__module__)
        if not _is_library(path, self.homes):
            inside = [(name, each) for name, each in vars(value).items() if name not in _OF_CLASSES]
            self._add((f"attribute `{name}` of {value.__name__}", each) for name, each in inside)
            self._add((place, base) for base in value.__bases__)

    def _module(self, value: Any, place: Any) -> None:
        self._leaf(place, value.__name__)
        if not _is_library(_file_of(value.__name__), self.homes):
            inside = [(name, each) for name, each in vars(value).items() if name not in _OF_MODULES]
            self._add((f"`{name}` of {value.__name__}", each) for name, each in inside)

    def _paused(self, value: Any, place: Any) -> None:
        """A Python generator: where it stands, and its variables."""
        frame = value.gi_frame
        self._leaf(place, None if frame is None else frame.f_lasti)
        if frame is not None:
            self._add((f"`{name}` of a generator", each) for name, each in frame.f_locals.items())

    def _generator(self, value: Any, place: Any) -> None:
        inner = place
        place = f"the generator {_said(place)}" if self.places is not None else ""
        if isinstance(value, random.Random):
            self._leaf(place, None if isinstance(value, random.SystemRandom) else value.getstate())
        elif isinstance(value, np.random.Generator):
            self._add([(inner, value.bit_generator)])
        elif isinstance(value, np.random.BitGenerator):
            self._leaf(place, str(value.state))
        else:
            state = value.get_state()
            bare = state.numpy().tobytes() if hasattr(state, "numpy") else (state[1].tobytes(), *state[2:])
            self._leaf(place, bare)

    def _variable(self, value: Any, place: Any) -> None:
        self._add([(f"the context variable {value.name}", value.get(None))])

    def _wrapped(self, value: Any, place: Any) -> None:
        """A static or class method, or a property."""
        inner = [getattr(value, name, None) for name in ("__func__", "fget", "fset", "fdel")]
        self._add((place, each) for each in inner if each is not None)

    def _other(self, value: Any, place: Any) -> None:
        kind: Any = type(value)
        slots = _slots(kind)
        attributes = getattr(value, "__dict__", None) is not None
        if _is_iterator_in_c(kind):
            self._reduced(value, place)
            self._attributes(value, place)
        elif attributes or slots:
            self._leaf(place, kind)
            self._add(((place, name), getattr(value, name)) for name in slots if hasattr(value, name))
            self._attributes(value, place)
        elif hasattr(value, "tell"):
            self._leaf(place, (kind, None if value.closed else value.tell()))
        elif kind.__module__ == "_thread" or kind.__module__ == "weakref":
            self._leaf(place, kind)
        else:
            self._reduced(value, place)
        self._add([(f"the class {kind.__name__}", kind)] if kind.__module__ != "builtins" else [])

    def _reduced(self, value: Any, place: Any) -> None:
        """An object in C, by what a copy of it would be made of."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = value.__reduce_ex__(2)
        except Exception:
            if callable(value) and not hasattr(type(value), "__next__"):  # a function of a library in C
                self._leaf(place, type(value))
                return
            given = f"an object whose state cannot be compared ({type(value).__module__}.{type(value).__qualname__})"
            raise InvalidInput(_said(place), given, "state that can be copied, or none") from None
        self._leaf(place, type(value))
        self._add([] if isinstance(made, str) else [(place, tuple(made[1:]))])

    def _attributes(self, value: Any, place: Any) -> None:
        inside = getattr(value, "__dict__", None)
        if type(inside) is dict:
            self._add(((place, name), each) for name, each in list(inside.items()))
            self._add([(f"the class {type(value).__name__}", type(value))])


def _is_iterator_in_c(kind: type) -> bool:
    owner = next((each for each in kind.__mro__ if "__next__" in vars(each)), None)
    return owner is not None and isinstance(vars(owner)["__next__"], types.WrapperDescriptorType)


_OF_CLASSES = (
    "__dict__",
    "__weakref__",
    "__doc__",
    "__module__",
    "__annotations__",
    "__abstractmethods__",
    "_abc_impl",
)
_OF_MODULES = ("__builtins__", "__spec__", "__loader__", "__cached__", "__doc__", "__warningregistry__")


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    names: list[str] = []
    for each in kind.__mro__:
        own = each.__dict__.get("__slots__", ())
        for name in (own,) if isinstance(own, str) else own:
            mangled = (
                f"_{each.__name__.lstrip('_')}{name}" if name.startswith("__") and not name.endswith("__") else name
            )
            names += [mangled] if name not in ("__dict__", "__weakref__") else []
    return tuple(names)


_LOOKS: list[tuple[Any, Callable[[_Walker, Any, Any], None]]] = [
    (np.ndarray, _Walker._array),
    ((list, tuple, deque), _Walker._sequence),
    ((dict, types.MappingProxyType), _Walker._mapping),
    ((set, frozenset), _Walker._set),
    ((bytearray, memoryview), _Walker._buffer),
    (types.FunctionType, _Walker._function),
    (types.MethodType, _Walker._method),
    (types.BuiltinFunctionType, _Walker._builtin),
    (functools.partial, _Walker._partial),
    (_CACHED, _Walker._cache),
    (type, _Walker._class),
    (types.ModuleType, _Walker._module),
    (types.GeneratorType, _Walker._paused),
    ((random.Random, np.random.Generator, np.random.BitGenerator, np.random.RandomState), _Walker._generator),
    (ContextVar, _Walker._variable),
    ((staticmethod, classmethod, property), _Walker._wrapped),
]


@functools.cache
def _look_of(kind: Any) -> Callable[[_Walker, Any, Any], None]:
    return next((look for kinds, look in _LOOKS if issubclass(kind, kinds)), _Walker._other)


def _know_torch() -> None:
    """Know torch's tensors and generators once it is imported."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Tensor") and not any(kinds is torch.Tensor for kinds, _ in _LOOKS):
        _LOOKS.insert(0, (torch.Tensor, _Walker._tensor))
        _LOOKS.insert(0, (torch._C.Generator, _Walker._generator))
        _look_of.cache_clear()


def _said(place: Any) -> str:
    """A place in words: a name, or (place, key)."""
    if not isinstance(place, tuple):
        return str(place)
    inner, key = place
    text = repr(key) if not isinstance(key, str) else f"`{key}`" if key.isidentifier() else repr(key)
    return f"{_said(inner)}, {text if len(text) < 40 else type(key).__name__}"


class State:
    """What some parts reach, at the moment when it was made."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        _know_torch()
        self.parts = dict(parts)
        modules = [getattr(part, "__module__", None) or type(part).__module__ for part in parts.values()]
        self.homes = frozenset(str(module).partition(".")[0] for module in modules)
        self.renew()

    def renew(self) -> None:
        """Take what is there now as the moment to compare with."""
        self._leaves = self._look().leaves
        self._all = self._look(whole=True).leaves

    def _look(self, named: bool = False, whole: bool = False) -> _Walker:
        walker = _Walker(self.homes, named, whole)
        walker._leaf("the environment", vars(os.environ)["_data"].copy())
        walker._leaf("a name of builtins", len(vars(builtins)))
        return walker.walk(self.parts)

    def changed(self) -> str | None:
        """The first place that differs from the moment before; None where none does."""
        now = self._look().leaves
        return None if now == self._leaves else self._first(self._leaves, whole=False)

    def changed_at_last(self) -> str | None:
        """The same, with large arrays compared as well."""
        return None if self._look(whole=True).leaves == self._all else self._first(self._all, whole=True)

    def _first(self, before: list[Any], whole: bool) -> str:
        now = self._look(named=True, whole=whole)
        pairs = enumerate(zip(before, now.leaves, strict=False))
        at = next((i for i, (one, other) in pairs if one != other), len(before))
        return now.places[min(at, len(now.places) - 1)] if now.places else "something"
