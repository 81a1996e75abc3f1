"""Candidate pools of many parents at once (section 3.2), prepared so that a draw is a binary search.

The arithmetic is the reference's, operation for operation, with rows stacked: the same sums from left to right, the
same division, the proxy computed by the rule itself. Tail laws are kept on their support only, which changes no sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.pairs import Batch, BatchedPair, Drafts, Ints, TablePair, scores
from rheo_core import InvalidInput
from rheo_core.checks import check_map
from rheo_core.pool import Proxy
from rheo_core.tree import FILL, LEAD, SAMPLED

Floats = NDArray[np.float64]


def totals(rows: Batch) -> Batch:
    """Sums [n] of rows [n, V] as `laws.total` takes them: left to right in float64, rounded once."""
    return np.add.accumulate(rows, axis=1, dtype=np.float64)[:, -1].astype(rows.dtype)


@dataclass(frozen=True)
class SlotRows:
    """The pools of n parents after their draws, all [n, W] in slot order with target ids: W = min(K, draft V)."""

    token: Ints
    score: Batch
    kind: Ints


class PoolTable:
    """The pools of S draft rows for one width, lead and proxy, before any draw.

    `has_tail` [S]; `support` [S, w] draft ids of the tail law in id order, `tail` [S, w] its values, padded with zeros.
    """

    def __init__(self, drafts: Drafts, width: int, m: int, proxy: Proxy, ids: Ints | None) -> None:
        self.m = m
        self.proxy = proxy
        self.ids = ids
        self.score = scores(drafts)
        self.order = np.argsort(-self.score, axis=1, kind="stable")
        self.slots = min(width, self.score.shape[1])
        leads = self.order[:, : min(m, width)]
        tails = _tails(drafts, leads, self.score) if m < self.slots else np.zeros_like(self.score)
        self.has_tail = (tails > 0).any(axis=1)
        self.support, self.tail = _compact(tails)
        self._cumulative = np.add.accumulate(self.tail, axis=1, dtype=np.float64)
        self._last = self.tail.shape[1] - 1 - np.argmax(self.tail[:, ::-1] > 0, axis=1)
        self._proxies = np.zeros(len(self.score), dtype=self.score.dtype)
        if not self._uses_token:
            for row in np.flatnonzero(self.has_tail):
                self._proxies[row] = self._proxy(row, -1)

    @property
    def _uses_token(self) -> bool:
        return bool(getattr(self.proxy, "uses_token", True))

    def _proxy(self, row: Any, token: Any) -> Any:
        value = self.proxy(self.score[row], self.order[row], self.m, int(token))
        if not 0 <= value <= 1:
            raise InvalidInput("proxy", value, "a score in [0, 1] (above 1 a child would outrank its parent)")
        return value

    def draw(self, rows: Ints, u: Floats) -> SlotRows:
        """The pools of parents with table `rows` [n], Y drawn by `u` [n] (unused where there is no tail)."""
        top = self.order[rows, : self.slots]
        kind = np.full(top.shape, FILL, dtype=np.int64)
        kind[:, : self.m] = LEAD
        has_tail: NDArray[np.bool_] = np.asarray(self.has_tail)[rows]
        token, sampled_rows = top.copy(), np.flatnonzero(has_tail)
        if len(sampled_rows):
            y = self._sampled(rows[sampled_rows], u[sampled_rows])
            token[sampled_rows] = self._with_sampled(top[sampled_rows], y)
            kind[sampled_rows, self.m] = SAMPLED
        score = self.score[rows[:, None], token]
        if len(sampled_rows):
            score[sampled_rows, self.m] = self._proxy_scores(rows[sampled_rows], y)
        return SlotRows(token if self.ids is None else self.ids[token], score, kind)

    def _sampled(self, rows: Ints, u: Floats) -> Ints:
        """First position with u * total < cumulative, by bisection: the draw of `SamplingChooser.index`."""
        edge = u * self._cumulative[rows, -1]
        low, high = np.zeros(len(rows), dtype=np.int64), self._last[rows]
        for _ in range(int(self.tail.shape[1]).bit_length()):
            middle = (low + high) >> 1
            above = edge < self._cumulative[rows, middle]
            high = np.where(above, middle, high)
            low = np.minimum(np.where(above, low, middle + 1), high)
        drawn: Ints = self.support[rows, low]
        return drawn

    def _with_sampled(self, top: Ints, y: Ints) -> Ints:
        """Top tokens [n, W] with Y put at slot m and the fills moved behind it, Y left out of them."""
        fills = top[:, self.m :]
        is_y = fills == y[:, None]
        place = np.where(is_y.any(axis=1), is_y.argmax(axis=1), fills.shape[1] - 1)
        kept = np.arange(fills.shape[1]) != place[:, None]
        rest = fills[kept].reshape(len(top), -1)
        return np.concatenate([top[:, : self.m], y[:, None], rest], axis=1)

    def _proxy_scores(self, rows: Ints, y: Ints) -> Batch:
        if not self._uses_token:
            return self._proxies[rows]
        values = [self._proxy(row, token) for row, token in zip(rows, y, strict=True)]
        return np.array(values, dtype=self.score.dtype)

    def subtract_tail(self, r: Batch, rows: Ints) -> Batch:
        """max(0, r - q~) [n, V] over target ids for table `rows` [n]."""
        result = r.copy()
        places = self._places(rows)
        index = np.arange(len(rows))[:, None]
        # Padding repeats the first entry of the support, value included: written twice, it is the same.
        tail = np.where(self.tail[rows] > 0, self.tail[rows], self.tail[rows, :1])
        result[index, places] = np.maximum(r[index, places] - tail, 0)
        return result

    @cached_property
    def _ahead(self) -> Floats:
        """Mass of q~ [S, w] ahead of each entry of the support, by falling score."""
        ranking = np.take_along_axis(self.score, self.support, axis=1)
        order = np.argsort(np.where(self.tail > 0, -ranking, np.inf), axis=1, kind="stable")
        sorted_tail = np.take_along_axis(self.tail, order, axis=1).astype(np.float64)
        ahead = np.empty(self.tail.shape)
        np.put_along_axis(ahead, order, np.add.accumulate(sorted_tail, axis=1) - sorted_tail, axis=1)
        return ahead

    def tail_transform(self, rows: Ints, token: Ints, v: Floats) -> Floats:
        """Randomised probability integral transform [n] of target ids `token` [n] under q~, by falling score."""
        entry = self._entry(rows, token)
        mass: Floats = self._ahead[rows, entry] + v * self.tail[rows, entry]
        return np.asarray(mass / self._cumulative[rows, -1])

    def tail_of(self, rows: Ints, token: Ints) -> Batch:
        """q~ at target ids `token` [n] for table `rows` [n]; the token must lie in the support."""
        return self.tail[rows, self._entry(rows, token)]

    def _entry(self, rows: Ints, token: Ints) -> Ints:
        return np.asarray((self._places(rows) == token[:, None]).argmax(axis=1), dtype=np.int64)

    def _places(self, rows: Ints) -> Ints:
        """The support [n, w] in target ids."""
        return self.support[rows] if self.ids is None else self.ids[self.support[rows]]


class PoolSource:
    """Pool tables for prefixes: one table for all of a `TablePair`, a new one per call for any other pair."""

    def __init__(self, pair: BatchedPair, width: int, m: int, proxy: Proxy) -> None:
        if not 0 <= m <= width:
            raise InvalidInput("lead", m, f"0 to the width K = {width}")
        self.pair = pair
        self.width = width
        self.m = m
        self.proxy = proxy
        self._ids = None if pair.ids is None else np.asarray(pair.ids, dtype=np.int64)
        self._table = self._make(pair.draft) if isinstance(pair, TablePair) else None
        self._checked = False

    def at(self, prefixes: Ints) -> tuple[PoolTable, Ints]:
        """A table and the row of it for each of `prefixes` [n, L]; equal prefixes are asked for once."""
        if self._table is not None and isinstance(self.pair, TablePair):
            return self._table, self.pair.state_of(prefixes)
        distinct, inverse = np.unique(prefixes, axis=0, return_inverse=True)
        return self._make(self.pair.drafts(distinct)), np.reshape(inverse, -1)

    def targets(self, prefixes: Ints) -> Batch:
        """Target laws [n, V], a copy."""
        if isinstance(self.pair, TablePair):
            rows = self.pair.targets(prefixes)
        else:
            distinct, inverse = np.unique(prefixes, axis=0, return_inverse=True)
            rows = self.pair.targets(distinct)[np.reshape(inverse, -1)]
        return rows

    def check(self, targets: Batch, table: PoolTable) -> None:
        """Raise unless the two vocabularies and types fit together."""
        if self._checked:
            return
        check_map(self.pair.ids, table.score.shape[1], targets.shape[1])
        if table.score.dtype != targets.dtype:
            raise InvalidInput("draft", table.score.dtype, f"the target's arithmetic, {targets.dtype}")
        self._checked = True

    def _make(self, drafts: Drafts) -> PoolTable:
        return PoolTable(drafts, self.width, self.m, self.proxy, self._ids)


def _tails(drafts: Drafts, leads: Ints, score: Batch) -> Batch:
    """q~ of each row [n, draft V]; a row of zeros where there is none."""
    if isinstance(drafts, list):
        nothing = np.zeros(score.shape[1], dtype=score.dtype)
        found = [row.tail(lead) for row, lead in zip(drafts, leads.tolist(), strict=True)]
        return np.stack([nothing if tail is None else tail for tail in found])
    tails = (drafts[1] if isinstance(drafts, tuple) else drafts).copy()
    np.put_along_axis(tails, leads, 0, axis=1)
    mass = totals(tails)
    tails[mass == 0] = 0
    return np.divide(tails, mass[:, None], out=tails, where=mass[:, None] > 0)


def _compact(rows: Batch) -> tuple[Ints, Batch]:
    """The non-zero entries of each row in id order, padded on the right: (ids [n, w], values [n, w])."""
    count = max(1, int((rows > 0).sum(axis=1).max()))
    ids = np.argsort(~(rows > 0), axis=1, kind="stable")[:, :count]
    values = np.take_along_axis(rows, ids, axis=1)
    return np.where(values > 0, ids, ids[:, :1]), values
