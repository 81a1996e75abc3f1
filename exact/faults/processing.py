"""Kinds E and F: the target is processed unlike what the draft is verified against; vocabulary maps that disagree.

The right target of an engine is the law that its own sampler would draw from, so each case is certified against the
processed rows; the faulty program reads the raw ones where it should not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import Candidates, FixedTreeMethod, Node, node_at
from exact.faults.case import DRAFT, ONE_LAYER, TARGET, W_TARGET, F, FaultCase, Model, always, as_law, first_token
from exact.methods.parts import chain_of, draw, emit, independent, one_by_one
from rheo_core import SAMPLED, Chooser, TreeShape
from rheo_core.laws import Row, excess, residual, zeroed
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.verification import Verdict

KIND = "processing and vocabulary maps"


def top_p(law: Row, mass: Any) -> Row:
    """Give the fewest best tokens whose mass reaches `mass`, normalised."""
    order = np.argsort(-law, kind="stable").tolist()
    held, kept = F(0), []
    for token in order:
        kept.append(token)
        held += law[token]
        if held >= mass:
            break
    return as_law(zeroed(law, [token for token in order if token not in kept]))


def squared(law: Row) -> Row:
    """Temperature 1/2."""
    return as_law(law * law)


def reading(verified: Model, bonus: Model, process_draft: Callable[[Row], Row]) -> Any:
    """A chain that verifies against `verified`, draws its last token from `bonus`, and processes only the draft."""

    def cycle(
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        pair, last = ModelPair(verified, draft, ids), ModelPair(bonus, draft, ids)
        tokens: tuple[int, ...] = ()
        for depth in range(shape.depth):
            node = node_at(pair, prefix + tokens, (0,) * depth, 1)
            law = process_draft(node.q)
            token, child = one_by_one(node, [draw(law, node, 0, chooser)], repeat(law), chooser)
            tokens = (*tokens, token)
            if child == -1:
                return tokens
        end = node_at(last, prefix + tokens, (0,) * shape.depth, 0)
        return (*tokens, emit(end.p, end, chooser)[0])

    return cycle


def unchanged(law: Row) -> Row:
    """No processing."""
    return law


def processed(model: Model, process: Callable[[Row], Row]) -> Model:
    """Give the model whose rows are processed."""

    def rows(prefix: Prefix) -> Any:
        row = np.empty(len(model(prefix)), dtype=object)
        row[:] = list(model(prefix))
        return process(row)

    return rows


def _engine(name: str, verified: Model, bonus: Model, process_draft: Callable[[Row], Row], lossless: bool) -> Any:
    return FunctionMethod(reading(verified, bonus, process_draft), name, "lossless" if lossless else "lossy")


def top_8(law: Row) -> Row:
    """top-p .8."""
    return top_p(law, F(4, 5))


TRUE_IDS, OFFSETS = (0, 2, 5), (0, 1, 3)


def mapped(token_ids: Sequence[int], row_ids: Sequence[int], within_draft: bool = False) -> FixedTreeMethod:
    """Give a chain whose tokens are mapped by `token_ids` and whose draft row is spread by `row_ids`.

    `within_draft`: the residual is cut to the tokens that the draft knows.
    """

    def draft_ids(node: Node) -> Row:
        return node.q[list(TRUE_IDS)]

    def drafted(node: Node, chooser: Chooser) -> Candidates:
        return [(token_ids[draw(draft_ids(node), node, 0, chooser)], SAMPLED)]

    def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
        if not candidates:
            return emit(node.p, node, chooser)
        spread = np.zeros_like(node.p)
        spread[list(row_ids)] = draft_ids(node)
        token = candidates[0]
        ratio = node.p[token] / spread[token] if spread[token] else 1
        if chooser.accept(min(1, ratio), ("coin", *node.at, 0)):
            return token, 0
        if within_draft:
            outside = [v for v in range(len(node.p)) if v not in row_ids]
            return emit(as_law(zeroed(excess(node.p, spread), outside)), node, chooser)
        return emit(residual(node.p, spread), node, chooser)

    claim: Any = "lossless" if tuple(token_ids) == tuple(row_ids) and not within_draft else "lossy"
    return FixedTreeMethod("mapped", claim, chain_of, drafted, verify)


def padded_row(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give the row to verify with still holds a padding token that drawing masks."""
    claimed = np.array([F(1, 2), F(1, 4), F(1, 4)], dtype=object)
    return one_by_one(node, candidates, repeat(claimed), chooser)


P6 = always(F(1, 5), F(1, 10), F(2, 5), F(1, 10), F(1, 10), F(1, 10))
RIGHT6 = first_token(F(1, 5), F(1, 10), F(2, 5), F(1, 10), F(1, 10), F(1, 10))
COLD_TARGET = processed(TARGET, squared)
CUT_TARGET = processed(TARGET, top_8)

CASES = (
    FaultCase(
        "E1", KIND, "top-p .8 given to the draft only", False,
        _engine("top-p-draft-only", TARGET, TARGET, top_8, False), CUT_TARGET, DRAFT, ONE_LAYER, first_token(*W_TARGET),
    ),
    FaultCase(
        "E1b", KIND, "top-p .8 given to both", True,
        _engine("top-p-both", CUT_TARGET, CUT_TARGET, top_8, True), CUT_TARGET, DRAFT, ONE_LAYER,
        first_token(F(5, 8), F(3, 8)),
    ),
    FaultCase(
        "EX1", KIND, "temperature given to the bonus row but not to the verified rows", False,
        _engine("cold-bonus", TARGET, COLD_TARGET, unchanged, False), COLD_TARGET, DRAFT, ONE_LAYER,
        first_token(*W_TARGET),
    ),
    FaultCase(
        "EX2", KIND, "temperature given to the verified rows but not to the bonus row: the first token is right", False,
        _engine("warm-bonus", COLD_TARGET, TARGET, unchanged, False), COLD_TARGET, DRAFT, ONE_LAYER,
        first_token(F(25, 38), F(9, 38), F(2, 19)),
    ),
    FaultCase(
        "EX3", KIND, "temperature given to the target only, the draft left as it is", True,
        _engine("cold-target", COLD_TARGET, COLD_TARGET, unchanged, True), COLD_TARGET, DRAFT, ONE_LAYER,
        first_token(F(25, 38), F(9, 38), F(2, 19)),
    ),
    FaultCase(
        "F1", KIND, "token by the true map, row by offsets read as ids", False, mapped(TRUE_IDS, OFFSETS), P6,
        always(F(1, 2), F(3, 10), F(1, 5)), ONE_LAYER, first_token(F(1, 5), 0, F(1, 2), 0, F(1, 20), F(1, 4)),
        ids=TRUE_IDS,
    ),
    FaultCase(
        "F1b", KIND, "the same wrong map for token and row: accepts 2/5 instead of 3/5", True, mapped(OFFSETS, OFFSETS),
        P6, always(F(1, 2), F(3, 10), F(1, 5)), ONE_LAYER, RIGHT6, F(2, 5), ids=TRUE_IDS,
    ),
    FaultCase(
        "F1c", KIND, "the true map for both", True, mapped(TRUE_IDS, TRUE_IDS), P6,
        always(F(1, 2), F(3, 10), F(1, 5)), ONE_LAYER, RIGHT6, F(3, 5), ids=TRUE_IDS,
    ),
    FaultCase(
        "F3", KIND, "a padded logit is in the softmax but masked when drawing", False,
        FixedTreeMethod("padded", "lossy", chain_of, independent, padded_row), always(F(1, 2), F(1, 2), 0),
        always(F(2, 3), F(1, 3), 0), ONE_LAYER, first_token(F(2, 3), F(1, 3)),
    ),
    FaultCase(
        "FX1", KIND, "the residual is cut to the draft's vocabulary", False,
        mapped(TRUE_IDS, TRUE_IDS, within_draft=True), P6, always(F(1, 2), F(3, 10), F(1, 5)), ONE_LAYER,
        first_token(F(1, 5), 0, F(7, 10), 0, 0, F(1, 10)), ids=TRUE_IDS,
    ),
    FaultCase(
        "FX2", KIND, "token by offsets read as ids, row by the true map", False, mapped(OFFSETS, TRUE_IDS), P6,
        always(F(1, 2), F(3, 10), F(1, 5)), ONE_LAYER, ids=TRUE_IDS,
    ),
)  # fmt: skip
