"""Documents packed into rows: several short ones side by side, kept apart by the attention mask.

The order is a function of seed and epoch alone, so the position in the data is one number, and a resumed run sees the
same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.decode.draws import derived
from gpu_runner.training.documents import Document


@dataclass(frozen=True)
class Row:
    """Documents one behind the other, n tokens in all.

    tokens [n]; positions [n] within the document; last [n] the place of the document's last token; first [n] the
    position of the first countable root; visible [n, n] what each token sees: its document up to itself.
    """

    tokens: Tensor
    positions: Tensor
    last: Tensor
    first: Tensor
    visible: Tensor

    def __len__(self) -> int:
        return len(self.tokens)

    def ahead(self, by: int) -> Tensor:
        """The tokens `by` places on, in the same document (its last one where there are none)."""
        return self.tokens[self.places(by)]

    def places(self, by: int) -> Tensor:
        """Places [n] of those tokens."""
        return torch.minimum(torch.arange(len(self), device=self.tokens.device) + by, self.last)

    def counted(self, step: int) -> Tensor:
        """Roots [m] whose prediction at a step counts: see `Document.counted`."""
        here = torch.arange(len(self), device=self.tokens.device)
        return ((self.positions >= self.first) & (here + 2 + step <= self.last)).nonzero()[:, 0]


def row_of(documents: Sequence[Document], device: torch.device) -> Row:
    """Pack documents into one row."""
    sizes = torch.tensor([len(each.tokens) for each in documents])
    ends = sizes.cumsum(0)
    owner = torch.arange(len(sizes)).repeat_interleave(sizes)
    positions = torch.arange(int(ends[-1])) - (ends - sizes)[owner]
    first = torch.tensor([max(each.start - 2, 0) for each in documents])[owner]
    tokens = torch.tensor([token for each in documents for token in each.tokens])
    tokens, positions, last, first, owner = (
        each.to(device) for each in (tokens, positions, ends[owner] - 1, first, owner)
    )
    visible = (owner[:, None] == owner) & (positions[:, None] >= positions)
    return Row(tokens, positions, last, first, visible)


Plan = list[list[list[Document]]]
"""For every update its rows, for every row its documents."""


def plan(documents: Sequence[Document], length: int, batch: int, epochs: int, seed: int) -> Plan:
    """All updates of a training: every epoch shuffled anew, rows of at most `length` tokens, `batch` rows an update."""
    updates: Plan = []
    for epoch in range(epochs):
        order = torch.randperm(len(documents), generator=torch.Generator().manual_seed(derived(seed, epoch)))
        rows = packed([documents[i] for i in order.tolist()], length)
        updates += [rows[i : i + batch] for i in range(0, len(rows), batch)]
    return updates


def packed(documents: Sequence[Document], length: int) -> list[list[Document]]:
    """Rows of at most `length` tokens, documents in their order."""
    rows: list[list[Document]] = []
    room = 0
    for each in documents:
        if len(each.tokens) > room:
            rows.append([])
            room = length
        rows[-1].append(each)
        room -= len(each.tokens)
    return rows
