"""What a rule of the user's own is handed: copies of the rows, coins alone, and a cycle number that notes its readers.

A rule may write into what it is given, and where that is the target's own row the verdict would compare the rule with
what it wrote. So it gets copies, which are compared with the rows when it is done. It gets the two methods of a
chooser and nothing behind them. The number of the cycle stands for itself in addresses, but whoever compares it,
computes with it or prints it is a rule that may do something else in a later cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import Node
from exact.enumeration.rationals import converted_row
from exact.enumeration.read_ints import ReadInt
from exact.runtime.unseen import nobody_watches
from rheo_core import Chooser, DraftRow, InvalidInput
from rheo_core.laws import Row
from rheo_core.models import Prefix
from rheo_core.verification import Place

UNTOUCHED = "a rule that leaves the rows that it is given as they are"


class RefusedCall(InvalidInput):
    """What a rule did that no verdict can rest on; it is not the rule that raised it."""


class CycleNumber(ReadInt):
    """The number of a cycle, equal to an int in all that it answers; `read` is called before any answer."""

    __slots__ = ("_number",)

    def __init__(self, number: int, read: Callable[[], None]) -> None:
        def ask() -> int:
            read()
            return number

        super().__init__(ask)
        self._number = number


def plain_place(value: Any) -> Any:
    """Give a value with the cycle numbers in it, or in the tuples in it, as ints; nothing is noted."""
    if type(value) is CycleNumber:
        return value._number
    return tuple(map(plain_place, value)) if type(value) is tuple else value


class Coins:
    """The two methods of a chooser, with addresses made plain."""

    __slots__ = ("accept", "index")

    def __init__(self, chooser: Chooser) -> None:
        self.accept: Callable[..., bool] = lambda probability, at=None: chooser.accept(probability, plain_place(at))
        self.index: Callable[..., int] = lambda weights, at=None: chooser.index(weights, plain_place(at))


@dataclass
class Handed:
    """What one call of a rule was handed."""

    read: Callable[[], None]
    _rows: list[tuple[str, Row, Row]] = field(default_factory=list)

    def row(self, name: str, row: Row) -> Row:
        """Give a read-only copy of a row [V]."""
        own = row.copy()
        own.flags.writeable = False
        self._rows.append((name, row, own))
        return own

    def draft_row(self, name: str, given: Row | DraftRow) -> Row | DraftRow:
        """Give a copy of a draft row, its private distributions included."""
        if not isinstance(given, DraftRow):
            return self.row(name, given)
        own = converted_row(given, lambda law: law.copy())
        pairs = [(given.score, own.score), (given.sampling, own.sampling)]
        self._rows += [(name, law, mine) for law, mine in pairs if law is not None and mine is not None]
        return own

    def check(self, rule: str) -> None:
        """Raise `InvalidInput` where the rule wrote into a row."""
        name = next((name for name, row, copy in self._rows if not _equal(row, copy)), None)
        if name is not None:
            raise RefusedCall(rule, f"numbers written into its row {name}", UNTOUCHED)

    def verify(
        self,
        p: Row,
        tail: Row | None,
        candidates: Sequence[int],
        sampled: int,
        lead: int,
        chooser: Chooser,
        at: Place,
    ) -> tuple[Any, ...]:
        """Give the arguments of a verification rule."""
        q = None if tail is None else self.row("tail", tail)
        return self.row("p", p), q, list(candidates), sampled, lead, Coins(chooser), self._place(at)

    def proxy(self, score: Row, order: Row, m: int, sampled: int) -> tuple[Any, ...]:
        """Give the arguments of a proxy."""
        return self.row("score", score), self.row("order", order), m, sampled

    def draft(self, node: Node, chooser: Chooser) -> tuple[Any, ...]:
        """Give the arguments of a rule that drafts siblings."""
        return self._node(node), Coins(chooser)

    def verify_siblings(self, node: Node, candidates: Sequence[int], chooser: Chooser) -> tuple[Any, ...]:
        """Give the arguments of a rule that verifies them."""
        return self._node(node), list(candidates), Coins(chooser)

    def topology(self, shape: Any) -> tuple[Any, ...]:
        """Give the arguments of a topology."""
        return (replace(shape),)

    def cycle_function(
        self,
        target: Callable[[Prefix], Row],
        draft: Callable[[Prefix], Row | DraftRow],
        prefix: Prefix,
        shape: Any,
        chooser: Chooser,
        ids: Any = None,
    ) -> tuple[Any, ...]:
        """Give the arguments of a whole cycle."""
        mine = copy(ids) if ids is not None else None
        return (
            lambda prefix: self.row(f"target({prefix})", _unseen(target, prefix)),
            lambda prefix: self.draft_row(f"draft({prefix})", _unseen(draft, prefix)),
            prefix,
            replace(shape),
            Coins(chooser),
            mine,
        )

    def _node(self, node: Node) -> Node:
        return replace(node, p=self.row("p", node.p), q=self.row("q", node.q), at=self._place(node.at))

    def _place(self, at: Place) -> Any:
        return CycleNumber(at[0], self.read), at[1]


def _unseen(model: Callable[[Prefix], Any], prefix: Prefix) -> Any:
    """What a model answers; nobody watches how its rows are converted."""
    with nobody_watches():
        return model(prefix)


def _equal(row: Row, copy: Row) -> bool:
    if row.dtype.kind == "f" and copy.dtype == row.dtype:
        return bool(np.array_equal(row, copy))
    return bool(row.tolist() == copy.tolist())
