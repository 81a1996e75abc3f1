"""Kind D: coins that are not fresh uniform numbers, or are compared the wrong way."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import repeat
from typing import Any

from exact.enumeration.fixed_trees import FixedTreeMethod, Node, node_at
from exact.enumeration.rationals import fraction
from exact.faults.case import DRAFT, ONE_LAYER, PAIRS, TARGET, F, FaultCase, always, first_token
from exact.methods.parts import chain_of, complete, emit, independent, one_by_one, top
from rheo_core import Chooser, TreeShape
from rheo_core.laws import residual, without
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.verification import Verdict

KIND = "coins"


class SharedCoin:
    """One uniform number u asked several times: each answer narrows the interval that u is known to lie in."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.low, self.high = Fraction(0), Fraction(1)

    def below(self, threshold: Any) -> bool:
        """Tell whether u < threshold, given what was answered before."""
        edge = min(max(fraction(threshold), self.low), self.high)
        if self.chooser.accept((edge - self.low) / (self.high - self.low)):
            self.high = edge
            return True
        self.low = edge
        return False

    def position(self, law: Sequence[Any]) -> int:
        """Give the token that u falls on when `law` is cut along [0, 1)."""
        edge = Fraction(0)
        for token, mass in enumerate(law[:-1]):
            edge += fraction(mass)
            if self.below(edge):
                return token
        return len(law) - 1


def grid_coin(chooser: Chooser, probability: Any, strict: bool) -> bool:
    """Give a coin of two bits, u in {0, 1/4, 1/2, 3/4}, compared with < or <=."""
    u = Fraction(chooser.index([1, 1, 1, 1]), 4)
    return bool(u < probability) if strict else bool(u <= probability)


def on_a_grid(strict: bool) -> Any:
    """Vanilla verification with coins of two bits."""

    def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
        r: Any = node.p
        for slot, token in enumerate(candidates):
            if grid_coin(chooser, r[token], strict):
                return token, slot
            r = without(r, [token])
        return emit(r, node, chooser)

    return verify


def always_zero(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give the coin is always 0: whatever can be accepted is."""
    for slot, token in enumerate(candidates):
        if node.p[token] > 0:
            return token, slot
    return emit(node.p, node, chooser)


def rounded_ratio(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give the acceptance ratio is rounded to a multiple of 1/8 before the coin."""
    for slot, token in enumerate(candidates):
        ratio = Fraction(round(8 * min(1, node.p[token] / node.q[token])), 8)
        if chooser.accept(ratio, ("coin", *node.at, slot)):
            return token, slot
        return emit(residual(node.p, node.q), node, chooser)
    return emit(node.p, node, chooser)


def _one_uniform(a_level: bool) -> Any:
    """Give a chain whose coins are all the same number (a_level False), or a draw and its coin are (True)."""

    def cycle(
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        pair = ModelPair(target, draft, ids)
        coin = SharedCoin(chooser)
        tokens: tuple[int, ...] = ()
        for depth in range(shape.depth):
            node = node_at(pair, prefix + tokens, (0,) * depth, 1)
            if a_level:
                coin = SharedCoin(chooser)
                token = coin.position(node.q.tolist())
            else:
                token = independent(node, chooser)[0][0]
            rest = residual(node.p, node.q)
            if not (rest is None or coin.below(min(1, node.p[token] / node.q[token]))):
                return (*tokens, emit(rest, node, chooser)[0])
            tokens = (*tokens, token)
        last = node_at(pair, prefix + tokens, (0,) * shape.depth, 0)
        return (*tokens, emit(last.p, last, chooser)[0])

    return cycle


def coin_first(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give a coin is tossed and thrown away before the right one: harmless."""
    chooser.accept(F(1, 3))
    return one_by_one(node, candidates, repeat(node.q), chooser)


CASES = (
    FaultCase(
        "D1", KIND, "coins {0, 1/4, 1/2, 3/4} accepted with <=: p = 1/2 accepts 3/4", False,
        FixedTreeMethod("grid-le", "lossy", complete, top, on_a_grid(strict=False)), always(F(1, 2), F(1, 2)),
        always(F(2, 3), F(1, 3)), ONE_LAYER, first_token(F(3, 4), F(1, 4)), F(3, 4),
    ),
    FaultCase(
        "D1b", KIND, "the same with p = 0: accepted with probability 1/4", False,
        FixedTreeMethod("grid-le", "lossy", complete, top, on_a_grid(strict=False)), always(0, 1),
        always(F(2, 3), F(1, 3)), ONE_LAYER, first_token(F(1, 4), F(3, 4)), F(1, 4),
    ),
    FaultCase(
        "D1c", KIND, "the same coins with <", True,
        FixedTreeMethod("grid-lt", "lossless", complete, top, on_a_grid(strict=True)),
        always(F(1, 2), F(1, 4), F(1, 4)), always(F(2, 3), F(1, 3), 0), PAIRS, first_token(F(1, 2), F(1, 4), F(1, 4)),
    ),
    FaultCase(
        "D3", KIND, "the acceptance coin is always 0", False,
        FixedTreeMethod("coin-zero", "lossy", chain_of, independent, always_zero), TARGET, DRAFT, ONE_LAYER,
        first_token(F(7, 10), F(1, 5), F(1, 10)),
    ),
    FaultCase(
        "DX1", KIND, "the ratio is rounded to eighths before the coin", False,
        FixedTreeMethod("rounded-ratio", "lossy", chain_of, independent, rounded_ratio), TARGET, DRAFT, ONE_LAYER,
        first_token(F(21, 40), F(23, 80), F(3, 16)),
    ),
    FaultCase(
        "DX2", KIND, "one coin for all positions: the first token is right, the first two are not", False,
        FunctionMethod(_one_uniform(a_level=False), "one-coin-chain", "lossy"), TARGET, DRAFT, TreeShape(1, 2, 2),
        first_token(F(1, 2), F(3, 10), F(1, 5)),
    ),
    FaultCase(
        "DX3", KIND, "the token and its coin come from one uniform number", False,
        FunctionMethod(_one_uniform(a_level=True), "draw-is-coin", "lossy"), TARGET, DRAFT, ONE_LAYER,
        first_token(F(7, 10), F(1, 5), F(1, 10)),
    ),
    FaultCase(
        "DX4", KIND, "a coin is tossed and thrown away", True,
        FixedTreeMethod("spare-coin", "lossless", chain_of, independent, coin_first), TARGET, DRAFT, ONE_LAYER,
        first_token(F(1, 2), F(3, 10), F(1, 5)), F(4, 5),
    ),
)  # fmt: skip
