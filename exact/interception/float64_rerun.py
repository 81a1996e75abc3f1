"""The same code in float64, to tell rounding from a bias.

While it is in force every narrower float type that code asks for is float64, and every narrower tensor that comes from
outside is widened where it is first used; a row that is a law in its own type is taken over its sum, which is what it
means. Code that is right but rounds then agrees with its target to float64's precision; a bias stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np

from exact.interception.narrow_inputs import NarrowInputs
from exact.runtime.patches import Patch, applied, filled, names


def in_float64(value: Any, seen: NarrowInputs) -> Any:
    """An argument in float64: arrays, and tuples, lists and dictionaries of them; anything else as it is."""
    if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f":
        if value.dtype == np.float64:
            return value
        return seen.widened(value.astype(np.float64), value.dtype.name, partial(_rounded, value.dtype))
    if type(value) in (list, tuple):
        return type(value)(in_float64(item, seen) for item in value)
    if type(value) is dict:
        return {key: in_float64(item, seen) for key, item in value.items()}
    return value


def _rounded(dtype: np.dtype[Any], row: list[float]) -> list[float]:
    numbers: list[float] = np.asarray(row).astype(dtype).astype(np.float64).tolist()
    return numbers


def widened_function(function: Any, seen: NarrowInputs, known: dict[int, Any] | None = None) -> Any:
    """A function whose NumPy arrays from outside are in float64: those in its closure, its defaults and its globals,
    and in the functions of its module that it calls. (Torch's are widened where they are used.)"""
    known = {} if known is None else known
    if not isinstance(function, FunctionType):
        return function
    if id(function) in known:
        return known[id(function)]
    known[id(function)] = function  # a function that calls itself meets itself here
    for asked in _NUMPY_TYPES.keys() & set(function.__code__.co_names):
        seen.meet(_NUMPY_TYPES[asked])

    def outside(value: Any) -> Any:
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            return widened_function(value, seen, known)
        return in_float64(value, seen) if isinstance(value, np.ndarray | np.floating) else value

    named = {name: function.__globals__[name] for name in names(function.__code__) if name in function.__globals__}
    changed = {name: wide for name, value in named.items() if (wide := outside(value)) is not value}
    cells = tuple(
        CellType(outside(cell.cell_contents)) if filled(cell) else cell for cell in function.__closure__ or ()
    )
    defaults = tuple(map(outside, function.__defaults__ or ()))
    same = all(filled(a) is filled(b) and (not filled(a) or a.cell_contents is b.cell_contents)
               for a, b in zip(cells, function.__closure__ or (), strict=True))  # fmt: skip
    if not changed and same and all(a is b for a, b in zip(defaults, function.__defaults__ or (), strict=True)):
        return function
    scope = function.__globals__ | changed
    wide = FunctionType(function.__code__, scope, function.__name__, defaults or None, cells or None)
    wide.__kwdefaults__ = function.__kwdefaults__
    known[id(function)] = wide
    return wide


_NUMPY_TYPES = {"float32": "float32", "single": "float32", "float16": "float16", "half": "float16"}


def default_eps() -> float:
    """eps of the type in which torch makes its tensors, where torch is loaded; else of float64."""
    torch = sys.modules.get("torch")
    return float(np.finfo(np.float64).eps if torch is None else torch.finfo(torch.get_default_dtype()).eps)


def _double_in_numpy() -> list[Patch]:
    return [Patch(np, name, np.float64) for name in _NUMPY_TYPES]


@contextmanager
def float64_throughout(seen: NarrowInputs) -> Iterator[None]:
    """Put the widening in force for NumPy's types, and for torch where it is loaded."""
    with ExitStack() as stack:
        stack.enter_context(applied(_double_in_numpy()))
        if "torch" in sys.modules:
            from exact.interception.float64_torch import Float64Mode, default_float64

            stack.enter_context(default_float64(seen))
            stack.enter_context(Float64Mode(seen))
        yield
