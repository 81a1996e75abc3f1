"""Contexts that draft alike for ever: which prefixes may stand for one another in a graph of growths.

Two prefixes are one state if their draft rows are equal and, token for token, the prefixes below them are one state,
down to the depth of the tree. A table of rows knows its states; those of a function are found by reading every row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rheo_core.models import DraftRow, Prefix

MOST_ROWS = 150_000
"""Rows that are read to find the states of a function; where there are more, each prefix is a state of its own."""

State = int


class States:
    """The states of one draft model below a start, numbered as they are met; the start's is 0.

    `of(prefix)` may be equal at two prefixes only where all rows at and below them are; the prefix itself always will
    do. `known` says in words why they are what they are.
    """

    def __init__(
        self,
        start: Prefix,
        of: Callable[[Prefix], Hashable] = lambda prefix: prefix,
        known: str = "each prefix its own",
    ) -> None:
        self._of = of
        self.known = known
        self._prefixes = [start]
        self._numbers: dict[Hashable, State] = {of(start): 0}
        self._steps: dict[tuple[State, int], State] = {}

    def prefix(self, state: State) -> Prefix:
        """A prefix of the state, whose rows are those of all others."""
        return self._prefixes[state]

    def standing(self, prefix: Prefix) -> Prefix:
        """The prefix that stands for another one, at or below the start."""
        state = 0
        for token in prefix[len(self._prefixes[0]) :]:
            state = self.step(state, token)
        return self._prefixes[state]

    def step(self, state: State, token: int) -> State:
        """The state after one more token (a target id)."""
        if (state, token) not in self._steps:
            prefix = (*self._prefixes[state], token)
            number = self._numbers.setdefault(self._of(prefix), len(self._prefixes))
            if number == len(self._prefixes):
                self._prefixes.append(prefix)
            self._steps[state, token] = number
        return self._steps[state, token]


class StepTable:
    """The states after tokens, for whole arrays of them."""

    def __init__(self, states: States, size: int) -> None:
        self.states = states
        self._next = np.full((1, size), -1, dtype=np.int32)

    def after(self, state: NDArray[Any], token: NDArray[Any], where: NDArray[np.bool_]) -> NDArray[Any]:
        """The state after each token, where asked; elsewhere the state itself."""
        found = self._next[state, np.where(where, token, 0)]
        missing = (found < 0) & where
        if missing.any():
            for at, each in np.unique(np.stack([state[missing], token[missing]], -1), axis=0).tolist():
                below = self.states.step(at, each)
                if below >= len(self._next):
                    more = np.full((below + 1, self._next.shape[1]), -1, dtype=np.int32)
                    self._next = np.concatenate([self._next, more])
                self._next[at, each] = below
            found = self._next[state, np.where(where, token, 0)]
        return np.where(where, found, state)


def read_states(
    draft: Callable[[Prefix], Any],
    start: Prefix,
    depth: int,
    tokens: Sequence[int],
    m: int,
    most: int = MOST_ROWS,
) -> States:
    """The states of any draft model, from its rows at every prefix of up to `depth` - 1 of the `tokens` after `start`.

    Rows are equal if their numbers and the tails outside m leads are. Where there are more than `most` of them, each
    prefix is its own state.
    """
    count = sum(len(tokens) ** length for length in range(depth))
    if count > most:
        return States(start)
    classes: dict[Hashable, int] = {}
    found: dict[Prefix, int] = {}

    def visit(prefix: Prefix, left: int) -> int:
        below = tuple(visit((*prefix, token), left - 1) for token in tokens) if left > 1 else ()
        found[prefix] = classes.setdefault((_numbers(draft(prefix), m), below), len(classes))
        return found[prefix]

    visit(start, depth)
    return States(start, lambda prefix: found.get(prefix, "below the tree"), f"{count:,} draft rows read")


def _numbers(row: Any, m: int) -> Hashable:
    """A draft row as numbers with their type: a law, or a score law and the sampling law outside m leads."""
    if isinstance(row, DraftRow):
        tail = row.tail(row.order[:m])
        return row.score.dtype.str, tuple(row.score.tolist()), None if tail is None else tuple(tail.tolist())
    if isinstance(row, np.ndarray):
        return row.dtype.str, tuple(row.tolist())
    return tuple((type(value), value) for value in row)
