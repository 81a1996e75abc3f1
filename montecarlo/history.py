"""What earlier tokens say about the next one: nothing, if the engine is lossless, beyond what its row says.

Each of these guesses is made before its token is looked at, so a bet on it is fair whatever the texts are. Tables have
a fixed size; where two entries fall together a guess is worse, never unfair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from montecarlo.recording import Record, Row

TABLE = 2**16
OPEN_TEXTS = 16_384
RECENT = 32
ROW_NUMBERS = 2**21
GRAMS = (2, 5)


@dataclass
class TextSoFar:
    """A text as far as it was read: its number, its last tokens, and where its cycle stands."""

    number: int
    tail: tuple[int, ...] = ()
    place: int = 0
    beginning: int = 0
    cycle: int | None = None
    position: int = -1
    after_rejection: bool = False
    ended: bool = False


class Texts:
    """The texts of a run, by file, request and seed; after its end, or when its cycles restart, a text begins anew.

    A cycle that emitted fewer tokens than another did before it is taken to have ended in a rejection.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, str | None, int | None], TextSoFar] = {}
        self._count = 0
        self._longest = 0

    def of(self, record: Record) -> TextSoFar:
        """The text that a record goes on with; its cycle and position are those of this record."""
        key = (record.source, record.request, record.seed)
        text = self._open.pop(key, None)
        if text is None or text.ended or (record.cycle is not None and record.cycle < (text.cycle or 0)):
            text = TextSoFar(self._count)
            self._count += 1
        if len(self._open) >= OPEN_TEXTS:
            # The text that was silent longest is forgotten; should it go on, it counts as a new one.
            del self._open[next(iter(self._open))]
        self._open[key] = text
        emitted = text.position + 1  # by the cycle so far
        if record.position is not None:
            text.position = record.position
        elif record.cycle is not None:
            text.position = text.position + 1 if record.cycle == text.cycle else 0
        else:
            text.position = -1
        text.after_rejection = text.position == 0 and 0 < emitted < self._longest
        self._longest = max(self._longest, text.position + 1)
        text.cycle = record.cycle
        text.ended = record.stop is not None
        return text


class Guesses:
    """The tokens that earlier ones suggest, of this text and of those before it."""

    NAMES = ("same as the last token", *(f"repeat of {n} tokens" for n in GRAMS), "same text", "same place")

    def __init__(self) -> None:
        self._next = np.full((len(GRAMS) + 2, TABLE), -1, dtype=np.int64)
        self._rows: dict[int, Row] = {}
        self._numbers = 0

    def of(self, text: TextSoFar) -> list[int]:
        """A token for each of NAMES; -1: none."""
        last = text.tail[-1] if text.tail else -1
        return [last, *(int(table[slot]) for table, slot in zip(self._next, self._slots(text), strict=True))]

    def later(self, token: int) -> Row | None:
        """The row that held after `token` had last been emitted, if it is known."""
        return self._rows.get(token)

    def add(self, text: TextSoFar, token: int, row: Row) -> None:
        """Go on by one token, emitted beside `row`."""
        for table, slot in zip(self._next, self._slots(text), strict=True):
            table[slot] = token
        if text.tail:
            old = self._rows.pop(text.tail[-1], None)
            self._rows[text.tail[-1]] = row
            self._numbers += len(row.probs) - (0 if old is None else len(old.probs))
            while self._numbers > ROW_NUMBERS:
                first = next(iter(self._rows))
                self._numbers -= len(self._rows.pop(first).probs)
        text.tail = (*text.tail[1 - RECENT :], token)
        text.beginning = hash((text.beginning, token))
        text.place += 1

    @staticmethod
    def _slots(text: TextSoFar) -> list[int]:
        keys: list[Any] = [text.tail[-n:] if len(text.tail) >= n else (text.number, -1) for n in GRAMS]
        return [hash(key) % TABLE for key in (*keys, (text.beginning, text.place), text.place)]
