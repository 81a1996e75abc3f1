"""Models that are tables: the same rows for rheo_core and for the torch twin."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch

from gpu_runner.decode.draft_rows import DraftRows
from gpu_runner.decode.drafting import Drafted, layered
from gpu_runner.decode.draws import Draws
from gpu_runner.decode.pool import torch_proxy
from gpu_runner.decode.verification import descend, torch_verify
from rheo_core import DraftRow, TreeMethod, TreeShape


@dataclass
class Tables:
    """Prefix-dependent random rows. `grain` 0: generic floats; else multiples of 1/grain (ties, zeros)."""

    seed: int
    size: int
    draft_size: int
    dtype: type = np.float64
    grain: int = 0
    split: bool = False
    ids: tuple[int, ...] | None = None
    known: dict[tuple[str, tuple[int, ...]], np.ndarray] = field(default_factory=dict)

    def row(self, name, prefix, size):
        key = (name, prefix)
        if key not in self.known:
            digest = hashlib.blake2b(repr((self.seed, key)).encode(), digest_size=8).digest()
            rng = np.random.default_rng(int.from_bytes(digest, "big"))
            if self.grain:
                law = np.bincount(rng.integers(size, size=self.grain), minlength=size) / self.grain
            else:
                law = rng.dirichlet(np.full(size, 0.6))
            self.known[key] = law.astype(self.dtype)
        return self.known[key]

    def target(self, prefix):
        return self.row("target", tuple(prefix), self.size)

    def score(self, prefix):
        return self.row("score", tuple(prefix), self.draft_size)

    def sampling(self, prefix):
        return self.row("sampling", tuple(prefix), self.draft_size) if self.split else self.score(prefix)

    def draft(self, prefix):
        return DraftRow.pair(self.score(prefix), self.sampling(prefix)) if self.split else self.score(prefix)


class TableDraft:
    """The draft side of `Tables` as the twin asks for it."""

    def __init__(self, tables: Tables, prefix: tuple[int, ...]) -> None:
        self.tables = tables
        self.frontier = [tuple(prefix)]

    def root(self):
        return self._rows()

    def expand(self, tokens, parents):
        ids = self.tables.ids
        mapped = [token if ids is None else ids[token] for token in tokens.tolist()]
        self.frontier = [(*self.frontier[at], token) for at, token in zip(parents.tolist(), mapped, strict=True)]
        return self._rows()

    def _rows(self):
        score = torch.from_numpy(np.stack([self.tables.score(prefix) for prefix in self.frontier]))
        sampling = torch.from_numpy(np.stack([self.tables.sampling(prefix) for prefix in self.frontier]))
        return DraftRows.laws(score, sampling if self.tables.split else None)


def twin_cycle(
    tables: Tables, method: TreeMethod, shape: TreeShape, prefix: tuple[int, ...], draws: Draws
) -> tuple[Drafted, tuple[int, ...]]:
    """One cycle of the twin: the drafted tree and the emitted tokens."""
    ids = None if tables.ids is None else torch.tensor(tables.ids)
    drafted = layered(TableDraft(tables, prefix), shape, method.leads(shape), torch_proxy(method.proxy), draws, ids=ids)
    tree = drafted.tree

    def target(node):
        return torch.from_numpy(tables.target((*prefix, *tree.tokens_to(node))))

    def tail(node):
        return drafted.tail(node).dense(tables.size, ids)[0]

    tokens, _ = descend(tree, target, tail, torch_verify(method.verify), method.leads(shape), draws)
    return drafted, tokens
