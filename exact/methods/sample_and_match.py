"""Sample and match: draw the target's own token and go on where the draft happens to hold it.

Lossless whatever the draft, so it shows what the cleverer rules gain: one layer accepts p(children), with a single
drawn child sum p q.
"""

from __future__ import annotations

from collections.abc import Sequence

from exact.enumeration.fixed_trees import FixedTreeMethod, Node
from exact.methods.parts import complete, emit, without_replacement
from rheo_core import Chooser
from rheo_core.verification import Verdict

REFERENCE = "EAGLE and others use it at temperature 0; SpecInfer's naive sampling (arXiv 2305.09781)"


def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Draw t from p; descend if t is a child, else emit it."""
    token, _ = emit(node.p, node, chooser)
    return token, candidates.index(token) if token in candidates else -1


SAMPLE_AND_MATCH = FixedTreeMethod("sample-and-match", "lossless", complete, without_replacement, verify)
