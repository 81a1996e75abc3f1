"""Texts that were recorded twice would count their luck twice; dropping them by what they say would select.

A request that comes again under its id and seed is dropped: its text plays no part in that. Texts that go along with an
earlier one are dropped only once this had so small a probability under the rows that all such drops together happen to
independent requests with probability below RATE; they are named, for an engine that gives two requests one stream of
random numbers looks the same. All other texts are kept, however often they occur.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from montecarlo.history import OPEN_TEXTS, Texts
from montecarlo.recording import Record

RATE = 1e-9
LONGEST = 256
KNOWN = 2**18
HELD, HELD_NUMBERS = 2**14, 2**21


@dataclass(eq=False)
class _Entry:
    record: Record
    walk: _Walk
    kept: bool | None = None  # None: not decided yet


@dataclass(eq=False)
class _Walk:
    """How far a text went along with an earlier one, and the probability of that."""

    along: bool = True
    copy: bool = False
    place: int = 0
    beginning: int = 0
    log_probability: float = 0.0
    waiting: list[_Entry] = field(default_factory=list)

    def decide(self, kept: bool) -> None:
        """Release or drop what waits."""
        for entry in self.waiting:
            entry.kept = kept
        self.waiting.clear()


class Copies:
    """What was dropped of a run, and why; `tolerance` as in the audit."""

    def __init__(self, tolerance: float = 0.0) -> None:
        self.by_key = 0
        self.by_text = 0
        self.repeated = 0
        self.first: str | None = None
        self.other = 0
        """Texts dropped by their key that were no copies: they went another way than any text before."""
        self.first_other: str | None = None
        self._tolerance = tolerance
        self._texts = Texts()
        self._walks: dict[int, _Walk] = {}
        self._keys: dict[tuple[str, int], int] = {}
        self._beginnings: dict[int, int | None] = {}
        self._queue: deque[_Entry] = deque()
        self._numbers = 0

    def without(self, records: Iterator[Record]) -> Iterator[Record]:
        """The records that are kept, in order."""
        for record in records:
            self._look(record)
            yield from self._ready()
        for walk in self._walks.values():
            self._release(walk)
        yield from self._ready()

    def _ready(self) -> Iterator[Record]:
        while self._queue:
            if self._queue[0].kept is None:
                if len(self._queue) <= HELD and self._numbers <= HELD_NUMBERS:
                    return
                self._release(self._queue[0].walk)
            entry = self._queue.popleft()
            self._numbers -= len(entry.record.target.probs)
            if entry.kept:
                yield entry.record

    def _release(self, walk: _Walk) -> None:
        """Keep what went along with an earlier text to its end, or for too long to be held back."""
        self.repeated += bool(walk.waiting)
        walk.along = False
        walk.decide(True)

    def _look(self, record: Record) -> None:
        number = self._texts.of(record).number
        new = number not in self._walks
        walk = self._walks.setdefault(number, _Walk())
        entry = _Entry(record, walk)
        self._queue.append(entry)
        self._numbers += len(record.target.probs)
        if record.request is not None and record.seed is not None:
            first = self._keys.setdefault((record.request, record.seed), number)
            if len(self._keys) > KNOWN:
                del self._keys[next(iter(self._keys))]
            if first != number:
                self.by_key += new
                entry.kept = False
                self._hold_against(walk, record)
                return
        if len(self._walks) > OPEN_TEXTS:
            self._release(self._walks.pop(next(iter(self._walks))))
        walk.beginning = hash((walk.beginning, record.token))
        walk.place += 1
        walk.waiting.append(entry)
        known = walk.beginning in self._beginnings
        owner = self._beginnings.get(walk.beginning)
        known = known and (owner is None or record.seed is None or owner == record.seed)
        if walk.along:
            walk.along = known
            row = record.target
            cell = row.cell(record.token)
            p = (row.probs[cell] if cell < len(row.probs) else row.rest) + self._tolerance
            walk.log_probability += math.log(min(1.0, max(float(p), 1e-300)))
            if walk.along and not walk.copy and walk.log_probability <= self._bar(number + 1):
                walk.copy = True
                self.by_text += 1
                self.first = self.first or record.where
        if not walk.along:
            walk.decide(True)
        elif walk.copy:
            walk.decide(False)
        elif record.stop is not None:
            self._release(walk)
        if walk.place <= LONGEST:
            self._beginnings.setdefault(walk.beginning, record.seed)
            if len(self._beginnings) > KNOWN:
                del self._beginnings[next(iter(self._beginnings))]

    def _hold_against(self, walk: _Walk, record: Record) -> None:
        """Count a text that came again under its key and goes another way; `walk.copy` marks it as counted."""
        walk.beginning = hash((walk.beginning, record.token))
        walk.place += 1
        forgotten = walk.place > LONGEST or len(self._beginnings) >= KNOWN
        if not (walk.copy or forgotten or walk.beginning in self._beginnings):
            walk.copy = True
            self.other += 1
            self.first_other = self.first_other or record.where

    @staticmethod
    def _bar(texts: int) -> float:
        """Log of a probability whose sum over all pairs of texts is below RATE: sum over B of B / B^3 is pi^2 / 6."""
        return math.log(RATE * 6 / math.pi**2) - 3 * math.log(texts)
