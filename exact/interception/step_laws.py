"""The distribution of every single draw of a function, to be held against that of the same draw in float64.

A loss that only shows where a rare token was drafted weighs little in the joint distribution. Draw by draw it shows
in full, whatever the probability of the branch in which it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import ZERO, fraction
from exact.interception.torch_law import Interception

Choices = tuple[int, ...]


class RowLaws:
    """The options of every draw with their weights, by the choices made before it."""

    def __init__(self) -> None:
        self._steps: dict[Choices, list[tuple[int, Any]]] = {}

    def outcomes(self, how: Interception, function: Any, *args: Any, **kwargs: Any) -> Iterator[tuple[Any, Any]]:
        """The outcomes of `how.outcomes`, each noted on its way."""
        for result, weight in how.outcomes(function, *args, **kwargs):
            choices: Choices = ()
            for branch in how.walk.path if how.walk is not None else ():
                self._steps.setdefault(choices, branch.options)
                choices = (*choices, branch.options[branch.taken][0])
            self._steps.setdefault(choices, [])
            yield result, weight

    def furthest(self, other: RowLaws) -> Fraction:
        """The largest total variation between two draws after equal choices; 1 where one of the two draws nothing."""
        return max((_apart(options, other._steps.get(at)) for at, options in self._steps.items()), default=Fraction(0))


def _apart(options: list[tuple[int, Any]], others: list[tuple[int, Any]] | None) -> Fraction:
    if others is None or bool(options) != bool(others):
        return Fraction(1)
    one, two = dict(options), dict(others)
    return fraction(sum((abs(one.get(x, ZERO) - two.get(x, ZERO)) for x in one.keys() | two.keys()), ZERO) / 2)
