"""The chain of Leviathan et al. and Chen et al.: gamma tokens drawn one after another, each tested against the target.

The first rule of speculative sampling, and the baseline for the block rule. One layer accepts sum min(p, q).
"""

from __future__ import annotations

from itertools import repeat

from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods.parts import chain_of, independent, one_by_one

REFERENCE = "Leviathan et al. 2023 (arXiv 2211.17192); Chen et al. 2023 (arXiv 2302.01318)"

CHAIN = FixedTreeMethod(
    "chain",
    "lossless",
    chain_of,
    independent,
    lambda node, candidates, chooser: one_by_one(node, candidates, repeat(node.q), chooser),
)
