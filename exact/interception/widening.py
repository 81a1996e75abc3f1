"""The same code in float64, to tell rounding from a bias.

While it is in force every narrower float type that code asks for is float64, and every narrower tensor that comes from
outside is widened where it is first used; a row that is a law in its own type is taken over its sum, which is what it
means. Code that is right but rounds then agrees with its target to float64's precision; a bias stays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


class Seen:
    """The coarsest float type that came from outside, by its eps; None as long as nothing did."""

    def __init__(self) -> None:
        self.eps: float | None = None

    def add(self, eps: float) -> None:
        """Take note of one type."""
        self.eps = max(eps, self.eps or 0.0)


def widened(value: Any, seen: Seen) -> Any:
    """An argument in float64: arrays, and tuples, lists and dictionaries of them; anything else as it is."""
    if isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f":
        seen.add(float(np.finfo(value.dtype).eps))
        if value.dtype == np.float64:
            return value
        wide = value.astype(np.float64)
        return _over_its_sum(wide, float(np.finfo(value.dtype).eps)) if isinstance(value, np.ndarray) else wide
    if type(value) in (list, tuple):
        return type(value)(widened(item, seen) for item in value)
    if type(value) is dict:
        return {key: widened(item, seen) for key, item in value.items()}
    return value


def _over_its_sum(wide: Any, eps: float) -> Any:
    """Rows along the last dimension over their sums, where all of them are laws to within V eps."""
    if not wide.ndim or wide.shape[-1] < 2:
        return wide
    sums = wide.sum(-1)[..., None]
    laws = bool((wide >= 0).all()) and bool((abs(sums - 1) <= wide.shape[-1] * eps).all())
    return wide / sums if laws else wide


@contextmanager
def float64_throughout(seen: Seen) -> Iterator[None]:
    """Put the widening in force for torch, where it is loaded."""
    if "torch" not in sys.modules:
        yield
        return
    from exact.interception.torch_widening import Widened, default_float64

    with default_float64(seen), Widened(seen):
        yield
