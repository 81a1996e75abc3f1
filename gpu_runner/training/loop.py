"""The training itself, one update at a time; what it does next depends on its weights, optimizer and update number.

Nothing is drawn from a generator with a state: the order of the data follows from seed and epoch, and there is no
dropout. So a stopped run that goes on from its state equals one that was never stopped, on a CPU to the bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gpu_runner.decode.draws import check_seed
from gpu_runner.decode.laws import check_int
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.checkpoint import Checkpoint
from gpu_runner.training.batches import packed, plan, row_of
from gpu_runner.training.documents import Corpus, Document
from gpu_runner.training.head import trainable
from gpu_runner.training.objective import Judged, judge, losses, weights
from gpu_runner.training.unrolled import read, unroll
from rheo_core import InvalidInput

WARM_UP = 20
"""One in so many updates, from the first on, raises the learning rate to its peak."""
CLIP = 1.0
"""Largest norm of the gradient; a longer one is scaled down to it."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    `steps` of training-time test, step s weighing decay^s; rows of `length` tokens, `batch` of them an update; the
    learning rate rises over the first twentieth and then falls as a cosine to 0; `bf16`: matrix products in bfloat16.
    """

    steps: int = 4
    decay: float = 0.8
    learning_rate: float = 3e-4
    epochs: int = 1
    length: int = 1024
    batch: int = 4
    bf16: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("epochs", 1), ("length", 3), ("batch", 1)):
            check_int(getattr(self, name), least, name)
        check_seed(self.seed)
        for name, most in (("decay", 1.0), ("learning_rate", math.inf)):
            value = getattr(self, name)
            if not 0 < value <= most or math.isinf(value):
                raise InvalidInput(name, value, "a number in (0, 1]" if most == 1 else "a positive number")


@dataclass(frozen=True)
class Update:
    """Mean loss in nats of each step (None where nothing counts), learning rate, gradient norm, seconds, tokens."""

    number: int
    loss: tuple[float | None, ...]
    learning_rate: float
    norm: float
    seconds: float
    tokens: int

    @property
    def first(self) -> float:
        """The loss of step 0, which every row has."""
        return self.loss[0] or 0.0


class Training:
    """A head on its way: `done` updates of `len(plan)`."""

    def __init__(
        self, target: CausalModel, checkpoint: Checkpoint, corpus: Corpus, settings: Settings, name: str = "head"
    ) -> None:
        self.target = target
        self.embedding = checkpoint.embedding
        self.corpus = corpus
        self.settings = settings
        self.draft = trainable(checkpoint, target, name)
        self.plan = plan(corpus.training, settings.length, settings.batch, settings.epochs, settings.seed)
        self.parameters = list(self.draft.weights.values())
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.0
        )
        self.done = 0

    @property
    def size(self) -> int:
        """Trained numbers."""
        return sum(each.numel() for each in self.parameters)

    def update(self) -> Update:
        """The next update."""
        began = time.perf_counter()
        rows = self.plan[self.done]
        rate = learning_rate(self.settings.learning_rate, self.done, len(self.plan))
        summed, counts = self.gradient(rows)
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, CLIP))
        if not math.isfinite(norm):
            raise InvalidInput(
                f"gradient of update {self.done + 1}", norm, "a finite one: try a lower learning rate, or no bf16"
            )
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.done += 1
        loss = tuple(total / count if count else None for total, count in zip(summed, counts, strict=True))
        tokens = sum(len(each.tokens) for row in rows for each in row)
        return Update(self.done, loss, rate, norm, time.perf_counter() - began, tokens)

    def gradient(self, rows: Sequence[Sequence[Document]]) -> tuple[list[float], list[int]]:
        """Leave the gradient of the rows' weighted mean loss in the parameters; summed loss and count of each step."""
        steps = self.settings.steps
        counts = [sum(each.counted(step) for row in rows for each in row) for step in range(steps)]
        weight = weights(steps, self.settings.decay)
        summed = [0.0] * steps
        self.optimizer.zero_grad(set_to_none=True)
        for documents in rows:
            row = row_of(documents, self.target.device)
            logits, features = read(self.target, row, self.draft.features)
            with self._products():
                each = losses(self.draft, row, self._unroll(row, features), logits)
            pairs = zip(weight, each, counts, strict=True)
            torch.stack([w * loss / count for w, loss, count in pairs if count]).sum().backward()  # type: ignore[no-untyped-call]
            summed = [total + loss.item() for total, loss in zip(summed, each, strict=True)]
        return summed, counts

    @torch.no_grad()
    def judged(self) -> Judged:
        """Loss and expected acceptance on the documents held out."""
        none = (0.0,) * self.settings.steps
        total = Judged((0,) * self.settings.steps, none, none)
        for documents in packed(self.corpus.held_out, self.settings.length):
            row = row_of(documents, self.target.device)
            logits, features = read(self.target, row, self.draft.features)
            with self._products():
                total += judge(self.draft, row, self._unroll(row, features), logits)
        return total

    def state(self) -> dict[str, Any]:
        """Everything that the next update depends on."""
        return {
            "done": self.done,
            "weights": {key: value.detach() for key, value in self.draft.weights.items()},
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for key, value in self.draft.weights.items():
                value.copy_(state["weights"][key])
        self.optimizer.load_state_dict(state["optimizer"])
        self.done = state["done"]

    def _unroll(self, row: Any, features: Tensor) -> list[Tensor]:
        return unroll(self.draft, row, features.to(self.parameters[0].dtype), self.settings.steps)

    def _products(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.target.device.type, dtype=torch.bfloat16, enabled=self.settings.bf16)


def learning_rate(peak: float, done: int, total: int) -> float:
    """Of the update after `done` of `total`: a linear rise, then a cosine down to 0.

    >>> [round(learning_rate(1.0, done, 40), 3) for done in (0, 1, 20, 39)]
    [0.5, 0.998, 0.5, 0.002]
    """
    rise = max(1, total // WARM_UP)
    return peak * min(1.0, (done + 1) / rise) * 0.5 * (1 + math.cos(math.pi * done / total))
