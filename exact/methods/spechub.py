"""SpecHub: two candidates, one of them always the draft's best token a.

The pair is (x, a) with probability q(x), or (a, x) with q(a) q(x) / (1 - q(a)); so each x is present with
q(x) / (1 - q(a)), more often than if drawn alone, and what x cannot use goes to a.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exact.enumeration.fixed_trees import Candidates, FixedTreeMethod, Node, Widths
from exact.methods.parts import complete, draw, emit
from rheo_core import LEAD, SAMPLED, Chooser, InvalidInput, TreeShape
from rheo_core.laws import Row, normalise, total, without, zeroed
from rheo_core.verification import Verdict, ratio

REFERENCE = "Sun et al. 2024, SpecHub (arXiv 2411.05289)"


def pairs(shape: TreeShape) -> Widths:
    """Two slots at every parent that the budget can give two to; SpecHub has no rule for one."""
    if shape.width < 2:
        raise InvalidInput("width", shape.width, "at least 2 (SpecHub drafts pairs)")
    if shape.budget < 2:
        raise InvalidInput("budget", shape.budget, "at least 2 (SpecHub drafts pairs)")
    return complete(TreeShape(2, shape.depth, shape.budget - shape.budget % 2))


def draft_pair(node: Node, chooser: Chooser) -> Candidates:
    """(x, a) or (a, x); a alone where q is all on it."""
    best = _best(node.q)
    others = without(node.q, [best])
    if others is None:
        return [(best, LEAD)]
    first = draw(node.q, node, 0, chooser)
    if first != best:
        return [(first, SAMPLED), (best, LEAD)]
    return [(best, LEAD), (draw(others, node, 1, chooser), SAMPLED)]


def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """x with the most that p(x) allows, from (x, a) before (a, x); then a up to p(a); then the residual."""
    if not candidates:
        return emit(node.p, node, chooser)
    best = _best(node.q)
    first, second = pair_laws(node.q, best)
    from_first = np.minimum(node.p, first)
    from_second = np.minimum(node.p - from_first, second)
    left_to_best = 1 - total(from_first) - total(from_second)
    given_to_best = min(node.p[best], left_to_best)
    taken = from_first + from_second
    taken[best] = given_to_best
    left = np.maximum(node.p - taken, 0)
    slot_of = {token: slot for slot, token in enumerate(candidates)}
    for token, slot in slot_of.items():
        if token != best:
            accepted, offered = (from_first, first) if slot == 0 else (from_second, second)
            if chooser.accept(ratio(accepted[token], offered[token]), ("coin", *node.at, slot)):
                return token, slot
    some_left = total(left) > 0 and left_to_best > 0
    share = ratio(given_to_best, left_to_best) if some_left else 1
    if chooser.accept(share, ("coin", *node.at, slot_of[best])):
        return best, slot_of[best]
    return emit(normalise(left), node, chooser)


def pair_laws(q: Row, best: int) -> tuple[Row, Row]:
    """Give the probabilities of (x, a) and of (a, x), for every x but a [V]."""
    first = zeroed(q, [best])
    others = without(q, [best])
    return first, first if others is None else q[best] * others


def _best(q: Row) -> int:
    return int(np.argmax(q))


SPECHUB = FixedTreeMethod("spechub", "lossless", pairs, draft_pair, verify)
