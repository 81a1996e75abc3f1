"""Draws by the largest or smallest of many numbers, and orders: argmax, max, topk, sort and their kind.

Rows that hold uniforms are settled by the session as races; rows of known numbers by torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from exact.interception.session import current
from exact.interception.symbolic import Uniform
from exact.interception.symbolic_tensors import elements, known_values, moved, name_of, symbol_index, wrapped

Operation = Callable[..., Any]


def _rows(a: Any, dim: int) -> list[list[Any]]:
    last = wrapped(known_values(a).movedim(dim, -1), symbol_index(a).movedim(dim, -1))
    numbers, width = elements(last), last.shape[-1]
    return [numbers[i : i + width] for i in range(0, len(numbers), width)]


def _best(func: Any, a: Any, dim: int, count: int, largest: bool) -> torch.Tensor:
    """Positions [.., count, ..] of the largest or smallest numbers along a dimension, best first."""
    native = _known_best(known_values(a).nan_to_num(), dim, count, largest).movedim(dim, -1)
    found: list[int] = []
    for row, ties in zip(_rows(a, dim), native.reshape(-1, count).tolist(), strict=True):
        noisy = any(isinstance(x, Uniform) for x in row)
        found += current().race(name_of(func), row, count, largest) if noisy else ties
    return torch.tensor(found, dtype=torch.long, device=native.device).reshape(native.shape).movedim(-1, dim)


def _known_best(a: torch.Tensor, dim: int, count: int, largest: bool) -> torch.Tensor:
    """The same where nothing is a uniform, by the function whose ties torch would settle so."""
    if count == 1:
        return (torch.argmax if largest else torch.argmin)(a, dim=dim, keepdim=True)
    if count == a.shape[dim]:
        return torch.sort(a, dim=dim, descending=largest, stable=True).indices
    return torch.topk(a, count, dim=dim, largest=largest).indices


def arg_best(largest: bool) -> Operation:
    """torch.argmax and torch.argmin."""

    def run(func: Any, a: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            return _best(func, moved(torch.flatten, a), 0, 1, largest)[0]
        best = _best(func, a, dim, 1, largest)
        return best if keepdim else best.squeeze(dim)

    return run


def best_with_value(largest: bool, elementwise: Operation) -> Operation:
    """torch.max and torch.min: of two tensors (`elementwise`), of all numbers, or along a dimension."""
    kind = torch.return_types.max if largest else torch.return_types.min

    def run(func: Any, a: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, torch.Tensor):
            return elementwise(func, a, dim)
        if dim is None:
            flat = moved(torch.flatten, a)
            return moved(operator.getitem, flat, _best(func, flat, 0, 1, largest)[0])
        best = _best(func, a, dim, 1, largest)
        values = moved(torch.gather, a, dim, best)
        if keepdim:
            return kind((values, best))
        return kind((moved(torch.squeeze, values, dim), best.squeeze(dim)))

    return run


def top(func: Any, a: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """torch.topk."""
    best = _best(func, a, dim, k, largest)
    return torch.return_types.topk((moved(torch.gather, a, dim, best), best))


def sort(func: Any, a: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    """torch.sort."""
    order = _best(func, a, dim, a.shape[dim], descending)
    return torch.return_types.sort((moved(torch.gather, a, dim, order), order))


def argsort(func: Any, a: Any, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    """torch.argsort."""
    return _best(func, a, dim, a.shape[dim], descending)
