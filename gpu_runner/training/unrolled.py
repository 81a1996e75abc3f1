"""Training-time test: the head fed its own outputs, from every position of a text at once.

The decoder layer is the one that drafts (`EagleDraft.layer`), and what a step sees is kept by the class that keeps it
for trees (`Level`): a root sees its text up to itself, each later step the same and its own earlier steps. So training
and inference cannot drift apart; the tests compare them all the same.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_runner.model.cache import TreeCache
from gpu_runner.model.causal_lm import CausalModel, memory
from gpu_runner.model.drafts.base import Level
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.training.batches import Row


class Grown:
    """Keys and values of all steps, joined anew at each (a cache written in place lets no gradient pass)."""

    def __init__(self) -> None:
        self.steps: list[tuple[Tensor, Tensor]] = []

    def update(self, key_states: Tensor, value_states: Tensor, /) -> tuple[Tensor, Tensor]:
        """Append states; all keys and values so far."""
        self.steps.append((key_states, value_states))
        keys, values = zip(*self.steps, strict=True)
        return torch.cat(keys, dim=-2), torch.cat(values, dim=-2)


def read(target: CausalModel, row: Row, layers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """One forward of the target over a row: logits [n, V] and features [n, H * len(layers)]."""
    return target(row.tokens, row.positions, row.visible, TreeCache(), features=layers)


def unroll(draft: EagleDraft, row: Row, features: Tensor, steps: int) -> list[Tensor]:
    """The head's un-normed outputs [n, H] at every step, one line for each root.

    The root at place i reads the features there and token i + 1; its step s reads its own output of step s - 1 and
    token i + 1 + s, one position on, and predicts token i + 2 + s. Which lines count is for `Row.counted` to say.
    """
    device = row.tokens.device
    roots = torch.arange(len(row), device=device)
    level, cache = Level(0, device), Grown()
    level.visible = row.visible
    outputs: list[Tensor] = []
    with memory(f"{steps} steps of training-time test on {len(row)} tokens"):
        hidden = draft.combine(features)
        for step in range(steps):
            visible = level.below(roots) if step else row.visible
            hidden = draft.layer(row.ahead(1 + step), hidden, row.positions + step, visible, cache)
            outputs.append(hidden)
    return outputs
