"""One level of the draft tree as one graph: everything from the draft's logits to the next frontier, without a break.

A level is some hundred small kernels, and on a GPU launching them takes longer than running them. `torch.compile` turns
them into a graph for each shape (root, inner and last level), which the backend "cudagraphs" replays as the very same
kernels, so results are equal to the bit; "inductor" fuses them and may round otherwise. torch runs what it cannot
capture plainly and in silence: here that is refused, and `graphs_made` says how many graphs there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from gpu_runner.decode.draft_rows import DraftRows
from gpu_runner.decode.drafting import Frontier, Growing, Grown, level
from gpu_runner.decode.draws import Draws, Seeded
from rheo_core import InvalidInput

Backend = str | Callable[..., Callable[..., object]]
"""Of `torch.compile`: a name, or a function of a graph and example inputs that returns what runs it."""
SEEDED = Seeded(0)
"""Any seed: the addresses, which are inputs of the graph, hold the one that counts."""
KEPT = 64
"""Compiled levels that are kept: engines that differ in nothing of a level share one."""
_made: Counter[str] = Counter()


class CompiledLevel:
    """`drafting.level` by `torch.compile`, for one way of growing and one kind of rows; see `compiled_level`."""

    def __init__(self, how: Growing, temperature: float, support: int | None, backend: Backend) -> None:
        def run(logits: Tensor, frontier: Frontier, last: bool) -> Grown:
            return level(DraftRows.logits(logits, temperature, support), frontier, how, SEEDED, last)

        self.how = how
        # torch keeps graphs by code object and allows each but a few: here every compiled level has its own
        own = FunctionType(run.__code__.replace(), run.__globals__, closure=run.__closure__)
        self._run = torch.compile(own, fullgraph=True, dynamic=False, backend=_checked(backend))

    def __call__(self, rows: DraftRows, frontier: Frontier, how: Growing, draws: Draws, last: bool) -> Grown:
        """One level, by the graph of its shape; `how` must be the one that was compiled.

        Raises `InvalidInput` where a part of the level cannot be in a graph: draws from a host chooser, a rule that
        runs on the host.
        """
        assert how == self.how
        if not isinstance(draws, Seeded):
            raise InvalidInput("draws", type(draws).__name__, "seeded draws: a host chooser cannot be part of a graph")
        try:
            grown: Grown = self._run(rows.given, frontier, last)
        except torch._dynamo.exc.TorchDynamoException as error:
            inner = getattr(error, "inner_exception", None)
            if isinstance(inner, InvalidInput):
                raise inner from None
            reason = str(inner or error).strip().splitlines()[0]
            raise InvalidInput("compile", reason, "a level that torch can put in one graph") from error
        return grown


@lru_cache(KEPT)
def compiled_level(how: Growing, temperature: float, support: int | None, backend: Backend) -> CompiledLevel:
    """The compiled level for rows from logits at a temperature and support; compiling waits for the first tree.

    Raises `InvalidInput` for a backend that torch does not know.
    """
    if isinstance(backend, str) and backend not in backends():
        raise InvalidInput("compile", backend, f"a backend of torch.compile: {', '.join(backends())}")
    return CompiledLevel(how, temperature, support, backend)


def begin_cycle() -> None:
    """Let CUDA graphs write where the results of the last cycle were: a drafted tree holds none of them."""
    torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]


def _checked(backend: Backend) -> Backend:
    """A backend that refuses graphs in which a number is read (torch takes `.item()` into a graph) or devices mix."""

    def checked(graph: Any, inputs: list[Tensor]) -> Callable[..., object]:
        devices = set()
        for node in graph.graph.nodes:
            value = node.meta.get("example_value")
            sizes = value.shape if isinstance(value, Tensor) else ()
            if any(isinstance(each, (torch.SymInt, torch.SymFloat, torch.SymBool)) for each in (value, *sizes)):
                raise InvalidInput("compile", node.name, "no number that is read from the device in a level's graph")
            devices |= {value.device} if isinstance(value, Tensor) else set()
        if len(devices) > 1:
            raise InvalidInput("compile", sorted(map(str, devices)), "a level's graph on one device")
        work = torch._dynamo.lookup_backend(backend) if isinstance(backend, str) else backend
        with torch._inductor.config.patch({"triton.cudagraph_or_error": True}):
            made = work(graph, inputs)
        _made[str(backend)] += 1
        return made

    return checked


def graphs_made(backend: str | None) -> int:
    """Graphs that this process has made with a backend and runs in place of single operators."""
    return _made[str(backend)]


def backends() -> list[str]:
    """The backends of `torch.compile` that this torch knows."""
    return sorted({"eager", "aot_eager", *torch.compiler.list_backends()})
