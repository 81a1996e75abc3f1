"""Records as arrays, a bounded number at a time.

A record becomes a row of cells under the target and the same cells under the draft, so that everything the audit
computes is vectorised over records of any widths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.pairs import Ints
from montecarlo.recording import Record, Row

Floats = NDArray[np.float64]

CHUNK = 256
CHUNK_NUMBERS = 2**21
OPEN_REQUESTS = 65_536


@dataclass(frozen=True)
class Chunk:
    """n records as arrays: target cells p [n, C], padded with 0; the same cells under the draft, q [n, C].

    `cell` [n] the token's cell (-1: none); `size` [n] cells of the row; `best` [n, K] cells of the draft's best tokens
    (-1: not a cell of its own); `has_draft` [n]; `position` [n] in the cycle (-1: unknown); `where` their names.
    """

    p: Floats
    q: Floats
    cell: Ints
    size: Ints
    best: Ints
    has_draft: NDArray[np.bool_]
    position: Ints
    where: Sequence[str]

    def __len__(self) -> int:
        return len(self.cell)


class Chunker:
    """Puts records into chunks of bounded size, working out positions from `cycle` where they are not given."""

    def __init__(self, top: int) -> None:
        self.top = top
        self._cycles: dict[str | None, tuple[int, int]] = {}

    def chunks(self, records: Iterator[Record]) -> Iterator[Chunk]:
        """The records in order, at most CHUNK at a time."""
        held: list[Record] = []
        widest = 0
        for record in records:
            width = len(record.target.probs) + 1
            if held and (len(held) == CHUNK or max(width, widest) * (len(held) + 1) > CHUNK_NUMBERS):
                yield self._chunk(held)
                held, widest = [], 0
            held.append(record)
            widest = max(widest, width)
        if held:
            yield self._chunk(held)

    def _chunk(self, records: list[Record]) -> Chunk:
        laws = [record.target.cells() for record in records]
        shape = (len(records), max(len(law) for law in laws))
        p, q = np.zeros(shape), np.zeros(shape)
        best = np.full((len(records), self.top), -1, dtype=np.int64)
        for i, (record, law) in enumerate(zip(records, laws, strict=True)):
            p[i, : len(law)] = law
            if record.draft is not None:
                q[i, : len(law)] = draft_cells(record.draft, record.target)
                own = [record.target.cell(int(token)) for token in record.draft.best(self.top)]
                own = [cell if cell < len(record.target.probs) else -1 for cell in own]
                best[i, : len(own)] = own
        return Chunk(
            p=p,
            q=q,
            cell=np.array([record.target.cell(record.token) for record in records], dtype=np.int64),
            size=np.array([len(law) for law in laws], dtype=np.int64),
            best=best,
            has_draft=np.array([record.draft is not None for record in records]),
            position=np.array([self._position(record) for record in records], dtype=np.int64),
            where=[record.where for record in records],
        )

    def _position(self, record: Record) -> int:
        if record.position is not None or record.cycle is None:
            return -1 if record.position is None else record.position
        cycle, position = self._cycles.pop(record.request, (-1, -1))
        position = position + 1 if cycle == record.cycle else 0
        if len(self._cycles) >= OPEN_REQUESTS:
            # The request that was silent longest is forgotten; should it go on, its positions count from 0 again.
            del self._cycles[next(iter(self._cycles))]
        self._cycles[record.request] = (record.cycle, position)
        return position


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
