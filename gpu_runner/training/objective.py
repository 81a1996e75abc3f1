"""Training-time test: the head fed its own outputs, from every position of a document at once; its loss and judgement.

The decoder layer is the one that drafts (`EagleDraft.layer`), and what a step sees is kept by the class that keeps it
for trees (`Level`): a root sees its text up to itself, each later step the same and its own earlier steps. Loss:
cross-entropy against the target's distribution at T = 1, restricted to the draft vocabulary and renormalised there.
Judgement: the expected acceptance of one sampled token, sum min(p, q), with the target's whole distribution p.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import CausalModel, memory
from gpu_runner.model.drafts.base import Level
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.training.documents import Document


class StepStates:
    """Keys and values of all steps, joined anew at each (a cache written in place lets no gradient pass)."""

    def __init__(self) -> None:
        self.steps: list[tuple[Tensor, Tensor]] = []

    def update(self, key_states: Tensor, value_states: Tensor, /) -> tuple[Tensor, Tensor]:
        """Append states; all keys and values so far."""
        self.steps.append((key_states, value_states))
        keys, values = zip(*self.steps, strict=True)
        return torch.cat(keys, dim=-2), torch.cat(values, dim=-2)


def read(target: CausalModel, document: Document, layers: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """One forward of the target over a document: logits [n, V] and features [n, H * len(layers)]."""
    tokens = torch.tensor(document.tokens, device=target.device)
    positions = torch.arange(len(tokens), device=target.device)
    return target(tokens, positions, causal(0, len(tokens), target.device), TreeCache(), features=layers)


def unroll(draft: EagleDraft, document: Document, features: Tensor, steps: int) -> list[Tensor]:
    """The head's un-normed outputs [n, H] at every step, one line for each root.

    The root at place i reads the features there and token i + 1; its step s reads its own output of step s - 1 and
    token i + 1 + s, one position on, and predicts token i + 2 + s. Which lines count is for `Document.roots` to say.
    """
    n, device = len(document.tokens), features.device
    tokens, roots = torch.tensor(document.tokens, device=device), torch.arange(n, device=device)
    level, cache = Level(0, device), StepStates()
    level.visible = causal(0, n, device)
    outputs: list[Tensor] = []
    with memory(f"{steps} steps of training-time test on {n} tokens"):
        hidden = draft.combine(features)
        for step in range(steps):
            visible = level.below(roots) if step else level.visible
            following = tokens[(roots + 1 + step).clamp(max=n - 1)]  # beyond the end anything: no such root counts
            hidden = draft.layer(following, hidden, roots + step, visible, cache)
            outputs.append(hidden)
    return outputs


def weights(steps: int, decay: float) -> list[float]:
    """The weights decay^s of the steps, summing to 1.

    >>> weights(2, 0.5)
    [0.6666666666666666, 0.3333333333333333]
    """
    powers = [decay**step for step in range(steps)]
    return [power / sum(powers) for power in powers]


def losses(draft: EagleDraft, document: Document, outputs: list[Tensor], logits: Tensor) -> list[Tensor]:
    """Cross-entropy in nats of each step, summed over the counted roots; `outputs` of `unroll`, the target's logits."""
    restricted = logits if draft.ids is None else logits[:, draft.ids]
    soft = torch.softmax(restricted, dim=-1)
    found = []
    for step, output in enumerate(outputs):
        roots = torch.tensor(document.roots(step), dtype=torch.long, device=logits.device)
        found.append(F.cross_entropy(draft.logits(output[roots]), soft[roots + 1 + step], reduction="sum"))
    return found


@dataclass(frozen=True)
class Judged:
    """Mean loss in nats, mean expected acceptance and counted predictions of each step; None where nothing counts."""

    loss: list[float | None]
    acceptance: list[float | None]
    counts: list[int]


@torch.no_grad()
def judge(draft: EagleDraft, target: CausalModel, documents: tuple[Document, ...], steps: int) -> Judged:
    """Loss and expected acceptance of each step on documents."""
    counts, loss, accepted = [0] * steps, [0.0] * steps, [0.0] * steps
    for document in documents:
        logits, features = read(target, document, draft.features)
        outputs = unroll(draft, document, features.to(draft.weights["fc.weight"].dtype), steps)
        law = torch.softmax(logits, dim=-1)
        p = law if draft.ids is None else law[:, draft.ids]
        for step, summed in enumerate(losses(draft, document, outputs, logits)):
            roots = torch.tensor(document.roots(step), dtype=torch.long, device=law.device)
            q = torch.softmax(draft.logits(outputs[step][roots]), dim=-1)
            accepted[step] += float(torch.minimum(p[roots + 1 + step], q).sum())
            loss[step] += float(summed)
            counts[step] += len(roots)
    return Judged(_means(loss, counts), _means(accepted, counts), counts)


def _means(sums: list[float], counts: list[int]) -> list[float | None]:
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]
