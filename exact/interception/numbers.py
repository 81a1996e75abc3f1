"""The exact value of what stands beside a uniform: a float of any type, an int, a rational, a scalar of a library."""

from __future__ import annotations

import math
from typing import Any

from exact.arithmetic import exact
from exact.interception.errors import Unsupported, invalid


def number(value: Any, operation: str) -> Any:
    """The exact value of a known number; infinities stay floats; NaN and what is no number raise."""
    if isinstance(value, float):
        if value != value:
            raise invalid(operation, value, "a number that is not NaN")
        return value if math.isinf(value) else exact(value)
    if hasattr(value, "item"):
        inner = value.item()
        if inner is value:
            raise Unsupported(operation, value, "a known number beside a uniform")
        return number(inner, operation)
    try:
        return exact(value)
    except ValueError:
        raise Unsupported(operation, value, "a number beside a uniform") from None
