"""The baseline: the target alone, one token a forward.

It draws from the same processed law, with the same cache and the same seeds' addresses as the speculative engine, so
that a speed-up compares like with like.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from gpu_runner.decode.draws import Draws
from gpu_runner.decode.laws import check_int
from gpu_runner.decode.processing import Processing
from gpu_runner.decode.verification import check_target
from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import CausalModel, on_device
from rheo_core import InvalidInput
from rheo_core.checks import check_id


@dataclass(frozen=True)
class Plain:
    """Emitted target ids, the gap between the two best logits at each position, seconds of every forward."""

    tokens: tuple[int, ...]
    gaps: tuple[float, ...]
    seconds: tuple[float, ...]


def autoregressive(
    target: CausalModel,
    prompt: Sequence[int],
    length: int,
    draws: Draws,
    processing: Processing | None = None,
    end: Collection[int] = (),
) -> Plain:
    """Text after `prompt`, token by token, until `length` tokens or one of the `end` ids, which is then the last."""
    processing = Processing() if processing is None else processing
    check_int(length, 0, "length")
    if not prompt:
        raise InvalidInput("prompt", "no tokens", "at least one token")
    text = [check_id(token, target.vocabulary, f"prompt[{i}]") for i, token in enumerate(prompt)]
    stops = {check_id(token, target.vocabulary, "end") for token in end}
    cache, start = TreeCache(), len(text)
    gaps: list[float] = []
    seconds: list[float] = []
    while len(text) - start < length and not (len(text) > start and text[-1] in stops):
        began = time.perf_counter()
        held, device = cache.length, target.device
        new = on_device(text[held:], device)
        positions = torch.arange(held, len(text), device=device)
        logits, _ = target(new, positions, causal(held, len(new), device), cache, last=1)
        text.append(draws.index(check_target(processing.law(logits)[0]), ("emit", len(text) - start, (), 0)))
        best = logits[0].topk(min(2, target.vocabulary)).values
        gaps.append(float(best[0] - best[-1]))
        seconds.append(time.perf_counter() - began)
    return Plain(tuple(text[start:]), tuple(gaps), tuple(seconds))
