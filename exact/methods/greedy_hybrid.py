"""The greedy multi-draft hybrid of Hu et al.: the top k-1 tokens fixed, the last drawn from the rest.

One layer is RheoSampling's pool with m = k - 1 and no fills; the drawn token is tested first and the optimum of the
pool is attained.
"""

from __future__ import annotations

from collections.abc import Sequence

from exact.enumeration.fixed_trees import Candidates, FixedTreeMethod, Node
from exact.methods.parts import complete, draw
from rheo_core import LEAD, SAMPLED, Chooser
from rheo_core.laws import without
from rheo_core.verification import Verdict, algorithm_1

REFERENCE = "Hu et al. 2025, Towards Optimal Multi-draft Speculative Decoding (arXiv 2502.18779)"


def draft_hybrid(node: Node, chooser: Chooser) -> Candidates:
    """k - 1 fixed tokens, then one from what is left of q; none where nothing is left."""
    fixed = list(node.order[: node.width - 1])
    siblings: Candidates = [(token, LEAD) for token in fixed]
    rest = without(node.q, fixed)
    return siblings if rest is None else [*siblings, (draw(rest, node, node.width - 1, chooser), SAMPLED)]


def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Algorithm 1; the pool is full iff its last token was drawn."""
    fixed = node.order[: node.width - 1] if node.width else ()
    if len(candidates) < node.width or not candidates:
        return algorithm_1(node.p, None, candidates, -1, len(candidates), chooser, node.at)
    rest = without(node.q, fixed)
    return algorithm_1(node.p, rest, candidates, len(candidates) - 1, len(fixed), chooser, node.at)


GREEDY_HYBRID = FixedTreeMethod("greedy-hybrid", "lossless", complete, draft_hybrid, verify)
