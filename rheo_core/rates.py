"""Acceptance rates of one pool in closed form (section 4, appendix D).

A pool of n candidates holds the sampled token Y iff n > m and the draft has mass off the lead; every rate here is the
probability that one candidate is accepted, for fixed n, in the arithmetic of the rows. In a dynamic tree the number of
survivors depends on Y, so the acceptance of a tree is enumerated and not summed from these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rheo_core.checks import InvalidInput, check_count, check_law, check_map
from rheo_core.laws import Row, RowLike, excess, residual, total, without, zeroed
from rheo_core.models import DraftRow


@dataclass(frozen=True)
class _Pool:
    """One pool: target law p [V], tokens by falling q, q~ [V] (None: no sampled candidate), m leads, n candidates."""

    p: Row
    order: list[int]
    tail: Row | None
    m: int
    n: int

    @property
    def lead(self) -> list[int]:
        return self.order[: self.m]

    @property
    def last(self) -> int:
        """x_n, the only token that is a candidate for some Y and not for others, Y itself apart."""
        return self.order[self.n - 1]

    def top(self, count: int) -> list[int]:
        """Top_count, the first tokens by falling q."""
        return self.order[:count]

    def mass(self, row: Row, tokens: Sequence[int]) -> Any:
        return total(row[list(tokens)])


def rheo_rate(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """A_Rheo (Theorem 3): the rate of Algorithm 1 on a pool of `n` candidates with `m` leads.

    `p` [V] is the target law over target ids, `q` the draft law [draft V] or a `DraftRow`, `ids` the map from draft to
    target ids; 1 <= n <= draft V, m >= 0. Where Z = 0, p = q~ and r counts as 0.

    >>> from fractions import Fraction as F
    >>> rheo_rate([F(1, 2), F(3, 10), F(1, 5)], [F(7, 10), F(1, 5), F(1, 10)], m=0, n=1)
    Fraction(4, 5)
    """
    pool = _pool(p, q, m, n, ids)
    if pool.tail is None:
        return pool.mass(pool.p, pool.top(n))
    return _uncovered(pool, pool.p, pool.tail) + pool.mass(pool.p, pool.top(n - 1))


def rheo_bound(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """Give the upper bound of Theorem 3 (Eq. (2)), which is also appendix D.3's approximate form of A_Rheo.

    p(Top_n) + sum over v outside Top_n of min(p(v), q~(v)).
    """
    return _bound(_pool(p, q, m, n, ids), thinned=False)


def rrsw_rate(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """A_RRSw (Eq. (18), appendix D.2): leads first under p, then Y under p~, then the fills. 1 where p(lead) = 1."""
    pool = _pool(p, q, m, n, ids)
    if pool.tail is None:
        return pool.mass(pool.p, pool.top(n))
    after_leads = without(pool.p, pool.lead)
    if after_leads is None:
        return pool.mass(pool.p, pool.lead)
    reached = total(zeroed(pool.p, pool.lead))  # 1 - A
    return reached * _uncovered(pool, after_leads, pool.tail) + pool.mass(pool.p, pool.top(n - 1))


def rrsw_bound(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """Appendix D.3's approximate form of A_RRSw, an upper bound of Eq. (18) by the same argument as Theorem 3's.

    p(Top_n) + sum over v outside Top_n of min(p(v), (1 - A) q~(v)).
    """
    return _bound(_pool(p, q, m, n, ids), thinned=True)


def approximate_gain(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """Appendix D.3's A_Rheo - A_RRSw, never negative (the exact difference can be)."""
    return rheo_bound(p, q, m, n, ids=ids) - rrsw_bound(p, q, m, n, ids=ids)


def topk_rate(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """p(Top_n): vanilla verification of the n best tokens as point masses; `m` plays no part."""
    pool = _pool(p, q, m, n, ids)
    return pool.mass(pool.p, pool.top(n))


def optimal_rate(p: RowLike, q: RowLike | DraftRow, m: int, n: int, *, ids: Sequence[int] | None = None) -> Any:
    """A*: the most that any lossless rule can accept on this pool, over all couplings of the pool's law with p.

    p(Top_{n-1}) + min(p(x_n), q~(Top_n)) + sum over v outside Top_n of min(p(v), q~(v)) for n > m; p(Top_n) else.
    """
    pool = _pool(p, q, m, n, ids)
    if pool.tail is None:
        return pool.mass(pool.p, pool.top(n))
    at_last = min(pool.p[pool.last], pool.mass(pool.tail, pool.top(n)))
    return pool.mass(pool.p, pool.top(n - 1)) + at_last + total(zeroed(np.minimum(pool.p, pool.tail), pool.top(n)))


def _uncovered(pool: _Pool, p: Row, tail: Row) -> Any:
    """Acceptance outside Top_{n-1}, Eqs. (11) and (12): Y itself, and x_n under r once a Y of Top_{n-1} is rejected."""
    always = pool.top(pool.n - 1)
    direct = total(zeroed(np.minimum(p, tail), always))
    r = residual(p, tail)
    return direct if r is None else direct + r[pool.last] * pool.mass(excess(tail, p), always)


def _bound(pool: _Pool, thinned: bool) -> Any:
    covered = pool.mass(pool.p, pool.top(pool.n))
    if pool.tail is None:
        return covered
    tail = total(zeroed(pool.p, pool.lead)) * pool.tail if thinned else pool.tail
    return covered + total(zeroed(np.minimum(pool.p, tail), pool.top(pool.n)))


def _pool(p: RowLike, q: RowLike | DraftRow, m: int, n: int, ids: Sequence[int] | None) -> _Pool:
    target = check_law(p, "p")
    row = q if isinstance(q, DraftRow) else DraftRow.law(q)
    check_map(ids, len(row.score), len(target))
    if row.score.dtype != target.dtype:
        raise InvalidInput("q", row.score.dtype, f"the arithmetic of p, {target.dtype}")
    m, n = check_count("m", m, 0), check_count("n", n, 1)
    if n > len(row.score):
        raise InvalidInput("n", n, f"at most the {len(row.score)} tokens of the draft")
    leads = row.order[:m].tolist()
    tail = row.tail(leads) if n > m else None
    if ids is None:
        return _Pool(target, row.order.tolist(), tail, m, n)
    order = [int(ids[token]) for token in row.order]
    return _Pool(target, order, None if tail is None else _spread(tail, ids, len(target)), m, n)


def _spread(row: Row, ids: Sequence[int], size: int) -> Row:
    spread = np.zeros(size, dtype=row.dtype)
    spread[list(ids)] = row
    return spread
