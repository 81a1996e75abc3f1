"""A causal LM as draft: any model with the target's vocabulary, or the target itself without some layers.

Its cache holds the committed text; the nodes of a tree are appended while drafting and dropped afterwards, and the few
newly committed tokens are fed again at the next root.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.base import Level, check_vocabulary


class CausalDraft:
    """A causal LM drafting for `target`."""

    ids: Tensor | None = None
    features: tuple[int, ...] = ()

    def __init__(self, model: CausalModel, target: CausalModel) -> None:
        check_vocabulary(model.name, model.vocabulary, target.name, target.vocabulary)
        self.model = model
        self.name = model.name
        self.vocabulary = model.vocabulary

    @classmethod
    def skipping(cls, target: CausalModel, layers: Sequence[int]) -> CausalDraft:
        """The target itself without some layers, sharing its weights."""
        return cls(target.without_layers(layers), target)

    def start(self) -> CausalSession:
        """A fresh state for one text."""
        return CausalSession(self.model, TreeCache(), 0)


class CausalSession:
    """A causal draft along one text: `committed` tokens of it are in the cache for good."""

    consumed = 0

    def __init__(self, model: CausalModel, cache: TreeCache, committed: int) -> None:
        self.model = model
        self.cache = cache
        self.committed = committed
        self.level = Level(0, model.device)

    def root(self, tokens: Tensor, features: Tensor) -> Tensor:
        """Feed what the cache lacks of the text; logits [1, V] after it."""
        self.cache.truncate(self.committed)
        past, self.committed = self.committed, len(tokens)
        new = tokens[past:]
        positions = torch.arange(past, len(tokens), device=tokens.device)
        logits, _ = self.model(new, positions, causal(past, len(new), tokens.device), self.cache, last=1)
        self.level = Level(self.committed, tokens.device)
        return logits

    def expand(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Feed one level of nodes; logits [n, V] after each."""
        visible = self.level.below(parents)
        positions = torch.full_like(tokens, self.committed + self.level.depth - 1)
        logits, _ = self.model(tokens, positions, visible, self.cache)
        return logits

    def rewind(self, length: int) -> None:
        """Only the first `length` tokens still hold; the last of them is fed again for its logits."""
        self.committed = min(self.committed, max(length - 1, 0))

    def copy(self) -> CausalSession:
        """An independent state between cycles."""
        twin = CausalSession(self.model, self.cache.copy(), self.committed)
        twin.cache.truncate(self.committed)
        return twin

    def key(self) -> bytes:
        """The committed states as bytes."""
        return self.copy().cache.key()
