"""The layered construction of the draft tree on a device: K parents a level, D levels, keep the R best nodes.

The twin of `rheo_core.construction.layered`. All shapes follow from K, D, R and the vocabulary, so the loop never waits
for the device: draws are made there (`draws.Seeded`), and the finished tree is copied to the host once. Only draws
taken from a host chooser, for tests and certificates, wait at each level.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from gpu_runner.decode.draft_rows import DraftRows, Tails
from gpu_runner.decode.draws import Draws
from gpu_runner.decode.laws import rank
from gpu_runner.decode.pool import Pools, TorchProxy
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
        """The nodes as a tree of rheo_core, on the host."""
        return self.read(ids)[0]

    def read(self, ids: Tensor | None) -> tuple[Tree, list[int]]:
        """The tree and the numbers of its nodes' rows, in one copy: the one place where drafting waits."""
        bits = self.score.to(torch.float64).view(torch.long)  # of a float type, so that all columns are one tensor
        columns = (self.target_ids(ids), self.parent, self.depth, self.slot, self.kind, self.row, bits)
        token, parent, depth, slot, kind, row, raw = torch.stack(columns).cpu().numpy()
        score = raw.view(np.float64).astype(np.float32 if self.score.dtype == torch.float32 else np.float64)
        if np.isnan(score).any():
            raise InvalidInput("draft row", "NaN", "finite logits (-inf for a masked token)")
        return Tree(token, parent, depth, slot, kind, score), row.tolist()

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
        return self._read[0]

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
        return 0 if node == ROOT else self._read[1][node]

    @cached_property
    def _read(self) -> tuple[Tree, list[int]]:
        return self.nodes.read(self.ids)


def by_score(nodes: Nodes) -> Tensor:
    """Score falling, then depth rising, then left to right, as the nodes stand: ranks are slots, never tokens."""
    return rank(nodes.score)


@dataclass(frozen=True)
class Frontier:
    """The nodes of a level that are expanded [n]: number among all nodes (-1: the root), depth, score, draw's address.

    `nodes` and `rows` [] count those of the tree so far, on the device: a level then has the same inputs at any depth.
    """

    number: Tensor
    depth: Tensor
    score: Tensor
    address: Tensor
    nodes: Tensor
    rows: Tensor

    @classmethod
    def root(cls, rows: DraftRows, draws: Draws, cycle: int) -> Frontier:
        """The root alone."""
        device = rows.given.device
        return cls(
            number=torch.full((1,), ROOT, device=device),
            depth=torch.zeros(1, dtype=torch.long, device=device),
            score=rows.given.new_ones(1),
            address=draws.root(cycle, device),
            nodes=torch.zeros((), dtype=torch.long, device=device),
            rows=torch.ones((), dtype=torch.long, device=device),
        )


@dataclass(frozen=True)
class Grown:
    """A level: the children of a frontier, the tail laws of its nodes, and what goes on from here (None: nothing).

    `asked` are draft ids [n'] and places of the parents [n'] of the next frontier, as in `Expander.expand`.
    """

    nodes: Nodes
    tails: Tails | None
    asked: tuple[Tensor, Tensor] | None = None
    frontier: Frontier | None = None


@dataclass(frozen=True)
class Growing:
    """What all levels of a tree share: K, m, the proxy, the ranking of nodes."""

    width: int
    lead: int
    proxy: TorchProxy
    order: Rank


class Level(Protocol):
    """`level`, or something that does the same."""

    def __call__(self, rows: DraftRows, frontier: Frontier, how: Growing, draws: Draws, last: bool) -> Grown:
        """One level of the tree, from the rows of its parents."""
        ...


def level(rows: DraftRows, frontier: Frontier, how: Growing, draws: Draws, last: bool) -> Grown:
    """One level of the tree, from the rows of its parents: pools, draws, scores, and the K best to go on from.

    The children stand parent by parent in rank order, siblings in slot order.
    """
    pools = Pools(rows, how.width, how.lead, how.proxy)
    sampled = None if pools.tails is None else draws.tails(pools.tails, rows.given.shape[-1], frontier.address)
    slots = pools.slots(sampled)
    n, size = slots.token.shape
    device = frontier.number.device
    nodes = Nodes(
        token=slots.token.reshape(-1),
        parent=frontier.number.repeat_interleave(size),
        depth=(frontier.depth + 1).repeat_interleave(size),
        slot=torch.arange(size, device=device).repeat(n),
        kind=slots.kind.reshape(-1),
        score=(frontier.score[:, None] * slots.score).reshape(-1),
        row=torch.full((n * size,), -1, device=device),
    )
    if last:
        return Grown(nodes, pools.tails)
    chosen = how.order(nodes)[: how.width]
    parents = chosen // size
    nodes.row[chosen] = frontier.rows + torch.arange(len(chosen), device=device)
    below = Frontier(
        number=frontier.nodes + chosen,
        depth=nodes.depth[chosen],
        score=nodes.score[chosen],
        address=draws.below(frontier.address[parents], nodes.slot[chosen]),
        nodes=frontier.nodes + n * size,
        rows=frontier.rows + len(chosen),
    )
    return Grown(nodes, pools.tails, (nodes.token[chosen], parents), below)


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
    grow: Level = level,
) -> Drafted:
    """Prune_R(U): expand the K best nodes of each level, D levels deep, then keep the R best nodes (appendix C.1).

    `lead` is m; `ids[draft id]` = target id (None: one vocabulary); `order` ranks nodes; `grow` makes a level.
    """
    growing = growth(draft.root(), shape, lead, proxy, draws, cycle=cycle, ids=ids, order=order, grow=grow)
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
    grow: Level = level,
) -> Generator[tuple[Tensor, Tensor], DraftRows, Drafted]:
    """`layered` as a generator: it asks for the rows of each level's nodes (tokens, parents as in `expand`).

    Several trees can so be grown level by level together, over one draft.
    """
    how = Growing(shape.width, lead, proxy, order)
    drafted = [root]
    grown = grow(root, Frontier.root(root, draws, cycle), how, draws, last=shape.depth == 1)
    levels = [grown]
    while grown.asked is not None and grown.frontier is not None:
        drafted.append((yield grown.asked))
        grown = grow(drafted[-1], grown.frontier, how, draws, last=len(drafted) == shape.depth)
        levels.append(grown)
    nodes = _joined([each.nodes for each in levels], Nodes)
    tails = [each.tails for each in levels if each.tails is not None]
    kept = nodes.take(order(nodes)[: shape.budget])
    return Drafted(kept, nodes, ids, tuple(drafted), _joined(tails, Tails) if tails else None)


def _joined(parts: Sequence[Part], kind: type[Part]) -> Part:
    return kind(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(kind)))
