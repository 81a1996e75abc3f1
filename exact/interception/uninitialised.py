"""Uninitialised memory holds what the code before it left: here it holds one filling after another.

All runs are made with each filling; a result that differs is refused with the line that asked for the memory. Memory
that is overwritten by the very next operation, as in `torch.empty(3).exponential_()`, is not looked at.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from exact.interception.session import Tracer
from exact.runtime.patches import Patch
from exact.runtime.unsupported import in_a_library, user_line

LEGACY = frozenset(f"{kind}Tensor" for kind in ("", "Float", "Double", "Half", "BFloat16", "Int", "Long", "Bool"))
"""Constructors of torch that give uninitialised memory for a size, and are seen by a dispatch mode alone."""


def number_for(filling: float, smallest: Any, largest: Any, floating: bool) -> Any:
    """A filling as a number of a type: cut to its range; a whole one for integers."""
    if floating:
        return filling if math.isnan(filling) else min(max(filling, smallest), largest)
    return 3 if math.isnan(filling) else min(max(math.ceil(filling), smallest), largest)


def fill_tensor(session: Tracer, tensor: Any, start: int = 0) -> Any:
    """Fill a tensor that torch left uninitialised, from its element `start` on, and remember the line."""
    torch = sys.modules["torch"]
    if tensor.numel() > start and tensor.device.type != "meta" and not tensor.is_complex():
        info = None if tensor.dtype == torch.bool else torch.finfo if tensor.is_floating_point() else torch.iinfo
        low, high = (0, 1) if info is None else (info(tensor.dtype).min, info(tensor.dtype).max)
        value = number_for(session.filling, low, high, tensor.is_floating_point())
        with torch.no_grad():
            (tensor if not start else tensor.view(-1)[start:]).fill_(value)
    return tensor


def fill_array(session: Tracer, array: Any) -> Any:
    """Fill an array that NumPy left uninitialised, and remember the line."""
    kind = array.dtype.kind
    if kind in "fiub" and array.size:
        info: Any = np.finfo if kind == "f" else np.iinfo
        low, high = (0, 1) if kind == "b" else (info(array.dtype).min, info(array.dtype).max)
        array.fill(number_for(session.filling, low, high, kind == "f"))
        session.blanks[user_line()] = None
    return array


class _FreshArray(type):
    """In place of `numpy.ndarray` while code that names it runs: makes filled arrays, and knows all arrays."""

    session: Tracer

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        array = _NDARRAY(*args, **kwargs)
        return array if "buffer" in kwargs or len(args) > 2 else fill_array(cls.session, array)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _NDARRAY)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _NDARRAY)


_NDARRAY = np.ndarray


def numpy_memory(session: Tracer, names: frozenset[str]) -> list[Patch]:
    """Fill what `numpy.empty` and its kind give; `names` are those that the code uses."""

    def filling(original: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            array = original(*args, **kwargs)
            return array if in_a_library(sys._getframe(1)) else fill_array(session, array)

        return make

    patches = [Patch(np, name, filling(getattr(np, name))) for name in ("empty", "empty_like")]
    if "ndarray" in names:
        patches.append(Patch(np, "ndarray", _FreshArray("ndarray", (), {"session": session})))
    return patches
