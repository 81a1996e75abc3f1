"""A counterexample that a person can read, keep and run.

It holds every row that was used, the shape, and one sequence whose probability is wrong. `to_pytest` writes it as a
test that fails on the rule that was refuted and passes on a repaired one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rheo_core import TreeShape

Table = Mapping[tuple[int, ...], tuple[Any, ...]]
"""Rows by prefix; the key "*" does not occur: every prefix that was read is listed."""


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
