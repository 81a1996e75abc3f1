"""The hybrid candidate pool at one parent (section 3.2, appendix C.1).

Slots 0..m-1 hold the lead tokens, slot m the sampled token Y, the rest the fill tokens. The score that builds the tree
and the true probability that verification uses are kept apart: leads and fills carry q, the sampled slot carries its
proxy, and q~ is never touched by either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, Protocol

import numpy as np

from rheo_core.checks import InvalidInput
from rheo_core.laws import Row, total, zeroed
from rheo_core.models import DraftRow, ModelPair, Prefix
from rheo_core.tree import FILL, LEAD, SAMPLED

Slot = tuple[int, int, int, Any]
"""(slot, kind, draft id, score)."""


class Proxy(Protocol):
    """Anything callable as a proxy rule; without a `uses_token` attribute it counts as using the token."""

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """Give the score of the sampled slot, in [0, 1]."""
        ...


@dataclass(frozen=True)
class ProxyRule:
    """A named proxy rule and whether its value depends on the sampled token."""

    name: str
    rule: Callable[[Row, Row, int, int], Any]
    uses_token: bool

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """Give the rule's value."""
        return self.rule(score, order, m, sampled)


def tail_mass(score: Row, order: Row, m: int, sampled: int) -> Any:
    """z = sum of q(x_i) over i > m, summed over the tail (1 - sum over the lead can fall below q(x_{m+1})).

    Added up in the order of the ids, so that a device needs no full sort to get the same number. Never above 1, where
    a sum of rounded entries can come out if m = 0.
    """
    return min(total(zeroed(score, order[:m])), 1)


def _rheo(score: Row, order: Row, m: int, sampled: int) -> Any:
    """min{q(x_m), z}; q(x_1) when m = 0 (section 3.2: the first slot, ahead of x_1 by its place)."""
    if m == 0:
        return score[order[0]]
    return min(score[order[m - 1]], tail_mass(score, order, m, sampled))


RHEO = ProxyRule("min{q(x_m), z}", _rheo, uses_token=False)


class Pool:
    """The slots of one parent, before and after Y is drawn; all ids are draft ids.

    `tail` is q~ [draft V], or None where the sampled slot is absent: m >= K, or no mass off the lead. The pool is then
    the plain top-min(K, V).
    """

    def __init__(self, row: DraftRow, width: int, m: int, proxy: Proxy) -> None:
        self.row = row
        self.width = width
        self.m = m
        self.proxy = proxy
        best = row.score[row.order[0]]  # a float law may hold 1 + eps; as a score it would rise along a path
        self.score = row.score if best <= 1 else np.minimum(row.score, 1)
        self.leads: list[int] = row.order[: min(m, width)].tolist()
        self.tail: Row | None = row.tail(self.leads) if m < width else None
        if self.tail is not None:
            self.tail.flags.writeable = False  # kept for every later visit: a verification rule must not change it
        self._slots: dict[int | None, list[Slot]] = {}

    def lead_slots(self) -> Iterator[Slot]:
        """Top-m tokens with their draft probabilities."""
        for slot, token in enumerate(self.leads):
            yield slot, LEAD, token, self.score[token]

    def sampled_slot(self, token: int) -> Slot:
        """Y in its slot with its proxy score."""
        return self.m, SAMPLED, token, self.proxy_score(token)

    def proxy_score(self, token: int = -1) -> Any:
        """Give the proxy in the row's arithmetic; `token` may be left out where the rule does not look at it.

        Outside [0, 1] it is refused.
        """
        score = self.score
        value = self.proxy(score, self.row.order, self.m, token)
        if not 0 <= value <= 1:
            raise InvalidInput("proxy", value, "a score in [0, 1] (above 1 a child would outrank its parent)")
        if score.dtype.kind != "O":
            return score.dtype.type(value)
        if isinstance(value, Rational) or not hasattr(value, "as_integer_ratio"):  # a symbolic number stays what it is
            return value
        return Fraction(*value.as_integer_ratio())

    def fill_slots(self, sampled: int | None) -> Iterator[Slot]:
        """Yield the best tokens outside the lead and Y, up to width K (`sampled` None: no sampled slot)."""
        slot = len(self.leads) + (sampled is not None)
        for token in self.row.order[len(self.leads) :].tolist():
            if slot == self.width:
                return
            if token != sampled:
                yield slot, FILL, token, self.score[token]
                slot += 1

    def slots(self, sampled: int | None) -> list[Slot]:
        """Give the whole pool in slot order."""
        if sampled not in self._slots:
            y = [] if sampled is None else [self.sampled_slot(sampled)]
            self._slots[sampled] = [*self.lead_slots(), *y, *self.fill_slots(sampled)]
        return self._slots[sampled]


class Drafter:
    """Candidate pools for every prefix of one pair of models, each made once.

    Raises `InvalidInput` when m lies outside 0..K.
    """

    def __init__(self, pair: ModelPair, width: int, m: int, proxy: Proxy) -> None:
        if not 0 <= m <= width:
            raise InvalidInput("lead", m, f"0 to the width K = {width}")
        self.pair = pair
        self.width = width
        self.m = m
        self.proxy = proxy
        self._pools: dict[Prefix, Pool] = {}

    def pool(self, prefix: Prefix) -> Pool:
        """Give the pool at `prefix` (target ids)."""
        if prefix not in self._pools:
            self._pools[prefix] = Pool(self.pair.q(prefix), self.width, self.m, self.proxy)
        return self._pools[prefix]

    def tail(self, prefix: Prefix) -> Row | None:
        """q~ at `prefix` over target ids [V], or None where there is no sampled slot."""
        tail = self.pool(prefix).tail
        return None if tail is None else self.pair.in_target_ids(tail, len(self.pair.p(prefix)))
