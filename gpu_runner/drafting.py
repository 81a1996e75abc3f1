"""The layered construction of the draft tree on a device: K parents a level, D levels, keep the R best nodes.

The twin of `rheo_core.drafting.layered`. All shapes follow from K, D, R and the vocabulary, so the loop never waits for
the device: draws are made there (`draws.Seeded`), and the finished tree is copied to the host once. Only draws taken
from a host chooser, for tests and certificates, wait at each level.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from gpu_runner.draws import Draws
from gpu_runner.laws import rank
from gpu_runner.pool import Pools, TorchProxy
from gpu_runner.rows import DraftRows, Tails
from rheo_core import InvalidInput
from rheo_core.tree import ROOT, Tree, TreeShape

Rank = Callable[["Nodes"], Tensor]
Part = TypeVar("Part", "Nodes", Tails)


class Expander(Protocol):
    """What a draft model does in one cycle."""

    def root(self) -> DraftRows:
        """The row at the text's end: one row."""
        ...

    def expand(self, tokens: Tensor, parents: Tensor) -> DraftRows:
        """Rows after the draft ids `tokens` [n], children of the places `parents` [n] of the level before."""
        ...


@dataclass(frozen=True)
class Nodes:
    """Nodes as tensors [n]: draft id, row of the parent (-1: root), depth, slot, kind, path score, number of its row.

    `row` is the number of the draft row below the node among all rows of the tree (0: the root's), -1 where the node
    was not expanded.
    """

    token: Tensor
    parent: Tensor
    depth: Tensor
    slot: Tensor
    kind: Tensor
    score: Tensor
    row: Tensor

    def __len__(self) -> int:
        return len(self.token)

    def target_ids(self, ids: Tensor | None) -> Tensor:
        """The nodes' tokens in the target's vocabulary."""
        return self.token if ids is None else ids[self.token]

    def host(self, ids: Tensor | None) -> Tree:
        """The nodes as a tree of rheo_core, on the host: the one place where drafting waits for the device."""
        columns = (self.target_ids(ids), self.parent, self.depth, self.slot, self.kind)
        token, parent, depth, slot, kind = torch.stack(columns).cpu().numpy()
        score = self.score.cpu().numpy()
        if np.isnan(score).any():
            raise InvalidInput("draft row", "NaN", "finite logits (-inf for a masked token)")
        return Tree(token, parent, depth, slot, kind, score)

    def take(self, order: Tensor) -> Nodes:
        """The nodes `order` [n'], whose parents must be among them, with parents renumbered."""
        renumbered = torch.full((len(self) + 1,), ROOT, dtype=torch.long, device=order.device)
        renumbered[order] = torch.arange(len(order), device=order.device)
        kept = Nodes(*(getattr(self, field.name)[order] for field in fields(self)))
        return Nodes(**{**vars(kept), "parent": renumbered[kept.parent]})


@dataclass(frozen=True)
class Drafted:
    """The kept nodes in rank order, all nodes as they were made, the draft rows, and the tail laws of all of them.

    `ids` maps draft to target ids (None: one vocabulary); `tails` is None where no slot is sampled.
    """

    nodes: Nodes
    unpruned: Nodes
    ids: Tensor | None
    rows: tuple[DraftRows, ...]
    tails: Tails | None

    @cached_property
    def tree(self) -> Tree:
        """The tree on the host."""
        return self.nodes.host(self.ids)

    @property
    def target_ids(self) -> Tensor:
        """Target ids of the kept nodes."""
        return self.nodes.target_ids(self.ids)

    def tail(self, node: int) -> Tails:
        """q~ below a node (-1: the root) that has a sampled child."""
        if self.tails is None:
            raise InvalidInput("node", node, "a node with a sampled child")
        return self.tails.row(self._row(node))

    def score(self, node: int) -> Tensor:
        """The score law [draft V] below a node that was expanded (-1: the root)."""
        return self.score_of_row(self._row(node))

    def score_of_row(self, row: int) -> Tensor:
        """The score law [draft V] of a row by its number."""
        for level in self.rows:
            if row < len(level):
                return level.score[row]
            row -= len(level)
        raise InvalidInput("row", row, "a row of the tree")

    def _row(self, node: int) -> int:
        return 0 if node == ROOT else self._row_numbers[node]

    @cached_property
    def _row_numbers(self) -> list[int]:
        numbers: list[int] = self.nodes.row.tolist()
        return numbers


def by_score(nodes: Nodes) -> Tensor:
    """Score falling, then depth rising, then left to right, as the nodes stand: ranks are slots, never tokens."""
    return rank(nodes.score)


def layered(
    draft: Expander,
    shape: TreeShape,
    lead: int,
    proxy: TorchProxy,
    draws: Draws,
    *,
    cycle: int = 0,
    ids: Tensor | None = None,
    order: Rank = by_score,
) -> Drafted:
    """Prune_R(U): expand the K best nodes of each level, D levels deep, then keep the R best nodes (appendix C.1).

    `lead` is m; `ids[draft id]` = target id (None: one vocabulary); `order` ranks nodes.
    """
    growing = growth(draft.root(), shape, lead, proxy, draws, cycle=cycle, ids=ids, order=order)
    try:
        asked = next(growing)
        while True:
            asked = growing.send(draft.expand(*asked))
    except StopIteration as ended:
        drafted: Drafted = ended.value
        return drafted


def growth(
    root: DraftRows,
    shape: TreeShape,
    lead: int,
    proxy: TorchProxy,
    draws: Draws,
    *,
    cycle: int = 0,
    ids: Tensor | None = None,
    order: Rank = by_score,
) -> Generator[tuple[Tensor, Tensor], DraftRows, Drafted]:
    """`layered` as a generator: it asks for the rows of each level's nodes (tokens, parents as in `expand`).

    Several trees can so be grown level by level together, over one draft.
    """
    rows = root
    device, size = rows.score.device, rows.score.shape[-1]
    frontier = torch.full((1,), ROOT, device=device)
    paths = torch.empty(1, 0, dtype=torch.long, device=device)
    scores = rows.score.new_ones(1)
    levels: list[Nodes] = []
    drafted: list[DraftRows] = []
    tails: list[Tails] = []
    started = expanded = 0
    for depth in range(1, shape.depth + 1):
        drafted.append(rows)
        pools = Pools(rows, shape.width, lead, proxy)
        sampled = None if pools.tails is None else draws.tails(pools.tails, size, paths, cycle)
        tails += [] if pools.tails is None else [pools.tails]
        level = _level(pools, sampled, frontier, scores, depth)
        levels.append(level)
        if depth == shape.depth:
            break
        expanded += len(rows)
        chosen = order(level)[: shape.width]
        level.row[chosen] = torch.arange(expanded, expanded + len(chosen), device=device)
        parents = chosen // pools.size
        paths = torch.cat([paths[parents], level.slot[chosen, None]], dim=-1)
        frontier, scores = chosen + started, level.score[chosen]
        started += len(level)
        rows = yield level.token[chosen], parents
    nodes = _joined(levels, Nodes)
    kept = nodes.take(order(nodes)[: shape.budget])
    return Drafted(kept, nodes, ids, tuple(drafted), _joined(tails, Tails) if tails else None)


def _joined(parts: Sequence[Part], kind: type[Part]) -> Part:
    return kind(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(kind)))


def _level(pools: Pools, sampled: Tensor | None, frontier: Tensor, scores: Tensor, depth: int) -> Nodes:
    """The children of a frontier [n], parent by parent in rank order, siblings in slot order."""
    slots = pools.slots(sampled)
    n, width = slots.token.shape
    return Nodes(
        token=slots.token.reshape(-1),
        parent=frontier.repeat_interleave(width),
        depth=torch.full((n * width,), depth, device=frontier.device),
        slot=torch.arange(width, device=frontier.device).repeat(n),
        kind=slots.kind.reshape(-1),
        score=(scores[:, None] * slots.score).reshape(-1),
        row=torch.full((n * width,), -1, device=frontier.device),
    )
