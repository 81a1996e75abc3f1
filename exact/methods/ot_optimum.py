"""The optimal-transport rule: a coupling of the drafted candidate set with the target that accepts as much as possible.

It works for any way to draft siblings; here they are drawn without replacement. The value is the one that Global
Resolution and SpecTr's linear program compute; the coupling is an exact vertex, whatever the arithmetic of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import Draft, FixedTreeMethod, Node
from exact.enumeration.rationals import exact, exact_law
from exact.methods.optimum import Optimum, optimum, pool_law
from exact.methods.parts import complete, emit, without_replacement
from rheo_core import Chooser
from rheo_core.laws import Row, normalise
from rheo_core.verification import Verdict

REFERENCE = "SpecTr's optimal transport (arXiv 2310.15141); Global Resolution (arXiv 2511.15898)"


@dataclass(frozen=True)
class Transport:
    """Verification by an optimal coupling, for siblings drafted by `draft`."""

    draft: Draft

    def __call__(self, node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
        """Accept a token of the set with the coupling's conditional law, else draw from what was not accepted."""
        if not candidates:
            return emit(node.p, node, chooser)
        best, pools = self.coupling(node)
        pool = frozenset(candidates)
        slots = {token: slot for slot, token in reversed(list(enumerate(candidates)))}
        shares = [exact(best.flow.get((pool, token), 0)) for token in slots]
        rejected = exact(pools[pool]) - sum(shares)
        choice = chooser.index(_row([*shares, rejected]), ("coin", *node.at, 0))
        if choice < len(slots):
            token = list(slots)[choice]
            return token, slots[token]
        left = exact_law(node.p)
        for (_, token), mass in best.flow.items():
            left[token] -= exact(mass)
        return emit(normalise(left), node, chooser)

    def coupling(self, node: Node) -> tuple[Optimum, dict[frozenset[int], Any]]:
        """The optimal coupling at a node, and the law over its candidate sets; computed once for each node."""
        key = (tuple(node.p.tolist()), tuple(node.q.tolist()), node.order, node.width)
        if key not in _COUPLINGS:
            if len(_COUPLINGS) >= _KEPT:
                _COUPLINGS.clear()
            pools = pool_law(lambda chooser: [token for token, _ in self.draft(node, chooser)])
            _COUPLINGS[key] = (optimum(node.p, pools), pools)
        return _COUPLINGS[key]


_KEPT = 1000
_COUPLINGS: dict[Any, tuple[Optimum, dict[frozenset[int], Any]]] = {}


def _row(numbers: list[Any]) -> Row:
    row = np.empty(len(numbers), dtype=object)
    row[:] = numbers
    return row


OT_OPTIMUM = FixedTreeMethod("ot-optimum", "lossless", complete, without_replacement, Transport(without_replacement))
