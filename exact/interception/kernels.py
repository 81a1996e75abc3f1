"""Kernels whose coins are inputs, checked cell by cell.

A kernel cannot be followed through its instructions, but where its coins are arguments it is a function of them. The
reference is: following it once lists every threshold that each coin is compared with. The kernel is then run on coins
just below, at and just above each threshold, in all combinations at once; where it gives the reference's result
in every one, its law is the reference's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.rationals import ZERO, exact, fraction
from exact.enumeration.rounding import most_rounding
from exact.enumeration.walk import Walk
from exact.interception.symbolic import Coin, Uniform
from exact.interception.symbolic_maps import FLOAT_TYPES
from exact.interception.torch_law import frozen
from rheo_core import InvalidInput

MOST_COMBINATIONS = 1 << 20
MOST_AROUND = 1 << 16
REACHES = (64, 8, 2)
"""Spacings around an edge to which a difference is followed, as far as combinations allow."""

_TYPES: dict[str, Any] = {"float64": np.float64, "float32": np.float32, "float16": np.float16}


@dataclass(frozen=True)
class Mismatch:
    """Coins on which the kernel does not give the reference's result."""

    coins: tuple[float, ...]
    got: Hashable
    expected: Hashable


@dataclass(frozen=True)
class KernelCheck:
    """The kernel against the reference.

    `edges[i]` are the exact thresholds of coin i; `cells` boxes between them and `combinations` of coins were tried.
    `law` is the kernel's: the reference's where they agree, else the one of its results in the middle of every cell.
    `agrees` is to the float; `verdict` is "agrees", "agrees up to rounding" or "differs". `total_variation` bounds that
    of the two laws: the mass of the coins on which the results differ, each taken to reach to its neighbours tried. It
    counts as rounding up to `bound` (`exact.enumeration.rounding`), unless the kernel gives what the reference never
    does.
    """

    agrees: bool
    edges: tuple[tuple[Fraction, ...], ...]
    cells: int
    combinations: int
    mismatches: tuple[Mismatch, ...]
    law: dict[Hashable, Fraction] = field(repr=False)
    reference_law: dict[Hashable, Fraction] = field(repr=False)
    verdict: str = "agrees"
    total_variation: Fraction = Fraction(0)
    bound: Fraction = Fraction(0)

    def __str__(self) -> str:
        counts = f"{self.cells} cells, {self.combinations} combinations of coins"
        if self.agrees:
            return f"agrees with the reference in every cell: {counts}"
        first = self.mismatches[0]
        where = f"coins {first.coins} give {first.got}, the reference {first.expected}"
        size = f"TV at most {float(self.total_variation):.3g}, rounding up to {float(self.bound):.3g}"
        said = "agrees with the reference up to rounding" if self.verdict != "differs" else "differs from the reference"
        return f"{said}: {size}; {counts}; {len(self.mismatches)} mismatches, the first: {where}"


def check_kernel(
    kernel: Callable[[Any], Sequence[Any]],
    reference: Callable[..., Any],
    coins: int,
    *,
    dtype: str = "float32",
    most: int = MOST_COMBINATIONS,
) -> KernelCheck:
    """Hold a kernel against a reference on every edge of every coin.

    `kernel(u)` takes coins [N, coins] (a NumPy array of `dtype`, each row one input) and returns N results (tensors
    and arrays row by row). `reference(*u)` takes `coins` numbers that it only compares with known numbers, monotone
    maps of one coin included, and returns a result. Coins are floats in [0, 1): at every threshold t the last one below
    t, the first one at or above t and the one after it are tried, with 0 and the largest, and the middle of every cell.

    A kernel that computes its thresholds in floats may be off by a spacing or two: that agrees up to rounding.

    What it shows: the kernel's thresholds are the reference's, to the float, and no others lie at the points tried. A
    kernel that treats coins as more than numbers to compare (reads their bits, say) is beyond it.
    """
    if dtype not in _TYPES:
        raise InvalidInput("dtype", dtype, f"one of {', '.join(_TYPES)}")
    if coins < 1:
        raise InvalidInput("coins", coins, "an int of at least 1")
    edges, reference_law = _edges(reference, coins)
    points = [_points(each, dtype) for each in edges]
    middles = [_middles(each) for each in edges]
    tried = [
        sorted({*at, *(float(_TYPES[dtype](m)) for m, _ in inside)}) for at, inside in zip(points, middles, strict=True)
    ]
    total = math.prod(map(len, tried))
    if total > most:
        raise InvalidInput("coins", f"{total} combinations", f"at most {most} (fewer coins, or a larger `most`)")
    grid = list(itertools.product(*tried))
    results = _run(kernel, grid, dtype)
    expected = [_answer(reference, row) for row in grid]
    mismatches = tuple(
        Mismatch(row, got, due) for row, got, due in zip(grid, results, expected, strict=True) if got != due
    )
    boxes = list(itertools.product(*middles))
    law = dict(reference_law)
    verdict, variation = "agrees", Fraction(0)
    bound = most_rounding(1, max(2, len(reference_law)), 2.0 ** (1 - FLOAT_TYPES[dtype].precision))
    if mismatches:
        impossible = any(each.got not in reference_law for each in mismatches)
        variation = min(Fraction(1), _differing_mass(kernel, reference, edges, tried, dtype, most))
        verdict = "differs" if impossible or variation > bound else "agrees up to rounding"
        inside = _run(kernel, [tuple(float(middle) for middle, _ in box) for box in boxes], dtype)
        masses: dict[Hashable, Any] = {}
        for box, result in zip(boxes, inside, strict=True):
            masses[result] = masses.get(result, ZERO) + math.prod((width for _, width in box), start=exact(1))
        law = {result: fraction(mass) for result, mass in masses.items()}
    return KernelCheck(
        not mismatches, edges, len(boxes), total, mismatches, law, reference_law, verdict, variation, bound
    )


def _differing_mass(
    kernel: Callable[[Any], Sequence[Any]],
    reference: Callable[..., Any],
    edges: Sequence[Sequence[Fraction]],
    tried: Sequence[Sequence[float]],
    dtype: str,
    most: int,
) -> Fraction:
    """Mass of the coins on which the two differ, from above: more points around every edge find how far it reaches."""
    points = [list(each) for each in tried]
    for reach in REACHES:
        wider = [sorted({*at, *_around(each, reach, dtype)}) for at, each in zip(tried, edges, strict=True)]
        if math.prod(map(len, wider)) <= min(most, MOST_AROUND):
            points = wider
            break
    extents = [_extents(each) for each in points]
    grid = list(itertools.product(*points))
    masses = itertools.product(*extents)
    differing = ZERO
    for row, got, mass in zip(grid, _run(kernel, grid, dtype), masses, strict=True):
        if got != _answer(reference, row):
            differing += math.prod(mass, start=exact(1))
    return fraction(differing)


def _around(edges: Sequence[Fraction], reach: int, dtype: str) -> set[float]:
    """Coins of the type at 1, 2, 4, ... up to `reach` spacings on either side of every edge, of 0 and of 1."""
    kind = _TYPES[dtype]
    found = set()
    for edge in (Fraction(0), *edges, Fraction(1)):
        at = kind(float(edge))
        steps = [sign << k for k in range(reach.bit_length()) for sign in (1, -1)]
        found |= {float(kind(at + step * np.spacing(at))) for step in steps}
    return {x for x in found if 0 <= x <= float(kind(1) - kind(2.0 ** -FLOAT_TYPES[dtype].precision))}


def _extents(points: Sequence[float]) -> list[Any]:
    """The length from the neighbour below to the one above, for each of some coins (0 and 1 beyond the last)."""
    bounds = [ZERO, *map(exact, points), exact(1)]
    return [above - below for below, above in zip(bounds, bounds[2:], strict=False)]


def _edges(
    reference: Callable[..., Any], coins: int
) -> tuple[tuple[tuple[Fraction, ...], ...], dict[Hashable, Fraction]]:
    """Every threshold of every coin on any path of the reference, and the reference's exact law."""
    walk = Walk()
    met: list[set[Any]] = [set() for _ in range(coins)]

    def branch(call: Any, weights: Any) -> int:
        met[call[1]].add(call[2])
        return walk.branch(call, weights)

    law: dict[Hashable, Any] = {}
    for result, weight in walk.runs(lambda: frozen(reference(*(Uniform(Coin(branch, i)) for i in range(coins))))):
        law[result] = law.get(result, ZERO) + weight
    edges = tuple(tuple(sorted(fraction(t) for t in each)) for each in met)
    return edges, {result: fraction(mass) for result, mass in law.items()}


def _points(edges: Sequence[Fraction], dtype: str) -> list[float]:
    """Coins just below, at and just above each edge, 0 and the largest coin below 1."""
    kind = _TYPES[dtype]
    last = float(kind(1) - kind(2.0 ** -FLOAT_TYPES[dtype].precision))
    found = {0.0, last}
    for edge in edges:
        at = kind(float(edge))
        while Fraction(float(at)) >= edge:
            at = np.nextafter(at, kind(-1))
        for _ in range(3):
            found.add(float(at))
            at = np.nextafter(at, kind(2))
    return sorted(x for x in found if 0 <= x <= last)


def _middles(edges: Sequence[Fraction]) -> list[tuple[Fraction, Any]]:
    """(middle, width) of every cell between two edges."""
    bounds = [Fraction(0), *edges, Fraction(1)]
    return [((a + b) / 2, exact(b - a)) for a, b in itertools.pairwise(bounds)]


def _run(kernel: Callable[[Any], Sequence[Any]], rows: Sequence[tuple[float, ...]], dtype: str) -> list[Hashable]:
    results = kernel(np.array(rows, dtype=_TYPES[dtype]))
    if len(results) != len(rows):
        raise InvalidInput("kernel", len(results), f"{len(rows)} results, one for each row of coins")
    return [frozen(result) for result in (results.tolist() if hasattr(results, "tolist") else results)]


def _answer(reference: Callable[..., Any], coins: Sequence[float]) -> Hashable:
    """The reference's result on given coins, compared exactly."""
    return frozen(reference(*(_fixed(i, x) for i, x in enumerate(coins))))


def _fixed(number: int, value: float) -> Uniform:
    return Uniform(_Known(number, exact(value)))


class _Known(Coin):
    """A coin whose value is known: every comparison is decided."""

    __slots__ = ("value",)

    def __init__(self, number: int, value: Any) -> None:
        super().__init__(lambda call, weights: 0, number)
        self.value = value

    def below(self, at: Any, closed: bool) -> bool:
        """value < at, or value <= at where `closed`."""
        return bool(self.value < at or (closed and self.value == at))
