"""Verifiers of the shape that EAGLE made common, as functions to certify.

Such a verifier takes the target's logits along every path of a draft tree and a matrix of candidate tokens, and says
which path is accepted, how far, and the law of the token after it. The adapter builds its inputs from a target and a
tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rheo_core import InvalidInput

Paths = Sequence[Sequence[int]]
Processor = Callable[[Any, torch.Tensor], torch.Tensor]
PADDING = -1


def tree_verifier(
    verify: Callable[..., Any],
    target: Callable[[tuple[int, ...]], Any],
    paths: Paths | Callable[[], Paths],
    *,
    prefix: Sequence[int] = (),
    dtype: torch.dtype = torch.float32,
    processor: Processor | None = None,
    from_logits: bool = False,
) -> Callable[[], tuple[int, ...]]:
    """A function of no argument that emits one cycle's tokens, for `torch_law` or `certify_function`.

    `verify(logits, candidates, processor)` gets logits [paths, depth + 1, V] in `dtype` (the target's, at the root and
    after each token of a path; those past its end repeat its last), and candidates [paths, depth + 1] whose first
    column is the token before the tree and whose short paths are padded with -1. It returns (path, accepted, law): the
    index of a path, how many of its drafted tokens are accepted, and the law [V] or [1, V] of the next token, which the
    adapter draws. A next token drawn already may stand in place of the law, as an int or an integer tensor.

    `target(prefix)` gives a row [V] of probabilities, or logits with `from_logits`. `paths` are token paths from the
    root; a function of no argument draws them anew on every run. `processor(input_ids, logits)` is passed on.
    """
    root = int(prefix[-1]) if len(prefix) else 0

    def cycle() -> tuple[int, ...]:
        tree = [tuple(int(token) for token in path) for path in (paths() if callable(paths) else paths)]
        if not tree or not all(tree):
            raise InvalidInput("paths", tree, "at least one path, none of them empty")
        depth = max(map(len, tree))
        logits = torch.stack([_along(target, tuple(prefix), path, depth, dtype, from_logits) for path in tree])
        candidates = torch.tensor([[root, *path, *[PADDING] * (depth - len(path))] for path in tree])
        path, accepted, following = verify(logits, candidates, processor)
        path, accepted = int(path), int(accepted)
        if not (0 <= path < len(tree) and 0 <= accepted <= len(tree[path])):
            raise InvalidInput("verify", (path, accepted), f"one of {len(tree)} paths and at most its length")
        return (*tree[path][:accepted], _next(following))

    cycle.one_cycle = True  # type: ignore[attr-defined]
    return cycle


def _along(
    target: Callable[[tuple[int, ...]], Any],
    prefix: tuple[int, ...],
    path: tuple[int, ...],
    depth: int,
    dtype: torch.dtype,
    from_logits: bool,
) -> torch.Tensor:
    """Logits [depth + 1, V] of the target at the root and after each token of a path."""
    rows = [_logits(target(prefix + path[:end]), dtype, from_logits) for end in range(len(path) + 1)]
    return torch.stack(rows + rows[-1:] * (depth - len(path)))


def _logits(row: Any, dtype: torch.dtype, from_logits: bool) -> torch.Tensor:
    if not isinstance(row, torch.Tensor):
        row = torch.tensor([float(x) for x in row], dtype=torch.float64)
    logits: torch.Tensor = row if from_logits else row.to(torch.float64).log()
    return logits.to(dtype)


def _next(following: Any) -> int:
    if not isinstance(following, torch.Tensor):
        return int(following)
    if not following.is_floating_point():
        return int(following.reshape(-1)[0])
    return int(torch.multinomial(following.reshape(-1), 1))


def temperature_processor(temperature: float) -> Processor:
    """A processor that divides logits by a temperature, of the kind such verifiers are given."""
    if not 0 < temperature < math.inf:
        raise InvalidInput("temperature", temperature, "a finite number above 0")

    def processor(input_ids: Any, logits: torch.Tensor) -> torch.Tensor:
        return logits / temperature

    return processor
