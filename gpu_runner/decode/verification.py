"""The verification rules of `rheo_core.verification` on device rows, and the walk down the tree that uses them.

Rows stay on the device. The host waits for it once a visited node (is the target's row a law?), once a coin (its
probability, and whether rejecting would leave any mass) and once for the emitted token; on a GPU `one_read` takes this
walk's place for the rules that it knows. Residuals are formed before their coin, as in rheo_core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from gpu_runner.decode.draws import Draws
from gpu_runner.decode.host_rules import HostVerify
from gpu_runner.decode.laws import excess, total, zeroed
from rheo_core import SAMPLED, InvalidInput, Tree
from rheo_core import verification as reference
from rheo_core.tree import ROOT
from rheo_core.verification import Place, Verdict


class TorchVerify(Protocol):
    """A verification rule on device rows; arguments and result as in `rheo_core.verification`."""

    def __call__(
        self,
        p: Tensor,
        tail: Tensor | None,
        candidates: Sequence[int],
        sampled: int,
        lead: int,
        draws: Draws,
        at: Place,
    ) -> Verdict:
        """(token emitted, index of the accepted candidate or -1)."""
        ...


def algorithm_1(
    p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int, lead: int, draws: Draws, at: Place
) -> Verdict:
    """Algorithm 1, RheoVerification: the sampled candidate first, the rest in slot order."""
    rest = list(range(len(candidates)))
    r = p
    if sampled != -1:
        y, q = _sampled(tail, candidates, sampled)
        rest.remove(sampled)
        left = excess(p, q)
        if _accepted(p[y], q[y], left, draws, ("coin", *at, sampled)):
            return y, sampled
        r = left / total(left)
    return sequential_rejection(r, candidates, rest, draws, at)


def vanilla(
    p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int, lead: int, draws: Draws, at: Place
) -> Verdict:
    """Vanilla top-K verification (EAGLE): every candidate is a point mass, tried under p in slot order."""
    return sequential_rejection(p, candidates, range(len(candidates)), draws, at)


def rrsw(
    p: Tensor, tail: Tensor | None, candidates: Sequence[int], sampled: int, lead: int, draws: Draws, at: Place
) -> Verdict:
    """RRSw (appendix D.2): the leads that are present under p, then Y under p~ against q~, then the fills."""
    if sampled == -1:
        return sequential_rejection(p, candidates, range(len(candidates)), draws, at)
    y, q = _sampled(tail, candidates, sampled)
    r = p
    for i in range(sampled):
        left = zeroed(r, candidates[i])
        if _accepted(r[candidates[i]], None, left, draws, ("coin", *at, i)):
            return candidates[i], i
        r = left / total(left)
    left = excess(r, q)
    if _accepted(r[y], q[y], left, draws, ("coin", *at, sampled)):
        return y, sampled
    return sequential_rejection(left / total(left), candidates, range(sampled + 1, len(candidates)), draws, at)


def sequential_rejection(
    r: Tensor, candidates: Sequence[int], order: Sequence[int], draws: Draws, at: Place
) -> Verdict:
    """Lines 12-20 of Algorithm 1: accept u with r(u), else zero it and renormalise; at the end draw from r."""
    for i in order:
        left = zeroed(r, candidates[i])
        if _accepted(r[candidates[i]], None, left, draws, ("coin", *at, i)):
            return candidates[i], i
        r = left / total(left)
    return draws.index(r, ("emit", *at, 0)), -1


VERIFY: dict[Callable[..., Verdict], TorchVerify] = {
    reference.algorithm_1: algorithm_1,
    reference.vanilla: vanilla,
    reference.rrsw: rrsw,
}


def torch_verify(verify: Callable[..., Verdict]) -> TorchVerify:
    """The torch twin of a verification rule of rheo_core; any other rule is run on the host."""
    return VERIFY[verify] if verify in VERIFY else HostVerify(verify)


def _sampled(tail: Tensor | None, candidates: Sequence[int], sampled: int) -> tuple[int, Tensor]:
    if tail is None:
        raise InvalidInput("tail", None, "the law that the sampled candidate was drawn from")
    return candidates[sampled], tail


def _accepted(p: Tensor, q: Tensor | None, left: Tensor, draws: Draws, at: tuple[object, ...]) -> bool:
    """Toss the coin of a candidate: p / q, or p for a point mass; sure where rejecting would leave no mass."""
    ratio = p if q is None else p / q
    probability, mass, drawn = torch.stack([ratio, total(left), torch.ones_like(p) if q is None else q]).tolist()
    if not drawn > 0:
        raise InvalidInput("tail", drawn, "a positive probability at the sampled candidate: it was drawn from it")
    return draws.accept(min(1.0, probability) if mass > 0 else 1.0, at)


def check_target(p: Tensor) -> Tensor:
    """`p` [V] itself; raises unless it is a law: NaN, or a row of masked tokens only, must never yield a token."""
    check_mass(float(p.sum(dtype=torch.float64)), len(p), p.dtype)
    return p


def check_mass(mass: float, size: int, dtype: torch.dtype) -> None:
    """Raise unless the sum of a row of `size` tokens is 1 within that many roundings."""
    if not abs(mass - 1) <= size * torch.finfo(dtype).eps:
        raise InvalidInput("target row", f"a sum of {mass}", f"a law: 1 within {size} roundings of {dtype}")


def descend(
    tree: Tree,
    target: Callable[[int], Tensor],
    tail: Callable[[int], Tensor],
    verify: TorchVerify,
    lead: int,
    draws: Draws,
    cycle: int = 0,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Verify a tree from the root, parent by parent, until the text leaves it: emitted tokens, accepted nodes.

    `target(node)` is p [V] after a node (-1: the root), `tail(node)` q~ [V] below one that has a sampled child.
    """
    node = ROOT
    tokens: tuple[int, ...] = ()
    path: tuple[int, ...] = ()
    while True:
        children = tree.children(node)
        candidates = [int(tree.token[child]) for child in children]
        sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
        q = tail(node) if sampled != -1 else None
        p = check_target(target(node))
        token, child = verify(p, q, candidates, sampled, lead, draws, (cycle, tree.path(node)))
        tokens = (*tokens, token)
        if child == -1:
            return tokens, path
        node = children[child]
        path = (*path, node)
