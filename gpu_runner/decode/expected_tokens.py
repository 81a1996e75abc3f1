"""What a cycle emits on average, given its tree: Algorithm 1's acceptance probabilities instead of its coins.

The target's rows on the tree are all there after the one forward, so the expected number of emitted tokens follows
without more work. Averaged over cycles it estimates the same tau as counting, with a fraction of the variance. It is
for measuring acceptance only: it conditions on the tree, so it says nothing about losslessness.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch import Tensor

from gpu_runner.decode.laws import excess, total
from gpu_runner.decode.verification import TorchVerify, algorithm_1, rrsw, vanilla
from rheo_core import SAMPLED, InvalidInput, Tree
from rheo_core.tree import ROOT

Acceptance = Callable[[Tensor, Tensor | None, Sequence[int], int], Tensor]
"""acceptance(p, tail, candidates, sampled) -> probability [n] that each candidate is the one accepted."""


def _vanilla(p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int) -> Tensor:
    """A point mass under sequential rejection is accepted with p(u): the renormalisations cancel."""
    return p[torch.tensor(candidates, device=p.device)]


def _algorithm_1(p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int) -> Tensor:
    """Y with min(1, p / q~), else each other candidate with r(u)."""
    if sampled == -1 or tail is None:
        return _vanilla(p, tail, candidates, sampled)
    left = excess(p, tail)
    mass = total(left)
    y = candidates[sampled]
    accepted = torch.where(mass > 0, (p[y] / tail[y]).clamp(max=1), torch.ones_like(mass))
    r = torch.where(mass > 0, left / mass, torch.zeros_like(left))
    probabilities = (1 - accepted) * _vanilla(r, None, candidates, -1)
    probabilities[sampled] = accepted
    return probabilities


def _rrsw(p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int) -> Tensor:
    """The leads with p(u); what they leave goes through Algorithm 1 with p without them."""
    if sampled == -1 or tail is None:
        return _vanilla(p, tail, candidates, sampled)
    leads = torch.tensor(candidates[:sampled], dtype=torch.long, device=p.device)
    rest = p.index_fill(0, leads, 0)
    mass = total(rest)
    after = (
        _algorithm_1(rest / mass, tail, candidates[sampled:], 0)
        if float(mass) > 0
        else p.new_zeros(len(candidates) - sampled)
    )
    return torch.cat([p[leads], mass * after])


ACCEPTANCE: dict[TorchVerify, Acceptance] = {algorithm_1: _algorithm_1, vanilla: _vanilla, rrsw: _rrsw}


def expected_tokens(
    tree: Tree,
    target: Callable[[int], Tensor],
    tail: Callable[[int], Tensor],
    verify: TorchVerify,
    end: Collection[int] = (),
) -> float:
    """Expected number of emitted tokens given the tree, the target's own included; arguments as in `descend`.

    Nothing counts after one of the `end` ids: neither what was drafted below it nor the target's own token.
    """
    return tokens_given(tree, reach(tree, target, tail, verify, end), end)


def tokens_given(tree: Tree, reached: Mapping[int, float], end: Collection[int] = ()) -> float:
    """The same from the probabilities that `reach` gives."""
    return 1 + sum(p for node, p in reached.items() if int(tree.token[node]) not in end)


def reach(
    tree: Tree,
    target: Callable[[int], Tensor],
    tail: Callable[[int], Tensor],
    verify: TorchVerify,
    end: Collection[int] = (),
) -> dict[int, float]:
    """Probability given the tree that each node is accepted; nodes below one of the `end` ids are left out."""
    if verify not in ACCEPTANCE:
        raise InvalidInput("verify", verify, "a rule whose acceptance is known: algorithm_1, vanilla or rrsw")
    reached = {ROOT: 1.0}
    for node in [ROOT, *range(len(tree))]:  # parents stand before their children
        children = tree.children(node)
        if not children or node not in reached or (node != ROOT and int(tree.token[node]) in end):
            continue
        candidates = [int(tree.token[child]) for child in children]
        sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
        law = tail(node) if sampled != -1 else None
        accepted = ACCEPTANCE[verify](target(node), law, candidates, sampled).tolist()
        reached |= {child: reached[node] * p for child, p in zip(children, accepted, strict=True)}
    del reached[ROOT]
    return reached


def by_depth(tree: Tree, reached: dict[int, float], depth: int) -> list[float]:
    """P(at least d drafted tokens are accepted), d = 1..`depth`, from the nodes' probabilities."""
    deep = [0.0] * depth
    for node, p in reached.items():
        deep[int(tree.depth[node]) - 1] += p
    return deep
