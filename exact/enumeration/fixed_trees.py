"""Methods that treat a fixed tree parent by parent: how siblings are drafted, and how they are verified.

Most rules in the literature are of this kind. Which slots exist is settled by the shape alone, so the drafts of
different parents are independent; the exact law of a cycle then needs only the law at each parent, and what lies below
rejected siblings never has to be enumerated. `cycle` itself drafts the whole tree first, as a decoder does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from exact.enumeration.rationals import ONE, ZERO
from exact.enumeration.walk import outcomes
from rheo_core import Chooser, Cycle, TreeShape
from rheo_core.checks import InvalidInput, check_id, check_verdict
from rheo_core.laws import Row
from rheo_core.methods import Claim, cycle_number
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel, check_prefix
from rheo_core.tree import ROOT, Nodes, SlotPath
from rheo_core.verification import Place, Verdict

Widths = Mapping[SlotPath, int]
"""How many slots each parent has; parents before children, () the root, leaves left out."""

Topology = Callable[[TreeShape], Widths]


@dataclass(frozen=True)
class Node:
    """What is known at one parent before anything is drawn there, all in target ids.

    `p` target law [V]; `q` the law that tokens are drawn from [V]; `order` the draft's tokens by falling score; `width`
    the number of slots (0 at a leaf); `at` = (cycle, slot path), from which coins and draws take their addresses.
    """

    p: Row
    q: Row
    order: tuple[int, ...]
    width: int
    at: Place


Candidates = list[tuple[int, int]]
"""(token, kind) in slot order; fewer than the width where the draft runs out of tokens."""

Draft = Callable[[Node, Chooser], Candidates]
VerifySiblings = Callable[[Node, Sequence[int], Chooser], Verdict]


@dataclass(frozen=True)
class FixedTreeMethod:
    """A topology, a rule that drafts siblings, and a rule that verifies them."""

    name: str
    claim: Claim
    topology: Topology
    draft: Draft
    verify: VerifySiblings

    def cycle(
        self,
        target: TargetModel,
        draft: DraftModel,
        prefix: Prefix,
        shape: TreeShape,
        chooser: Chooser,
        ids: Sequence[int] | None = None,
    ) -> Cycle:
        """Draft the whole tree, verify it from the root, emit 1..D+1 target ids."""
        pair = ModelPair(target, draft, ids)
        prefix = check_prefix(prefix, pair)
        number = cycle_number(chooser)
        widths = self.topology(shape)
        nodes = Nodes()
        children: dict[SlotPath, list[int]] = {}
        row_of: dict[SlotPath, int] = {(): ROOT}
        for parent_path, width in widths.items():
            if parent_path not in row_of:
                continue  # below a slot that the draft could not fill
            parent = row_of[parent_path]
            here = node_at(pair, prefix + nodes.tokens_to(parent), parent_path, width, number)
            for slot, (token, kind) in enumerate(siblings(self, here, chooser)):
                row = nodes.append(parent, slot, kind, token, 1)
                row_of[(*parent_path, slot)] = row
                children.setdefault(parent_path, []).append(row)
        path: SlotPath = ()
        tokens: tuple[int, ...] = ()
        while True:
            candidates = [nodes.token[row] for row in children.get(path, [])]
            here = node_at(pair, prefix + tokens, path, widths.get(path, 0), number)
            token, child = check_verdict(self.verify(here, list(candidates), chooser), candidates, len(here.p))
            tokens = (*tokens, token)
            if child == ROOT:
                return Cycle(tokens, len(tokens) - 1, nodes.tree(np.dtype(object)))
            path = (*path, child)


def siblings(method: FixedTreeMethod, node: Node, chooser: Chooser) -> Candidates:
    """What a method drafts at one parent; raises unless it is at most `width` pairs (token id, kind)."""
    drafted: Any = method.draft(node, chooser) if node.width else []
    if not isinstance(drafted, list | tuple) or not all(isinstance(each, tuple) and len(each) == 2 for each in drafted):
        raise InvalidInput(f"siblings drafted by {method.name}", drafted, "a list of pairs (token, kind)")
    if len(drafted) > node.width:
        raise InvalidInput(f"siblings drafted by {method.name}", drafted, f"at most {node.width}, the slots there")
    return [(check_id(token, len(node.p), f"token drafted by {method.name}"), kind) for token, kind in drafted]


def node_at(pair: ModelPair, context: Prefix, path: SlotPath, width: int, cycle: int = 0) -> Node:
    """The two models at one parent; the draft is not asked where there is no slot (nothing is drafted at depth D)."""
    p = pair.p(context)
    if not width:
        return Node(p, np.zeros_like(p), (), 0, (cycle, path))
    row = pair.q(context)
    drawn = row.tail([])
    q = np.zeros_like(p) if drawn is None else pair.in_target_ids(drawn, len(p))
    return Node(p, q, tuple(pair.target_id(token) for token in row.order.tolist()), width, (cycle, path))


def fixed_tree_law(
    method: FixedTreeMethod,
    pair: ModelPair,
    prefix: Prefix,
    shape: TreeShape,
    cycle: int = 0,
    known: dict[tuple[Prefix, SlotPath], dict[Verdict, Any]] | None = None,
) -> dict[tuple[int, ...], Any]:
    """The exact law of the tokens that cycle number `cycle` emits, from the law at each parent the text can reach.

    `known` takes the law at each parent, by the tokens and the slots that lead there.
    """
    widths = method.topology(shape)
    known = {} if known is None else known
    law: dict[tuple[int, ...], Any] = {}
    waiting: list[tuple[tuple[int, ...], SlotPath, Any]] = [((), (), ONE)]
    while waiting:
        tokens, path, mass = waiting.pop()
        if (tokens, path) not in known:
            here = node_at(pair, prefix + tokens, path, widths.get(path, 0), cycle)
            known[tokens, path] = node_law(method, here)
        for (token, child), weight in known[tokens, path].items():
            longer = (*tokens, token)
            if len(longer) > shape.depth + 1:
                most = f"at most {shape.depth + 1} (depth + 1) of them"
                raise InvalidInput(f"tokens emitted by {method.name}", longer, most)
            if child == ROOT:
                law[longer] = law.get(longer, ZERO) + mass * weight
            else:
                waiting.append((longer, (*path, child), mass * weight))
    return law


def node_law(method: FixedTreeMethod, node: Node) -> dict[Verdict, Any]:
    """The exact law of (token, slot of the accepted sibling or -1) at one parent."""

    def program(chooser: Chooser) -> Verdict:
        candidates = [token for token, _ in siblings(method, node, chooser)]
        return check_verdict(method.verify(node, list(candidates), chooser), candidates, len(node.p))

    masses: dict[Verdict, Any] = {}
    for verdict, weight in outcomes(program):
        masses[verdict] = masses.get(verdict, ZERO) + weight
    return masses
