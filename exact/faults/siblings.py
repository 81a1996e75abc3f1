"""Kind C: several candidates, drawn one way and verified another; and tokens that are not verified at all."""

from __future__ import annotations

from collections.abc import Sequence

from exact.enumeration.fixed_trees import FixedTreeMethod, Node, node_at
from exact.faults.case import DRAFT, ONE_LAYER, PAIRS, TARGET, F, FaultCase, always, by_prefix, first_token
from exact.faults.coins import SharedCoin
from exact.faults.draft_law import chain_method
from exact.methods.parts import complete, emit, independent, one_by_one, top, without_replacement
from exact.methods.rejection import RRS, RRSW, shrinking, verify_distinct, verify_independent
from exact.methods.typical import Threshold
from rheo_core import Chooser, TreeShape
from rheo_core.laws import Row, excess, residual, without, zeroed
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.verification import Verdict, sequential_rejection, vanilla

KIND = "several candidates"


def shrinking_or_reject(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """As without replacement; a candidate that the shrunken q does not hold any more is rejected."""
    r: Row | None = node.p
    for slot, (token, law) in enumerate(zip(candidates, shrinking(node.q, candidates), strict=False)):
        if r is None:
            break
        ratio = r[token] / law[token] if law[token] else 0
        if chooser.accept(min(1, ratio), ("coin", *node.at, slot)):
            return token, slot
        r = residual(r, law)
    return emit(r, node, chooser)


def one_coin(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Sequential rejection of point masses with a single coin for all of them."""
    coin = SharedCoin(chooser)
    r: Row | None = node.p
    for slot, token in enumerate(candidates):
        if r is None:
            break
        if coin.below(r[token]):
            return token, slot
        r = without(r, [token])
    return emit(r, node, chooser)


def unverified(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give the first candidate is committed without a coin."""
    return (candidates[0], 0) if candidates else emit(node.p, node, chooser)


def if_typical(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Typical acceptance: a drawn token passes wherever the target does not find it too unlikely."""
    for slot, token in enumerate(candidates):
        if Threshold(0.09, 0.3).accepts(node.p, token):
            return token, slot
    return emit(node.p, node, chooser)


def in_order_of_target(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Draws without replacement, tested in the target's order as if they had been drawn in it."""
    slots = sorted(range(len(candidates)), key=lambda slot: node.p[candidates[slot]], reverse=True)
    token, position = one_by_one(
        node, [candidates[slot] for slot in slots], shrinking(node.q, [candidates[slot] for slot in slots]), chooser
    )
    return token, slots[position] if position != -1 else -1


def unnormalised(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give the running target is reduced after each rejection but not normalised."""
    r = node.p
    for slot, token in enumerate(candidates):
        if chooser.accept(min(1, r[token] / node.q[token]), ("coin", *node.at, slot)):
            return token, slot
        r = excess(r, node.q)
    return emit(r if sum(r.tolist()) else node.p, node, chooser)


def repeats_dropped(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Draws with replacement whose repetitions are dropped before verification."""
    kept = list(dict.fromkeys(candidates))
    token, position = verify_independent(node, kept, chooser)
    return token, candidates.index(kept[position]) if position != -1 else -1


def any_order(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Point masses tried from the last to the first: the order of point masses does not matter."""
    return sequential_rejection(node.p, candidates, range(len(candidates))[::-1], chooser, node.at)


def node_rows_shifted(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    shape: TreeShape,
    chooser: Chooser,
    ids: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Top-1 verification that reads the target row of the candidate's own node instead of its parent's."""
    pair = ModelPair(target, draft, ids)
    root = node_at(pair, prefix, (), 1)
    candidate = root.order[0]
    token, child = vanilla(pair.p((*prefix, candidate)), None, [candidate], -1, 1, chooser, root.at)
    if child == -1:
        return (token,)
    own = node_at(pair, (*prefix, token), (0,), 0)
    return token, emit(own.p, own, chooser)[0]


def zeroed_not_subtracted(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Draws without replacement; after a rejection the token is zeroed in r instead of the draft law subtracted."""
    r: Row | None = node.p
    for slot, (token, law) in enumerate(zip(candidates, shrinking(node.q, candidates), strict=False)):
        if r is None:
            break
        if chooser.accept(min(1, r[token] / law[token]), ("coin", *node.at, slot)):
            return token, slot
        left = zeroed(r, [token])
        r = left / sum(left.tolist()) if sum(left.tolist()) else None
    return emit(r if r is not None else node.p, node, chooser)


P3 = always(F(1, 5), F(2, 5), F(2, 5))
Q3 = always(F(1, 2), F(3, 10), F(1, 5))
RIGHT3 = first_token(F(1, 5), F(2, 5), F(2, 5))
HALVES = (F(1, 2), F(1, 2))
SHIFTED = FunctionMethod(node_rows_shifted, "shifted-rows", "lossy")

CASES = (
    FaultCase(
        "C1", KIND, "drawn without replacement, verified as with", False,
        FixedTreeMethod("without-as-with", "lossy", complete, without_replacement, verify_independent), P3, Q3, PAIRS,
        first_token(F(1, 5), F(12, 25), F(8, 25)), F(1),
    ),
    FaultCase(
        "C1b", KIND, "drawn with replacement, verified as without", False,
        FixedTreeMethod("with-as-without", "lossy", complete, independent, shrinking_or_reject), P3, Q3, PAIRS,
        first_token(F(1, 5), F(7, 20), F(9, 20)),
    ),
    FaultCase("C1c", KIND, "drawn and verified without replacement", True, RRSW, P3, Q3, PAIRS, RIGHT3, F(23, 25)),
    FaultCase("C1d", KIND, "drawn and verified with replacement", True, RRS, P3, Q3, PAIRS, RIGHT3, F(17, 20)),
    FaultCase(
        "C3", KIND, "one coin reused over the renormalised siblings", False,
        FixedTreeMethod("one-coin", "lossy", complete, top, one_coin), TARGET, DRAFT, PAIRS,
        first_token(F(1, 2), F(1, 10), F(2, 5)),
    ),
    FaultCase(
        "C5", KIND, "deterministic candidates treated as point masses", True,
        FixedTreeMethod("top-1", "lossless", complete, top, any_order), always(F(51, 100), F(49, 100)),
        always(F(51, 100), F(49, 100)), ONE_LAYER, first_token(F(51, 100), F(49, 100)), F(51, 100),
    ),
    FaultCase(
        "C7", KIND, "the target row of another node is read", False, SHIFTED,
        by_prefix({(): HALVES, (0,): (F(9, 10), F(1, 10))}, HALVES), always(F(2, 3), F(1, 3)), ONE_LAYER,
        first_token(F(9, 10), F(1, 10)),
    ),
    FaultCase(
        "C9", KIND, "the first drafted token (argmax) is committed unverified", False,
        chain_method("unverified", top, unverified), TARGET, DRAFT, ONE_LAYER, first_token(1),
    ),
    FaultCase(
        "C11", KIND, "typical acceptance (eps .09, delta .3): lossy by design", False,
        chain_method("typical-drawn", independent, if_typical), TARGET, DRAFT, ONE_LAYER,
        first_token(F(7, 10), F(1, 5), F(1, 10)),
    ),
    FaultCase(
        "CX1", KIND, "draws without replacement tested in the target's order", False,
        FixedTreeMethod("target-order", "lossy", complete, without_replacement, in_order_of_target), P3, Q3, PAIRS,
    ),
    FaultCase(
        "CX2", KIND, "the running target is not renormalised between candidates", False,
        FixedTreeMethod("unnormalised", "lossy", complete, independent, unnormalised), P3, Q3, PAIRS,
    ),
    FaultCase(
        "CX3", KIND, "repetitions dropped from draws with replacement", False,
        FixedTreeMethod("repeats-dropped", "lossy", complete, independent, repeats_dropped), P3, Q3, PAIRS,
    ),
    FaultCase(
        "CX4", KIND, "a rejected draw is zeroed, its law not subtracted", False,
        FixedTreeMethod("zeroed-siblings", "lossy", complete, without_replacement, zeroed_not_subtracted),
        P3, Q3, PAIRS,
    ),
    FaultCase(
        "CX5", KIND, "point masses tried from the last to the first", True,
        FixedTreeMethod("last-first", "lossless", complete, top, any_order), TARGET, DRAFT, PAIRS,
        first_token(F(1, 2), F(3, 10), F(1, 5)), F(4, 5),
    ),
    FaultCase(
        "CX6", KIND, "three draws without replacement on two levels", True,
        FixedTreeMethod("distinct", "lossless", complete, without_replacement, verify_distinct), TARGET, DRAFT,
        TreeShape(3, 2, 6), first_token(F(1, 2), F(3, 10), F(1, 5)),
    ),
)  # fmt: skip
