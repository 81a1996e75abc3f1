"""Every table of rows that a program can tell apart.

A program reads rows by prefix. Each row is chosen when it is first read, so two models that differ only where nobody
looks are tried once. `exact.outcomes.Walk`, which enumerates what a program draws, enumerates what it reads as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from exact.hunting.bank import Bank, BankPair
from exact.outcomes import EnumerationError, Walk
from rheo_core.rows import Prefix

Result = TypeVar("Result")


def tables(
    bank: Bank, program: Callable[[BankPair], Result], allowed: Sequence[int], first: int, alike: bool
) -> Iterator[tuple[BankPair, Result | Exception]]:
    """Run `program(pair)` on every pair of models with rows among `allowed`, numbers of the bank.

    The draft's row at the empty prefix is `first`; with `alike` each model has one row for all prefixes. Yields the
    pair, which knows what was read, and the result or the exception that the program raised. An error of the
    enumeration itself propagates.
    """
    walk = Walk()
    even = [1] * len(allowed)

    def run() -> tuple[BankPair, Result | Exception]:
        chosen: dict[tuple[str, Prefix], int] = {("q", ()): first}

        def choose(side: Literal["p", "q"], prefix: Prefix) -> int:
            row = (side, () if alike else prefix)
            if row not in chosen:
                chosen[row] = allowed[walk.branch(row, lambda: even)]
            return chosen[row]

        pair = BankPair(bank, choose)
        try:
            return pair, program(pair)
        except EnumerationError:
            raise
        except Exception as error:
            return pair, error

    for outcome, _ in walk.runs(run):
        yield outcome
