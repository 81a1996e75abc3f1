"""Records as arrays, a bounded number at a time.

A record becomes a row of cells under the target and the same cells under the draft, so that everything the audit
computes is vectorised over records of any widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.copies import Copies
from montecarlo.history import Guesses, Texts
from montecarlo.pairs import Ints
from montecarlo.recording import Record, Row

Floats = NDArray[np.float64]

CHUNK = 256
CHUNK_NUMBERS = 2**21


@dataclass(frozen=True)
class Past:
    """What was known before each of n tokens: cells that earlier tokens suggest [n, G] (-1: none, or not listed), those
    of the text's last few tokens [n, C], a law that the next row may look like [n, C] (0: none known), the number of
    the text [n] and the token's place in it [n], whether the cycle before ended in a rejection [n]; also whether the
    text ends here [n], the run's end ids, and what was dropped so far.
    """

    guesses: Ints
    recent: NDArray[np.bool_]
    later: Floats
    text: Ints
    place: Ints
    after_rejection: NDArray[np.bool_]
    stopped: NDArray[np.bool_]
    end: tuple[int, ...] = ()
    copies: Copies | None = None


@dataclass(frozen=True)
class Chunk:
    """n records as arrays: target cells p [n, C], padded with 0; the same cells under the draft, q [n, C].

    `cell` [n] the token's cell; `size` [n] cells of the row; `best` [n, K] cells of the draft's best tokens
    (-1: not a cell of its own); `has_draft` [n]; `position` [n] in the cycle (-1: unknown); `where` their names.
    `ids` [n, C] the cells' token ids (-1: the rest, which is a shortened row's last cell); None: whole rows, by id.
    """

    p: Floats
    q: Floats
    cell: Ints
    size: Ints
    best: Ints
    has_draft: NDArray[np.bool_]
    position: Ints
    where: Sequence[str]
    ids: Ints | None = None
    past: Past | None = None

    @property
    def short(self) -> NDArray[np.bool_]:
        """Whether each row [n] is shortened."""
        if self.ids is None:
            return np.zeros(len(self), dtype=bool)
        return self.ids[np.arange(len(self)), self.size - 1] < 0

    @property
    def token(self) -> Ints:
        """The emitted ids [n]; -1 where the row does not list it."""
        return self.cell if self.ids is None else self.ids[np.arange(len(self)), self.cell]

    def __len__(self) -> int:
        return len(self.cell)


class Chunker:
    """Puts at most `most` records into a chunk, each with what was known before its token; copies are dropped."""

    def __init__(self, top: int, tolerance: float = 0.0, most: int = CHUNK) -> None:
        self.top = top
        self.most = most
        self._copies = Copies(tolerance)
        self._texts = Texts()
        self._guesses = Guesses()

    def chunks(self, records: Iterator[Record]) -> Iterator[Chunk]:
        """The records in order, in chunks."""
        held: list[Record] = []
        widest = 0
        for record in self._copies.without(records):
            width = len(record.target.probs) + 1
            if held and (len(held) == self.most or max(width, widest) * (len(held) + 1) > CHUNK_NUMBERS):
                yield self._chunk(held)
                held, widest = [], 0
            held.append(record)
            widest = max(widest, width)
        if held:
            yield self._chunk(held)

    def _chunk(self, records: list[Record]) -> Chunk:
        laws = [record.target.cells() for record in records]
        count, shape = len(records), (len(records), max(len(law) for law in laws))
        p, q = np.zeros(shape), np.zeros(shape)
        ids = np.full(shape, -1) if any(record.target.ids is not None for record in records) else None
        best = np.full((count, self.top), -1)
        guesses, recent = np.full((count, len(Guesses.NAMES)), -1), np.zeros(shape, dtype=bool)
        later = np.zeros(shape)
        text, place, position, rejected = np.zeros((4, count), dtype=np.int64)
        for i, (record, law) in enumerate(zip(records, laws, strict=True)):
            p[i, : len(law)] = law
            known = len(record.target.probs)
            if ids is not None:
                ids[i, :known] = np.arange(known) if record.target.ids is None else record.target.ids
            if record.draft is not None:
                q[i, : len(law)] = draft_cells(record.draft, record.target)
                own = record.target.places(record.draft.best(self.top))
                best[i, : len(own)] = own
            now = self._texts.of(record)
            guesses[i] = record.target.places(self._guesses.of(now))
            # A rejected draft token is most often the one that the draft most prefers to the target.
            likely = law[:known] if record.draft is None else q[i, :known] - law[:known]
            first = int(likely.argmax())
            first = first if record.target.ids is None else int(record.target.ids[first])
            if (row := self._guesses.later(first)) is not None:
                later[i, : len(law)] = draft_cells(row, record.target)
            seen = record.target.places(set(now.tail))
            recent[i, seen[seen >= 0]] = True
            text[i], place[i], position[i], rejected[i] = now.number, now.place, now.position, now.after_rejection
            self._guesses.add(now, record.token, record.target)
        return Chunk(
            p=p,
            q=q,
            cell=np.array([record.target.cell(record.token) for record in records]),
            size=np.array([len(law) for law in laws]),
            best=best,
            has_draft=np.array([record.draft is not None for record in records]),
            position=position,
            where=[record.where for record in records],
            ids=ids,
            past=Past(
                guesses,
                recent,
                later,
                text,
                place,
                rejected > 0,
                stopped=np.array([record.stop is not None for record in records]),
                end=records[-1].end,
                copies=self._copies,
            ),
        )


def draft_cells(draft: Row, target: Row) -> Floats:
    """The draft's mass in the target's cells [C]; what it does not list counts as 0, so the sum is at most 1."""
    if target.ids is None:
        if draft.ids is None:
            return draft.cells()
        q: Floats = np.zeros(len(target.probs))
        inside = draft.ids < len(q)
        q[draft.ids[inside]] = draft.probs[inside]
        return np.asarray(q / (draft.probs.sum() + draft.rest))
    if draft.ids is None:
        known = target.ids < len(draft.probs)
        listed = np.where(known, draft.probs[np.where(known, target.ids, 0)], 0)
    else:
        order = np.argsort(draft.ids)
        place = np.minimum(np.searchsorted(draft.ids[order], target.ids), len(order) - 1)
        place = order[place]
        listed = np.where(draft.ids[place] == target.ids, draft.probs[place], 0)
    listed = listed / (draft.probs.sum() + draft.rest)
    return np.append(listed, max(0.0, 1 - listed.sum()))
