"""A tensor some of whose numbers are uniforms.

Its storage holds the known numbers (NaN where a uniform stands); a second tensor of the same geometry says which
uniform stands where. Whatever moves numbers around is done by torch itself on both, so views, copies and assignments
behave as they do in torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from exact.interception.drawn_tensors import settled
from exact.interception.symbolic import FOLLOWED, Uniform
from exact.interception.symbolic_maps import FLOAT_TYPES, Rounded
from exact.runtime.unsupported import Unsupported

plain = torch._C.DisableTorchFunctionSubclass
_STORE: list[Uniform] = []

OPERATIONS: dict[str, Callable[..., Any]] = {}
"""The torch functions that are followed, by name; `patch_torch` fills it."""


def forget() -> None:
    """Drop the uniforms of the run before."""
    _STORE.clear()


class UniformTensor(torch.Tensor):
    """A tensor with uniforms in it: `known_values` [shape]; `symbol_index` [shape], -1 where the number is known."""

    known_values: torch.Tensor
    symbol_index: torch.Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return followed(func, args, kwargs or {})


def followed(func: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What a torch function gives where some argument holds a uniform; raises where it is not followed."""
    args, kwargs = settled(args), settled(kwargs)
    name = getattr(func, "__name__", "")
    if name == "__get__":
        name = f"get {getattr(getattr(func, '__self__', None), '__name__', '')}"
    operation = OPERATIONS.get(name)
    if operation is None:
        if not holds_uniform((args, kwargs)):
            with plain():
                return func(*map(known_values, args), **{key: known_values(value) for key, value in kwargs.items()})
        raise Unsupported(name_of(func), "a tensor that holds a uniform", FOLLOWED)
    with plain():
        return operation(func, *args, **kwargs)


def name_of(func: Any) -> str:
    """`torch.argsort`, `Tensor.lt`: how a torch function is written."""
    name = getattr(func, "__name__", str(func))
    if name == "__get__":
        return f"Tensor.{func.__self__.__name__}"
    return f"Tensor.{name}" if getattr(func, "__objclass__", None) is not None else f"torch.{name}"


def wrapped(known_values: torch.Tensor, symbol_index: torch.Tensor, keep: bool = False) -> torch.Tensor:
    """A tensor from plain ones; the plain one itself where nothing in it is a uniform, unless it is to `keep` places:
    a view of a tensor may come to hold uniforms later."""
    if not keep and not bool((symbol_index >= 0).any()):
        return known_values
    known_values = known_values.detach()
    tensor: UniformTensor = torch.Tensor._make_subclass(UniformTensor, known_values)
    tensor.known_values, tensor.symbol_index = known_values, symbol_index
    return tensor


def from_elements(numbers: Sequence[Any], like: torch.Tensor) -> torch.Tensor:
    """A tensor of the shape and type of `like` whose numbers, in order, are `numbers`, known or uniforms."""
    with plain():
        values = [math.nan if isinstance(x, Uniform) else x for x in numbers]
        known_values = torch.tensor(values, dtype=torch.float64).to(like.dtype).reshape(like.shape).to(like.device)
        return wrapped(known_values, _stored(numbers, like))


def _stored(numbers: Sequence[Any], like: torch.Tensor) -> torch.Tensor:
    symbol_index = []
    for x in numbers:
        symbol_index.append(len(_STORE) if isinstance(x, Uniform) else -1)
        if isinstance(x, Uniform):
            _STORE.append(x)
    return torch.tensor(symbol_index, dtype=torch.long, device=like.device).reshape(like.shape)


def holds_uniform(value: Any) -> bool:
    """Whether a uniform stands in a value, in its tensors, or in its lists, tuples and dictionaries."""
    if isinstance(value, UniformTensor):
        with plain():
            return bool((value.symbol_index >= 0).any())
    if isinstance(value, list | tuple):
        return any(map(holds_uniform, value))
    if isinstance(value, dict):
        return any(map(holds_uniform, value.values()))
    return isinstance(value, Uniform)


def lifted(value: Any) -> Any:
    """A uniform by itself as a tensor of no dimension; anything else as it is."""
    return from_elements([value], torch.empty((), dtype=torch.float64)) if isinstance(value, Uniform) else value


def known_values(value: Any) -> Any:
    """The plain tensor of known numbers; numbers and plain tensors as they are."""
    return value.known_values if isinstance(value, UniformTensor) else math.nan if isinstance(value, Uniform) else value


def symbol_index(value: Any) -> torch.Tensor:
    """Which uniform stands where; -1 everywhere for plain tensors and numbers."""
    value = lifted(value)
    if isinstance(value, UniformTensor):
        return value.symbol_index
    shape, device = (value.shape, value.device) if isinstance(value, torch.Tensor) else ((), None)
    return torch.full(shape, -1, dtype=torch.long, device=device)


def elements(tensor: Any) -> list[Any]:
    """The numbers of a tensor in order, uniforms where they stand."""
    with plain():
        if not isinstance(tensor, UniformTensor):
            return torch.as_tensor(tensor).flatten().tolist()
        values, at = tensor.known_values.flatten().tolist(), tensor.symbol_index.flatten().tolist()
    return [_STORE[place] if place >= 0 else x for place, x in zip(at, values, strict=True)]


def broadcast_elements(value: Any, shape: Sequence[int], dtype: torch.dtype) -> list[Any]:
    """The numbers of `value` broadcast to a shape, in the type that torch computes in.

    An ideal coin is a real number, which that does not round; a coin on the grid is rounded as torch does.
    """
    if isinstance(value, Uniform):
        narrow = value.coin.step is not None and dtype.is_floating_point and dtype != torch.float64
        return [value.then(Rounded(FLOAT_TYPES[kind(dtype)])) if narrow else value] * math.prod(shape)
    if isinstance(value, UniformTensor):
        tensor = converted(value, dtype) if _on_grid(value) else value
        return elements(wrapped(known_values(tensor).expand(shape), symbol_index(tensor).expand(shape)))
    if isinstance(value, float):
        value = torch.tensor(value, dtype=torch.float64)
    return torch.as_tensor(value).to(dtype).expand(shape).flatten().tolist()


def _on_grid(tensor: UniformTensor) -> bool:
    """Whether the coins of a tensor are floats of a grid, and not ideal."""
    return any(isinstance(x, Uniform) and x.coin.step is not None for x in elements(tensor))


def assign_(tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Make a tensor, in place, what `value` is (its shape, with uniforms or not)."""
    with plain():
        value = converted(value, tensor.dtype)
        make_symbolic_(tensor)
        known_values(tensor).copy_(known_values(value))
        symbol_index(tensor).copy_(symbol_index(value))
    return tensor


def make_symbolic_(tensor: torch.Tensor) -> None:
    """Let a plain tensor hold uniforms from now on; one that shares its numbers with other tensors cannot."""
    if isinstance(tensor, UniformTensor):
        return
    owners = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)
    shared = tensor._is_view() or owners > (3 if tensor.grad_fn is not None else 2)  # itself, and the handle just made
    if shared or type(tensor) is not torch.Tensor:
        kind = "a tensor that shares its numbers" if shared else f"a {type(tensor).__name__}"
        raise Unsupported(
            "a uniform written in place", f"{kind} of shape {tuple(tensor.shape)}", "a whole plain tensor"
        )
    alias, nowhere = tensor.detach(), torch.full_like(tensor, -1, dtype=torch.long, requires_grad=False)
    tensor.__class__ = UniformTensor
    tensor.known_values, tensor.symbol_index = alias, nowhere  # type: ignore[attr-defined]


def converted(value: Any, dtype: torch.dtype) -> Any:
    """The same numbers in another type; uniforms are rounded where it is narrower."""
    if not isinstance(value, torch.Tensor) or value.dtype == dtype:
        return value
    if not isinstance(value, UniformTensor):
        return value.to(dtype)
    numbers = elements(value)
    if not dtype.is_floating_point:
        cast: Callable[[Any], Any] = bool if dtype == torch.bool else int
        numbers = [cast(x) if isinstance(x, Uniform) else x for x in numbers]
        target = value.known_values.nan_to_num().to(dtype)
        index, rounded = value.symbol_index.flatten().tolist(), target.flatten().tolist()
        flat = [x if symbol >= 0 else y for symbol, x, y in zip(index, numbers, rounded, strict=True)]
        return torch.tensor(flat, dtype=dtype, device=target.device).reshape(target.shape)
    if not _holds(dtype, value.dtype):
        numbers = [x.then(Rounded(FLOAT_TYPES[kind(dtype)])) if isinstance(x, Uniform) else x for x in numbers]
    return from_elements(numbers, value.known_values.to(dtype))


def _holds(wide: torch.dtype, narrow: torch.dtype) -> bool:
    """Whether every number of the one type is a number of the other."""
    a, b = torch.finfo(wide), torch.finfo(narrow)
    return a.eps <= b.eps and a.max >= b.max and a.smallest_normal <= b.smallest_normal


def kind(dtype: torch.dtype) -> str:
    """`float32` and so on; raises for a type that holds no uniforms."""
    name = str(dtype).removeprefix("torch.")
    if name not in FLOAT_TYPES:
        raise Unsupported("a uniform", dtype, f"one of {', '.join(FLOAT_TYPES)}")
    return name


def moved(func: Any, *args: Any, **kwargs: Any) -> Any:
    """`func`, which moves the numbers of its first argument."""
    source, *rest = args
    values = func(known_values(source), *map(known_values, rest), **kwargs)
    if not isinstance(source, UniformTensor):
        return values
    where = func(source.symbol_index, *map(known_values, rest), **kwargs)
    if isinstance(values, torch.Tensor):
        return wrapped(values, where, keep=True)
    return tuple(wrapped(v, w, keep=True) for v, w in zip(values, where, strict=True))


def iterated(func: Any, a: Any) -> Any:
    """Iteration over the first dimension."""
    return iter(moved(torch.unbind, a))


Uniform.followed_by_torch = staticmethod(followed)
