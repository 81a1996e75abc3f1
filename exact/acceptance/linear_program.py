"""Linear programs solved in rationals: HiGHS proposes in floats, exact arithmetic proves.

max objective @ x subject to rows @ x <= bounds and x >= 0. A vertex of HiGHS says which variables and multipliers are
zero; both are computed again in rationals from that and checked: a solution that keeps every constraint and multipliers
that bound every solution by the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gmpy2 import mpq
from scipy.optimize import linprog
from scipy.sparse import csr_array

from exact.enumeration.rationals import ONE, ZERO, exact

TIGHT = 1e-9
"""Floats below this are taken for zero in the proposal; the rationals decide."""

ROUNDS, STEP = 8, mpq(10**6)
"""Refinements at most, and by how much each enlarges what the one before left over."""


@dataclass
class Program:
    """Sparse rows {variable: coefficient} with their bounds, and what each variable is worth: all rationals.

    `variables` names the columns in order.
    """

    variables: dict[Any, int] = field(default_factory=dict)
    objective: list[Any] = field(default_factory=list)
    rows: list[dict[int, Any]] = field(default_factory=list)
    bounds: list[Any] = field(default_factory=list)

    def variable(self, name: Any, worth: Any = ZERO) -> int:
        """Add a variable; its column."""
        self.variables[name] = len(self.objective)
        self.objective.append(worth)
        return self.variables[name]

    def at_most(self, row: dict[int, Any], bound: Any) -> None:
        """Add a constraint row @ x <= bound."""
        self.rows.append({column: x for column, x in row.items() if x})
        self.bounds.append(bound)

    def solved(self) -> list[Any]:
        """Give an optimal solution, proved optimal; raises `ArithmeticError` where no proof was found."""
        values, multipliers = _vertices(self)
        if not _proved(self, values, multipliers):
            raise ArithmeticError("the proposed optimum is not proved in rationals")
        return values


def _vertices(task: Program) -> tuple[list[Any], list[Any]]:
    """Give the optimal solution and its multipliers in rationals, by what HiGHS says is zero: iterative refinement.

    With slacks the program is M z = bounds, z >= 0. Where floats are too coarse to tell zero from small, what an answer
    leaves over is scaled up and solved again (Gleixner, Steffy and Wolter 2016), so that small numbers become large.
    """
    rows = [row | {len(task.objective) + number: ONE} for number, row in enumerate(task.rows)]
    costs = [-x for x in task.objective] + [ZERO] * len(rows)
    entries = [(row, column, float(x)) for row, each in enumerate(rows) for column, x in each.items()]
    at_row, at_column, coefficients = zip(*entries, strict=True)
    matrix = csr_array((coefficients, (at_row, at_column)), shape=(len(rows), len(costs)))
    transposed: list[dict[int, Any]] = [{} for _ in costs]
    for number, row in enumerate(rows):
        for column, x in row.items():
            transposed[column][number] = x
    values, prices, scale, worth = [ZERO] * len(costs), [ZERO] * len(rows), ONE, ONE
    for _ in range(ROUNDS):
        left = [bound - _times(row, values) for row, bound in zip(rows, task.bounds, strict=True)]
        reduced = [cost - _times(column, prices) for column, cost in zip(transposed, costs, strict=True)]
        least = [float(-x * scale) for x in values]
        found = linprog(
            [float(x * worth) for x in reduced],
            A_eq=matrix,
            b_eq=[float(x * scale) for x in left],
            bounds=[(x, None) for x in least],
            method="highs-ds",
        )
        if found.x is None:
            break
        used, even = found.x - np.array(least) > TIGHT, found.lower.marginals < TIGHT
        kept = [
            ({c: x for c, x in row.items() if used[c]}, bound) for row, bound in zip(rows, task.bounds, strict=True)
        ]
        solution = _solved(kept, len(costs))[: len(task.objective)]
        priced = [(column, cost) for column, cost, zero in zip(transposed, costs, even, strict=True) if zero]
        multipliers = [-x for x in _solved(priced, len(rows))]
        if _proved(task, solution, multipliers):
            return solution, multipliers
        values = [max(ZERO, x + exact(z) / scale) for x, z in zip(values, found.x.tolist(), strict=True)]
        prices = [x + exact(z) / worth for x, z in zip(prices, found.eqlin.marginals.tolist(), strict=True)]
        scale, worth = scale * STEP, worth * STEP
    raise ArithmeticError("no optimum of the linear program could be proved in rationals")


def _times(row: dict[int, Any], values: Sequence[Any]) -> Any:
    return sum((x * values[column] for column, x in row.items()), ZERO)


def _solved(equations: Iterable[tuple[dict[int, Any], Any]], size: int) -> list[Any]:
    """Give a solution of sparse linear equations in rationals, what they leave open at 0.

    Equations that contradict the others are left unsolved: the caller checks what it gets.
    """
    left = [(dict(row), bound) for row, bound in equations if row]
    holding: dict[int, set[int]] = {}
    for number, (row, _) in enumerate(left):
        for column in row:
            holding.setdefault(column, set()).add(number)
    waiting, pivots = set(range(len(left))), list[tuple[int, int]]()
    while waiting:
        number = min(waiting, key=lambda number: len(left[number][0]))
        waiting.remove(number)
        row, bound = left[number]
        if not row:
            continue
        pivot = min(row, key=lambda column: len(holding[column]))
        pivots.append((number, pivot))
        for other in [other for other in holding[pivot] if other in waiting]:
            theirs, total = left[other]
            factor = theirs[pivot] / row[pivot]
            for column, x in row.items():
                value = theirs.get(column, ZERO) - factor * x
                if value:
                    theirs[column] = value
                    holding[column].add(other)
                elif column in theirs:
                    del theirs[column]
                    holding[column].discard(other)
            left[other] = theirs, total - factor * bound
    solution = [ZERO] * size
    for number, pivot in reversed(pivots):
        row, bound = left[number]
        rest = sum((x * solution[column] for column, x in row.items() if column != pivot), ZERO)
        solution[pivot] = (bound - rest) / row[pivot]
    return solution


def _proved(task: Program, values: list[Any], multipliers: list[Any]) -> bool:
    """Tell whether the solution keeps every constraint and the multipliers bound every solution by its value."""
    kept = all(_times(row, values) <= bound for row, bound in zip(task.rows, task.bounds, strict=True))
    covered = [ZERO] * len(values)
    for row, multiplier in zip(task.rows, multipliers, strict=True):
        for column, x in row.items():
            covered[column] += x * multiplier
    signs = min(values) >= 0 and min(multipliers) >= 0
    bounded = all(price >= worth for price, worth in zip(covered, task.objective, strict=True))
    return bool(kept and signs and bounded and _dot(task.bounds, multipliers) == _dot(task.objective, values))


def _dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    return sum((x * y for x, y in zip(left, right, strict=True)), ZERO)
