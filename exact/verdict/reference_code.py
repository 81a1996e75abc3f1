"""Whether the loaded reference code still is what its files define.

A proof for every target speaks of the algorithms in the files. A function whose code, defaults or globals were
replaced, a class with another method or a frozen value that was written into would be proved in their name. So each
module is run once more from its file, apart from the loaded one, and all of the loaded one is held against that copy.
Once it was found whole, a later call looks only whether each object that was compared still holds the same objects.
"""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import Field, dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from importlib.util import spec_from_file_location
from operator import is_
from pathlib import Path
from typing import Any

import numpy as np

from exact.enumeration.rationals import MPQ

ROOT = Path(__file__).parents[2]
ROOMS = ("rheo_core", "exact/enumeration")
FILES = (
    *("exact/verdict/every_target.py", "exact/verdict/verifier_condition.py", "exact/verdict/wide_drafting.py"),
    "exact/methods/rows_file.py",
)
"""The code that a proof for every target rests on."""

NUMBERS = (int, float, Fraction, MPQ)
PLAIN = (*NUMBERS, str, bytes, bool, types.NoneType, types.EllipsisType)
FIXED = (
    *(int, float, str, bytes, bool, types.NoneType, types.EllipsisType),
    *(types.CodeType, types.GenericAlias, tuple, frozenset),
)
"""Types, exactly these, whose objects nobody writes into."""

DESCRIPTIVE = {  # entries of a module or a class that Python makes, or that only describe
    *("__annotations__", "__builtins__", "__cached__", "__dict__", "__doc__", "__file__", "__firstlineno__"),
    *("__loader__", "__module__", "__package__", "__path__", "__spec__", "__static_attributes__", "__weakref__"),
    *("__annotate__", "__annotate_func__", "__annotations_cache__", "_abc_impl", "__slotnames__"),
}


Pairs = dict[tuple[int, int], tuple[Any, Any]]


def altered_reference() -> str:
    """Give the first name of the loaded reference code that is not what its file defines; "" where all are.

    What the code finds outside of itself (NumPy, the built-in functions of Python) is taken as it stands.
    """
    if _last and _last[-1].holds():
        return ""
    _last.clear()
    seen: Pairs = {}
    for name in _module_names():
        if name in sys.modules:
            loaded, fresh = vars(sys.modules[name]), vars(_copy(name))
            added = loaded.keys() - fresh.keys() - DESCRIPTIVE
            if strange := [key for key in sorted(added) if f"{name}.{key}" not in sys.modules]:
                return f"{name}.{strange[0]}"
            for key in fresh.keys() - DESCRIPTIVE:
                if key not in loaded:
                    return f"{name}.{key}"
                if where := next(_differences(loaded[key], fresh[key], f"{name}.{key}", seen), ""):
                    return where
    _last.append(Whole.of(seen.values()))
    return ""


@dataclass(frozen=True)
class Whole:
    """What was compared when nothing was altered."""

    held: list[tuple[Any, tuple[Any, ...]]]
    """Each object with what it held."""
    leaves: list[tuple[Any, Any]]
    """Objects that hold nothing to look at, with their likes in the copies."""
    names: tuple[str, ...]
    modules: tuple[Any, ...]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]]) -> Whole:
        """Note the pairs of a comparison that found nothing altered."""
        mutable = [pair for pair in pairs if type(pair[0]) not in FIXED]
        held = [(loaded, _contents(loaded)) for loaded, _ in mutable]
        leaves = [pair for pair, (_, found) in zip(mutable, held, strict=True) if len(found) == 1]
        homes = {fresh.__globals__["__name__"] for _, fresh in mutable if isinstance(fresh, types.FunctionType)}
        names = tuple(sorted({*_module_names(), *homes}))
        return cls(held, [pair for pair in leaves if type(pair[0]) is not dict], names, _modules(names))

    def holds(self) -> bool:
        """Tell whether all of it holds the very objects that it held then."""
        return (
            _identical(self.modules, _modules(self.names))
            and all(_identical(held, _contents(each)) for each, held in self.held)
            and all(_same(*pair) for pair in self.leaves)
        )


_last: list[Whole] = []


def _identical(before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    return len(before) == len(now) and all(map(is_, before, now))


def _modules(names: Iterable[str]) -> tuple[Any, ...]:
    """Loaded modules by their names, and everything in them."""
    loaded = [sys.modules.get(name) for name in names]
    return (*loaded, *(each for module in loaded if module is not None for each in _contents(vars(module))))


def _contents(each: Any) -> tuple[Any, ...]:
    """The type of an object and what can be exchanged in it, not looking further; the type alone where that is all."""
    kind = type(each)
    if kind is types.FunctionType:
        cells = map(_held, each.__closure__ or ())
        return (kind, each.__code__, each.__defaults__, each.__kwdefaults__, each.__dict__, *cells)
    if kind is dict:
        return (kind, *each, *each.values()) if each else (kind,)
    if isinstance(each, type):
        return (kind, each.__bases__, each.__qualname__, *vars(each), *vars(each).values())
    pieces = _pieces(each)
    return (kind, *pieces, *pieces.values())


@cache
def reference_digest() -> str:
    """SHA-256 of the files of the reference code, by their names."""
    return digest(f"{name} {hashlib.sha256(_path(name).read_bytes()).hexdigest()}" for name in _module_names())


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of some lines."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "backslashreplace")).hexdigest()


@cache
def _module_names() -> tuple[str, ...]:
    files = [file for room in ROOMS for file in sorted((ROOT / room).glob("*.py"))] + [ROOT / file for file in FILES]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return tuple(name.removesuffix(".__init__") for name in names)


def _path(name: str) -> Path:
    path = ROOT.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _copy(name: str) -> types.ModuleType:
    """Give a module as its file defines it, whatever became of the loaded one; its imports are the loaded modules."""
    path = _path(name)
    made = types.ModuleType(name)
    made.__file__, made.__package__ = str(path), name if path.stem == "__init__" else name.rpartition(".")[0]
    made.__spec__ = spec = spec_from_file_location(name, path)
    loader = getattr(sys.modules[name].__spec__, "loader", None)
    if type(loader).__module__ != "_pytest.assertion.rewrite":  # pytest writes the asserts of its plugins anew
        loader = spec.loader if spec else None
    if loader is not None:
        loader.exec_module(made)
    return made


def _differences(loaded: Any, fresh: Any, where: str, seen: Pairs) -> Iterator[str]:
    """Where a loaded object differs from the one that the copy of its module defines."""
    if loaded is fresh or (id(loaded), id(fresh)) in seen:
        return
    seen[id(loaded), id(fresh)] = loaded, fresh  # kept, so that no id is given twice
    if type(loaded) is not type(fresh):
        mine = type(fresh).__module__ in _module_names() and type(loaded).__qualname__ == type(fresh).__qualname__
        if not mine or next(_differences(type(loaded), type(fresh), where, seen), ""):
            yield where
            return
    pieces = _pieces(loaded), _pieces(fresh)
    if pieces[0].keys() != pieces[1].keys() or not _at_home(loaded, fresh):
        yield where
        return
    for name, piece in pieces[1].items():
        yield from _differences(pieces[0][name], piece, f"{where}.{name}" if isinstance(fresh, type) else where, seen)
    if not pieces[1] and not _same(loaded, fresh):
        yield where


def _pieces(each: Any) -> dict[Any, Any]:
    """What an object is made of, as far as it can differ from one run of its module to the next."""
    if isinstance(each, types.FunctionType):
        held = {number: _held(cell) for number, cell in enumerate(each.__closure__ or ())}
        given = {"code": each.__code__, "defaults": each.__defaults__, "named": each.__kwdefaults__}
        return held | given | {"attributes": each.__dict__}
    if isinstance(each, type):
        own = {name: piece for name, piece in vars(each).items() if name not in DESCRIPTIVE}
        return {"bases": each.__bases__, "name": f"{each.__module__}.{each.__qualname__}"} | own
    if isinstance(each, Mapping):
        return dict(enumerate(piece for item in each.items() for piece in item))
    if isinstance(each, tuple | list):
        return dict(enumerate(each))
    if isinstance(each, property):
        return {"get": each.fget, "set": each.fset, "delete": each.fdel}
    if isinstance(each, cached_property):
        return {"get": each.func}
    if isinstance(each, partial):
        return {"function": each.func, "arguments": each.args, "named": each.keywords}
    if isinstance(each, Field):
        return {"default": each.default, "factory": each.default_factory, "name": each.name}
    for name in ("__func__", "__wrapped__"):
        if hasattr(each, name):
            return {name: getattr(each, name)}
    return dict(getattr(each, "__dict__", {})) if type(each).__module__ in _module_names() else {}


def _at_home(loaded: Any, fresh: Any) -> bool:
    """Tell whether a function finds its globals in the loaded module of the name that the copy's have."""
    if not isinstance(loaded, types.FunctionType):
        return True
    home = sys.modules.get(str(fresh.__globals__.get("__name__")))
    return home is None or loaded.__globals__ is vars(home)


def _held(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _same(loaded: Any, fresh: Any) -> bool:
    """Tell whether two objects of one type, made of nothing further, are equal."""
    if isinstance(loaded, (*PLAIN, types.CodeType, set, frozenset, np.dtype)):
        return bool(loaded == fresh)
    if isinstance(loaded, ContextVar | dict | tuple | list):
        return True
    return repr(loaded) == repr(fresh) or getattr(loaded, "__name__", "") == getattr(fresh, "__name__", None)
