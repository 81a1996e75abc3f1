"""How far the draws of one run are from the same draws of another: the measured bound on rounding.

Run the same code on the same floats, once as it is and once in rationals. Each draw, given the choices before it, has
an exact distribution in both; d is the total variation between the two. A coupling keeps the runs together but for
probability d at every draw, so their results differ by at most the expectation of the sum of the d, over the draws that
the float run meets before the two part. A relative error of the rows alone would bound nothing: where a residual is
almost empty any rounding turns it round, and then its branch is almost never taken, which only the expectation knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from exact.enumeration.rationals import ONE, ZERO, fraction
from exact.enumeration.walk import Branch
from exact.enumeration.whole_rows import WholeRow

Choices = tuple[int, ...]
Options = dict[Any, Any] | WholeRow


class Step(NamedTuple):
    """One draw: what kind of call it is, its options with their probabilities, and the probability of getting there."""

    kind: Any
    options: Options
    mass: Any
    template: Any = None
    """The result that a whole row is the end of."""


class StepLaws:
    """The draws of a program by the choices made before them; where a run ends, its result."""

    def __init__(self) -> None:
        self._steps: dict[Choices, Step] = {}

    def note(self, path: Sequence[Branch], row: WholeRow | None = None, result: Any = None) -> None:
        """Note the draws of one run, its result, and the row that this ends in (then with 0 in its place)."""
        choices, mass = Choices(), ONE
        for branch in path:
            token, share = branch.options[branch.taken]
            if choices not in self._steps:
                self._steps[choices] = Step(_kind(branch.call), dict(branch.options), mass)
            choices, mass = (*choices, token), mass * share
        if choices not in self._steps:
            end = Step("end", {result: ONE}, mass) if row is None else Step("index", row, mass, result)
            self._steps[choices] = end

    def clear(self) -> None:
        """Forget all runs."""
        self._steps.clear()

    def expected_distance(self, other: StepLaws) -> Any:
        """The exact expectation, in this run, of the sum of d against the other run, until the two part."""
        both = ((step, other._steps[at]) for at, step in self._steps.items() if at in other._steps)
        return sum((one.mass * apart(one, two) for one, two in both), ZERO)

    def furthest(self, other: StepLaws) -> Fraction:
        """The largest d of a single draw, however rare; 1 where one of the two draws nothing."""
        at_each = ((step, other._steps.get(at)) for at, step in self._steps.items())
        return fraction(max((ONE if two is None else apart(one, two) for one, two in at_each), default=ZERO))


def apart(one: Step, two: Step) -> Any:
    """Total variation between two draws; 1 where they are not of one kind."""
    if one.kind != two.kind or one.template != two.template:
        return ONE
    if isinstance(one.options, WholeRow) and isinstance(two.options, WholeRow):
        return one.options.distance(two.options)
    return distance(_shares(one.options), _shares(two.options))


def distance(one: dict[Any, Any], two: dict[Any, Any]) -> Any:
    """Total variation between two distributions."""
    return sum((abs(one.get(x, ZERO) - two.get(x, ZERO)) for x in one.keys() | two.keys()), ZERO) / 2


def _shares(options: Options) -> dict[Any, Any]:
    if isinstance(options, WholeRow):
        return {token: options.share(token) for token in options.support}
    return options


def _kind(call: Any) -> Any:
    return call[0] if isinstance(call, tuple) else call
