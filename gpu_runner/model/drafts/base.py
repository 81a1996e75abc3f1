"""What the engine asks of a draft model, and the bookkeeping of tree attention that all drafts share."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from rheo_core import InvalidInput


class Draft(Protocol):
    """A draft model for one target."""

    name: str
    vocabulary: int
    ids: Tensor | None
    """Target ids of the draft ids [draft V], or None where the vocabularies are one."""
    features: tuple[int, ...]
    """Target layers whose entering residual stream the draft reads."""

    def start(self) -> DraftSession:
        """A fresh state for one text."""
        ...


class DraftSession(Protocol):
    """A draft model's state along one text. Between cycles it knows committed tokens only."""

    @property
    def consumed(self) -> int:
        """Positions of the text whose target features have been read."""
        ...

    def root(self, tokens: Tensor, features: Tensor) -> Tensor:
        """Logits [1, draft V] after the text `tokens` [n]; `features` are those of positions consumed..n-2."""
        ...

    def expand(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Logits [n, draft V] after target ids `tokens` [n], children of the places `parents` of the level before."""
        ...

    def rewind(self, length: int) -> None:
        """Only the first `length` tokens of the text still hold."""
        ...

    def copy(self) -> DraftSession:
        """An independent state."""
        ...

    def key(self) -> bytes:
        """The state as bytes."""
        ...


class Level:
    """Which keys the nodes of a level see: the committed ones, their ancestors and themselves."""

    def __init__(self, committed: int, device: torch.device) -> None:
        self.visible = torch.ones(1, committed, dtype=torch.bool, device=device)
        self.depth = 0

    def below(self, parents: Tensor) -> Tensor:
        """The next level, nodes hanging from the places `parents` [n] of this one: bool [n, keys so far + n]."""
        n, held = len(parents), self.visible.shape[-1]
        inherited = self.visible[parents]
        self.visible = torch.cat([inherited, torch.eye(n, dtype=torch.bool, device=parents.device)], dim=-1)
        self.depth += 1
        assert self.visible.shape == (n, held + n)
        return self.visible


def check_vocabulary(draft: str, size: int, target: str, target_size: int) -> None:
    """Raise unless draft and target have one vocabulary."""
    if size != target_size:
        raise InvalidInput(f"vocabulary of draft {draft}", size, f"that of target {target}, {target_size}")
