"""Three ways of recording a lossless engine that make it look lossy, and what is left of the evidence without them.

End tokens left out; answers cut by a limit left out; the emitted token listed because it was emitted. A second wealth
is made of bets that none of the three can touch: only the best n tokens of shortened rows, no end tokens and, where the
run does not say its ends, only tokens that came before; each row is taken given that its token is one of these. Where
that wealth passes the bar too, it is a loss whatever else is true. Where it does not and a pattern is seen, the
recording is refused.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np

from montecarlo.betting import Wealth
from montecarlo.chunks import Chunk
from montecarlo.functions import FIRST_SIGNED, ONE_SIDED, RATIO, SHARES, TOLERANT_RATIO, Floats, excesses
from montecarlo.pairs import Ints

EXPECTED = 30.0
"""What should have come this often never comes by chance with probability exp(-30)."""

MOST_IDS = 2**22
MOST_TEXTS = 2**16
FEWEST_TEXTS = 20


class Patterns:
    """Looks for the patterns beside an audit; memory is bounded by the vocabulary and MOST_TEXTS."""

    def __init__(self, strata: int, tolerance: float) -> None:
        # A law given that the token is one of a set of mass 1/2 or more is off by twice as much.
        self._ratio = TOLERANT_RATIO if tolerance else RATIO
        self._least_mass = 0.5 if tolerance else 0.0
        self._wealth = Wealth(strata, ONE_SIDED, SHARES, 2 * tolerance, np.where(ONE_SIDED, self._ratio, 1))
        self.log_evidence = 0.0
        self._expected: Floats = np.zeros(0)
        self._seen = np.zeros(0, dtype=bool)
        self._shortest: int | None = None
        self._longer = 0
        self._unlisted_expected, self._unlisted = 0.0, 0
        self._listed_by_rank = 0  # tokens of longer rows among the best n: no pattern
        self._last: dict[int, tuple[int, int, float]] = {}  # text: its length, last token, and the probability of that
        self._ends: Counter[int] = Counter()
        self._declared: set[int] = set()
        self._inside: Counter[int] = Counter()
        self._stops = 0
        self._text = -1

    def update(self, chunk: Chunk, v: Floats, stratum: Ints) -> None:
        """Play what the patterns do not touch, then take note of the chunk."""
        self._declared |= set(() if chunk.past is None else chunk.past.end)
        ids = np.broadcast_to(np.arange(chunk.p.shape[1]), chunk.p.shape) if chunk.ids is None else chunk.ids
        listed = chunk.size - chunk.short
        if self._shortest is not None or not chunk.short.any():
            self._play(chunk, v, stratum, ids)
        own = chunk.p[np.arange(len(chunk)), chunk.cell]
        if chunk.short.any():
            least = int(listed[chunk.short].min())
            self._shortest = least if self._shortest is None else min(least, self._shortest)
            rank = ((chunk.p > own[:, None]) & (ids >= 0)).sum(axis=1)
            longer = chunk.short & (listed > self._shortest) & (ids[np.arange(len(chunk)), chunk.cell] >= 0)
            self._longer += int(longer.sum())
            self._listed_by_rank += int((longer & (rank < self._shortest)).sum())
            self._unlisted_expected += float(chunk.p[np.arange(len(chunk)), chunk.size - 1][chunk.short].sum())
            self._unlisted += int((chunk.short & (chunk.token < 0)).sum())
        usable = (ids >= 0) & (ids < MOST_IDS) & (chunk.p > 0)
        size = int(ids[usable].max(initial=-1)) + 1
        if size > len(self._seen):
            self._expected = np.pad(self._expected, (0, size - len(self._expected)))
            self._seen = np.pad(self._seen, (0, size - len(self._seen)))
        self._expected += np.bincount(ids[usable], chunk.p[usable], minlength=len(self._seen))
        tokens = chunk.token[(chunk.token >= 0) & (chunk.token < MOST_IDS)]
        self._seen[tokens[tokens < len(self._seen)]] = True
        self._note_texts(chunk, own)

    def _note_texts(self, chunk: Chunk, own: Floats) -> None:
        past = chunk.past
        if past is None:
            return
        self._stops += int(past.stopped.sum())
        for text, token, p in zip(past.text.tolist(), chunk.token.tolist(), own.tolist(), strict=True):
            if text != self._text and self._text in self._last:
                self._ends[self._last[self._text][1]] += 1
            self._text = text
            if text in self._last or len(self._last) < MOST_TEXTS:
                length, before, _ = self._last.get(text, (0, -1, 0.0))
                if length:
                    self._inside[before] += 1
                self._last[text] = length + 1, token, p

    def _play(self, chunk: Chunk, v: Floats, stratum: Ints, ids: Ints) -> None:
        index = np.arange(len(chunk))
        keep = (ids >= 0) & (bool(self._declared) | (ids < len(self._seen)))
        # Without declared ends any token that never came may be one, and so may the usual last token of texts that
        # went on after none.
        usual: set[int] = set()
        if not self._declared:
            keep &= self._seen[np.where(keep, ids, 0)] if len(self._seen) else False
            usual = {token for token, _ in self._ends.most_common(1) if not self._inside[token]}
        for end in self._declared | usual:
            keep &= ids != end
        if self._shortest is not None and chunk.short.any():
            listed = np.where(ids >= 0, chunk.p, -1)
            rank = (-listed).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
            keep &= ~chunk.short[:, None] | (rank < self._shortest)
        mass = (chunk.p * keep).sum(axis=1)
        here = np.flatnonzero(keep[index, chunk.cell] & (chunk.p[index, chunk.cell] > 0) & (mass >= self._least_mass))
        if not len(here):
            return
        drafted = (chunk.q * keep).sum(axis=1)
        part = replace(
            chunk,
            p=(chunk.p * keep)[here] / mass[here, None],
            q=(chunk.q * keep)[here] / np.where(drafted > 0, drafted, 1)[here, None],
            cell=chunk.cell[here],
            size=chunk.size[here],
            best=chunk.best[here],
            has_draft=(chunk.has_draft & (drafted > 0))[here],
            ids=ids[here],
            past=None,
        )
        found = excesses(part, v[here], self._ratio)
        used = found.used.copy()
        used[:, FIRST_SIGNED:] = False
        path = self._wealth.play(np.where(used, found.value, 0), stratum[here], used)
        self.log_evidence = max(self.log_evidence, float(path.max()))

    def seen(self) -> list[str]:
        """Each pattern that the run shows, with its remedy."""
        found = []
        complete = bool(self._declared) and self._stops >= len(self._last)
        if not complete:
            found += [*self._never(), *self._cut()]
        if self._unlisted_expected >= EXPECTED and not self._unlisted and self._longer and not self._listed_by_rank:
            found.append(
                f"tokens beyond the best {self._shortest} should have come about {self._unlisted_expected:.0f} times "
                "unlisted and never did: rows list the emitted token because it was emitted; list the best n alone"
            )
        return found

    def _never(self) -> list[str]:
        missing = np.where(self._seen, 0, self._expected)
        if self._declared:  # no other token can be one that was left out
            ends = np.array(sorted(self._declared))
            missing = np.where(np.isin(np.arange(len(missing)), ends), missing, 0)
        if not len(missing) or missing.max() < EXPECTED:
            return []
        token = int(missing.argmax())
        # A text whose end token was left out is shorter than those that a limit cut; there is one such token a text.
        lengths = [length for length, _, _ in self._last.values()]
        if sum(length < max(lengths) for length in lengths) < missing[token] / 2:
            return []
        return [
            f"token {token} should have come about {missing[token]:.0f} times and never did: end tokens left out of "
            "the record, or never emitted; record them, the run's `end` ids and each text's `stop`"
        ]

    def _cut(self) -> list[str]:
        texts = list(self._last.values())
        ends = {token for _, token, _ in texts}
        if len(texts) < FEWEST_TEXTS or len(ends) > 1 or any(self._inside[token] for token in ends):
            return []
        most = max(length for length, _, _ in texts)
        there = [p for length, _, p in texts if length == most]
        if 2 * len(there) > len(texts):  # a limit cuts the last of them, not the most
            return []
        if sum(math.log(max(p, 1e-300)) for p in there) > math.log(1e-6):
            return []
        return [
            f"all {len(texts)} texts end by token {next(iter(ends))}, {len(there)} at the greatest length {most}: "
            "answers cut by a length limit left out; record them too, the run's `end` ids and each text's `stop`"
        ]
