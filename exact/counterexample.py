"""A counterexample that a person can read, keep and run.

It holds every row that was used, the shape, and one sequence whose probability is wrong. `to_pytest` writes it as a
test that fails on the rule that was refuted and passes on a repaired one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from exact.arithmetic import fraction
from rheo_core import TreeShape

Table = Mapping[tuple[int, ...], tuple[Any, ...]]
"""Rows by prefix; the key "*" does not occur: every prefix that was read is listed."""


def table(rows: Mapping[tuple[int, ...], tuple[Any, ...]]) -> Table:
    """Rows as they are kept: rationals as `Fraction`, whatever made them; floats as they are."""
    return {prefix: _row(row) for prefix, row in rows.items()}


def _row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_row(x) if isinstance(x, tuple) else x if isinstance(x, float) else fraction(x) for x in row)


@dataclass(frozen=True)
class Counterexample:
    """Rows and a shape on which a method is lossy, and the shortest sequence that shows it.

    `target` and `draft` map each prefix that was read to its row; `lead` is m (None: the method has no such number);
    `got` is the probability that the method gives `sequence`, `right` the target's.
    """

    target: Table
    draft: Table
    shape: TreeShape
    lead: int | None
    sequence: tuple[int, ...]
    got: Fraction
    right: Fraction
    method: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.sequence}: got {self.got}, right {self.right}"
