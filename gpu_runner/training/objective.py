"""What a head is trained on and judged by.

Training: cross-entropy against the target's law at T = 1, restricted to the draft vocabulary and renormalised there,
step s weighted by decay^s. Judgement: the expected acceptance of one sampled token, sum min(p, q), with the target's
whole law p: what the draft vocabulary leaves out is lost there, as it is when drafting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.training.batches import Row


def weights(steps: int, decay: float) -> list[float]:
    """Of the steps, summing to 1.

    >>> weights(2, 0.5)
    [0.6666666666666666, 0.3333333333333333]
    """
    powers = [decay**step for step in range(steps)]
    return [power / sum(powers) for power in powers]


def losses(draft: EagleDraft, row: Row, outputs: Sequence[Tensor], logits: Tensor) -> list[Tensor]:
    """Cross-entropy in nats of each step, summed over the counted roots (0-dimensional tensors).

    `outputs` are those of `unroll`, `logits` [n, V] the target's.
    """
    restricted = logits if draft.ids is None else logits[:, draft.ids]
    soft = torch.softmax(restricted, dim=-1)
    found = []
    for step, output in enumerate(outputs):
        roots = row.counted(step)
        found.append(F.cross_entropy(draft.logits(output[roots]), soft[roots + 1 + step], reduction="sum"))
    return found


@dataclass(frozen=True)
class Judged:
    """Of one or more rows: counted predictions, their summed loss and summed acceptance, one entry a step."""

    counts: tuple[int, ...]
    losses: tuple[float, ...]
    accepted: tuple[float, ...]

    def __add__(self, other: Judged) -> Judged:
        return Judged(
            tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            tuple(a + b for a, b in zip(self.losses, other.losses, strict=True)),
            tuple(a + b for a, b in zip(self.accepted, other.accepted, strict=True)),
        )

    @property
    def loss(self) -> list[float | None]:
        """Mean loss of each step; None where nothing counts."""
        return _means(self.losses, self.counts)

    @property
    def acceptance(self) -> list[float | None]:
        """Mean expected acceptance of each step."""
        return _means(self.accepted, self.counts)


@torch.no_grad()
def judge(draft: EagleDraft, row: Row, outputs: Sequence[Tensor], logits: Tensor) -> Judged:
    """Loss and expected acceptance of each step on a row."""
    law = torch.softmax(logits, dim=-1)
    p = law if draft.ids is None else law[:, draft.ids]
    accepted, counts = [], []
    for step, output in enumerate(outputs):
        roots = row.counted(step)
        q = torch.softmax(draft.logits(output[roots]), dim=-1)
        accepted.append(float(torch.minimum(p[roots + 1 + step], q).sum()))
        counts.append(len(roots))
    summed = tuple(float(each) for each in losses(draft, row, outputs, logits))
    return Judged(tuple(counts), summed, tuple(accepted))


def _means(sums: Sequence[float], counts: Sequence[int]) -> list[float | None]:
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]
