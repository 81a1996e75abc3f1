"""The kept tree built best-first, drawing only what it keeps.

For a proxy that ignores Y and lies in [q(x_{m+1}), 1] this is the tree of `rheo_core.construction.layered`, in the same
order and from the same draws (by address), without its unpruned nodes: what makes classes enumerable.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from rheo_core.checks import InvalidInput
from rheo_core.chooser import Chooser
from rheo_core.construction import tail_address
from rheo_core.laws import Row
from rheo_core.models import Prefix
from rheo_core.pool import Drafter, Pool
from rheo_core.tree import ROOT, SAMPLED, Nodes, SlotPath, Tree, TreeShape


class NotGrowable(InvalidInput):
    """A proxy for which best-first growth is not the paper's construction."""


def grown(drafter: Drafter, prefix: Prefix, shape: TreeShape, chooser: Chooser) -> Tree:
    """The same tree built best-first."""
    growth = Growth(drafter, prefix, shape)
    while (tail := growth.next_draw()) is not None:
        growth.supply(chooser.index(tail, at=tail_address(growth.path)))
    return growth.tree()


class Growth:
    """Best-first growth that stops at each draw.

    The highest-ranked slot is admitted and, if its depth is below D and fewer than K nodes of its depth were expanded,
    expanded: its leads and its sampled slot become open. Admitting a sampled slot needs its token: `next_draw` returns
    q~ [draft V] and waits for `supply(token)`, which opens the fills. Needs a proxy that ignores Y and lies in
    [q(x_{m+1}), 1] (Lemma 4); any other raises `NotGrowable`.
    """

    def __init__(self, drafter: Drafter, prefix: Prefix, shape: TreeShape) -> None:
        if getattr(drafter.proxy, "uses_token", True):
            raise NotGrowable("construction", "grown", "a proxy that ignores the sampled token (else: layered)")
        self.drafter = drafter
        self.prefix = prefix
        self.shape = shape
        self.nodes = Nodes()
        self._dtype = drafter.pair.p(prefix).dtype
        self._open: list[tuple[Any, int, int, int, int, int]] = []  # -score, depth, parent, slot, kind, draft id
        self._expanded = [0] * shape.depth
        self._pending: tuple[int, Any, Pool] | None = None  # parent, path score, pool of a sampled slot without token
        self._expand(ROOT)

    def next_draw(self) -> Row | None:
        """Admit nodes up to the next draw and return its weights; None when the tree is complete."""
        if self._pending is not None:
            raise InvalidInput("next_draw", "a draw not supplied", "supply(token) first")
        while self._open and not self._full():
            score, _, parent, slot, kind, draft_id = heappop(self._open)
            if kind == SAMPLED:
                pool = self._pool(parent)
                self._pending = (parent, -score, pool)
                return pool.tail
            self._admit(parent, slot, kind, draft_id, -score)
        return None

    @property
    def path(self) -> SlotPath:
        """Slot path of the parent whose sampled token is waited for."""
        return self.nodes.path(self._wait()[0])

    def supply(self, token: int) -> None:
        """Give the waiting sampled slot its draft id."""
        parent, score, pool = self._wait()
        self._pending = None
        self._admit(parent, pool.m, SAMPLED, token, score)
        if not self._full():
            for slot, kind, draft_id, fill in pool.slots(token)[pool.m + 1 :]:
                self._push(parent, slot, kind, draft_id, fill)

    def copy(self) -> Growth:
        """Give an independent growth in the same state."""
        twin = object.__new__(Growth)
        vars(twin).update(vars(self))
        twin.nodes = self.nodes.copy()
        twin._open = self._open[:]
        twin._expanded = self._expanded[:]
        return twin

    def tree(self) -> Tree:
        """Give the nodes admitted so far, in the order of admission, which is their rank."""
        return self.nodes.tree(self._dtype)

    def _full(self) -> bool:
        return len(self.nodes.token) == self.shape.budget

    def _wait(self) -> tuple[int, Any, Pool]:
        if self._pending is None:
            raise InvalidInput("supply", "no draw waiting", "next_draw() to have returned a tail law")
        return self._pending

    def _pool(self, node: int) -> Pool:
        return self.drafter.pool(self.prefix + self.nodes.tokens_to(node))

    def _admit(self, parent: int, slot: int, kind: int, draft_id: int, score: Any) -> None:
        node = self.nodes.append(parent, slot, kind, self.drafter.pair.target_id(draft_id), score)
        depth = self.nodes.depth_of(node)
        if not self._full() and depth < self.shape.depth and self._expanded[depth] < self.shape.width:
            self._expand(node)

    def _expand(self, node: int) -> None:
        self._expanded[self.nodes.depth_of(node)] += 1
        pool = self._pool(node)
        for slot, kind, draft_id, score in pool.lead_slots():
            self._push(node, slot, kind, draft_id, score)
        if pool.tail is None:
            for slot, kind, draft_id, score in pool.fill_slots(None):
                self._push(node, slot, kind, draft_id, score)
            return
        proxy = pool.proxy_score()
        least = pool.score[pool.row.order[pool.m]]
        if proxy < least:
            raise NotGrowable("proxy", proxy, f"at least q(x_(m+1)) = {least} for growth (Lemma 4; else: layered)")
        self._push(node, pool.m, SAMPLED, ROOT, proxy)

    def _push(self, parent: int, slot: int, kind: int, draft_id: int, score: Any) -> None:
        path_score = score if parent == ROOT else self.nodes.score[parent] * score
        heappush(self._open, (-path_score, self.nodes.depth_of(parent) + 1, parent, slot, kind, draft_id))
