"""Verification with one read: every coin that any walk down the tree could toss, computed on the device at once.

On a GPU each look from the host costs more than the arithmetic. Within a node the probability of a coin depends on the
rejections before it alone, so the coins of all nodes are one table [nodes, candidates], and what would be emitted after
the last rejection one column; the host reads both together and walks. Rules, orders and roundings are those of
`verification`, which stays the plain statement of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.decode.draws import Draws, Seeded
from gpu_runner.decode.laws import excess, position, total
from gpu_runner.decode.verification import TorchVerify, algorithm_1, check_mass, rrsw, vanilla
from gpu_runner.model.causal_lm import on_device
from rheo_core import SAMPLED, InvalidInput, Tree
from rheo_core.tree import ROOT


def _sampled_first(count: int, sampled: int) -> list[int]:
    return sorted(range(count), key=lambda i: i != sampled)


def _in_slot_order(count: int, sampled: int) -> list[int]:
    return list(range(count))


ORDERS: dict[TorchVerify, Callable[[int, int], list[int]]] = {
    algorithm_1: _sampled_first,
    rrsw: _in_slot_order,
    vanilla: _in_slot_order,
}
"""The order in which a rule tries a node's candidates; rules that are not here are walked node by node."""


@dataclass(frozen=True)
class Tries:
    """What is tried at one node, in order: its children's places, and which of them is tested against q~ (-1: none)."""

    node: int
    children: tuple[int, ...]
    order: tuple[int, ...]
    sampled: int


def tries(tree: Tree, verify: TorchVerify) -> list[Tries]:
    """The root and every node of a tree, with what is tried there."""
    found = []
    for node in [ROOT, *range(len(tree))]:
        children = tuple(tree.children(node))
        sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
        # vanilla knows no sampled token: all its candidates are point masses
        tested = -1 if verify is vanilla else sampled
        found.append(Tries(node, children, tuple(ORDERS[verify](len(children), tested)), tested))
    return found


def descend_at_once(
    tree: Tree,
    p: Tensor,
    tail: Callable[[int], Tensor],
    verify: TorchVerify,
    draws: Draws,
    cycle: int = 0,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`verification.descend` with one read: `p` [1 + R, V] are the target's rows, the root's first."""
    places = tries(tree, verify)
    table, residual = coins(tree, places, p, tail)
    columns = [table, p.sum(-1, dtype=torch.float64)[:, None]]
    if isinstance(draws, Seeded):
        columns.append(_emitted(residual, tree, places, draws, cycle)[:, None].to(torch.float64))
    read = torch.cat(columns, dim=-1).tolist()
    width = table.shape[-1]
    node, tokens, path = ROOT, (), ()  # type: tuple[int, tuple[int, ...], tuple[int, ...]]
    while True:
        row, here = read[node + 1], places[node + 1]
        check_mass(row[width], p.shape[-1], p.dtype)
        at = (cycle, tree.path(node))
        accepted = None
        for step, candidate in enumerate(here.order):
            if row[step] < 0:
                raise InvalidInput("tail", 0.0, "a positive probability at the sampled candidate: it was drawn from it")
            if draws.accept(row[step], ("coin", *at, candidate)):
                accepted = here.children[candidate]
                break
        if accepted is None:
            last = int(row[-1]) if isinstance(draws, Seeded) else draws.index(residual[node + 1], ("emit", *at, 0))
            return (*tokens, last), path
        tokens, path, node = (*tokens, int(tree.token[accepted])), (*path, accepted), accepted


def coins(tree: Tree, places: Sequence[Tries], p: Tensor, tail: Callable[[int], Tensor]) -> tuple[Tensor, Tensor]:
    """The probability of each coin in the order of its node [n, W], in float64, and the residuals after all [n, V].

    -1 stands for a sampled candidate that q~ gives no mass; a coin is sure where rejecting would leave none.
    """
    device, n = p.device, len(places)
    width = max((len(place.order) for place in places), default=0)
    tested = [i for i, place in enumerate(places) if place.sampled != -1]
    q = torch.zeros_like(p)
    if tested:
        q[on_device(tested, device)] = torch.stack([tail(places[i].node) for i in tested])
    token, kind = [], []
    for place in places:
        ids = [int(tree.token[place.children[i]]) for i in place.order]
        token += [*ids, *[0] * (width - len(ids))]
        kind += [*(1 if i == place.sampled else 2 for i in place.order), *[0] * (width - len(ids))]
    tokens, kinds = (on_device(each, device).view(n, width) for each in (token, kind))
    r, found = p, [p.new_zeros(n, 0, dtype=torch.float64)]
    for step in range(width):
        candidates, point = tokens[:, step : step + 1], kinds[:, step : step + 1] != 1
        at, drawn = r.gather(-1, candidates), q.gather(-1, candidates)
        left = torch.where(point, r.scatter(-1, candidates, 0), excess(r, q))
        mass = total(left)[:, None]
        probability = torch.where(point, at, at / drawn).to(torch.float64).clamp(max=1)
        probability = torch.where(mass > 0, probability, 1)
        found.append(torch.where(point | (drawn > 0), probability, -1))
        r = torch.where(kinds[:, step : step + 1] > 0, left / mass, r)
    return torch.cat(found, dim=-1), r


def _emitted(residual: Tensor, tree: Tree, places: Sequence[Tries], draws: Seeded, cycle: int) -> Tensor:
    """The token that each node would emit once its candidates are rejected [n]."""
    numbers = [draws.number(("emit", cycle, tree.path(place.node), 0)) for place in places]
    u = torch.tensor(numbers, dtype=torch.float64)
    if residual.device.type == "cuda":
        u = u.pin_memory().to(residual.device, non_blocking=True)
    return position(residual, u)
