"""One fault as an exact case: a faulty program, the rows that show it, and what must come out.

`law` is the law of the first `length` tokens that the program has, `acceptance` the probability that it accepts a
drafted token. Cases labelled lossless are false alarms: odd-looking programs that must be certified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.verdict.certificate import Certificate
from exact.verdict.certify import certify
from rheo_core import Method, TreeShape
from rheo_core.laws import Row
from rheo_core.models import Prefix

F = Fraction
Model = Callable[[Prefix], Any]
Law = dict[tuple[int, ...], Fraction]

ONE_LAYER = TreeShape(width=1, depth=1, budget=1)
PAIRS = TreeShape(width=2, depth=1, budget=2)

W_TARGET = (F(1, 2), F(3, 10), F(1, 5))
W_DRAFT = (F(7, 10), F(1, 5), F(1, 10))


@dataclass(frozen=True)
class FaultCase:
    """A fault (or a false alarm), its rows, and the expected result.

    `law` lists the expected law of the first `length` tokens (None: only the verdict is pinned here).
    """

    key: str
    kind: str
    what: str
    lossless: bool
    method: Method
    target: Model
    draft: Model
    shape: TreeShape
    law: Mapping[tuple[int, ...], Fraction] | None = None
    acceptance: Fraction | None = None
    length: int = 1
    ids: Sequence[int] | None = None

    def run(self) -> Law:
        """Give the exact distribution of the first `length` tokens."""
        return self.certificate(self.length).law()

    def certificate(self, length: int | None = None) -> Certificate:
        """Give the certifier's verdict on the first `length` tokens; None: on all that one cycle can emit."""
        return certify(self.method, self.target, self.draft, self.shape, length, ids=self.ids)


def always(*row: Fraction | int) -> Model:
    """Give a model whose rows are all alike."""
    law = tuple(F(entry) for entry in row)
    return lambda prefix: law


def by_prefix(rows: Mapping[Prefix, Sequence[Fraction]], otherwise: Sequence[Fraction]) -> Model:
    """Give a model with rows of its own at some prefixes."""
    return lambda prefix: tuple(rows.get(prefix, otherwise))


def first_token(*masses: Fraction | int) -> Law:
    """Give a distribution of the first token as a mapping, zero entries left out."""
    return {(token,): F(mass) for token, mass in enumerate(masses) if mass}


def as_law(weights: Row) -> Row:
    """Weights over their sum; `weights` themselves where there is nothing to divide by."""
    mass = sum(weights.tolist())
    return weights / mass if mass else weights


TARGET = always(*W_TARGET)
DRAFT = always(*W_DRAFT)
