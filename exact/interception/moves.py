"""Functions of torch that only move numbers: done by torch itself on the known numbers and on the places alike."""

from __future__ import annotations

from typing import Any

import torch

from exact.interception.tensors import UniformTensor, known, wrapped


def moved(func: Any, *args: Any, **kwargs: Any) -> Any:
    """`func`, which moves the numbers of its first argument."""
    source, *rest = args
    values = func(known(source), *map(known, rest), **kwargs)
    if not isinstance(source, UniformTensor):
        return values
    where = func(source.places, *map(known, rest), **kwargs)
    if isinstance(values, torch.Tensor):
        return wrapped(values, where, keep=True)
    return tuple(wrapped(v, w, keep=True) for v, w in zip(values, where, strict=True))


def iterated(func: Any, a: Any) -> Any:
    """Iteration over the first dimension."""
    return iter(moved(torch.unbind, a))
