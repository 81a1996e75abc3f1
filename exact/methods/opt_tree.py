"""OPT-Tree: a tree of top-K tokens grown level by level from the draft's own path probabilities.

The sum of the kept path probabilities is the draft's own forecast of how many tokens are accepted; growth stops when a
further level adds less than a threshold to it. Nothing is drawn, so vanilla verification is lossless on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rheo_core import Cycle, Method, Tree, TreeShape, proxies
from rheo_core.chooser import Chooser
from rheo_core.laws import total
from rheo_core.methods import Claim
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel, check_prefix
from rheo_core.pool import Drafter
from rheo_core.tree import ROOT, Nodes, rank
from rheo_core.verification import vanilla, verify_tree

REFERENCE = "Wang et al. 2024, OPT-Tree (arXiv 2406.17276)"


@dataclass(frozen=True)
class OptTree:
    """The method, with the least gain of expected acceptance that a further level must bring."""

    name: str = "opt-tree"
    claim: Claim = "lossless"
    threshold: Any = Fraction(1, 10)

    def cycle(
        self,
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        """Grow the tree, verify it as top-K trees are verified."""
        pair = ModelPair(target, draft, ids)
        prefix = check_prefix(prefix, pair)
        drafter = Drafter(pair, shape.width, shape.width, proxies.RHEO)
        tree = self.tree(drafter, prefix, shape)
        tokens = verify_tree(tree, drafter, prefix, vanilla, chooser)
        return Cycle(tokens, len(tokens) - 1, tree)

    def tree(self, drafter: Drafter, prefix: Prefix, shape: TreeShape) -> Tree:
        """Level by level: expand what is kept of the last level, keep the R best of all, stop when little is gained."""
        nodes = Nodes()
        kept: list[int] = [ROOT]
        last: list[int] = [ROOT]
        forecast: Any = 0
        dtype = drafter.pair.p(prefix).dtype
        for _ in range(shape.depth):
            fresh: list[int] = []
            for parent in last:
                for slot, kind, token, score in drafter.pool(prefix + nodes.tokens_to(parent)).slots(None):
                    path_score = score if parent == ROOT else nodes.score[parent] * score
                    fresh.append(nodes.append(parent, slot, kind, drafter.pair.target_id(token), path_score))
            best = rank(nodes.score)[: shape.budget]
            expected = total(nodes.tree(dtype, best).score)
            if expected - forecast < self.threshold:
                break
            forecast, kept = expected, best
            last = [node for node in best if node in set(fresh)]
            if not last:
                break
        return nodes.tree(dtype, [node for node in kept if node != ROOT])


OPT_TREE: Method = OptTree()
