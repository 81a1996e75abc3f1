"""What code under test can reach, as it was before the first run: compared after each, and put back before the next.

Arguments, closures, globals that are read or written, defaults, attributes, containers, arrays and tensors, however
deep. A run that writes into one of them is named, and every branch starts from the same state.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from operator import is_
from types import BuiltinMethodType, CellType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from exact.runtime.unsupported import STANDARD_LIBRARY, Unsupported

MOST = 200_000
"""Things that are followed at most; beyond it the rest is not seen."""
LARGE = 1 << 20
"""Numbers of a tensor that are copied at most; of a larger one torch's own count of writes is compared."""

_GONE = object()
_LEAVES = (int, float, complex, str, bytes, bool, type(None), range, slice, CodeType, np.dtype, np.generic)
_ITERATORS = tuple(map(type, (iter(()), iter([]), iter({}), iter(range(0)), map(int, ()), zip(), enumerate(()))))
_CACHE = type(functools.lru_cache(int))


class Snapshot:
    """The state of everything that `function(*args, **kwargs)` reaches.

    `found` holds what was met, by its place in words; `changed()` names what a run wrote into, and `restore()` puts
    it back; so too for what `beside`, the target, reaches. Raises `Unsupported` for what cannot be put back: an
    iterator that was moved on.
    """

    def __init__(
        self, function: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None, beside: Any = None
    ) -> None:
        self.found: list[tuple[str, Any]] = []
        self._kept: list[tuple[str, _Kept]] = []
        self._torch = sys.modules.get("torch")
        roots = [("the function", function)]
        roots += [(f"argument {i + 1}", value) for i, value in enumerate(args)]
        roots += [(f"argument `{name}`", value) for name, value in (kwargs or {}).items()]
        roots += [("the target", beside)] if beside is not None else []
        roots += [("os.environ", getattr(os.environ, "_data", None))]
        self._walk(roots)

    def changed(self) -> list[str]:
        """Places that are not as they were, by name."""
        return list(dict.fromkeys(place for place, kept in self._kept if kept.differs()))

    def restore(self) -> list[str]:
        """Put everything back; the names of what was not as it was."""
        names = []
        for place, kept in self._kept:
            if kept.differs():
                names.append(place)
                kept.restore(place)
        return list(dict.fromkeys(names))

    def named(self) -> frozenset[str]:
        """All names that the user's own functions among what was met use, those of attributes included."""
        codes = [each.__code__ for _, each in self.found if isinstance(each, FunctionType)]
        return frozenset[str]().union(*(_all_names(code) for code in codes if not _library_file(code.co_filename)))

    def _walk(self, roots: list[tuple[str, Any]]) -> None:
        seen: set[int] = set()
        waiting = deque(roots)
        while waiting and len(seen) < MOST:
            place, value = waiting.popleft()
            if isinstance(value, _LEAVES) or id(value) in seen:
                continue
            seen.add(id(value))
            self.found.append((place, value))
            waiting.extend(self._inside(place, value))

    def _keep(self, place: str, kept: _Kept) -> None:
        self._kept.append((place, kept))

    def _inside(self, place: str, value: Any) -> Iterator[tuple[str, Any]]:
        if self._torch is not None and isinstance(value, self._torch.Tensor):
            self._keep(place, _Tensor(value))
        elif isinstance(value, np.ndarray):
            self._keep(place, _Array(value))
        elif isinstance(value, dict):
            self._keep(place, _Dict(value))
            yield from (
                (f"{place}[{key!r}]" if isinstance(key, _LEAVES) else place, item) for key, item in value.items()
            )
        elif isinstance(value, list | deque | bytearray):
            self._keep(place, _List(value))
            yield from ((f"{place}[{i}]", item) for i, item in enumerate(value))
        elif isinstance(value, set):
            self._keep(place, _Set(value))
        elif isinstance(value, tuple | frozenset):
            yield from ((f"{place}[{i}]", item) for i, item in enumerate(value))
        elif isinstance(value, FunctionType):
            yield from self._of_function(place, value)
        elif isinstance(value, functools.partial):
            yield from ((place, each) for each in (value.func, value.args, value.keywords))
        elif isinstance(value, MethodType):
            yield from ((place, value.__func__), ("the object of the method", value.__self__))
        elif isinstance(value, BuiltinMethodType):
            if not isinstance(value.__self__, ModuleType | None):
                yield place, value.__self__
        elif isinstance(value, _CACHE):
            self._keep(f"the cache of {place}", _Cache(value))
            yield place, value.__wrapped__
        elif isinstance(value, (GeneratorType, *_ITERATORS)) or type(value).__module__ == "itertools":
            self._keep(place, _Iterator(value))
        elif isinstance(value, ModuleType):
            if not _of_a_library(value):
                yield from ((f"`{name}` of {value.__name__}", item) for name, item in list(vars(value).items()))
        elif isinstance(value, type):
            if not _of_a_library(sys.modules.get(value.__module__)):
                held = {name: item for name, item in vars(value).items() if not name.startswith("__")}
                self._keep(f"class {value.__qualname__}", _Names(value, held))
                yield from ((f"{value.__qualname__}.{name}", item) for name, item in held.items())
        else:
            yield from self._of_object(place, value)

    def _of_object(self, place: str, value: Any) -> Iterator[tuple[str, Any]]:
        attributes = getattr(value, "__dict__", None)
        if isinstance(attributes, dict):
            self._keep(place, _Dict(attributes))
            yield from ((f"`{name}` of {place}", item) for name, item in attributes.items())
            yield place, type(value)
        slots = {name for each in type(value).__mro__ for name in _slots(each)}
        if slots:
            held = {name: getattr(value, name, _GONE) for name in slots}
            self._keep(place, _Names(value, held))
            yield from ((f"`{name}` of {place}", item) for name, item in held.items() if item is not _GONE)

    def _of_function(self, place: str, function: FunctionType) -> Iterator[tuple[str, Any]]:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            kept = _Cell(cell)
            self._keep(f"`{name}`", kept)
            yield f"`{name}`", kept.value
        yield from ((f"a default of {function.__qualname__}", each) for each in function.__defaults__ or ())
        yield from ((f"default `{name}`", each) for name, each in (function.__kwdefaults__ or {}).items())
        if _library_file(function.__code__.co_filename):
            return
        self._keep(f"an attribute of {function.__qualname__}", _Dict(function.__dict__))
        yield from ((f"{function.__qualname__}.{name}", each) for name, each in function.__dict__.items())
        scope = function.__globals__
        names = _global_names(function.__code__)
        if not _of_a_library_named(scope.get("__name__")):
            for name in names:
                self._keep(f"`{name}`", _Global(scope, name))
        yield from ((f"`{name}`", scope[name]) for name in sorted(names) if name in scope)


def copied(value: Any) -> Any:
    """A copy that no code under test can hold: of arrays, tensors, and containers of them; the rest as it is."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Mapping):
        return {copied(key): copied(item) for key, item in value.items()}
    return type(value)(map(copied, value)) if type(value) in (list, tuple) else value


def _slots(owner: type) -> tuple[str, ...]:
    slots = vars(owner).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__") and not name.startswith("__"))


@functools.cache
def _global_names(code: CodeType) -> frozenset[str]:
    """Globals that a function's code, or code inside it, reads or writes."""
    kinds = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
    own = frozenset(each.argval for each in dis.get_instructions(code) if each.opname in kinds)
    return own.union(*(_global_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


@functools.cache
def _all_names(code: CodeType) -> frozenset[str]:
    inner = (_all_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*inner)


def _library_file(path: str | None) -> bool:
    return path is None or "site-packages" in path or path.startswith((STANDARD_LIBRARY, "<frozen"))


def _of_a_library(module: ModuleType | None) -> bool:
    name = getattr(module, "__name__", "")
    return name.partition(".")[0] == "exact" or (
        name != "__main__" and _library_file(getattr(module, "__file__", None))
    )


def _of_a_library_named(name: Any) -> bool:
    return isinstance(name, str) and name in sys.modules and _of_a_library(sys.modules[name])


class _Kept:
    """One thing as it was: whether it differs now, and how it is put back."""

    def differs(self) -> bool:
        raise NotImplementedError

    def restore(self, place: str) -> None:
        raise NotImplementedError


class _Dict(_Kept):
    def __init__(self, value: dict[Any, Any]) -> None:
        self.value, self.keys, self.items = value, list(value), list(value.values())

    def differs(self) -> bool:
        same = len(self.value) == len(self.keys) and all(map(is_, self.value, self.keys))
        return not (same and all(map(is_, self.value.values(), self.items)))

    def restore(self, place: str) -> None:
        self.value.clear()
        self.value.update(zip(self.keys, self.items, strict=True))


class _List(_Kept):
    def __init__(self, value: Any) -> None:
        self.value, self.items = value, list(value)

    def differs(self) -> bool:
        return len(self.value) != len(self.items) or not all(map(is_, self.value, self.items))

    def restore(self, place: str) -> None:
        self.value.clear()
        self.value.extend(self.items)


class _Set(_Kept):
    def __init__(self, value: set[Any]) -> None:
        self.value, self.items = value, frozenset(value)

    def differs(self) -> bool:
        return self.value != self.items

    def restore(self, place: str) -> None:
        self.value.clear()
        self.value.update(self.items)


class _Cell(_Kept):
    def __init__(self, cell: CellType) -> None:
        self.cell, self.value = cell, _contents(cell)

    def differs(self) -> bool:
        return _contents(self.cell) is not self.value

    def restore(self, place: str) -> None:
        if self.value is _GONE:
            del self.cell.cell_contents
        else:
            self.cell.cell_contents = self.value


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _GONE


class _Names(_Kept):
    """Attributes of an object without a dictionary of its own, or of a class."""

    def __init__(self, owner: Any, held: dict[str, Any]) -> None:
        self.owner, self.held = owner, held

    def _now(self) -> dict[str, Any]:
        if isinstance(self.owner, type):
            return {name: item for name, item in vars(self.owner).items() if not name.startswith("__")}
        return {name: getattr(self.owner, name, _GONE) for name in self.held}

    def differs(self) -> bool:
        now = self._now()
        return now.keys() != self.held.keys() or any(now[name] is not item for name, item in self.held.items())

    def restore(self, place: str) -> None:
        for name, item in self._now().items():
            before = self.held.get(name, _GONE)
            if before is _GONE:
                delattr(self.owner, name)
            elif before is not item:
                setattr(self.owner, name, before)
        for name in self.held.keys() - self._now().keys():
            setattr(self.owner, name, self.held[name])


class _Global(_Kept):
    """A name of a module that a function reads or writes."""

    def __init__(self, scope: dict[str, Any], name: str) -> None:
        self.scope, self.name, self.before = scope, name, scope.get(name, _GONE)

    def differs(self) -> bool:
        return self.scope.get(self.name, _GONE) is not self.before

    def restore(self, place: str) -> None:
        if self.before is _GONE:
            self.scope.pop(self.name, None)
        else:
            self.scope[self.name] = self.before


class _Array(_Kept):
    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.value, self.copy = value, value.copy()
        self.bytes = self._now()

    def _now(self) -> Any:
        return (self.value.tolist() if self.value.dtype.hasobject else self.value.tobytes(), self.value.shape)

    def differs(self) -> bool:
        return bool(self._now() != self.bytes)

    def restore(self, place: str) -> None:
        writeable = self.value.flags.writeable
        if not writeable:
            self.value.flags.writeable = True
        self.value[...] = self.copy
        self.value.flags.writeable = writeable


class _Tensor(_Kept):
    def __init__(self, value: Any) -> None:
        self.value, self.small = value, value.numel() <= LARGE and value.layout == sys.modules["torch"].strided
        self.copy = value.detach().clone() if self.small else None
        self.before = self._now()

    def _now(self) -> Any:
        torch = sys.modules["torch"]
        if not self.small:
            return self.value._version
        flat = self.value.detach().reshape(-1).cpu()
        return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b"", self.value.shape

    def differs(self) -> bool:
        return bool(self._now() != self.before)

    def restore(self, place: str) -> None:
        if self.copy is None:
            raise Unsupported(f"a write into {place}", f"{self.value.numel()} numbers", f"at most {LARGE} to put back")
        torch = sys.modules["torch"]
        with torch.no_grad():
            if self.value.shape != self.copy.shape:
                self.value.data = self.copy.clone()
            else:
                self.value.copy_(self.copy)


class _Cache(_Kept):
    """A cache of functools: emptied, as its entries cannot be put back one by one."""

    def __init__(self, value: Any) -> None:
        self.value, self.before = value, value.cache_info()

    def differs(self) -> bool:
        return bool(self.value.cache_info() != self.before)

    def restore(self, place: str) -> None:
        self.value.cache_clear()
        self.before = self.value.cache_info()


class _Iterator(_Kept):
    """A generator or iterator made before: it cannot be moved back."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.before = self._now()

    def _now(self) -> Any:
        if isinstance(self.value, GeneratorType):
            frame = self.value.gi_frame
            return None if frame is None else (frame.f_lasti, frame.f_lineno, repr(sorted(frame.f_locals)))
        if not hasattr(type(self.value), "__reduce__"):
            return None
        try:
            return repr(self.value.__reduce__())
        except (TypeError, ValueError, DeprecationWarning):
            return None

    def differs(self) -> bool:
        return bool(self._now() != self.before)

    def restore(self, place: str) -> None:
        raise Unsupported(f"next({place})", f"a {type(self.value).__name__} made before the call", "one made inside it")
