"""Trying rows state by state: for methods whose next token depends on the models only where they stand.

A chain of rows is one row for each token emitted so far. All rows of a target are right iff every chain is, so the
number of tables, which is astronomical, never has to be gone through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from exact.hunting.process import Process, State
from rheo_core.rows import Prefix

Chain = tuple[tuple[Prefix, int, int], ...]
"""(text so far, number of the target's row there, number of the draft's), one entry for each token."""

NO_ROW = -1
"""Where the draft's row is settled by the state, or does not matter."""


class DraftChoices(Protocol):
    """The draft rows to be tried at a state."""

    def __call__(self, state: State) -> Sequence[int]:
        """Numbers of laws of the bank."""
        ...


class Chains:
    """Chains of rows out of `allowed` (numbers of a bank) that start at a state, and whether one of them goes wrong."""

    def __init__(
        self, process: Process, allowed: Sequence[int], drafts: DraftChoices, tick: Callable[[], None]
    ) -> None:
        self.process = process
        self.allowed = allowed
        self.drafts = drafts
        self.tick = tick
        self._sound: dict[State, bool] = {}
        self._alike: dict[tuple[State, int, int], bool] = {}

    def is_sound(self, state: State) -> bool:
        """Whether every chain from here on emits the target's law (rows that the rule refuses left out)."""
        if state not in self._sound:
            self.tick()
            self._sound[state] = all(self._right(state, p, q) for q in self.drafts(state) for p in self.allowed)
        return self._sound[state]

    def _right(self, state: State, p: int, q: int) -> bool:
        step = self.process.step(state, p, q)
        if step is None:
            return True
        return step.right and all(self.is_sound(after) for after in step.after.values())

    def wrong(self, state: State, text: Prefix = (), first: Sequence[int] | None = None) -> Iterator[Chain]:
        """Every chain that goes wrong at its last token; `first` limits the draft rows at this state."""
        for q in self.drafts(state) if first is None else first:
            for p in self.allowed:
                self.tick()
                step = self.process.step(state, p, q)
                if step is None:
                    continue
                here = ((text, p, q),)
                if not step.right:
                    yield here
                    continue
                for token, after in step.after.items():
                    if not self.is_sound(after):
                        yield from (here + more for more in self.wrong(after, (*text, token)))

    def goes_wrong(self, state: State, p: int, q: int) -> bool:
        """Whether the same two rows at every prefix go wrong."""
        key = (state, p, q)
        if key not in self._alike:
            self.tick()
            step = self.process.step(state, p, q)
            self._alike[key] = step is not None and (
                not step.right or any(self.goes_wrong(after, p, q) for after in step.after.values())
            )
        return self._alike[key]
