"""The cells into which the pairs (p, q~) fall: for each token the sign of p - q~ and which of its parts are zero.

Coordinates are a = min(p, q~) and e = |p - q~|, one pair a token; in them every difference that Algorithm 1 forms has
one sign on the whole cell. Both laws have one sum, so the e above and the e below have one sum too, Z; that is the only
relation between coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from exact.proofs.engines.rings import Engine, generators

Part = tuple[int, int]
"""(1 if min(p, q~) > 0 else 0, sign of p - q~) of one token."""

LEAD_PARTS: tuple[Part, ...] = ((0, 1), (0, 0))
ALL_PARTS: tuple[Part, ...] = ((1, 1), (1, -1), (1, 0), (0, 1), (0, -1), (0, 0))
OPEN_PARTS: tuple[Part, ...] = ((1, 1), (1, -1))


@cache
def coordinates(size: int, engine: Engine) -> tuple[list[Any], list[Any]]:
    """Generators a_1 .. a_V and e_1 .. e_V."""
    found = generators([f"{letter}{v}" for letter in "ae" for v in range(1, size + 1)], engine)
    return found[:size], found[size:]


@dataclass(frozen=True)
class RowCell:
    """One cell: the parts of each token; `m` leads stand first and have q~ = 0."""

    parts: tuple[Part, ...]
    m: int

    @property
    def above(self) -> list[int]:
        """Tokens with p > q~."""
        return [v for v, (_, side) in enumerate(self.parts) if side > 0]

    @property
    def below(self) -> list[int]:
        """Tokens with p < q~."""
        return [v for v, (_, side) in enumerate(self.parts) if side < 0]

    @property
    def satisfiable(self) -> bool:
        """Tell whether two distributions lie in it: mass above iff mass below, some mass, and q~ has some."""
        drawn = any(overlap or side < 0 for overlap, side in self.parts)
        return drawn and bool(self.above) == bool(self.below)

    def rows(self, engine: Engine = "flint") -> tuple[list[Any], list[Any], list[Any]]:
        """p, q~ and e, as lists of polynomials (ints where they are 0); the coordinates are independent."""
        a, e = coordinates(len(self.parts), engine)
        overlap = [a[v] if has else 0 for v, (has, _) in enumerate(self.parts)]
        gap = [e[v] if side else 0 for v, (_, side) in enumerate(self.parts)]
        p = [overlap[v] + gap[v] if side > 0 else overlap[v] for v, (_, side) in enumerate(self.parts)]
        q = [overlap[v] + gap[v] if side < 0 else overlap[v] for v, (_, side) in enumerate(self.parts)]
        return p, q, gap

    def point(self, overlaps: Sequence[int], gaps: Sequence[int]) -> tuple[list[Fraction], list[Fraction]]:
        """Distributions p and q~ in the cell, from positive integers [V]; raises where they would not lie in it."""
        above, below = sum(gaps[v] for v in self.above), sum(gaps[v] for v in self.below)
        p, q = [], []
        for v, (has, side) in enumerate(self.parts):
            least = has * overlaps[v]
            p.append(least + (gaps[v] * below if side > 0 else 0))
            q.append(least + (gaps[v] * above if side < 0 else 0))
        mass = sum(p)
        if not mass or sum(q) != mass or any(q[: self.m]):
            raise ArithmeticError(f"no laws in {self}")
        if [((x > y) - (x < y), min(x, y) > 0) for x, y in zip(p, q, strict=True)] != [
            (side, bool(has)) for has, side in self.parts
        ]:
            raise ArithmeticError(f"{p}, {q} not in {self}")
        return [Fraction(x, mass) for x in p], [Fraction(y, mass) for y in q]


def cells(size: int, m: int, parts: Sequence[Part] = OPEN_PARTS) -> Iterator[RowCell]:
    """Yield every satisfiable cell of V tokens and m leads.

    With `ALL_PARTS` the faces (zeros and p = q~) are cells of their own; with `OPEN_PARTS` only the full-dimensional
    ones are listed, whose closures hold every pair of laws with p != q~, and beside them the one where p = q~.

    >>> len(list(cells(2, 0))), len(list(cells(2, 0, ALL_PARTS)))
    (3, 11)
    """
    faces = set(parts) == set(ALL_PARTS)
    leads = LEAD_PARTS if faces else LEAD_PARTS[:1]
    for front in product(leads, repeat=m):
        for back in product(parts, repeat=size - m):
            cell = RowCell((*front, *back), m)
            if cell.satisfiable:
                yield cell
    if not faces:
        yield RowCell((*(LEAD_PARTS[1:] * m), *((1, 0),) * (size - m)), m)
