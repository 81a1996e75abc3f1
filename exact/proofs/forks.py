"""Numbers whose comparisons are decided by z3, both ways where both are possible.

Where no sign of coefficients settles an order, the program is run once for each outcome that some draft law allows:
the walk of `exact.enumeration.walk` with comparisons as its branches. What holds at the end of every run holds for
every law.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import z3

from exact.enumeration.walk import Walk

TIMEOUT_MS = 10_000


class Unsettled(ArithmeticError):
    """z3 gave up on a comparison."""


Form = tuple[Any, ...]
"""The coefficients of a linear form in the unknowns; the first is the constant."""


class Forks:
    """The comparisons made on a run, each with its answer, as assumptions of a solver over real unknowns.

    `unknowns` names them; the forms of `at_least` are assumed to be >= 0.
    """

    def __init__(self, unknowns: Sequence[str], at_least: Sequence[Form]) -> None:
        context = z3.Context()
        self.walk = Walk()
        self.unknowns = [z3.Real(name, context) for name in unknowns]
        self.solver = z3.SolverFor("QF_LRA", ctx=context)
        self.solver.set("timeout", TIMEOUT_MS)
        self._path: list[tuple[Form, bool]] = []
        self._depth = 0
        self._answers: dict[Form, bool] = {}
        self._terms: dict[Form, Any] = {}
        self.count = 0
        self.solver.add(*(self._term(form) >= 0 for form in at_least))

    def runs(self, run: Callable[[], Any]) -> Iterator[Any]:
        """Yield the result of every run."""

        def once() -> Any:
            self._depth = 0
            self._answers.clear()
            return run()

        for result, _ in self.walk.runs(once):
            self.count += 1
            yield result

    def negative(self, form: Form) -> bool:
        """Tell whether a form is < 0 on this run."""
        if not any(form):
            return False
        if form not in self._answers:
            answer = self.walk.branch(form, lambda: self._possible(form)) == 1
            self._answers[form] = answer
            self._follow(form, answer)
        return self._answers[form]

    def choose(self, what: Hashable, count: int) -> int:
        """One of `count` ways, each on runs of its own."""
        return self.walk.branch(what, lambda: [1] * count)

    def _possible(self, form: Form) -> list[int]:
        """Tell whether the form can be >= 0, and whether it can be < 0."""
        self._rewind()
        term, found = self._term(form), []
        for condition in (term >= 0, term < 0):
            answer = self.solver.check(condition)
            if answer == z3.unknown:
                raise Unsettled(f"z3 on {condition}: {self.solver.reason_unknown()}")
            found.append(int(answer == z3.sat))
            if not found[0]:
                return [0, 1]
        return found

    def _follow(self, form: Form, answer: bool) -> None:
        """Keep the solver in step with the run: what the run before assumed as well stays where it is."""
        if self._depth == len(self._path) or self._path[self._depth] != (form, answer):
            self._rewind()
            self.solver.push()
            self.solver.add(self._term(form) < 0 if answer else self._term(form) >= 0)
            self._path.append((form, answer))
        self._depth += 1

    def _rewind(self) -> None:
        if len(self._path) > self._depth:
            self.solver.pop(len(self._path) - self._depth)
            del self._path[self._depth :]

    def _term(self, form: Form) -> Any:
        if form not in self._terms:
            context = self.unknowns[0].ctx
            parts = [z3.RealVal(str(form[0]), context)]
            parts += [z3.RealVal(str(c), context) * x for c, x in zip(form[1:], self.unknowns, strict=True) if c]
            self._terms[form] = z3.Sum(parts)
        return self._terms[form]

    def point(self) -> list[Fraction] | None:
        """Give a solution of all that is assumed on this run; None where z3 has none."""
        self._rewind()
        if self.solver.check() != z3.sat:
            return None
        model = self.solver.model()
        values = [model.eval(x, model_completion=True) for x in self.unknowns]
        return [Fraction(value.numerator_as_long(), value.denominator_as_long()) for value in values]


class Linear:
    """A linear form in the entries of a distribution: it can be added, and compared."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("forks", "form")

    def __init__(self, form: Form, forks: Forks) -> None:
        self.form = form
        self.forks = forks

    def _other(self, value: Any) -> Form:
        return value.form if isinstance(value, Linear) else (value, *([0] * (len(self.form) - 1)))

    def __add__(self, value: Any) -> Linear:
        return Linear(tuple(map(operator.add, self.form, self._other(value))), self.forks)

    __radd__ = __add__

    def __truediv__(self, divisor: int) -> Linear:
        return Linear(tuple(Fraction(x) / divisor for x in self.form), self.forks)

    def __lt__(self, value: Any) -> bool:
        return self.forks.negative(tuple(map(operator.sub, self.form, self._other(value))))

    def __gt__(self, value: Any) -> bool:
        return self.forks.negative(tuple(map(operator.sub, self._other(value), self.form)))

    def __le__(self, value: Any) -> bool:
        return not self > value

    def __ge__(self, value: Any) -> bool:
        return not self < value

    def __eq__(self, value: object) -> bool:
        return self <= value and self >= value
