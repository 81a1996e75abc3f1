"""The construction of the dynamic draft tree (section 2.1, appendix C.1).

Expand the K best nodes a level, D levels deep, then keep the R best of all.
"""

from __future__ import annotations

from typing import Any

from rheo_core.chooser import Chooser
from rheo_core.models import Prefix
from rheo_core.pool import Drafter, Slot
from rheo_core.tree import ROOT, Nodes, SlotPath, Tree, TreeShape, rank


def tail_address(path: SlotPath) -> tuple[Any, ...]:
    """Address of the draw of Y below the parent at `path`."""
    return ("tail", 0, path, 0)


def expand(drafter: Drafter, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Tree:
    """Give the unpruned tree U, ranked: the K best nodes of each level are expanded, D levels deep."""
    nodes = _expanded(drafter, prefix, shape, chooser)
    return nodes.tree(drafter.pair.p(prefix).dtype, rank(nodes.score))


def layered(drafter: Drafter, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Tree:
    """Prune_R(U): expand, then keep the R best nodes (appendix C.1)."""
    nodes = _expanded(drafter, prefix, shape, chooser)
    return nodes.tree(drafter.pair.p(prefix).dtype, rank(nodes.score)[: shape.budget])


def _expanded(drafter: Drafter, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Nodes:
    """U level by level, each level from left to right."""
    nodes = Nodes()
    frontier = [ROOT]
    for depth in range(1, shape.depth + 1):
        level: list[int] = []
        for parent in frontier:  # in rank order, so that a level stands from left to right
            pool = drafter.pool(prefix + nodes.tokens_to(parent))
            sampled = None if pool.tail is None else chooser.index(pool.tail, at=tail_address(nodes.path(parent)))
            level += [append_slot(nodes, drafter, parent, slot) for slot in pool.slots(sampled)]
        if depth < shape.depth:
            best = rank([nodes.score[node] for node in level])[: shape.width]
            frontier = [level[position] for position in best]
    return nodes


def append_slot(nodes: Nodes, drafter: Drafter, parent: int, slot: Slot) -> int:
    """Add one slot of a pool as a node below `parent`, its path score the product along the path; its row."""
    number, kind, draft_id, score = slot
    path_score = score if parent == ROOT else nodes.score[parent] * score
    return nodes.append(parent, number, kind, drafter.pair.target_id(draft_id), path_score)
