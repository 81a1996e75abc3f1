"""Typical acceptance (Medusa): keep whatever the target does not find too unlikely. Lossy by design.

The threshold holds an exponential of an entropy, so it is computed in float64; nothing here is random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exact.enumeration.fixed_trees import node_at
from exact.methods.parts import complete
from rheo_core import LEAD, Chooser, Cycle, TreeShape
from rheo_core.laws import Row
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.tree import ROOT, Nodes, SlotPath

REFERENCE = "Cai et al. 2024, Medusa (arXiv 2401.10774)"


@dataclass(frozen=True)
class Threshold:
    """Accept x while p(x) > min(epsilon, delta exp(-entropy(p))), in float64."""

    epsilon: float = 0.09
    delta: float = 0.3

    def accepts(self, p: Row, token: int) -> bool:
        """Tell whether a token passes under target distribution `p` [V]."""
        row = np.array([float(entry) for entry in p.tolist()])
        positive = row[row > 0]
        entropy = -float((positive * np.log(positive)).sum())
        return bool(row[token] > min(self.epsilon, self.delta * np.exp(-entropy)))


def typical(threshold: Threshold = Threshold(), name: str = "typical") -> FunctionMethod:
    """Give the cycle: the target's most likely token, then the longest typical path of a top-K tree below it."""

    def cycle(
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        pair = ModelPair(target, draft, ids)
        first = int(np.argmax(pair.p(prefix)))
        start = (*prefix, first)
        nodes = Nodes()
        row_of: dict[SlotPath, int] = {(): ROOT}
        passed: dict[SlotPath, tuple[int, float]] = {(): (0, 1.0)}  # depth and target likelihood of a typical path
        for path, width in complete(shape).items():
            if path not in row_of:
                continue
            parent = row_of[path]
            node = node_at(pair, start + nodes.tokens_to(parent), path, width)
            for slot, token in enumerate(node.order[:width]):
                below = (*path, slot)
                row_of[below] = nodes.append(parent, slot, LEAD, token, 1)
                if path in passed and threshold.accepts(node.p, token):
                    passed[below] = (len(below), passed[path][1] * float(node.p[token]))
        best = max(passed, key=lambda path: passed[path])
        tokens = (first, *nodes.tokens_to(row_of[best]))
        return Cycle(tokens, len(tokens) - 1, nodes.tree(np.dtype(object)))

    return FunctionMethod(cycle, name, "lossy")


TYPICAL = typical()
