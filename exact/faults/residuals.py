"""Kind B: what is drawn after a rejection is not norm(max(0, p - q))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from exact.enumeration.fixed_trees import Node, VerifySiblings
from exact.faults.case import DRAFT, ONE_LAYER, TARGET, F, FaultCase, Model, always, as_law, first_token
from exact.faults.draft_law import chain_method
from exact.methods.parts import emit, independent
from rheo_core import Chooser
from rheo_core.laws import Row, excess, normalise, zeroed
from rheo_core.verification import Verdict

KIND = "residual"

After = Callable[[Node, int], Row]


def then(after: After) -> VerifySiblings:
    """Accept the drawn token with min(1, p/q), else emit from a distribution made by `after(node, token)`."""

    def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
        for slot, token in enumerate(candidates):
            if chooser.accept(min(1, node.p[token] / node.q[token]), ("coin", *node.at, slot)):
                return token, slot
            return emit(after(node, token), node, chooser)
        return emit(node.p, node, chooser)

    return verify


def through_softmax(node: Node, token: int) -> Row:
    """exp of the excess, normalised: floats, irrational."""
    weights: Row = np.exp([float(entry) for entry in excess(node.p, node.q)])
    return normalise(weights)


def target_again(node: Node, token: int) -> Row:
    """p itself."""
    return node.p


def only_that_entry(node: Node, token: int) -> Row:
    """p with the rejected token zeroed: right only for a point mass."""
    return as_law(zeroed(node.p, [token]))


def absolute(node: Node, token: int) -> Row:
    """|p - q|, normalised."""
    return as_law(abs(node.p - node.q))


def against_the_wrong_side(node: Node, token: int) -> Row:
    """max(0, q - p), normalised."""
    return as_law(excess(node.q, node.p))


def best_of_residual(node: Node, token: int) -> Row:
    """Give all mass on the residual's largest entry: a greedy correction."""
    row = np.zeros_like(node.p)
    row[int(np.argmax(excess(node.p, node.q)))] = 1
    return row


def residual_then_zeroed(node: Node, token: int) -> Row:
    """Give the residual with the rejected token zeroed once more: nothing is left to zero, so this is harmless."""
    return as_law(zeroed(excess(node.p, node.q), [token]))


def _case(
    key: str,
    what: str,
    after: After,
    *law: Fraction,
    target: Model = TARGET,
    draft: Model = DRAFT,
    lossless: bool = False,
) -> FaultCase:
    method = chain_method(f"residual-{after.__name__.replace('_', '-')}", independent, then(after), lossless)
    return FaultCase(key, KIND, what, lossless, method, target, draft, ONE_LAYER, first_token(*law) if law else None)


CASES = (
    _case("B1", "residual pushed through softmax instead of normalised", through_softmax),
    _case("B2", "resampled from p after a rejection", target_again, F(3, 5), F(13, 50), F(7, 50)),
    _case("B3", "only the rejected entry is zeroed", only_that_entry, F(1, 2), F(8, 25), F(9, 50)),
    _case(
        "B3b", "the same on four tokens", only_that_entry, F(1, 10), F(7, 30), F(2, 5), F(4, 15),
        target=always(F(1, 10), F(2, 5), F(3, 10), F(1, 5)), draft=always(F(2, 5), F(1, 10), F(3, 10), F(1, 5)),
    ),
    _case("BX1", "residual |p - q|", absolute, F(3, 5), F(1, 4), F(3, 20)),
    _case("BX2", "residual max(0, q - p)", against_the_wrong_side, F(7, 10), F(1, 5), F(1, 10)),
    _case("BX3", "the residual's largest entry is taken", best_of_residual, F(1, 2), F(2, 5), F(1, 10)),
    _case(
        "BX4", "residual with the rejected token zeroed once more", residual_then_zeroed,
        F(1, 2), F(3, 10), F(1, 5), lossless=True,
    ),
)  # fmt: skip
