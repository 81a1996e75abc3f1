"""The torch functions that are followed through a tensor that holds uniforms.

Each entry computes the known numbers with torch itself and the uniforms by exact maps and comparisons. A name that is
missing here is refused where it is called: no function is approximated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

from exact.interception.symbolic import Uniform
from exact.interception.symbolic_tensors import (
    UniformTensor,
    assign_,
    broadcast_elements,
    converted,
    elements,
    from_elements,
    iterated,
    known_values,
    lifted,
    make_symbolic_,
    moved,
    name_of,
    symbol_index,
    wrapped,
)
from exact.interception.torch_selection import arg_best, argsort, best_with_value, sort, top
from exact.runtime.unsupported import Unsupported

Operation = Callable[..., Any]


def _refuse(func: Any, **options: Any) -> None:
    """Raise for an option that changes what the function does in a way that is not followed."""
    for name, value in options.items():
        if value is not None:
            raise Unsupported(f"{name_of(func)}({name}=...)", value, f"{name_of(func)} without it")


def _binary(act: Callable[[Any, Any], Any], swapped: bool = False) -> Operation:
    """An elementwise function of two tensors, broadcast; comparisons give plain tensors of booleans."""

    def run(func: Any, a: Any, b: Any, *, alpha: Any = None, rounding_mode: Any = None, out: Any = None) -> Any:
        _refuse(func, alpha=None if alpha == 1 else alpha, rounding_mode=rounding_mode, out=out)
        native = func(known_values(a), known_values(b))
        common = torch.result_type(known_values(a), known_values(b))
        left, right = broadcast_elements(a, native.shape, common), broadcast_elements(b, native.shape, common)
        left, right = (right, left) if swapped else (left, right)
        numbers = [
            act(x, y) if isinstance(x, Uniform) or isinstance(y, Uniform) else z
            for x, y, z in zip(left, right, native.flatten().tolist(), strict=True)
        ]
        if native.dtype == torch.bool:
            return torch.tensor(numbers, dtype=torch.bool, device=native.device).reshape(native.shape)
        return from_elements(numbers, native)

    return run


def _unary(act: Callable[[Any], Any]) -> Operation:
    def run(func: Any, a: UniformTensor, *, out: Any = None) -> Any:
        _refuse(func, out=out)
        native = func(a.known_values)
        return from_elements(
            [
                act(x) if isinstance(x, Uniform) else y
                for x, y in zip(elements(a), native.flatten().tolist(), strict=True)
            ],
            native,
        )

    return run


def _in_place(plain_name: str) -> Operation:
    """`x.mul_(y)`: the function that is not in place, then an assignment to x."""

    def run(func: Any, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        value = FUNCTIONS[plain_name](getattr(torch.Tensor, plain_name), target, *args, **kwargs)
        if value.shape != target.shape:
            raise Unsupported(name_of(func), f"shapes {tuple(target.shape)} and {tuple(value.shape)}", "equal shapes")
        return assign_(target, value)

    return run


def _clamp(func: Any, a: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    _refuse(func, out=out)
    if min is not None:
        a = maximum(torch.maximum, a, torch.as_tensor(min, dtype=a.dtype))
    return a if max is None else minimum(torch.minimum, a, torch.as_tensor(max, dtype=a.dtype))


def _greatest(x: Any, y: Any) -> Any:
    return x.at_least(y) if isinstance(x, Uniform) else y.at_least(x)


def _least(x: Any, y: Any) -> Any:
    return x.at_most(y) if isinstance(x, Uniform) else y.at_most(x)


maximum, minimum = _binary(_greatest), _binary(_least)


def _joined(func: Any, tensors: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    tensors = [lifted(x) for x in tensors]
    return wrapped(
        func([known_values(x) for x in tensors], *args, **kwargs),
        func([symbol_index(x) for x in tensors], *args, **kwargs),
    )


def _where(func: Any, condition: Any, a: Any, b: Any, *, out: Any = None) -> Any:
    _refuse(func, out=out)
    a, b = lifted(a), lifted(b)
    values = torch.where(known_values(condition), known_values(a), known_values(b))
    return converted(
        wrapped(values, torch.where(known_values(condition), symbol_index(a), symbol_index(b))), values.dtype
    )


def _tensor_where(func: Any, a: Any, condition: Any, b: Any = None, **kwargs: Any) -> Any:
    if func in (torch.where,):
        return _where(func, a, condition, b, **kwargs)
    return _where(func, condition, a, b, **kwargs)


def _masked_fill(func: Any, a: Any, mask: Any, value: Any) -> Any:
    return _where(func, mask, torch.as_tensor(value, dtype=a.dtype) if not isinstance(value, Uniform) else value, a)


def _set_item(func: Any, target: Any, index: Any, value: Any) -> None:
    if isinstance(value, Uniform):
        value = lifted(value)
    if isinstance(value, torch.Tensor):
        value = converted(value, target.dtype)
    make_symbolic_(target)
    target.known_values[index] = known_values(value)
    target.symbol_index[index] = symbol_index(value) if isinstance(value, torch.Tensor) else -1


def _copy(func: Any, target: Any, value: Any, non_blocking: bool = False) -> Any:
    value = lifted(value)
    return assign_(target, wrapped(known_values(value).expand(target.shape), symbol_index(value).expand(target.shape)))


def _fill(func: Any, target: Any, value: Any) -> Any:
    return _copy(func, target, value if isinstance(value, torch.Tensor | Uniform) else torch.tensor(value))


def _to(func: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    target = func(known_values(a), *args, **kwargs)
    there = wrapped(known_values(a).to(target.device), symbol_index(a).to(target.device))
    return converted(there if target.dtype != a.dtype or target.device != a.device else a, target.dtype)


def _type_as(func: Any, a: Any, other: Any) -> Any:
    return _to(torch.Tensor.to, a, other.dtype)


def _item(func: Any, a: Any) -> Any:
    if a.numel() != 1:
        raise RuntimeError(f"a Tensor with {a.numel()} elements cannot be converted to Scalar")
    return elements(a)[0]


def _list(func: Any, a: Any) -> Any:
    import numpy as np

    return _array(func, a).tolist() if a.ndim else np.asarray(elements(a), dtype=object)[0]


def _array(func: Any, a: Any, dtype: Any = None, **kwargs: Any) -> Any:
    import numpy as np

    array = np.empty(a.numel(), dtype=object)
    array[:] = elements(a)
    array = array.reshape(tuple(a.shape))
    return array if dtype is None else array.astype(dtype)


def _searched(
    func: Any,
    edges: Any,
    values: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Any:
    """torch.searchsorted: how many edges lie below each value (or at it, on the right), by bisection."""
    _refuse(func, sorter=sorter)
    values = lifted(values)
    if isinstance(edges, UniformTensor):
        raise Unsupported(name_of(func), "edges that hold a uniform", "known edges")
    closed = right or side == "right"
    width, count = edges.shape[-1], values.shape[-1] if values.ndim else 1
    rows = edges.reshape(-1, width).tolist()
    found = []
    for i, x in enumerate(elements(values)):
        row, low, high = rows[(i // count) % len(rows) if edges.ndim > 1 else 0], 0, width
        while low < high:
            middle = (low + high) // 2
            left = row[middle] <= x if closed else row[middle] < x
            low, high = (middle + 1, high) if left else (low, middle)
        found.append(low)
    dtype = torch.int32 if out_int32 else torch.long
    return torch.tensor(found, dtype=dtype, device=edges.device).reshape(values.shape)


def _bucketize(func: Any, values: Any, edges: Any, **kwargs: Any) -> Any:
    return _searched(func, edges, values, **kwargs)


def _asked(func: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    """A question about the tensor and not its numbers."""
    return func(known_values(a), *args, **kwargs)


def _truth(func: Any, a: Any) -> bool:
    return bool(_item(func, a))


def _no_nan(func: Any, a: Any) -> Any:
    """torch.isnan: a uniform is a number."""
    return func(known_values(a)) & (symbol_index(a) < 0)


def _whole(func: Any, a: Any) -> int:
    return int(_item(func, a))


def _shown(func: Any, a: Any, *args: Any, **kwargs: Any) -> str:
    return f"tensor(<uniforms>, shape={tuple(a.shape)}, dtype={a.dtype})"


def _tensor(func: Any, data: Any, *, dtype: Any = None, device: Any = None, **kwargs: Any) -> Any:
    """torch.tensor and as_tensor of nested lists that hold uniforms."""
    import numpy as np

    if isinstance(data, torch.Tensor):
        return converted(moved(torch.clone, data), dtype or data.dtype)
    array = np.array(data, dtype=object)
    natural = torch.float64 if isinstance(data, np.ndarray) else torch.get_default_dtype()
    like = torch.empty(array.shape, dtype=dtype or natural, device=device)
    return from_elements([x.item() if isinstance(x, torch.Tensor) else x for x in array.flatten().tolist()], like)


_MOVES = [
    "view", "reshape", "flatten", "ravel", "squeeze", "unsqueeze", "transpose", "permute", "t", "expand",
    "expand_as", "view_as", "reshape_as", "repeat", "tile", "repeat_interleave", "__getitem__", "select", "narrow",
    "index_select", "gather", "take", "take_along_dim", "masked_select", "flip", "roll", "chunk", "split",
    "tensor_split", "unbind", "contiguous", "clone", "detach", "movedim", "moveaxis", "swapaxes", "swapdims",
    "unflatten", "cpu", "cuda", "broadcast_to", "diagonal", "alias", "adjoint",
    "getitem",
]  # fmt: skip
_QUESTIONS = [
    "size", "dim", "numel", "nelement", "stride", "__len__", "is_floating_point", "is_complex", "is_contiguous",
    "storage_offset", "element_size", "get_device", "ndimension", "_is_view", "is_signed",
]  # fmt: skip
_ATTRIBUTES = [
    "shape", "dtype", "device", "ndim", "layout", "requires_grad", "is_cuda", "is_cpu", "is_sparse",
    "is_quantized", "is_meta", "is_leaf", "itemsize", "nbytes", "grad_fn", "is_mps", "is_xla", "is_nested",
    "names",
]  # fmt: skip

FUNCTIONS: dict[str, Operation] = {
    **dict.fromkeys(("add", "__add__", "__radd__"), _binary(operator.add)),
    **dict.fromkeys(("sub", "subtract", "__sub__"), _binary(operator.sub)),
    **dict.fromkeys(("rsub", "__rsub__"), _binary(operator.sub, swapped=True)),
    **dict.fromkeys(("mul", "multiply", "__mul__", "__rmul__"), _binary(operator.mul)),
    **dict.fromkeys(("div", "divide", "true_divide", "__truediv__", "__div__"), _binary(operator.truediv)),
    **dict.fromkeys(("__rdiv__", "__rtruediv__"), _binary(operator.truediv, swapped=True)),
    **dict.fromkeys(("lt", "less", "__lt__"), _binary(operator.lt)),
    **dict.fromkeys(("le", "less_equal", "__le__"), _binary(operator.le)),
    **dict.fromkeys(("gt", "greater", "__gt__"), _binary(operator.gt)),
    **dict.fromkeys(("ge", "greater_equal", "__ge__"), _binary(operator.ge)),
    **dict.fromkeys(("eq", "__eq__"), _binary(operator.eq)),
    **dict.fromkeys(("ne", "not_equal", "__ne__"), _binary(operator.ne)),
    **dict.fromkeys(("neg", "negative", "__neg__"), _unary(operator.neg)),
    **dict.fromkeys(("abs", "absolute", "__abs__"), _unary(abs)),
    "log": _unary(Uniform.log),
    "log1p": _unary(Uniform.log1p),
    "exp": _unary(Uniform.exp),
    "reciprocal": _unary(Uniform.reciprocal),
    "floor": _unary(Uniform.floor),
    "positive": _unary(operator.pos),
    "maximum": maximum,
    "minimum": minimum,
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "clamp_min": maximum,
    "clamp_max": minimum,
    **dict.fromkeys(_MOVES, moved),
    **dict.fromkeys(("get data", "get T", "get mT", "get H", "get mH"), moved),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "hstack", "vstack"), _joined),
    "where": _tensor_where,
    "masked_fill": _masked_fill,
    "__setitem__": _set_item,
    "copy_": _copy,
    "fill_": _fill,
    **dict.fromkeys(("to", "float", "double", "half", "bfloat16", "long", "int", "short", "bool", "type"), _to),
    "type_as": _type_as,
    "__iter__": iterated,
    "item": _item,
    "tolist": _list,
    **dict.fromkeys(("numpy", "__array__"), _array),
    "argmax": arg_best(True),
    "argmin": arg_best(False),
    "max": best_with_value(True, maximum),
    "min": best_with_value(False, minimum),
    "topk": top,
    "sort": sort,
    "argsort": argsort,
    "searchsorted": _searched,
    "bucketize": _bucketize,
    "__bool__": _truth,
    "__int__": _whole,
    "isnan": _no_nan,
    **dict.fromkeys(("__repr__", "__str__", "__format__"), _shown),
    **dict.fromkeys(("tensor", "as_tensor", "asarray"), _tensor),
    **dict.fromkeys(_QUESTIONS, _asked),
    **{f"get {name}": _asked for name in _ATTRIBUTES},
}
_IN_PLACE = [
    "add", "sub", "subtract", "mul", "multiply", "div", "true_divide", "neg", "log", "log1p", "exp", "reciprocal",
    "clamp", "clamp_min", "clamp_max", "masked_fill", "abs", "floor",
]  # fmt: skip
FUNCTIONS |= {f"{name}_": _in_place(name) for name in _IN_PLACE}
FUNCTIONS |= {f"__i{name}__": _in_place(name) for name in ("add", "sub", "mul", "div")}
FUNCTIONS["__itruediv__"] = FUNCTIONS["div_"]
