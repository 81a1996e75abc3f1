"""Planted faults: engines that are wrong in one part each, as real decoders have been.

A check that cannot fail shows nothing. Each fault here replaces one part of the engine, and the certificate and the
audits must refute it; what the fault does is its first line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor

from gpu_runner.decode.drafting import Drafted, Nodes
from gpu_runner.decode.draws import Draws
from gpu_runner.decode.engine import Parts
from gpu_runner.decode.laws import total, zeroed
from gpu_runner.decode.pool import PROXIES
from gpu_runner.decode.verification import TorchVerify, sequential_rejection
from rheo_core import InvalidInput, Tree, proxies
from rheo_core.tree import ROOT
from rheo_core.verification import Place, Verdict

Fault = Callable[[Parts], Parts]


def verify_with_q(parts: Parts) -> Parts:
    """The sampled token is tested against q instead of the tail law q~ that it was drawn from."""

    def tail(drafted: Drafted, node: int, size: int, ids: Tensor | None) -> Tensor:
        score = drafted.score(node)
        return score if ids is None else score.new_zeros(size).scatter_(-1, ids, score)

    return replace(parts, tail=tail)


def shifted_map(parts: Parts) -> Parts:
    """The tail law is read through an id map that is shifted by one draft id.

    With a sparse support the sampled token then mostly has probability 0 there, which the engine refuses by itself.
    """

    def tail(drafted: Drafted, node: int, size: int, ids: Tensor | None) -> Tensor:
        known = torch.arange(size, device=drafted.target_ids.device) if ids is None else ids
        return drafted.tail(node).dense(size, known.roll(1))[0]

    return replace(parts, tail=tail)


def residual_from_p(parts: Parts) -> Parts:
    """After the sampled token is rejected, the rest is verified under p itself."""
    return replace(parts, verify=partial(_after_rejection, lambda p, q, y: p))


def residual_without_token(parts: Parts) -> Parts:
    """After the sampled token is rejected, only its own entry is taken out of p."""
    return replace(parts, verify=partial(_after_rejection, lambda p, q, y: _law(zeroed(p, y))))


def _after_rejection(
    left: Callable[[Tensor, Tensor, int], Tensor],
    p: Tensor,
    tail: Tensor | None,
    candidates: Sequence[int],
    sampled: int,
    lead: int,
    draws: Draws,
    at: Place,
) -> Verdict:
    rest, r = list(range(len(candidates))), p
    if sampled != -1 and tail is not None:
        y = candidates[sampled]
        rest.remove(sampled)
        if draws.accept(min(1.0, float(p[y] / tail[y])), ("coin", *at, sampled)):
            return y, sampled
        r = left(p, tail, y)
    return sequential_rejection(r, candidates, rest, draws, at)


def _law(weights: Tensor) -> Tensor:
    return weights / total(weights)


def trust_first(parts: Parts) -> Parts:
    """The first candidate is committed without a test."""
    right: TorchVerify = parts.verify

    def verify(
        p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int, lead: int, draws: Draws, at: Place
    ) -> Verdict:
        return (candidates[0], 0) if candidates else right(p, tail, candidates, sampled, lead, draws, at)

    return replace(parts, verify=verify)


def raw_proxy(parts: Parts) -> Parts:
    """The sampled token is ranked by its own probability (section 3.1's trap)."""
    return replace(parts, proxy=PROXIES[proxies.RAW])


def token_ties(parts: Parts) -> Parts:
    """Equal scores are ranked by token id, low ids first."""

    def order(nodes: Nodes) -> Tensor:
        by_token = nodes.token.argsort(stable=True)
        return by_token[nodes.score[by_token].argsort(descending=True, stable=True)]

    return replace(parts, order=order)


def parent_row(parts: Parts) -> Parts:
    """A node's children are verified with the target row of the node's parent."""

    def row(tree: Tree, node: int) -> int:
        return 0 if node == ROOT else int(tree.parent[node]) + 1

    return replace(parts, row=row)


def no_compaction(parts: Parts) -> Parts:
    """The cache keeps the first rows of the tree instead of the accepted path."""
    return replace(parts, kept=lambda path: list(range(len(path) + 1)))


def positions_by_row(parts: Parts) -> Parts:
    """Position ids count the nodes of the tree instead of their depth."""
    return replace(parts, positions=lambda nodes: torch.arange(1, len(nodes) + 1, device=nodes.depth.device))


def siblings_visible(parts: Parts) -> Parts:
    """Every node sees all nodes before it instead of its ancestors."""

    def visible(nodes: Nodes) -> Tensor:
        size = len(nodes) + 1
        return torch.ones(size, size, dtype=torch.bool, device=nodes.depth.device).tril()

    return replace(parts, visible=visible)


faults: Mapping[str, Fault] = MappingProxyType(
    {
        fault.__name__.replace("_", "-"): fault
        for fault in (
            verify_with_q,
            shifted_map,
            residual_from_p,
            residual_without_token,
            trust_first,
            raw_proxy,
            token_ties,
            parent_row,
            no_compaction,
            positions_by_row,
            siblings_visible,
        )
    }
)
"""The planted faults by name."""


def find_fault(name: str | None) -> Fault | None:
    """A planted fault by name, or None for none."""
    if name is not None and name not in faults:
        raise InvalidInput("fault", name, f"one of {', '.join(faults)}")
    return None if name is None else faults[name]
