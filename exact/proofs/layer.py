"""One pool under Algorithm 1, for every p and q~ of a cell.

`algorithm_1` of rheo_core is run on the polynomials of the cell with Y as its only candidate, once for each answer of
its coin: that yields the coin and the residual. By hand is one step: that after a rejection a further candidate c is
accepted with r(c) and the emission has law r, whatever the list, which is the loop lemma (proved in `loop`). The tests
hold what comes out against full runs of rheo_core on numbers and, with faces, on symbols.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exact.proofs.compiled import LetterValues
from exact.proofs.engines.cells import RowCell
from exact.proofs.engines.rings import Engine, sign
from exact.proofs.symbolic import Symbolic, row_of
from rheo_core import DraftRow, proxies
from rheo_core.pool import Pool
from rheo_core.verification import algorithm_1


class Probe:
    """A chooser that answers its coins as told and remembers what it was asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.coins: list[Any] = []
        self.draws: list[Any] = []

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """Give the answer; the probability is kept."""
        self.coins.append(probability)
        return self.answer

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """Give the first position of positive weight; the weights are kept."""
        self.draws.append(weights)
        return next(i for i, weight in enumerate(np.asarray(weights).tolist()) if weight > 0)


@cache
def candidates(size: int, m: int, count: int, sampled: int) -> tuple[int, ...]:
    """Give the pool of `count` candidates when Y is `sampled`, from rheo_core; tokens stand by falling q."""
    q = list(range(size, 0, -1))
    row = DraftRow.law([Fraction(weight, sum(q)) for weight in q])
    pool = Pool(row, count, m, proxies.RHEO)
    return tuple(slot[2] for slot in pool.slots(sampled))


@dataclass(frozen=True)
class SymbolicLayer:
    """What Algorithm 1 does with one sampled candidate on a cell.

    `met[v]` = q~(v) P(v accepted | Y = v), `missed[v]` = q~(v) P(v rejected | Y = v), and the residual as `gap[v]` / Z
    with Z = `above` = `below`, the two equal sums of gaps (0 where nothing is ever rejected).
    """

    cell: RowCell
    p: list[Any]
    q: list[Any]
    gap: list[Any]
    met: list[Any]
    missed: list[Any]
    above: Any
    below: Any

    def rows(self, z: Any) -> LetterValues:
        """Give the letters of the claims, with the residual over `z`, one of the two forms of Z."""
        size = len(self.p)
        above = self.cell.above
        residual = [Symbolic(gap, z) if v in above else 0 for v, gap in enumerate(self.gap)]
        met, rejected = total(self.met), total(self.missed)

        def accepted(count: int) -> Any:
            after: dict[tuple[int, ...], Any] = {}  # Y rejected, by the candidates that then have residual mass
            for y in self.cell.below:
                others = tuple(v for v in candidates(size, self.cell.m, count, y) if self.cell.parts[v][1] > 0)
                after[others] = after[others] + self.missed[y] if others in after else self.missed[y]
            hit = total([missed * total([self.gap[v] for v in others]) for others, missed in after.items()])
            return met if isinstance(hit, int) else met + Symbolic(hit, z)

        emitted = [self.met[v] + rejected * residual[v] if residual[v] else self.met[v] for v in range(size)]
        return LetterValues(
            {"p": self.p, r"\tilde{q}": self.q, "r": residual, "P": emitted},
            {"V": size, "m": self.cell.m},
            {"A": accepted},
        )


def total(values: Sequence[Any]) -> Any:
    """Give the sum, zeros skipped."""
    result: Any = 0
    for each in values:
        if not isinstance(each, int) or each:
            result = each if isinstance(result, int) and not result else result + each
    return result


def ordered(one: Any, other: Any) -> int | None:
    """Give the sign of one - other on a cell; None where the cell does not order them."""
    gap = one - other
    return sign(gap.num) if isinstance(gap, Symbolic) else sign(gap)


def layer(cell: RowCell, engine: Engine = "flint") -> SymbolicLayer:
    """Run `algorithm_1` on a cell for every Y."""
    p, q, gap = cell.rows(engine)
    p_row, tail = (row_of([x if isinstance(x, int) else Symbolic(x) for x in row]) for row in (p, q))
    above, below = (total([gap[v] for v in side]) for side in (cell.above, cell.below))
    met, missed = [0] * len(p), [0] * len(p)
    for y in range(cell.m, len(p)):
        if isinstance(q[y], int):
            continue
        coin, residual = _run(p_row, tail, y, cell.m)
        met[y], missed[y] = _polynomial(coin * tail[y]), _polynomial((1 - coin) * tail[y])
        if residual is not None:
            _check_residual(residual, gap, cell, above)
    return SymbolicLayer(cell, p, q, gap, met, missed, above, below)


def _run(p: Any, tail: Any, y: int, m: int) -> tuple[Any, Any]:
    """Give the coin of Y, and the distribution that is left to the other candidates if it says no (None: it cannot)."""
    yes = Probe(True)
    if algorithm_1(p, tail, [y], 0, m, yes, (0, ())) != (y, 0) or len(yes.coins) != 1 or yes.draws:
        raise AssertionError("Algorithm 1 did not test the sampled candidate first")
    (coin,) = yes.coins
    if coin == 1:
        return coin, None
    no = Probe(False)
    if algorithm_1(p, tail, [y], 0, m, no, (0, ()))[1] != -1 or no.coins != [coin] or len(no.draws) != 1:
        raise AssertionError("Algorithm 1 asked something else after a rejection")
    return coin, no.draws[0]


def _check_residual(residual: Any, gap: Sequence[Any], cell: RowCell, above: Any) -> None:
    for v, (_, side) in enumerate(cell.parts):
        if residual[v] != (Symbolic(gap[v], above) if side > 0 else 0):
            raise AssertionError(f"the residual of token {v} is {residual[v]}")


def _polynomial(number: Any) -> Any:
    if not isinstance(number, Symbolic):
        return number
    if number.den != 1:
        raise AssertionError(f"{number} is no polynomial")
    return number.num
