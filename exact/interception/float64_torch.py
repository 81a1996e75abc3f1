"""Torch's side of running the same code in float64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from exact.interception.narrow_inputs import NarrowInputs

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = {torch.Tensor.float: "float32", torch.Tensor.half: "float16", torch.Tensor.bfloat16: "bfloat16"}


class Float64Mode(TorchFunctionMode):
    """Replaces every narrower float type asked for, and every narrower tensor met, by float64."""

    def __init__(self, seen: NarrowInputs) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return func(*args)
        if func in _CASTS:
            self.seen.meet(_CASTS[func])
            func = torch.Tensor.double
        kwargs = {key: value if key == "out" else self._wide(value) for key, value in (kwargs or {}).items()}
        kept = (
            1 if name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or name[:3] == "__i" else 0
        )
        return func(*args[:kept], *map(self._wide, args[kept:]), **kwargs)

    def _wide(self, value: Any) -> Any:
        if isinstance(value, torch.dtype):
            self.seen.meet(_name(value))
            return torch.float64 if value in _NARROW else value
        if type(value) in (list, tuple):
            return type(value)(map(self._wide, value))
        if not isinstance(value, torch.Tensor) or value.dtype not in _NARROW:
            return value
        dtype = value.dtype

        def rounding(row: list[float]) -> list[float]:
            with torch._C.DisableTorchFunction():
                rounded: list[float] = torch.tensor(row, dtype=torch.float64).to(dtype).double().tolist()
            return rounded

        return self.seen.widened(value.detach().to(torch.float64), _name(dtype), rounding)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@contextmanager
def default_float64(seen: NarrowInputs) -> Iterator[None]:
    """float64 as the type of new tensors."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
