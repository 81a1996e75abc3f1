"""The laws that emitted tokens should have been drawn from, read apart from the engine.

The target reads the finished text as any of its users would: plain forwards with transformers' own cache, mask and
positions, nothing of a tree. What is wrong in the engine can therefore not reach the rows that it is held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from gpu_runner.decode.laws import softmax
from gpu_runner.decode.processing import Processing
from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import TOLERANCE, CausalModel, memory, on_device
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.precision import FLOATS
from montecarlo.auditing import TOP
from montecarlo.recording import Row
from rheo_core import InvalidInput

BEST = 64


def check_auditable(processing: Processing, dtype: torch.dtype) -> None:
    """Raise where rounding alone could put a token outside of its law: the rows would convict a lossless engine."""
    if processing.temperature == 0:
        raise InvalidInput(
            "temperature", 0, "above 0: greedy text is compared token by token (bench --temperature 0 does)"
        )
    filtered = processing.top_k is not None or (processing.top_p is not None and processing.top_p < 1)
    if filtered and dtype not in FLOATS:
        raise InvalidInput("dtype", dtype, "float32 or float64 with top-k or top-p: rounding moves their border")


class ReferenceRows:
    """The rows of one text, read as it grows; `best` entries are listed of each, and the rest of their mass.

    What is listed depends on the rows alone, never on the token. Memory grows with the text's length only.
    """

    def __init__(
        self,
        target: CausalModel,
        draft: Draft | None,
        processing: Processing,
        prompt: Sequence[int],
        best: int = BEST,
    ) -> None:
        check_auditable(processing, target.dtype)
        self.target = target
        self.processing = processing
        self.best = best
        self.text = list(prompt)
        self._drafted = None if draft is None else _drafted(draft, target)
        self._layers = () if draft is None else draft.features
        self._cache = DynamicCache(config=target.model.config)
        self._read = 0

    def rows(self, tokens: Sequence[int]) -> list[tuple[Row, Row | None]]:
        """(target row, draft row) of each of `tokens`, which come next in the text; draft rows in target ids."""
        known = len(self.text)
        self.text += tokens
        logits, features = self._forward(self.text[self._read : -1])
        laws = target_laws(logits[-len(tokens) :], self.processing, TOLERANCE[self.target.dtype])
        if self._drafted is None:
            return [(row, None) for row in top_rows(laws, self.best)]
        own = self._drafted.laws(self.text, range(known, len(self.text)), features, self.processing.temperature)
        return list(zip(top_rows(laws, self.best), draft_rows_at(own, laws, self.best), strict=True))

    def _forward(self, tokens: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Logits [n, V] after each of `tokens`, next in the text, and the features that the draft reads there."""
        self._read += len(tokens)
        ids = on_device(tokens, self.target.device)
        named = {self.target.cache_name: self._cache}
        with (
            torch.no_grad(),
            memory(f"{self.target.name}, {len(tokens)} tokens"),
            self.target.watched(self._layers) as seen,
        ):
            logits = self.target.model(input_ids=ids[None], use_cache=True, **named).logits[0]
        streams = [seen[layer] for layer in self._layers]
        return logits, torch.cat(streams, dim=-1)[0] if streams else logits[:, :0]


def target_laws(logits: Tensor, processing: Processing, rounding: float) -> Tensor:
    """The processed laws [n, V] in float64.

    A token within `rounding` of the border of top-k or top-p may be in by one forward and out by another; there the law
    is the mean of both, so that it is never called impossible.
    """
    wide = logits.to(torch.float64)
    law = processing.law(wide)
    top_k, top_p = processing.top_k, processing.top_p
    if top_k is not None and top_k < wide.shape[-1]:
        least = wide.topk(top_k, dim=-1).values[:, -1:]
        wide = torch.where((wide < least) & (wide >= least - rounding), least, wide)  # ties with the k-th logit stay
    if top_p is not None:
        top_p = min(1.0, top_p + rounding / 4)  # a softmax moves by at most a quarter of what its logits do
    return (law + replace(processing, top_p=top_p).law(wide)) / 2


def top_rows(laws: Tensor, best: int) -> list[Row]:
    """Rows of the `best` most probable tokens and the rest; whole rows where that is no shorter."""
    if best + 1 >= laws.shape[-1]:
        return [Row(None, row, 0.0) for row in laws.cpu().numpy()]
    top = laws.topk(best, dim=-1)
    rest = (1 - top.values.sum(-1)).clamp(min=0)
    return [
        Row(ids, probs, float(left))
        for ids, probs, left in zip(
            top.indices.cpu().numpy(), top.values.cpu().numpy(), rest.cpu().numpy(), strict=True
        )
    ]


def draft_rows_at(drafts: Tensor, targets: Tensor, best: int) -> list[Row]:
    """Draft rows [n, V] over the tokens that the target's rows list, and the draft's own ten best."""
    if best + 1 >= targets.shape[-1]:
        return [Row(None, row, 0.0) for row in drafts.cpu().numpy()]
    columns = torch.cat([targets.topk(best, dim=-1).indices, drafts.topk(TOP, dim=-1).indices], dim=-1)
    probs = drafts.gather(-1, columns).cpu().numpy()
    rows = []
    for ids, row in zip(columns.cpu().numpy(), probs, strict=True):
        own, places = np.unique(ids, return_index=True)
        kept: NDArray[np.float64] = row[places]
        rows.append(Row(own, kept, max(0.0, 1 - float(kept.sum()))))
    return rows


def _drafted(draft: Draft, target: CausalModel) -> _Causal | _Stepwise:
    return _Causal(draft.model) if isinstance(draft, CausalDraft) else _Stepwise(draft, target.vocabulary)


class _Causal:
    """A causal draft reads all new tokens in one forward."""

    def __init__(self, model: CausalModel) -> None:
        self.model = model
        self.cache = TreeCache()

    def laws(self, text: Sequence[int], places: range, features: Tensor, temperature: float) -> Tensor:
        """The draft's laws [n, V] at the `places` of the text; `features` are those of the text's new positions."""
        held, device = self.cache.length, self.model.device
        new = on_device(text[held:-1], device)
        positions = torch.arange(held, len(text) - 1, device=device)
        logits, _ = self.model(new, positions, causal(held, len(new), device), self.cache, last=len(places))
        return softmax(logits.to(torch.float64), temperature)


class _Stepwise:
    """Any other draft stands at one place of the text after another, as at the root of a tree."""

    def __init__(self, draft: Draft, size: int) -> None:
        self.draft = draft
        self.size = size
        self.session = draft.start()
        self.unread: Tensor | None = None

    def laws(self, text: Sequence[int], places: range, features: Tensor, temperature: float) -> Tensor:
        """The draft's laws [n, V] in target ids at the `places` of the text."""
        known = features if self.unread is None else torch.cat([self.unread, features])
        ids = on_device(text, features.device)
        logits = []
        for place in places:
            new = place - 1 - self.session.consumed
            logits.append(self.session.root(ids[:place], known[:new]))
            known = known[new:]
        self.unread = known
        own = softmax(torch.cat(logits).to(torch.float64), temperature)
        if self.draft.ids is None:
            return own
        return own.new_zeros(len(own), self.size).index_copy_(-1, self.draft.ids, own)
