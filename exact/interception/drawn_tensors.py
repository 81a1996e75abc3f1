"""A tensor of draws that nobody has read: what torch.multinomial gives from a long row.

It is handed on as torch hands tensors on (views, copies, concatenations); whatever else is done with it reads its
numbers first, which makes the walk branch. Numbers that are still unread where a run ends stand for their whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from exact.enumeration.read_ints import ReadInt
from exact.enumeration.whole_rows import WholeRow
from exact.interception.session import Tracer

plain = torch._C.DisableTorchFunctionSubclass
_STORE: list[ReadInt] = []

HANDED_ON = {
    "view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "permute", "t", "expand", "expand_as",
    "view_as", "reshape_as", "repeat", "tile", "__getitem__", "getitem", "select", "narrow", "index_select", "flip",
    "roll", "chunk", "split", "tensor_split", "unbind", "contiguous", "clone", "detach", "movedim", "moveaxis",
    "swapaxes", "swapdims", "unflatten", "cpu", "broadcast_to", "alias", "__iter__", "get data", "get T", "get mT",
}  # fmt: skip
JOINED = {"cat", "concat", "concatenate", "stack", "hstack", "vstack"}
ASKED = {
    "size", "dim", "numel", "nelement", "stride", "__len__", "is_floating_point", "is_complex", "is_contiguous",
    "storage_offset", "element_size", "get_device", "ndimension", "_is_view", "is_signed", "get shape", "get dtype",
    "get device", "get ndim", "get layout", "get requires_grad", "get is_cuda", "get is_cpu", "get is_sparse",
    "get is_quantized", "get is_meta", "get is_leaf", "get itemsize", "get nbytes", "get grad_fn", "get is_mps",
    "get is_xla", "get is_nested", "get names",
}  # fmt: skip


class DrawnTensor(torch.Tensor):
    """A tensor of integers, some of them unread: `known_values` [shape]; `draw_index` [shape], -1 if known."""

    known_values: torch.Tensor
    draw_index: torch.Tensor

    def as_drawn(self) -> Any:
        """The numbers as nested lists, unread ones among them."""
        with plain():
            shape = tuple(self.known_values.shape)
        return _nested(cells(self), shape)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = f"get {getattr(getattr(func, '__self__', None), '__name__', '')}"
        with plain():
            found = _handed_on(name, func, args, kwargs or {})
        return func(*settled(args), **settled(kwargs or {})) if found is None else found[0]


def _handed_on(name: str, func: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any] | None:
    """What a function gives that needs no number; None where it needs them."""
    first, rest = (args[0], args[1:]) if args else (None, ())
    if name in ASKED and isinstance(first, DrawnTensor):
        return (func(first.known_values, *settled(rest), **settled(kwargs)),)
    if name in HANDED_ON and isinstance(first, DrawnTensor):
        if name == "__iter__":
            return (iter(_paired(torch.unbind(first.known_values), torch.unbind(first.draw_index))),)
        others, named = settled(rest), settled(kwargs)
        return (_paired(func(first.known_values, *others, **named), func(first.draw_index, *others, **named)),)
    if name in JOINED and isinstance(first, list | tuple) and all(map(_of_tokens, first)):
        known, places = [_known(each) for each in first], [_places(each) for each in first]
        others, named = settled(rest), settled(kwargs)
        return (_paired(func(known, *others, **named), func(places, *others, **named)),)
    return None


def _of_tokens(value: Any) -> bool:
    return type(value) in (torch.Tensor, DrawnTensor) and value.dtype == torch.long


def _known(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.known_values if isinstance(tensor, DrawnTensor) else tensor


def _places(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.draw_index if isinstance(tensor, DrawnTensor) else torch.full_like(tensor, -1)


def _paired(known: Any, places: Any) -> Any:
    if isinstance(known, torch.Tensor):
        return _wrapped(known, places)
    return type(known)(_wrapped(one, other) for one, other in zip(known, places, strict=True))


def _wrapped(known: torch.Tensor, places: torch.Tensor) -> DrawnTensor:
    tensor: DrawnTensor = torch.Tensor._make_subclass(DrawnTensor, known)
    tensor.known_values, tensor.draw_index = known, places
    return tensor


UNREAD = torch.iinfo(torch.long).min
"""What stands in the memory of a number that nobody has read: no token, no index."""


def drawn_tensor(numbers: Sequence[Any], shape: Sequence[int], device: Any) -> torch.Tensor:
    """A tensor of int64 of these numbers in order, read or not."""
    with plain():
        values = torch.tensor([UNREAD if _unread(x) else x for x in numbers], dtype=torch.long, device=device)
        if not any(map(_unread, numbers)):
            return values.reshape(shape)
        places = []
        for x in numbers:
            places.append(len(_STORE) if _unread(x) else -1)
            if _unread(x):
                _STORE.append(x)
        at = torch.tensor(places, dtype=torch.long, device=device)
        return _wrapped(values.reshape(shape), at.reshape(shape))


def _unread(value: Any) -> bool:
    return issubclass(type(value), ReadInt)


def settled(value: Any) -> Any:
    """The value with its numbers read: plain tensors in the place of these."""
    if isinstance(value, DrawnTensor):
        return _settle(value)
    if type(value) in (list, tuple):
        return type(value)(map(settled, value))
    if type(value) is dict:
        return {key: settled(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(settled(value.start), settled(value.stop), settled(value.step))
    return value


def _settle(tensor: DrawnTensor) -> torch.Tensor:
    with plain():
        if bool((tensor.draw_index >= 0).any()):
            read = [int(x) for x in cells(tensor)]
            values = torch.tensor(read, dtype=torch.long, device=tensor.known_values.device).reshape(
                tensor.known_values.shape
            )
            if any(
                size > 1 and not step for size, step in zip(values.shape, tensor.known_values.stride(), strict=True)
            ):
                tensor.known_values, tensor.draw_index = values, torch.full_like(values, -1)
            else:  # so that whoever shares the numbers sees them read
                tensor.known_values.copy_(values)
                tensor.draw_index.fill_(-1)
        return tensor.known_values


def cells(tensor: DrawnTensor) -> list[Any]:
    """The numbers in order; those that nobody has read are not read here."""
    with plain():
        values, at = tensor.known_values.flatten().tolist(), tensor.draw_index.flatten().tolist()
    return [_STORE[place] if place >= 0 else x for place, x in zip(at, values, strict=True)]


def _nested(numbers: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return numbers[0]
    step = len(numbers) // shape[0] if shape[0] else 0
    return [_nested(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def weight_rows(session: Tracer, weights: torch.Tensor, numbers: Callable[[], list[Any]]) -> list[WholeRow]:
    """The rows of a tensor of weights [.., V], each checked once; `numbers` are all of them in order."""
    plain, key = weights.detach(), None
    if type(plain) is torch.Tensor and plain.device.type == "cpu":
        key = plain.dtype, plain.shape, plain.contiguous().view(torch.uint8).numpy().tobytes()
        if key in session.tensors:
            return session.tensors[key]
    values, width = numbers(), weights.shape[-1]
    rows = [session.row("torch.multinomial", values[i : i + width]) for i in range(0, len(values), width)]
    if key is not None:
        session.tensors[key] = rows
    return rows


def forget() -> None:
    """Drop the numbers of the run before."""
    _STORE.clear()
