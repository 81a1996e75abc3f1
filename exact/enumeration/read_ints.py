"""An int that is asked for only when somebody looks at it.

Whatever code does with a number that is drawn or counted for it (compare, compute, index, hash, print) asks for its
value first; handing it on asks for nothing. So the walk can tell a draw that decides something from one that only
becomes output. To `isinstance` it is an int; `type()` alone would tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class ReadInt:
    """An int whose value `ask` gives; `ask` is called at every look."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], int]) -> None:
        self._ask = ask

    @property  # type: ignore[misc]
    def __class__(self) -> type[int]:  # type: ignore[override]
        """An int to `isinstance`."""
        return int

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask(), name)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._ask(), dtype=dtype)

    def __copy__(self) -> int:
        return self._ask()

    def __deepcopy__(self, memo: Any) -> int:
        return self._ask()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return int, (self._ask(),)


def _answering(name: str) -> Callable[..., Any]:
    def answer(self: ReadInt, *others: Any) -> Any:
        return getattr(self._ask(), name)(*map(read, others))

    return answer


_COMPARED = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__")
_WRITTEN = ("__repr__", "__str__", "__format__")
for _name in dir(int):
    if _name.startswith("__") and callable(getattr(int, _name)) and _name not in dir(object):
        setattr(ReadInt, _name, _answering(_name))
for _name in (*_COMPARED, *_WRITTEN):
    setattr(ReadInt, _name, _answering(_name))


def read(value: Any) -> Any:
    """The value itself, where it is asked for."""
    return value._ask() if issubclass(type(value), ReadInt) else value
