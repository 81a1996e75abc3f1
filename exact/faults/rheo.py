"""Kind R: RheoSampling itself, drafted or verified almost as the paper says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exact.faults.case import F, FaultCase, Model, always, as_law, by_prefix, first_token
from rheo_core import LEAD, SAMPLED, Chooser, Cycle, Tree, TreeMethod, TreeShape, methods, proxies
from rheo_core.laws import Row, zeroed
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.pool import Drafter, Pool, Slot
from rheo_core.tree import ROOT, Nodes
from rheo_core.verification import Place, Verdict, algorithm_1, sampled_token, sequential_rejection, verify_tree

KIND = "RheoSampling itself"

Key = Callable[[Nodes, int], Any]
"""Sorts nodes, the best first; equal keys keep the order of creation."""


def by_rank(nodes: Nodes, node: int) -> Any:
    """Score falling, then depth rising, then left to right."""
    return -nodes.score[node], nodes.depth[node]


def by_token(nodes: Nodes, node: int) -> Any:
    """Score, depth, then the node's own token id."""
    return -nodes.score[node], nodes.depth[node], nodes.token[node]


def token_before_depth(nodes: Nodes, node: int) -> Any:
    """Score, token id, then depth."""
    return -nodes.score[node], nodes.token[node], nodes.depth[node]


def by_parent_token(nodes: Nodes, node: int) -> Any:
    """Score, depth, then the token id of the parent, a function of what is drafted above: harmless."""
    parent = nodes.parent[node]
    return -nodes.score[node], nodes.depth[node], -1 if parent == ROOT else nodes.token[parent]


@dataclass(frozen=True)
class FaultyConstruction:
    """A layered construction with its own keys and pools: `prune` keeps R nodes, `grow` picks a level's parents."""

    prune: Key = by_rank
    grow: Key = by_rank
    pool: type[Pool] = Pool
    tail: Callable[[Drafter, Prefix], Row | None] = Drafter.tail
    lead: int = 1
    proxy: Any = proxies.RHEO

    def method(self, name: str, lossless: bool = False) -> FunctionMethod:
        """Give the construction followed by Algorithm 1."""

        def cycle(
            target: TargetModel,
            draft: DraftModel,
            prefix: Prefix,
            shape: TreeShape,
            chooser: Chooser,
            ids: Sequence[int] | None = None,
        ) -> Cycle:
            pair = ModelPair(target, draft, ids)
            drafter = _Faulty(pair, shape.width, self)
            tree = self.tree(drafter, prefix, shape, chooser)
            tokens = verify_tree(tree, drafter, prefix, algorithm_1, chooser)
            return Cycle(tokens, len(tokens) - 1, tree)

        return FunctionMethod(cycle, name, "lossless" if lossless else "lossy")

    def tree(self, drafter: Drafter, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Tree:
        """Expand level by level and prune."""
        nodes = Nodes()
        frontier = [ROOT]
        for _ in range(shape.depth):
            level: list[int] = []
            for parent in frontier:
                pool = drafter.pool(prefix + nodes.tokens_to(parent))
                sampled = None if pool.tail is None else chooser.index(pool.tail)
                for slot, kind, token, score in pool.slots(sampled):
                    path_score = score if parent == ROOT else nodes.score[parent] * score
                    level.append(nodes.append(parent, slot, kind, drafter.pair.target_id(token), path_score))
            frontier = sorted(level, key=lambda node: self.grow(nodes, node))[: shape.width]
        order = sorted(range(len(nodes)), key=lambda node: self.prune(nodes, node))[: shape.budget]
        kept = [node for node in order if nodes.parent[node] == ROOT or nodes.parent[node] in order]
        return nodes.tree(drafter.pair.p(prefix).dtype, kept)


class _Faulty(Drafter):
    """A drafter with the pools and the tail distribution of a faulty construction."""

    def __init__(self, pair: ModelPair, width: int, parts: FaultyConstruction) -> None:
        super().__init__(pair, width, parts.lead, parts.proxy)
        self.parts = parts
        self.made: dict[Prefix, Pool] = {}

    def pool(self, prefix: Prefix) -> Pool:
        if prefix not in self.made:
            self.made[prefix] = self.parts.pool(self.pair.q(prefix), self.width, self.m, self.proxy)
        return self.made[prefix]

    def tail(self, prefix: Prefix) -> Row | None:
        if self.parts.tail is Drafter.tail:
            return super().tail(prefix)
        return self.parts.tail(self, prefix)


class FillsWithY(Pool):
    """Fill slots that do not leave Y out."""

    def fill_slots(self, sampled: int | None) -> Iterator[Slot]:
        """Yield the best tokens outside the lead, Y or not."""
        slot = len(self.leads) + (sampled is not None)
        for token in self.row.order[len(self.leads) :].tolist()[: self.width - slot]:
            yield slot, 2, token, self.row.score[token]
            slot += 1


class DropsUnlikelyY(Pool):
    """The sampled slot is left out where Y is less likely than every fill: the K best of the pool are kept by q."""

    def slots(self, sampled: int | None) -> list[Slot]:
        """Give the pool, without Y where it is none of the K best."""
        best = self.row.order[: self.width].tolist()
        return [entry for entry in super().slots(sampled) if entry[1] != SAMPLED or entry[2] in best]


def raw_tail(drafter: Drafter, prefix: Prefix) -> Row | None:
    """q in place of q~."""
    return drafter.pair.q(prefix).score


def proxy_as_tail(drafter: Drafter, prefix: Prefix) -> Row | None:
    """Give the proxy in place of q~(Y), for every Y off the lead."""
    pool = drafter.pool(prefix)
    return zeroed(pool.row.score * 0 + pool.proxy_score(), pool.leads)


def lead_kept_in_tail(drafter: Drafter, prefix: Prefix) -> Row | None:
    """q~ with half the lead's own mass left in it before normalising."""
    pool = drafter.pool(prefix)
    row = pool.row.score.copy()
    row[pool.leads] = row[pool.leads] * F(1, 2)
    return as_law(row)


def no_residual(
    p: Row, tail: Row | None, candidates: Sequence[int], sampled: int, lead: int, chooser: Chooser, at: Place
) -> Verdict:
    """Algorithm 1 without line 8: p is kept after Y is rejected."""
    rest = list(range(len(candidates)))
    if sampled != -1:
        u_s, q_s = sampled_token(tail, candidates, sampled)
        rest.remove(sampled)
        if chooser.accept(min(1, p[u_s] / q_s), ("coin", *at, sampled)):
            return u_s, sampled
    return sequential_rejection(p, candidates, rest, chooser, at)


def sampled_last(
    p: Row, tail: Row | None, candidates: Sequence[int], sampled: int, lead: int, chooser: Chooser, at: Place
) -> Verdict:
    """Give the other candidates first under p, then Y with the ratio of p, not of what is left of it, to q~."""
    r = p
    for i, token in enumerate(candidates):
        if i == sampled:
            continue
        if chooser.accept(r[token], ("coin", *at, i)):
            return token, i
        r = as_law(zeroed(r, [token]))
    if sampled != -1:
        u_s, q_s = sampled_token(tail, candidates, sampled)
        if chooser.accept(min(1, p[u_s] / q_s), ("coin", *at, sampled)):
            return u_s, sampled
        r = as_law(zeroed(r, [u_s]))
    return chooser.index(r, ("emit", *at, 0)), -1


def lead_by_highest_id(nodes: Nodes, node: int) -> Any:
    """Among equal scores leads come last, whatever their token: another order of slots, so harmless."""
    return -nodes.score[node], nodes.depth[node], nodes.kind[node] == LEAD


def max_with_q(score: Row, order: Row, m: int, sampled: int) -> Any:
    """max(q(Y), q(x_{m+1})): it looks at Y, and never says anything but q(x_{m+1})."""
    return max(score[sampled], score[order[m]])


def twice_raw(score: Row, order: Row, m: int, sampled: int) -> Any:
    """min(1, 2 q(Y)): a scaled trap."""
    return min(1, 2 * score[sampled])


def coin_for_m(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    shape: TreeShape,
    chooser: Chooser,
    ids: Sequence[int] | None = None,
) -> Cycle:
    """Give the paper's method with m = 0 or m = 1, by a coin."""
    rule = methods["rheo"]
    assert isinstance(rule, TreeMethod)
    lead = int(chooser.accept(F(1, 2)))
    return replace(rule, lead=lead).cycle(target, draft, prefix, shape, chooser, ids)


Q = always(F(1, 2), F(3, 10), F(1, 5))
P = always(F(1, 2), F(1, 5), F(3, 10))
RIGHT = first_token(F(1, 2), F(1, 5), F(3, 10))
TOP_TWO = TreeShape(3, 1, 2)
RHEO_FULL = TreeShape(3, 1, 3)
TIES = always(F(1, 4), F(1, 2), F(1, 4))
SIXTHS = always(F(1, 6), F(2, 3), F(1, 6))
QUARTERS = (F(1, 4), F(1, 2), F(1, 4))
P4 = always(F(3, 10), F(1, 10), F(4, 10), F(2, 10))
Q4 = always(F(10, 20), F(5, 20), F(3, 20), F(2, 20))
DEEP_Q = by_prefix({(): (F(1, 6), F(2, 3), F(1, 6))}, QUARTERS)


def pairs_of(model: Model, changed: dict[tuple[int, ...], Any]) -> dict[tuple[int, ...], Any]:
    """Give the joint distribution of two tokens with some entries changed."""
    row = model(())
    return {(a, b): row[a] * row[b] for a in range(len(row)) for b in range(len(row))} | changed


CASES = (
    FaultCase(
        "R1", KIND, "ad-hoc proxy 1/4 (Table 1)", False, methods["rheo-adhoc"], P, Q, TOP_TWO,
        first_token(F(3, 5), F(7, 25), F(3, 25)),
    ),
    FaultCase("R1b", KIND, "the right proxy on the same rows", True, methods["rheo"], P, Q, TOP_TWO, RIGHT, F(1)),
    FaultCase(
        "R2", KIND, "a tie between siblings broken by token id", False,
        FaultyConstruction(prune=by_token).method("tie-by-token"),
        always(F(1, 2), F(1, 2), 0), TIES, TreeShape(3, 1, 1), first_token(F(3, 4), F(1, 4)),
    ),
    FaultCase(
        "R2b", KIND, "a tie across parents broken by token id", False,
        FaultyConstruction(prune=by_token).method("tie-by-token"),
        TIES, SIXTHS, TreeShape(2, 2, 4), pairs_of(TIES, {(1, 0): F(3, 16), (1, 2): F(1, 16)}), length=2,
    ),
    FaultCase(
        "R2c", KIND, "token id before depth", False,
        FaultyConstruction(prune=token_before_depth).method("token-before-depth"),
        TIES, DEEP_Q, TreeShape(2, 2, 2), first_token(F(3, 8), F(1, 2), F(1, 8)),
    ),
    FaultCase(
        "R2d", KIND, "the same ties broken by slot", True, FaultyConstruction().method("tie-by-slot", True),
        TIES, SIXTHS, TreeShape(2, 2, 4), first_token(*QUARTERS),
    ),
    FaultCase(
        "R2e", KIND, "parents ordered by their token", True,
        FaultyConstruction(prune=by_parent_token).method("parents-by-token", True), TIES, SIXTHS,
        TreeShape(2, 2, 4), first_token(*QUARTERS),
    ),
    FaultCase(
        "R4", KIND, "verified with q(Y) in lines 4 and 8", False,
        FaultyConstruction(tail=raw_tail).method("raw-tail"), P, Q, TOP_TWO, first_token(0, F(2, 5), F(3, 5)),
    ),
    FaultCase(
        "R4b", KIND, "verified with the proxy in lines 4 and 8", False,
        FaultyConstruction(tail=proxy_as_tail).method("proxy-tail"), P, Q, TOP_TWO,
        first_token(F(13, 25), F(6, 25), F(6, 25)),
    ),
    FaultCase(
        "R5", KIND, "fill slots do not leave Y out: accepts 9/10 instead of 1", True,
        FaultyConstruction(pool=FillsWithY).method("fills-with-y", True), P4, Q4, RHEO_FULL,
        first_token(F(3, 10), F(1, 10), F(4, 10), F(2, 10)), F(9, 10),
    ),
    FaultCase("R5b", KIND, "fill slots leave Y out", True, methods["rheo"], P4, Q4, RHEO_FULL, acceptance=F(1)),
    FaultCase(
        "R6", KIND, "the residual is not taken after Y is rejected", False,
        TreeMethod("no-residual", "lossy", lead=1, verify=no_residual), P, Q, TOP_TWO,
        first_token(F(1, 4), F(3, 10), F(9, 20)),
    ),
    FaultCase(
        "RX1", KIND, "Y dropped from the pool where its q is too small", False,
        FaultyConstruction(pool=DropsUnlikelyY).method("drops-unlikely-y"), P, Q, TreeShape(2, 1, 2),
        first_token(F(3, 5), F(7, 25), F(3, 25)),
    ),
    FaultCase(
        "RX2", KIND, "m chosen by a fair coin in every cycle", True,
        FunctionMethod(coin_for_m, "coin-for-m", "lossless"), P, Q, TreeShape(3, 2, 4), RIGHT,
    ),
    FaultCase(
        "RX3", KIND, "proxy max{q(Y), q(x_{m+1})}, which is q(x_{m+1})", True,
        TreeMethod("max-with-q", "lossless", lead=1, proxy=max_with_q), P, Q, TreeShape(2, 2, 3), RIGHT,
    ),
    FaultCase(
        "RX4", KIND, "proxy min{1, 2 q(Y)}", False, TreeMethod("twice-raw", "lossy", lead=1, proxy=twice_raw),
        P, Q, TreeShape(3, 1, 1), first_token(F(3, 5), F(7, 25), F(3, 25)),
    ),
    FaultCase(
        "RX5", KIND, "Y verified last, with p instead of what is left of it", False,
        TreeMethod("sampled-last", "lossy", lead=1, verify=sampled_last), P, Q, TOP_TWO,
    ),
    FaultCase(
        "RX6", KIND, "part of the lead's mass left in q~", False,
        FaultyConstruction(tail=lead_kept_in_tail).method("lead-in-tail"), P, Q, TOP_TWO,
    ),
    FaultCase(
        "RX7", KIND, "equal scores: the sampled slot before the leads", True,
        FaultyConstruction(prune=lead_by_highest_id).method("sampled-first", True), TIES, SIXTHS, TreeShape(2, 2, 4),
        first_token(*QUARTERS),
    ),
)  # fmt: skip
