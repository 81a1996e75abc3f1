"""Kind A: the q used to verify is not the law that the token was drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import Candidates, Draft, FixedTreeMethod, Node, VerifySiblings, node_at
from exact.faults.case import DRAFT, ONE_LAYER, TARGET, F, FaultCase, always, as_law, by_prefix, first_token
from exact.methods.parts import as_point_masses, chain_of, draw, emit, independent, one_by_one, top
from rheo_core import SAMPLED, Chooser, TreeShape
from rheo_core.laws import Row, zeroed
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel

KIND = "q to verify is not the law drawn from"

Process = Callable[[Node], Row]


def chain_method(name: str, draft: Draft, verify: VerifySiblings, lossless: bool = False) -> FixedTreeMethod:
    """Give a chain with its own way to draft and to verify."""
    return FixedTreeMethod(name, "lossless" if lossless else "lossy", chain_of, draft, verify)


def drawn_from(process: Process) -> Draft:
    """Draft one token from a processed distribution."""
    return lambda node, chooser: [(draw(process(node), node, 0, chooser), SAMPLED)]


def tested_with(process: Process) -> VerifySiblings:
    """Verify as a chain does, with a processed distribution in place of q."""
    return lambda node, candidates, chooser: one_by_one(node, candidates, repeat(process(node)), chooser)


def soft(node: Node) -> Row:
    """q as it is."""
    return node.q


def top_two(node: Node) -> Row:
    """q cut to its two best tokens and normalised."""
    return as_law(zeroed(node.q, node.order[2:]))


def sharpened(node: Node) -> Row:
    """q at temperature 1/2: its square, normalised."""
    return as_law(node.q * node.q)


def unless_unlikely(node: Node, chooser: Chooser) -> Candidates:
    """Draw a token, and drop it if its own q is below 1/4."""
    token = draw(node.q, node, 0, chooser)
    return [(token, SAMPLED)] if node.q[token] >= F(1, 4) else []


def stop_after_unlikely(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    shape: TreeShape,
    chooser: Chooser,
    ids: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Give a chain that ends after a token whose q is below 1/4; that token is verified as all are."""
    pair = ModelPair(target, draft, ids)
    drafted: tuple[int, ...] = ()
    while len(drafted) < shape.depth:
        node = node_at(pair, prefix + drafted, (0,) * len(drafted), 1)
        drafted = (*drafted, draw(node.q, node, 0, chooser))
        if node.q[drafted[-1]] < F(1, 4):
            break
    tokens: tuple[int, ...] = ()
    for token in drafted:
        node = node_at(pair, prefix + tokens, (0,) * len(tokens), 1)
        emitted, child = one_by_one(node, [token], repeat(node.q), chooser)
        tokens = (*tokens, emitted)
        if child == -1:
            return tokens
    last = node_at(pair, prefix + tokens, (0,) * len(tokens), 0)
    return (*tokens, emit(last.p, last, chooser)[0])


def stale_row(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    shape: TreeShape,
    chooser: Chooser,
    ids: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Give a chain that is verified with the draft row of the first position at every position."""
    pair = ModelPair(target, draft, ids)
    first = node_at(pair, prefix, (), 1).q
    drafted: tuple[int, ...] = ()
    while len(drafted) < shape.depth:
        node = node_at(pair, prefix + drafted, (0,) * len(drafted), 1)
        drafted = (*drafted, draw(node.q, node, 0, chooser))
    tokens: tuple[int, ...] = ()
    for token in drafted:
        node = node_at(pair, prefix + tokens, (0,) * len(tokens), 1)
        emitted, child = one_by_one(node, [token], repeat(first), chooser)
        tokens = (*tokens, emitted)
        if child == -1:
            return tokens
    last = node_at(pair, prefix + tokens, (0,) * len(tokens), 0)
    return (*tokens, emit(last.p, last, chooser)[0])


def smoothed(node: Node) -> Row:
    """q mixed with a little uniform noise, as label smoothing or dithering does."""
    flat: Any = np.full_like(node.q, F(1, len(node.q)))
    mixed: Row = node.q * F(9, 10) + flat * F(1, 10)
    return mixed


Q4 = always(F(2, 5), F(3, 10), F(1, 5), F(1, 10))
P4 = always(F(1, 2), F(3, 10), F(1, 5), 0)
SAME = always(F(1, 2), F(3, 10), F(1, 5))

CASES = (
    FaultCase(
        "A1", KIND, "drafted by argmax, ratio with the soft q", False,
        chain_method("argmax-drafted", top, tested_with(soft)), TARGET, DRAFT, ONE_LAYER,
        first_token(F(5, 7), F(1, 7), F(1, 7)),
    ),
    FaultCase(
        "A2", KIND, "drawn from the top-2 law, tested with the raw q", False,
        chain_method("top-2-raw", drawn_from(top_two), tested_with(soft)), P4, Q4, ONE_LAYER,
        first_token(F(4, 7), F(3, 7)), F(1),
    ),
    FaultCase(
        "A2b", KIND, "drawn from the top-2 law, tested with the top-2 law", True,
        chain_method("top-2", drawn_from(top_two), tested_with(top_two), True), P4, Q4, ONE_LAYER,
        first_token(F(1, 2), F(3, 10), F(1, 5)), F(4, 5),
    ),
    FaultCase(
        "A4", KIND, "a token of q below 1/4 is dropped, then p is sampled", False,
        chain_method("drop-unlikely", unless_unlikely, tested_with(soft)), SAME, SAME, ONE_LAYER,
        first_token(F(3, 5), F(9, 25), F(1, 25)),
    ),
    FaultCase(
        "A4b", KIND, "drafting stops after a token of q below 1/4", True,
        FunctionMethod(stop_after_unlikely, "stop-after-unlikely", "lossless"), SAME, SAME, TreeShape(1, 2, 2),
        first_token(F(1, 2), F(3, 10), F(1, 5)), F(1),
    ),
    FaultCase(
        "A5", KIND, "drawn from q, verified as a point mass", True,
        chain_method("point-mass", independent, as_point_masses, True), TARGET, DRAFT, ONE_LAYER,
        first_token(F(1, 2), F(3, 10), F(1, 5)), F(43, 100),
    ),
    FaultCase(
        "AX1", KIND, "drawn at temperature 1/2, tested at temperature 1", False,
        chain_method("sharpened-raw", drawn_from(sharpened), tested_with(soft)), TARGET, DRAFT, ONE_LAYER,
        first_token(F(35, 54), F(11, 54), F(4, 27)),
    ),
    FaultCase(
        "AX2", KIND, "every position tested with the first position's draft row", False,
        FunctionMethod(stale_row, "stale-row", "lossy"), TARGET,
        by_prefix({(): (F(7, 10), F(1, 5), F(1, 10))}, (F(1, 10), F(1, 5), F(7, 10))), TreeShape(1, 2, 2),
    ),
    FaultCase(
        "AX3", KIND, "drawn from q, tested with a smoothed q", False,
        chain_method("smoothed", independent, tested_with(smoothed)), TARGET, DRAFT, ONE_LAYER,
    ),
    FaultCase(
        "AX4", KIND, "drawn from the smoothed q and tested with it", True,
        chain_method("smoothed-both", drawn_from(smoothed), tested_with(smoothed), True), TARGET, DRAFT, ONE_LAYER,
        first_token(F(1, 2), F(3, 10), F(1, 5)), F(251, 300),
    ),
)  # fmt: skip
