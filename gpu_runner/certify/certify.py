"""The engine certified on tiny random models: every method, every kind of draft, every draw and coin.

The models are made on the spot, so this needs no download and runs where the engine will run, on a CPU or a GPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from gpu_runner.certify.engine_law import Remembering, engine_law
from gpu_runner.certify.faults import Fault
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.processing import Processing
from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import InvalidInput, TreeMethod, TreeShape

DRAFTS = ("skip", "causal", "eagle3")
PROMPT = (1, 2, 0)
LENGTH = 3
ROUNDING = 1e-12


@dataclass(frozen=True)
class Verdict:
    """Total variation between the exact law of the engine's first tokens and the target's.

    A planted fault may be refused by the engine itself: `refusal` is then what it said, and there is no law.
    """

    draft: str
    method: str
    total_variation: float | None
    refusal: str | None = None

    @property
    def lossless(self) -> bool:
        """Whether the laws differ by no more than float64 rounding."""
        return self.total_variation is not None and self.total_variation <= ROUNDING


def certify_engine(
    kind: str, label: str, method: TreeMethod, shape: TreeShape, device: torch.device, fault: Fault | None = None
) -> Verdict:
    """The verdict on one method with one kind of draft, after a fixed prompt, for the first three tokens."""
    vocabulary = 4 if method.lead == 2 or (kind == "eagle3" and method.lead == 1) else 3
    with tempfile.TemporaryDirectory() as folder:
        target, draft = tiny_pair(kind, vocabulary, device, Path(folder))
        engine = Engine(target, draft, method, shape, fault=fault)
        try:
            law = engine_law(engine, PROMPT, LENGTH)
        except InvalidInput as error:
            if fault is None:
                raise
            return Verdict(kind, label, None, str(error))
    right = plain_law(target, PROMPT, LENGTH, engine.processing)
    distance = sum(abs(float(law.get(text, 0)) - right.get(text, 0.0)) for text in law.keys() | right.keys()) / 2
    return Verdict(kind, label, distance)


def tiny_pair(kind: str, vocabulary: int, device: torch.device, folder: Path) -> tuple[CausalModel, Draft]:
    """A tiny target and a draft of one kind; the head drafts over a vocabulary of its own, one token smaller."""
    target = Remembering(tiny_model("llama", vocabulary, layers=3, seed=3, device=device))
    if kind == "skip":
        return target, CausalDraft(Remembering(target.without_layers([1])), target)
    if kind == "causal":
        model = Remembering(tiny_model("qwen3", vocabulary, layers=1, seed=8, device=device))
        return target, CausalDraft(model, target)
    if kind == "eagle3":
        return target, EagleDraft.load(tiny_head(folder, vocabulary, vocabulary - 1, seed=2), target)
    raise InvalidInput("draft", kind, f"one of {', '.join(DRAFTS)}")


def plain_law(
    target: CausalModel, prompt: Sequence[int], length: int, processing: Processing
) -> dict[tuple[int, ...], float]:
    """The target's own law of the first `length` tokens, from plain forwards without cache or tree."""
    masses: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(length):
        longer: dict[tuple[int, ...], float] = {}
        for text, mass in masses.items():
            ids = torch.tensor([*prompt, *text], device=target.device)
            places = torch.arange(len(ids), device=target.device)
            logits, _ = target(ids, places, causal(0, len(ids), target.device), TreeCache(), last=1)
            for token, p in enumerate(processing.law(logits)[0].tolist()):
                longer[*text, token] = mass * p
        masses = longer
    return masses
