"""Block verification (Sun et al.): the tokens of a chain are judged together, not one by one.

It emits at least as many tokens in expectation as the chain rule on every pair of models, and never another law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import Node, node_at
from exact.methods.parts import chain_of, draw, emit
from rheo_core import SAMPLED, Chooser, Cycle, TreeShape, method
from rheo_core.laws import Row, excess, normalise, total
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.tree import ROOT, Nodes
from rheo_core.verification import ratio

REFERENCE = "Sun et al. 2024, Block Verification (arXiv 2403.10444)"


def leftover(mass: Any, p: Row, q: Row) -> Row:
    """max(0, P p - q) [V]: what the tokens after a prefix of weight P could still give."""
    return excess(mass * p, q)


def kept_share(mass: Any, left: Row) -> Any:
    """h = S / (S + 1 - P): the probability that a prefix of weight P is kept once all longer ones are refused."""
    below = total(left) + (1 - mass)  # so that P = 1 gives 1 in floats too
    return ratio(total(left), below) if below > 0 else 1


@method(name="block", claim="lossless")
def block(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    shape: TreeShape,
    chooser: Chooser,
    ids: Sequence[int] | None = None,
) -> Cycle:
    """Draw gamma = min(D, R) tokens, keep the longest prefix whose coin falls below its share, emit one more."""
    pair = ModelPair(target, draft, ids)
    gamma = len(chain_of(shape))
    places: list[Node] = []
    tokens: tuple[int, ...] = ()
    masses: list[Any] = [1]
    nodes = Nodes()
    for position in range(gamma + 1):
        node = node_at(pair, prefix + tokens, (0,) * position, int(position < gamma))
        places.append(node)
        if position < gamma:
            token = draw(node.q, node, 0, chooser)
            masses.append(ratio(masses[-1] * node.p[token], node.q[token]))
            tokens = (*tokens, token)
            nodes.append(len(nodes) - 1 if nodes.token else ROOT, 0, SAMPLED, token, 1)

    def left(position: int) -> Row:
        return leftover(masses[position], places[position].p, places[position].q)

    def share(position: int) -> Any:
        return masses[gamma] if position == gamma else kept_share(masses[position], left(position))

    kept = gamma
    while kept and not chooser.accept(share(kept), ("coin", 0, (0,) * (kept - 1), 0)):
        kept -= 1
    rest = places[kept].p if kept == gamma or not total(left(kept)) > 0 else normalise(left(kept))
    emitted, _ = emit(rest, places[kept], chooser)
    tree = nodes.tree(np.dtype(object))
    return Cycle((*tokens[:kept], emitted), kept, tree)
