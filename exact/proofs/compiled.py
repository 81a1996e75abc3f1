"""From a sympy statement to a function on rows of any arithmetic.

The same statement has to be decided on rationals, on polynomials and in z3. Each is compiled once to plain closures;
sums become differences of running sums, so that one set of rows serves every pool size n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sympy import Add, Eq, Ge, Indexed, Le, Max, Min, Mul, Rational, Sum, Symbol
from sympy.core.basic import Basic
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from exact.proofs import claims


class Order:
    """min and max in the arithmetic of the rows; `splits` counts the comparisons taken both ways (none on numbers)."""

    splits = 0

    def smaller(self, one: Any, other: Any) -> Any:
        """min(one, other)."""
        return min(one, other)

    def larger(self, one: Any, other: Any) -> Any:
        """max(one, other)."""
        return max(one, other)


Value = Callable[["LetterValues"], Any]
"""An expression, compiled; one and the same object for equal expressions."""


@dataclass
class LetterValues:
    """The meaning of the letters: rows by name [V], functions of n by name, m and V; n or w for each statement."""

    rows: dict[str, Sequence[Any]]
    integers: dict[str, int]
    functions: dict[str, Callable[[int], Any]] = field(default_factory=dict)
    order: Order = field(default_factory=Order)
    _sums: dict[Value, list[Any]] = field(default_factory=dict)
    _known: dict[Value, Any] = field(default_factory=dict)

    def at(self, letter: str, value: int) -> LetterValues:
        """The same rows with n, or w, set to a value."""
        self.integers[letter] = value
        self._known.clear()
        return self

    def value(self, expression: Value) -> Any:
        """What a compiled expression is worth; worked out once, unless min or max was taken both ways in it."""
        if expression in self._known:
            return self._known[expression]
        splits = self.order.splits
        found = expression(self)
        if self.order.splits == splits:
            self._known[expression] = found
        return found

    def running(self, term: Value, index: str) -> list[Any]:
        """Give the sums of a term over 1..i, for each i from 0 to V."""
        if term not in self._sums:
            self._sums[term] = self._add_up(term, index)
        return self._sums[term]

    def _add_up(self, term: Value, index: str) -> list[Any]:
        found, splits = [0], self.order.splits
        for each in range(1, self.integers["V"] + 1):
            self.integers[index] = each
            found.append(_plus(found[-1], term(self)))
        if self.order.splits != splits:
            raise NotCompiled(f"a sum over {index} with a min or max that is not decided")
        return found


class NotCompiled(TypeError):
    """A statement with something in it that no checker reads."""


@cache
def compiled(expression: Basic) -> Value:
    """Give the expression as a function of rows."""
    if isinstance(expression, Rational):
        constant = int(expression) if expression.is_integer else expression
        return lambda rows: constant
    if isinstance(expression, Symbol):
        name = str(expression)
        return lambda rows: rows.integers[name]
    if isinstance(expression, Indexed):
        base, index = str(expression.base), compiled(expression.indices[0])
        return lambda rows: rows.rows[base][index(rows) - 1]
    if isinstance(expression, AppliedUndef):
        name, argument = str(expression.func), compiled(expression.args[0])
        return lambda rows: rows.functions[name](argument(rows))
    if isinstance(expression, Sum):
        return _sum(expression)
    if isinstance(expression, Add) and len(expression.args) == 2 and expression.args[0].is_Integer:
        shift, symbol = expression.args
        if isinstance(symbol, Symbol):
            name, by = str(symbol), int(shift)
            return lambda rows: rows.integers[name] + by
    if isinstance(expression, (Add, Mul, Min, Max)):
        return _fold(expression)
    raise NotCompiled(f"{type(expression).__name__}: {expression}")


def _fold(expression: Basic) -> Value:
    parts = [compiled(argument) for argument in expression.args]
    first, rest = parts[0], parts[1:]

    def fold(rows: LetterValues, step: Callable[[Any, Any], Any]) -> Any:
        result = first(rows)
        for part in rest:
            result = step(result, part(rows))
        return result

    if isinstance(expression, Add):
        return lambda rows: fold(rows, _plus)
    if isinstance(expression, Mul):
        return lambda rows: fold(rows, _times)
    if isinstance(expression, Min):
        return lambda rows: fold(rows, rows.order.smaller)
    return lambda rows: fold(rows, rows.order.larger)


def _plus(one: Any, other: Any) -> Any:
    if isinstance(one, int) and not one:
        return other
    return one if isinstance(other, int) and not other else one + other


def _times(one: Any, other: Any) -> Any:
    if (isinstance(one, int) and not one) or (isinstance(other, int) and not other):
        return 0
    return one * other


def _sum(expression: Sum) -> Value:
    (index, low, high), summand = expression.limits[0], expression.function
    if len(expression.limits) != 1 or {claims.n, claims.w} & summand.free_symbols:
        raise NotCompiled(f"a sum whose terms depend on n or w: {expression}")
    name, term, start, stop = str(index), compiled(summand), compiled(low), compiled(high)

    def total(rows: LetterValues) -> Any:
        table, before, last = rows.running(term, name), start(rows) - 1, stop(rows)
        if last <= before:
            return 0
        return table[last] - table[before] if before else table[last]

    return total


DEGREES = {str(claims.p): 1, str(claims.q): 1, str(claims.emitted): 1, str(claims.r): 0}


def degree(expression: Basic) -> int | None:
    """The degree in the masses of p and q~ (None: of 0, which has any); raises `NotCompiled` where terms differ in it.

    On a cell both laws are known up to one factor, so that only statements of one degree on both sides can be decided.
    """
    if isinstance(expression, Relational):
        return _common(expression, [expression.lhs, expression.rhs])
    if expression == 0:
        return None
    if isinstance(expression, AppliedUndef):
        return 1  # a probability of acceptance
    if isinstance(expression, Indexed):
        return DEGREES[str(expression.base)]
    if isinstance(expression, Sum):
        return degree(expression.function)
    if isinstance(expression, Mul):
        return sum(degree(factor) or 0 for factor in expression.args)
    if isinstance(expression, (Add, Min, Max)):
        return _common(expression, expression.args)
    return 0


def _common(expression: Basic, parts: Sequence[Basic]) -> int | None:
    found = {degree(part) for part in parts} - {None}
    if len(found) > 1:
        raise NotCompiled(f"terms of different degrees in p and q~: {expression}")
    return found.pop() if found else None


def holds(statement: Relational, rows: LetterValues) -> bool:
    """Tell whether a statement is true of rows of plain numbers."""
    if not isinstance(statement, (Eq, Le, Ge)):
        raise NotCompiled(f"{type(statement).__name__}: {statement}")
    left, right = rows.value(compiled(statement.lhs)), rows.value(compiled(statement.rhs))
    if isinstance(statement, Eq):
        return bool(left == right)
    return bool(left <= right) if isinstance(statement, Le) else bool(left >= right)
