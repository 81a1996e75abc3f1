"""Traversal verification (Weng et al.): a tree of sampled siblings, judged from its leaves to its root.

A leaf is accepted with the whole path to it; a rejected leaf leaves its parent with a smaller target and a smaller
draft law, and the parent is tried as a leaf once its children are gone. On a chain it is the block rule. Siblings
must be drawn without replacement: with top-K siblings the same rule is lossy, and registered as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import Draft, Widths, node_at
from exact.methods.block import kept_share, leftover
from exact.methods.parts import complete, emit, top, without_replacement
from rheo_core import Chooser, Cycle, TreeShape
from rheo_core.laws import Row, normalise, total, without
from rheo_core.methods import FunctionMethod
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel
from rheo_core.tree import ROOT, Nodes, SlotPath
from rheo_core.verification import ratio

REFERENCE = "Weng et al. 2025, Traversal Verification (arXiv 2505.12398)"

Outcome = tuple[int, ...] | None


class _Traversal:
    """One drafted tree and its verification."""

    def __init__(self, pair: ModelPair, prefix: Prefix, widths: Widths, draft: Draft, chooser: Chooser) -> None:
        self.pair = pair
        self.prefix = prefix
        self.chooser = chooser
        self.nodes = Nodes()
        self.children: dict[SlotPath, list[int]] = {}
        row_of: dict[SlotPath, int] = {(): ROOT}
        for path, width in widths.items():
            if path not in row_of:
                continue
            context = prefix + self.nodes.tokens_to(row_of[path])
            siblings = draft(node_at(pair, context, path, width), chooser)
            self.children[path] = [token for token, _ in siblings]
            for slot, (token, kind) in enumerate(siblings):
                row_of[(*path, slot)] = self.nodes.append(row_of[path], slot, kind, token, 1)

    def emitted(self, path: SlotPath, tokens: tuple[int, ...], mass: Any) -> Outcome:
        """What is emitted if the text ends at or below this node, whose weight P is `mass`; None: it is rejected."""
        below = self.children.get(path, [])
        node = node_at(self.pair, self.prefix + tokens, path, len(below))
        p: Row = node.p
        q: Row | None = node.q
        for slot, token in enumerate(below):
            if q is None or not q[token] > 0:
                continue  # a token that the draft law no longer holds cannot be tested against it
            weight = ratio(mass * p[token], q[token])
            found = self.emitted((*path, slot), (*tokens, token), weight)
            if found is not None:
                return found
            left = leftover(mass, p, q)
            mass = kept_share(mass, left)
            if total(left) > 0:
                p = normalise(left)
            q = without(q, [token])
        if self.chooser.accept(mass, ("coin", 0, path, len(below))):
            return (*tokens, emit(p, node, self.chooser)[0])
        return None


def traversal(name: str, claim: Any, draft: Draft) -> FunctionMethod:
    """Give the rule on a tree whose siblings are drafted by `draft`."""

    def cycle(
        target: TargetModel,
        draft_model: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        run = _Traversal(ModelPair(target, draft_model, ids), prefix, complete(shape), draft, chooser)
        tokens = run.emitted((), (), 1)
        if tokens is None:  # no assert: pytest would rewrite it, and with it the identity of this code
            raise ValueError("the root's weight is 1, and no tokens were emitted")
        return Cycle(tokens, len(tokens) - 1, run.nodes.tree(np.dtype(object)))

    return FunctionMethod(cycle, name, claim)


TRAVERSAL = traversal("traversal", "lossless", without_replacement)
TRAVERSAL_TOP_K = traversal("traversal-top-k", "lossy", top)
