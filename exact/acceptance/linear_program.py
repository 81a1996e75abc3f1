"""Linear programs solved in rationals: HiGHS proposes in floats, exact arithmetic proves.

max objective @ x subject to rows @ x <= bounds and x >= 0. A vertex of HiGHS says which variables and multipliers are
zero and which constraints are tight; both are computed again in rationals from that and checked: a solution that keeps
every constraint and multipliers that bound every solution by the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from exact.enumeration.rationals import ZERO

TIGHT = 1e-9
"""Floats below this are taken for zero in the proposal; the rationals decide."""


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
        """An optimal solution, proved optimal.

        Raises `ArithmeticError` where no proof was found: HiGHS stopped at no vertex, or took a small number for zero.
        """
        values, multipliers = _vertices(self)
        _check(self, values, multipliers)
        return values


def _vertices(task: Program) -> tuple[list[Any], list[Any]]:
    """The optimal solution and its multipliers, in rationals, from what HiGHS says is zero and what is tight."""
    entries = [(row, column, float(x)) for row, each in enumerate(task.rows) for column, x in each.items()]
    at_row, at_column, coefficients = zip(*entries, strict=True)
    shape = len(task.rows), len(task.objective)
    matrix = csr_array((coefficients, (at_row, at_column)), shape=shape)
    bounds = [float(bound) for bound in task.bounds]
    worth = np.array([float(x) for x in task.objective])
    found = linprog(-worth, A_ub=matrix, b_ub=bounds, method="highs-ds")
    if found.x is None:
        raise ArithmeticError(f"the linear program has no solution: {found.message}")
    used, tight = found.x > TIGHT, found.slack < TIGHT
    equations = [
        ({column: x for column, x in row.items() if used[column]}, bound)
        for row, bound, holds in zip(task.rows, task.bounds, tight, strict=True)
        if holds
    ]
    values = _solved(equations, shape[1])
    priced, even = -found.ineqlin.marginals > TIGHT, found.lower.marginals < TIGHT
    transposed: list[dict[int, Any]] = [{} for _ in range(shape[1])]
    for number, row in enumerate(task.rows):
        if priced[number]:
            for column, x in row.items():
                transposed[column][number] = x
    equations = [pair for pair, holds in zip(zip(transposed, task.objective, strict=True), even, strict=True) if holds]
    return values, _solved(equations, shape[0])


def _solved(equations: Iterable[tuple[dict[int, Any], Any]], size: int) -> list[Any]:
    """A solution of sparse linear equations in rationals, what they leave open at 0.

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


def _check(task: Program, values: list[Any], multipliers: list[Any]) -> None:
    """Raise unless the solution keeps every constraint and the multipliers bound every solution by its value."""
    kept = all(
        sum((x * values[column] for column, x in row.items()), ZERO) <= bound
        for row, bound in zip(task.rows, task.bounds, strict=True)
    )
    covered = [ZERO] * len(values)
    for row, multiplier in zip(task.rows, multipliers, strict=True):
        for column, x in row.items():
            covered[column] += x * multiplier
    signs = min(values) >= 0 and min(multipliers) >= 0
    bounded = all(price >= worth for price, worth in zip(covered, task.objective, strict=True))
    if not (kept and signs and bounded and _dot(task.bounds, multipliers) == _dot(task.objective, values)):
        raise ArithmeticError("the proposed optimum could not be proved in rationals")


def _dot(left: Sequence[Any], right: Sequence[Any]) -> Any:
    return sum((x * y for x, y in zip(left, right, strict=True)), ZERO)
