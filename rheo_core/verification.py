"""Verification rules for the candidates of one parent.

A rule is called as `verify(p, tail, candidates, sampled, lead, chooser, at)`: the target law p [V]; q~ [V], or None
without a sampled candidate; candidate ids in slot order; the index of the sampled one, or -1; the number of leads m; a
Chooser; and `at` = (cycle, slot path of the parent), from which coins and draws take their addresses. It returns the
token emitted and the index of the candidate that was accepted, or -1 where the text leaves the tree.

Each residual is formed before its coin: where it has no mass the coin is accept(1), so no 0/0 can appear even when
floats make p <= q~ everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from rheo_core.checks import InvalidInput, check_candidates, check_verdict
from rheo_core.chooser import Chooser
from rheo_core.laws import Row, residual, without
from rheo_core.models import Prefix
from rheo_core.pool import Drafter
from rheo_core.tree import ROOT, SAMPLED, Tree

Place = tuple[int, tuple[int, ...]]
Verdict = tuple[int, int]
Order = Callable[[list[int]], Iterable[int]]


class Verify(Protocol):
    """The signature of a verification rule."""

    def __call__(
        self,
        p: Row,
        tail: Row | None,
        candidates: Sequence[int],
        sampled: int,
        lead: int,
        chooser: Chooser,
        at: Place,
    ) -> Verdict:
        """Give the emitted token and the index of the accepted candidate, or -1."""
        ...


def in_slot_order(indices: list[int]) -> list[int]:
    """Give the order of the slots, the default for "arbitrary order"."""
    return indices


def algorithm_1(
    p: Row,
    tail: Row | None,
    candidates: Sequence[int],
    sampled: int,
    lead: int,
    chooser: Chooser,
    at: Place,
    *,
    order: Order = in_slot_order,
) -> Verdict:
    """Algorithm 1, RheoVerification: the sampled candidate first, the rest in any `order`."""
    check_candidates(p, candidates)
    rest = list(range(len(candidates)))
    r: Row | None = p  # line 10
    if sampled != -1:  # line 1
        u_s, q_s = sampled_token(tail, candidates, sampled)  # line 2
        rest.remove(sampled)  # line 7
        r = residual(p, _law(tail))  # line 8
        if chooser.accept(1 if r is None else ratio(p[u_s], q_s), ("coin", *at, sampled)):  # lines 3-4
            return u_s, sampled  # line 5
    return sequential_rejection(_law(r), candidates, order(rest), chooser, at)  # lines 12-20


def vanilla(
    p: Row,
    tail: Row | None,
    candidates: Sequence[int],
    sampled: int,
    lead: int,
    chooser: Chooser,
    at: Place,
    *,
    order: Order = in_slot_order,
) -> Verdict:
    """Vanilla top-K verification (EAGLE): every candidate is a point mass, tried under p in any `order`."""
    check_candidates(p, candidates)
    return sequential_rejection(p, candidates, order(list(range(len(candidates)))), chooser, at)


def rrsw(
    p: Row,
    tail: Row | None,
    candidates: Sequence[int],
    sampled: int,
    lead: int,
    chooser: Chooser,
    at: Place,
) -> Verdict:
    """RRSw (appendix D.2): the leads that are present under p, then Y under p~ against q~, then the fills."""
    check_candidates(p, candidates)
    if sampled == -1:
        return sequential_rejection(p, candidates, range(len(candidates)), chooser, at)
    u_s, q_s = sampled_token(tail, candidates, sampled)
    r = p
    for i in range(sampled):
        left = without(r, [candidates[i]])
        if _tossed(r, left, candidates[i], chooser, ("coin", *at, i)):
            return candidates[i], i
        r = _law(left)
    after = residual(r, _law(tail))
    if chooser.accept(1 if after is None else ratio(r[u_s], q_s), ("coin", *at, sampled)):
        return u_s, sampled
    return sequential_rejection(_law(after), candidates, range(sampled + 1, len(candidates)), chooser, at)


def sequential_rejection(
    r: Row, candidates: Sequence[int], order: Iterable[int], chooser: Chooser, at: Place
) -> Verdict:
    """Lines 12-20 of Algorithm 1: accept u with r(u), else zero it and renormalise; at the end draw from r."""
    for i in order:  # line 12
        u = candidates[i]
        left = without(r, [u])  # line 16, formed before the coin
        if _tossed(r, left, u, chooser, ("coin", *at, i)):  # lines 13-14
            return u, i  # line 15
        r = _law(left)
    return chooser.index(r, ("emit", *at, 0)), -1  # lines 19-20


def verify_tree(
    tree: Tree, drafter: Drafter, prefix: Prefix, verify: Verify, chooser: Chooser, cycle: int = 0
) -> tuple[int, ...]:
    """Verify a tree from the root, parent by parent, until the text leaves it; the emitted tokens."""
    node = ROOT
    tokens: tuple[int, ...] = ()
    while True:
        children = tree.children(node)
        token, child = verify_node(tree, node, children, drafter, prefix + tokens, verify, chooser, cycle)
        tokens = (*tokens, token)
        if child == -1:
            return tokens
        node = children[child]


def verify_node(
    tree: Tree,
    node: int,
    children: list[int],
    drafter: Drafter,
    context: Prefix,
    verify: Verify,
    chooser: Chooser,
    cycle: int = 0,
) -> tuple[int, int]:
    """Run a verification rule on the children of one node; its answer is checked against the candidates."""
    candidates = [int(tree.token[child]) for child in children]
    sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
    p = drafter.pair.p(context)
    tail = drafter.tail(context) if sampled != -1 else None
    verdict = verify(p, tail, list(candidates), sampled, drafter.m, chooser, (cycle, tree.path(node)))
    return check_verdict(verdict, candidates, len(p))


def ratio(p: Any, q: Any) -> Any:
    """min(1, p / q) for q > 0, without a quotient that a narrow float could not hold."""
    return 1 if p >= q else p / q


def _tossed(r: Row, left: Row | None, u: int, chooser: Chooser, address: tuple[Any, ...]) -> bool:
    """Give the coin of a point-mass candidate; surely accepted where rejecting it would leave nothing."""
    return chooser.accept(1 if left is None else min(1, r[u]), address)


def _law(row: Row | None) -> Row:
    """Give the row, which an earlier coin has made sure exists."""
    if row is None:
        raise InvalidInput("chooser", "a rejection at probability 1", "accept(1) to accept")
    return row


def sampled_token(tail: Row | None, candidates: Sequence[int], sampled: int) -> tuple[int, Any]:
    """Give the sampled candidate u_s and its true probability q~(u_s); raises where there is none."""
    if not 0 <= sampled < len(candidates):
        raise InvalidInput("sampled", sampled, f"-1 or an index of the {len(candidates)} candidates")
    if tail is None:
        raise InvalidInput("tail", None, "the law that the sampled candidate was drawn from")
    u_s = candidates[sampled]
    if not tail[u_s] > 0:
        raise InvalidInput(f"tail[{u_s}]", tail[u_s], "a positive probability: the sampled candidate was drawn from it")
    return u_s, tail[u_s]
