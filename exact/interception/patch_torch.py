"""Torch's random functions, caught while unmodified code runs.

A function mode sees every call of torch's Python interface and answers the random ones from the session. Around the
functions that may draw inside, a dispatch mode sees what reaches torch's kernels and refuses every random one. What
escapes both moves the global generator, which is looked at after every run.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FunctionType
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from exact.interception import drawn_tensors
from exact.interception.drawn_tensors import drawn_tensor, settled, weight_rows
from exact.interception.session import Source, Tracer
from exact.interception.symbolic import Uniform
from exact.interception.symbolic_tensors import OPERATIONS, assign_, elements, forget, from_elements, kind, name_of
from exact.interception.torch_operations import FUNCTIONS
from exact.interception.uninitialised import fill_tensor
from exact.runtime.census import stream
from exact.runtime.patches import Patch, refuser
from exact.runtime.unsupported import Unsupported, in_a_library, user_line

Random = Callable[..., Any]
_GENERATOR = torch.Generator
OPERATIONS.update(FUNCTIONS)
_MADE_BEFORE = "a generator made during the call, or none"


class RandomTorch(TorchFunctionMode):
    """Answers torch's random functions from a session; everything else is torch's own."""

    def __init__(self, session: Tracer) -> None:
        super().__init__()
        self.session = session
        self._blank: tuple[Any, str] | None = None  # uninitialised memory that nothing was done to yet, and its line

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._blank is not None and getattr(func, "__name__", "") != "__get__":
            if not (func in _OVERWRITING and args and args[0] is self._blank[0]):
                self.session.blanks[self._blank[1]] = None
            self._blank = None
        if func in _UNINITIALISED:
            start = args[0].numel() if func in _RESIZING else 0
            self._blank = fill_tensor(self.session, func(*args, **kwargs), start), user_line()
            return self._blank[0]
        caught = _CAUGHT.get(func)
        if caught is not None:
            return self._drawn(caught, func, args, kwargs)
        if func in _TENSORS_OF:
            args = settled(args)
        if func in _TENSORS_OF and _holds_uniform(args[0]):
            return Uniform.__torch_function__(func, types, args, kwargs)
        if _may_draw_inside(func):
            with Uncaught():
                return func(*args, **kwargs)
        return func(*args, **kwargs)

    def _drawn(self, caught: Random, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if kwargs.get("out") is not None:
            raise Unsupported(f"{name_of(func)}(out=...)", type(kwargs["out"]).__name__, "a call without out=")
        generator = kwargs.pop("generator", None)
        if generator is None:
            source = self.session.globals["torch"]
        elif isinstance(generator, CaughtTorchGenerator) and generator.source._session is self.session:
            source = generator.source
        else:
            raise Unsupported(f"{name_of(func)}(generator=...)", "a torch.Generator made before the call", _MADE_BEFORE)
        return caught(self.session, source, func, *settled(args), **settled(kwargs))


class Uncaught(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses every random kernel: one that gets here was called by compiled or composite code unseen above."""

    def __init__(self, session: Tracer | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.session = session

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        random = _IS_RANDOM.get(func)
        if random is None:
            random = _IS_RANDOM[func] = torch.Tag.nondeterministic_seeded in func.tags
        if random and not _draws_nothing(func, args, kwargs or {}):
            raise Unsupported(f"the random kernel {func}", "a draw inside a composite or compiled function", _FOLLOWED)
        result = func(*args, **(kwargs or {}))
        if self.session is not None and func.overloadpacket in _EMPTY and not in_a_library(sys._getframe(1)):
            fill_tensor(self.session, result)
            self.session.blanks[user_line()] = None
        return result


_EMPTY = {torch.ops.aten.empty, torch.ops.aten.empty_strided, torch.ops.aten.new_empty}
_RESIZING = {torch.Tensor.resize_, torch.Tensor.resize_as_}
_UNINITIALISED = _RESIZING | {
    torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}  # fmt: skip
_OVERWRITING = {
    torch.Tensor.fill_, torch.Tensor.zero_, torch.Tensor.copy_, torch.Tensor.uniform_, torch.Tensor.exponential_,
    torch.Tensor.bernoulli_, torch.Tensor.random_, torch.Tensor.normal_,
}  # fmt: skip
_IS_RANDOM: dict[Any, bool] = {}
_GUARDED: dict[Any, bool] = {}
_DRAWING_INSIDE = ("dropout", "rrelu", "attention", "lstm", "gru", "rnn", "dirichlet", "gamma", "nested", "sdp")


def _may_draw_inside(func: Any) -> bool:
    """Whether a function of torch may draw where the function mode does not see it: Python ones, and some kernels."""
    guarded = _GUARDED.get(func)
    if guarded is None:
        name = getattr(func, "__name__", "")
        inside = any(word in name for word in _DRAWING_INSIDE)
        guarded = _GUARDED[func] = isinstance(func, FunctionType) or inside
    return guarded


_TENSORS_OF = {torch.tensor, torch.as_tensor, torch.asarray}
_FOLLOWED = (
    "rand, rand_like, uniform_, bernoulli, multinomial, randint, random_, randperm, exponential_, or "
    "F.gumbel_softmax(hard=True)"
)


def _draws_nothing(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a kernel that may be random draws nothing here: attention without dropout."""
    name = func.overloadpacket.__name__
    if "attention" not in name and "sdp" not in name:
        return False
    names = [argument.name for argument in func._schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    defaults = {argument.name: argument.default_value for argument in func._schema.arguments}
    return not given.get("dropout_p", defaults.get("dropout_p"))


def _holds_uniform(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return data.dtype == np.dtype(object) and any(map(_holds_uniform, data.flatten().tolist()))
    if isinstance(data, list | tuple):
        return any(map(_holds_uniform, data))
    return isinstance(data, Uniform)


class CaughtTorchGenerator(torch.Generator):
    """The torch.Generator that code makes during the call: a stream of the session."""

    source: Source

    def manual_seed(self, seed: int) -> CaughtTorchGenerator:
        """Start the stream of a seed."""
        super().manual_seed(seed)
        self.source.seed(stream(self))
        return self

    def seed(self) -> int:
        """Refused."""
        raise Unsupported("Generator.seed", "a seed from the system", "manual_seed, or no seed")

    def get_state(self) -> Any:
        """Refused."""
        raise Unsupported("Generator.get_state", "the state of a generator", "draws alone")

    def set_state(self, state: Any) -> Any:
        """Refused."""
        raise Unsupported("Generator.set_state", "the state of a generator", "draws alone")

    def clone_state(self) -> Any:
        """Refused."""
        raise Unsupported("Generator.clone_state", "the state of a generator", "draws alone")

    __reduce__ = graphsafe_get_state = graphsafe_set_state = clone_state  # type: ignore[assignment]


def torch_patches(session: Tracer) -> list[Patch]:
    """What catches the making and seeding of torch's generators."""

    class Generator(CaughtTorchGenerator):
        def __new__(cls, device: Any = "cpu") -> Any:
            generator = super().__new__(cls, device=device)  # type: ignore[call-arg]
            generator.source = Source(session, stream(generator))  # without a seed all start from one
            return generator

        def __init__(self, device: Any = "cpu") -> None:
            pass

    def manual_seed(seed: int) -> Any:
        session.globals["torch"].seed(stream(_GENERATOR().manual_seed(seed)))

    def from_numpy(array: Any) -> torch.Tensor:
        return torch.as_tensor(array) if _holds_uniform(array) else original_from_numpy(array)

    original_from_numpy = torch.from_numpy
    state = ("the state of the global generator", "torch.manual_seed, or draws alone")
    values = {"Generator": Generator, "manual_seed": manual_seed, "from_numpy": from_numpy}
    values |= {name: refuser(f"torch.{name}", *state) for name in ("seed", "get_rng_state", "set_rng_state")}
    return [
        Patch(module, name, value)
        for module in (torch, torch.random)
        for name, value in values.items()
        if hasattr(module, name)
    ]


@contextmanager
def torch_caught(session: Tracer) -> Iterator[None]:
    """Catch torch's random calls."""
    forget()
    drawn_tensors.forget()
    guard = Uncaught(session) if session.suspicious or session.legacy else nullcontext()
    with guard, RandomTorch(session):
        yield


def _uniforms(session: Tracer, source: Source, like: torch.Tensor, low: Any = 0, high: Any = 1) -> torch.Tensor:
    name = kind(like.dtype)
    if session.coins == "grid" and like.device.type != "cpu":
        raise Unsupported("coins on a grid", f"a generator of {like.device}", "CPU tensors (other grids are not known)")

    def make() -> list[Any]:
        fresh = [session.uniform(name) for _ in range(like.numel())]
        return fresh if (low, high) == (0, 1) else [x * (high - low) + low for x in fresh]

    return from_elements(source.draw(("uniform", like.numel(), name, low, high), make), like)


def _rand(session: Tracer, source: Source, func: Any, *size: Any, **kwargs: Any) -> Any:
    return _uniforms(session, source, torch.empty(*size, **kwargs))


def _rand_like(session: Tracer, source: Source, func: Any, tensor: Any, **kwargs: Any) -> Any:
    return _uniforms(session, source, torch.empty_like(_plain(tensor), **kwargs))


def _uniform_(session: Tracer, source: Source, func: Any, tensor: Any, *bounds: Any, **named: Any) -> Any:
    low, high = _arguments(bounds, named, ("from", 0), ("to", 1))
    return assign_(tensor, _uniforms(session, source, _plain(tensor), low, high))


def _exponential_(session: Tracer, source: Source, func: Any, tensor: Any, *given: Any, **named: Any) -> Any:
    (rate,) = _arguments(given, named, ("lambd", 1))
    like = _plain(tensor)
    kind(like.dtype)
    noise = source.draw(
        ("exponential", like.numel(), rate), lambda: [session.exponential(rate) for _ in range(like.numel())]
    )
    return assign_(tensor, from_elements(noise, like))


def _bernoulli(session: Tracer, source: Source, func: Any, tensor: Any, *given: Any, **named: Any) -> Any:
    (p,) = _arguments(given, named, ("p", None))
    values = _known(func, tensor) if p is None else [p] * tensor.numel()
    flips = source.draw(("bernoulli", tuple(values)), lambda: [session.flip("torch.bernoulli", x) for x in values])
    return torch.tensor(flips, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)


def _bernoulli_(session: Tracer, source: Source, func: Any, tensor: Any, *given: Any, **named: Any) -> Any:
    (p,) = _arguments(given, named, ("p", 0.5))
    values = _known(func, p.expand(tensor.shape)) if isinstance(p, torch.Tensor) else [p] * tensor.numel()
    flips = source.draw(("bernoulli", tuple(values)), lambda: [session.flip("torch.bernoulli_", x) for x in values])
    return tensor.copy_(torch.tensor(flips, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape))


def _multinomial(session: Tracer, source: Source, func: Any, weights: Any, *given: Any, **named: Any) -> Any:
    count, replacement = _arguments(given, named, ("num_samples", None), ("replacement", False))
    rows, width = weight_rows(session, weights, lambda: _known(func, weights)), weights.shape[-1]

    def make() -> list[Any]:
        if not replacement and count > 1:
            return [x for row in rows for x in session.without_replacement("torch.multinomial", row.weights, count)]
        return [session.waiting("torch.multinomial", row) for row in rows for _ in range(count)]

    if count > width and not replacement:
        raise Unsupported("torch.multinomial", f"{count} of {width} without replacement", "at most as many")
    drawn = source.draw(("multinomial", tuple(rows), width, count, replacement), make)
    return drawn_tensor(drawn, (*weights.shape[:-1], count), weights.device)


def _randint(session: Tracer, source: Source, func: Any, *given: Any, **kwargs: Any) -> Any:
    named = {name: kwargs.pop(name) for name in ("low", "high", "size") if name in kwargs}
    *bounds, size = [*given, *(named[name] for name in ("low", "high", "size") if name in named)]
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    like = torch.empty(size, **({"dtype": torch.long} | kwargs))
    return like.copy_(_integers(session, source, "torch.randint", like, low, high))


def _randint_like(session: Tracer, source: Source, func: Any, tensor: Any, *given: Any, **kwargs: Any) -> Any:
    bounds = [*given, *(kwargs.pop(name) for name in ("low", "high") if name in kwargs)]
    low, high = bounds if len(bounds) == 2 else (0, bounds[0])
    like = torch.empty_like(tensor, **kwargs)
    return like.copy_(_integers(session, source, "torch.randint_like", like, low, high))


def _random_(session: Tracer, source: Source, func: Any, tensor: Any, *given: Any, **named: Any) -> Any:
    low, high = _arguments(given, named, ("from", None), ("to", None))
    low, high = (0, low) if high is None else (low, high)
    if high is None:
        raise Unsupported("Tensor.random_", "no bounds", "random_(from, to) over few values")
    return tensor.copy_(_integers(session, source, "Tensor.random_", tensor, low, high))


def _integers(session: Tracer, source: Source, name: str, like: torch.Tensor, low: int, high: int) -> torch.Tensor:
    make: Callable[[], list[int]] = lambda: [session.integer(name, low, high) for _ in range(like.numel())]  # noqa: E731
    drawn = source.draw(("integer", like.numel(), low, high), make)
    return torch.tensor(drawn, dtype=torch.long, device=like.device).reshape(like.shape)


def _randperm(session: Tracer, source: Source, func: Any, n: int, **kwargs: Any) -> Any:
    order = source.draw(("permutation", n), lambda: session.order("torch.randperm", n))
    return torch.tensor(order, **({"dtype": torch.long} | kwargs))


def _gumbel_softmax(
    session: Tracer,
    source: Source,
    func: Any,
    logits: Any,
    tau: float = 1,
    hard: bool = False,
    eps: float = 0,
    dim: int = -1,
) -> Any:
    if not hard:
        raise Unsupported("F.gumbel_softmax(hard=False)", "a soft sample", "hard=True")
    from exact.interception.symbolic_maps import exponential, number

    last = logits.detach().movedim(dim, -1)
    onehot = torch.zeros_like(last)
    flat = onehot.view(-1, last.shape[-1])
    for i, row in enumerate(last.reshape(-1, last.shape[-1]).tolist()):
        top = max(row)
        shifted = [number(x, "F.gumbel_softmax") - number(top, "F.gumbel_softmax") for x in row]
        weights = [0 if x == -math.inf else exponential(x) for x in shifted]
        call = ("gumbel_softmax", tuple(row))
        drawn = source.draw(call, lambda weights=weights: session.index("F.gumbel_softmax", weights))  # type: ignore[misc]
        flat[i, drawn] = 1
    return onehot.movedim(-1, dim)


def _refused(session: Tracer, source: Source, func: Any, *args: Any, **kwargs: Any) -> Any:
    raise Unsupported(name_of(func), "a draw that has no finite law", _FOLLOWED)


def _plain(tensor: Any) -> torch.Tensor:
    """The tensor without the uniforms it may hold: only its shape and type are wanted."""
    plain: torch.Tensor = getattr(tensor, "known_values", tensor)
    return plain


def _known(func: Any, tensor: torch.Tensor) -> list[Any]:
    numbers = elements(tensor.detach() if not hasattr(tensor, "known_values") else tensor)
    if any(isinstance(x, Uniform) for x in numbers):
        raise Unsupported(name_of(func), "weights that hold a uniform", "known weights")
    return numbers


def _arguments(given: Any, named: dict[str, Any], *expected: tuple[str, Any]) -> list[Any]:
    """Positional and named arguments in order, with their defaults."""
    values = dict(expected) | dict(zip((name for name, _ in expected), given, strict=False)) | named
    return [values[name] for name, _ in expected]


_CAUGHT: dict[Any, Random] = {
    torch.rand: _rand,
    torch.rand_like: _rand_like,
    torch.Tensor.uniform_: _uniform_,
    torch.Tensor.exponential_: _exponential_,
    torch.bernoulli: _bernoulli,
    torch.Tensor.bernoulli: _bernoulli,
    torch.Tensor.bernoulli_: _bernoulli_,
    torch.multinomial: _multinomial,
    torch.Tensor.multinomial: _multinomial,
    torch.randint: _randint,
    torch.randint_like: _randint_like,
    torch.Tensor.random_: _random_,
    torch.randperm: _randperm,
    torch.nn.functional.gumbel_softmax: _gumbel_softmax,
}
_WITHOUT_LAW: list[Any] = [
    torch.randn, torch.randn_like, torch.normal, torch.poisson, torch.binomial, torch.Tensor.normal_,
    torch.Tensor.geometric_, torch.Tensor.cauchy_, torch.Tensor.log_normal_,
]  # fmt: skip
_CAUGHT |= dict.fromkeys(_WITHOUT_LAW, _refused)
