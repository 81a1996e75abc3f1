"""Recursive rejection sampling over several siblings, with replacement (SpecInfer) and without (EAGLE-1, Sequoia).

The two differ only in how siblings are drawn; each must be verified with the laws that it was drawn from. Neither is
the paper's RRSw on the hybrid pool, which is "rheo-rrsw".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

from exact.enumeration.fixed_trees import FixedTreeMethod, Node
from exact.methods.parts import complete, independent, one_by_one, without_replacement
from rheo_core import Chooser
from rheo_core.laws import Row, without
from rheo_core.verification import Verdict

REFERENCE = "with replacement: Miao et al. 2023, SpecInfer (arXiv 2305.09781)"
REFERENCE_WITHOUT = (
    "without replacement: Jeon et al. 2024 (arXiv 2402.14160), Yang et al. 2024 (arXiv 2401.06706), EAGLE-1 and Sequoia"
)


def shrinking(q: Row, tokens: Sequence[int]) -> Iterator[Row]:
    """q, then q with each token drawn so far zeroed and renormalised: the laws of draws without replacement."""
    law: Row | None = q
    for token in tokens:
        if law is None:
            return
        yield law
        law = without(law, [token])


def verify_independent(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Give each candidate against q itself."""
    return one_by_one(node, candidates, repeat(node.q), chooser)


def verify_distinct(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Candidate i against what was left of q when it was drawn."""
    return one_by_one(node, candidates, shrinking(node.q, candidates), chooser)


RRS = FixedTreeMethod("rrs", "lossless", complete, independent, verify_independent)
RRSW = FixedTreeMethod("rrsw", "lossless", complete, without_replacement, verify_distinct)
