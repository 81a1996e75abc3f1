"""The training itself, one update at a time; what it does next depends on its weights, optimizer and update number.

Nothing is drawn from a generator with a state: the order of the data follows from seed and epoch, and there is no
dropout. So a stopped run that goes on from its state equals one that was never stopped, on a CPU to the bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gpu_runner.decode.draws import check_seed
from gpu_runner.decode.laws import check_int
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.checkpoint import Checkpoint
from gpu_runner.training.documents import Corpus, Document
from gpu_runner.training.head import trainable
from gpu_runner.training.objective import Judged, judge, losses, read, unroll, weights
from montecarlo.keyed_random import derived
from rheo_core import InvalidInput

DECAY = 0.8
"""Step s weighs DECAY^s in the loss."""
WARM_UP = 20
"""One in so many updates, from the first on, raises the learning rate to its peak."""
CLIP = 1.0
"""Largest norm of the gradient; a longer one is scaled down to it."""


@dataclass(frozen=True)
class Settings:
    """How to train: `steps` of training-time test, documents of at most `length` tokens, `batch` of them an update.

    The learning rate rises to its peak over the first twentieth of the updates and then falls as a cosine to 0.
    """

    steps: int = 4
    learning_rate: float = 3e-4
    epochs: int = 1
    length: int = 1024
    batch: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("epochs", 1), ("length", 3), ("batch", 1)):
            check_int(getattr(self, name), least, name)
        check_seed(self.seed)
        if not 0 < self.learning_rate < math.inf:
            raise InvalidInput("learning_rate", self.learning_rate, "a positive number")


class Training:
    """A head on its way: `done` updates of `len(plan)`; `history` has an entry for each and for each judgement."""

    def __init__(
        self, target: CausalModel, checkpoint: Checkpoint, corpus: Corpus, settings: Settings, name: str = "head"
    ) -> None:
        self.target = target
        self.corpus = corpus
        self.settings = settings
        self.draft = trainable(checkpoint, target, name)
        self.plan = plan(corpus.training, settings.batch, settings.epochs, settings.seed)
        self.parameters = list(self.draft.weights.values())
        self.optimizer = torch.optim.AdamW(self.parameters, betas=(0.9, 0.95), weight_decay=0.0)
        self.done = 0
        self.history: list[dict[str, Any]] = []

    def update(self) -> list[float | None]:
        """Make the next update; mean loss in nats of each step before it (None where nothing counts)."""
        began = time.perf_counter()
        summed, counts = self.gradient(self.plan[self.done])
        norm = float(torch.nn.utils.clip_grad_norm_(self.parameters, CLIP))
        if not math.isfinite(norm):
            raise InvalidInput(f"gradient of update {self.done + 1}", norm, "a finite one: a lower learning rate")
        rate = learning_rate(self.settings.learning_rate, self.done, len(self.plan))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.done += 1
        loss = [total / count if count else None for total, count in zip(summed, counts, strict=True)]
        seconds = time.perf_counter() - began
        self.history.append(
            {"update": self.done, "loss": loss, "learning_rate": rate, "norm": norm, "seconds": seconds}
        )
        return loss

    def gradient(self, documents: Sequence[Document]) -> tuple[list[float], list[int]]:
        """Leave the gradient of the weighted mean loss in the parameters; summed loss and count of each step."""
        steps = self.settings.steps
        counts = [sum(len(each.roots(step)) for each in documents) for step in range(steps)]
        summed = [0.0] * steps
        self.optimizer.zero_grad(set_to_none=True)
        for document in documents:
            logits, features = read(self.target, document, self.draft.features)
            outputs = unroll(self.draft, document, features.to(self.parameters[0].dtype), steps)
            each = losses(self.draft, document, outputs, logits)
            terms = zip(weights(steps, DECAY), each, counts, strict=True)
            torch.stack([weight * loss / count for weight, loss, count in terms if count]).sum().backward()  # type: ignore[no-untyped-call]
            summed = [total + loss.item() for total, loss in zip(summed, each, strict=True)]
        return summed, counts

    def judge(self) -> Judged:
        """Loss and expected acceptance on the documents held out."""
        found = judge(self.draft, self.target, self.corpus.held_out, self.settings.steps)
        self.history.append({"update": self.done, "held_out": {"acceptance": found.acceptance, "loss": found.loss}})
        return found

    def state(self) -> dict[str, Any]:
        """Everything that the next update depends on, and the history."""
        weights = {key: value.detach() for key, value in self.draft.weights.items()}
        optimizer = self.optimizer.state_dict()
        return {"done": self.done, "history": self.history, "weights": weights, "optimizer": optimizer}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        with torch.no_grad():
            for key, value in self.draft.weights.items():
                value.copy_(state["weights"][key])
        self.optimizer.load_state_dict(state["optimizer"])
        self.done, self.history = state["done"], list(state["history"])


def plan(documents: Sequence[Document], batch: int, epochs: int, seed: int) -> list[list[Document]]:
    """The documents of every update: each epoch shuffled anew, `batch` documents an update."""
    updates = []
    for epoch in range(epochs):
        order = torch.randperm(len(documents), generator=torch.Generator().manual_seed(derived(seed, epoch))).tolist()
        updates += [[documents[i] for i in order[first : first + batch]] for first in range(0, len(order), batch)]
    return updates


def learning_rate(peak: float, done: int, total: int) -> float:
    """The learning rate of the update after `done` of `total`: a linear rise, then a cosine down to 0.

    >>> [round(learning_rate(1.0, done, 40), 3) for done in (0, 1, 20, 39)]
    [0.5, 0.998, 0.5, 0.002]
    """
    rise = max(1, total // WARM_UP)
    return peak * min(1.0, (done + 1) / rise) * 0.5 * (1 + math.cos(math.pi * done / total))
