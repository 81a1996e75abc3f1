"""What the methods of the catalogue share: fixed topologies, ways to draft siblings, and the steps of verification.

Every residual is formed before its coin, as in `rheo_core.verification`: where it has no mass the coin is accept(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from exact.enumeration.fixed_trees import Candidates, Node, Topology, Widths
from rheo_core import LEAD, SAMPLED, Chooser, InvalidInput, TreeShape
from rheo_core.laws import Row, residual, without
from rheo_core.tree import SlotPath
from rheo_core.verification import Place, Verdict, ratio, vanilla


def complete(shape: TreeShape) -> Widths:
    """K slots at every parent, filled level by level from the left until R nodes are drafted."""
    widths: dict[SlotPath, int] = {}
    left = shape.budget
    level: list[SlotPath] = [()]
    for _ in range(shape.depth):
        parents, level = level, []
        for parent in parents:
            width = min(shape.width, left)
            if not width:
                return widths
            widths[parent] = width
            left -= width
            level += [(*parent, slot) for slot in range(width)]
    return widths


def chain_of(shape: TreeShape) -> Widths:
    """Give one slot at every parent: gamma = min(D, R) tokens in a row."""
    return {(0,) * depth: 1 for depth in range(min(shape.depth, shape.budget))}


def of_paths(paths: Iterable[SlotPath]) -> Topology:
    """Give a fixed topology given as a list of slot paths, as Medusa and EAGLE-1 give theirs.

    Every path needs its parent and its left neighbour in the list; the list must fit the shape it is used at.
    """
    listed = tuple(sorted((tuple(path) for path in paths), key=lambda path: (len(path), path)))
    for path in listed:
        parent, slot = path[:-1], path[-1] if path else -1
        if slot < 0 or (parent and parent not in listed) or (slot and (*parent, slot - 1) not in listed):
            raise InvalidInput("paths", path, "a non-empty slot path whose parent and left neighbour are listed too")
    widths = widths_of(listed)
    deepest = max((len(path) for path in listed), default=0)

    def topology(shape: TreeShape) -> Widths:
        needed = (max(widths.values(), default=0), deepest, len(listed))
        if any(size > allowed for size, allowed in zip(needed, (shape.width, shape.depth, shape.budget), strict=True)):
            raise InvalidInput("shape", shape, f"at least width {needed[0]}, depth {needed[1]} and budget {needed[2]}")
        return widths

    return topology


def widths_of(paths: Iterable[SlotPath]) -> Widths:
    """Give the number of slots of each parent among a list of slot paths, parents before children."""
    widths: dict[SlotPath, int] = {}
    for path in sorted(paths, key=lambda path: (len(path), path)):
        widths[path[:-1]] = widths.get(path[:-1], 0) + 1
    return widths


def draw(law: Row, node: Node, slot: int, chooser: Chooser) -> int:
    """Give one token from a distribution [V], at the address of this slot's draw."""
    return chooser.index(law, ("tail", *node.at, slot))


def independent(node: Node, chooser: Chooser) -> Candidates:
    """Tokens drawn one by one from q, repetitions included."""
    return [(draw(node.q, node, slot, chooser), SAMPLED) for slot in range(node.width)]


def without_replacement(node: Node, chooser: Chooser) -> Candidates:
    """Tokens drawn one by one from what is left of q; fewer than the width where q runs out of tokens."""
    siblings: Candidates = []
    law: Row | None = node.q
    for slot in range(node.width):
        if law is None:
            break
        siblings.append((draw(law, node, slot, chooser), SAMPLED))
        law = without(law, [siblings[-1][0]])
    return siblings


def top(node: Node, chooser: Chooser) -> Candidates:
    """Give the draft's best tokens, nothing drawn."""
    return [(token, LEAD) for token in node.order[: node.width]]


def tossed(chooser: Chooser, p: Any, q: Any, rest: Row | None, at: Place, slot: int) -> bool:
    """Give the coin of one candidate: min(1, p/q), and 1 where rejecting it would leave nothing to emit."""
    return chooser.accept(1 if rest is None else ratio(p, q), ("coin", *at, slot))


def emit(row: Row | None, node: Node, chooser: Chooser) -> Verdict:
    """Give the target's own token, drawn from what is left of its distribution."""
    if row is None:
        raise InvalidInput("chooser", "a rejection at probability 1", "accept(1) to accept")
    return chooser.index(row, ("emit", *node.at, 0)), -1


def as_point_masses(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
    """Vanilla verification: each candidate with p(x), whether it was chosen or drawn."""
    return vanilla(node.p, None, candidates, -1, len(candidates), chooser, node.at)


def one_by_one(node: Node, candidates: Sequence[int], laws: Iterable[Row], chooser: Chooser) -> Verdict:
    """Recursive rejection sampling: each candidate against the law it was drawn from, then a draw from the rest."""
    r: Row | None = node.p
    for slot, (token, law) in enumerate(zip(candidates, laws, strict=False)):
        if r is None:
            break
        rest = residual(r, law)
        if tossed(chooser, r[token], law[token], rest, node.at, slot):
            return token, slot
        r = rest
    return emit(r, node, chooser)
