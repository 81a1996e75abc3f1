"""Models that answer for many prefixes at once.

The simulator asks for rows by arrays of prefixes, the reference by one prefix; each pair here answers both, so that the
two can be run on the same models. Three kinds: synthetic prefix-dependent models of any vocabulary with dials, rows
files, and any batched callable of the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from exact.methods.rows_file import Rows
from montecarlo.keyed_random import mix
from rheo_core import DraftRow, InvalidInput
from rheo_core.checks import FLOATS, check_law
from rheo_core.laws import Row
from rheo_core.models import Prefix

T = TypeVar("T", bound=Sized)
Ints = NDArray[np.int64]
Batch = NDArray[Any]
"""Rows [n, V] of one float type."""

Drafts = Batch | tuple[Batch, Batch] | list[DraftRow]
"""Draft rows of n prefixes: laws [n, V], or (score laws, sampling laws), or n `DraftRow`s."""


MOST_NUMBERS = 2**26
"""States times vocabulary of a synthetic pair; a few GiB with everything that is made of it."""


class BatchedPair(Protocol):
    """A target and a draft that answer for prefixes [n, L] of target ids; rows are in one float type."""

    @property
    def ids(self) -> Sequence[int] | None:
        """ids[draft id] = target id; None: one vocabulary."""
        ...

    def targets(self, prefixes: Ints) -> Batch:
        """Target laws [n, V]."""
        ...

    def drafts(self, prefixes: Ints) -> Drafts:
        """Draft rows [n, draft V]."""
        ...


class TablePair:
    """Finitely many rows; `state_of` says which of them holds at each prefix.

    `target` [S, V] laws; `draft` [S, draft V] laws, a pair of them (score, sampling), or a list of S rows;
    `state_of(prefixes [n, L]) -> [n]` in 0..S-1. `target_at` and `draft_at` are the models in the form that rheo_core
    takes.
    """

    def __init__(
        self,
        target: ArrayLike,
        draft: Any,
        state_of: Callable[[Ints], Ints],
        ids: Sequence[int] | None = None,
    ) -> None:
        self.target = check_laws(target, "target")
        self.state_of = state_of
        self.ids = ids
        if isinstance(draft, tuple):
            self.draft: Drafts = (check_laws(draft[0], "draft"), check_laws(draft[1], "sampling law"))
            self._given: list[Row | DraftRow] = [DraftRow.pair(*rows) for rows in zip(*self.draft, strict=True)]
        elif isinstance(draft, list):
            self._given = draft
            self.draft = [row if isinstance(row, DraftRow) else DraftRow.law(row) for row in draft]
        else:
            self.draft = check_laws(draft, "draft")
            self._given = list(self.draft)
        if len(self._given) != len(self.target):
            raise InvalidInput("draft", f"{len(self._given)} rows", f"{len(self.target)}, as many as target rows")

    @property
    def states(self) -> int:
        """Number S of distinct rows."""
        return len(self.target)

    def targets(self, prefixes: Ints) -> Batch:
        """Target laws [n, V] at `prefixes` [n, L]."""
        rows: Batch = self.target[self.state_of(prefixes)]
        return rows

    def drafts(self, prefixes: Ints) -> Drafts:
        """Draft rows at `prefixes` [n, L]."""
        states = self.state_of(prefixes)
        if isinstance(self.draft, tuple):
            return self.draft[0][states], self.draft[1][states]
        return self.draft[states] if isinstance(self.draft, np.ndarray) else [self.draft[state] for state in states]

    def target_at(self, prefix: Prefix) -> Row:
        """Target law [V] at one prefix."""
        row: Row = self.target[self._state(prefix)]
        return row

    def draft_at(self, prefix: Prefix) -> Row | DraftRow:
        """Draft row at one prefix, in the form in which it was given."""
        return self._given[self._state(prefix)]

    def _state(self, prefix: Prefix) -> int:
        return int(self.state_of(np.array([prefix], dtype=np.int64).reshape(1, -1))[0])


class CallablePair:
    """Batched callables: `target(prefixes [n, L]) -> [n, V]`, `draft(prefixes) -> [n, V]`, a pair of such, or rows.

    Nothing is kept between calls, so memory does not grow with the number of cycles.
    """

    def __init__(
        self,
        target: Callable[[Ints], ArrayLike],
        draft: Callable[[Ints], Any],
        ids: Sequence[int] | None = None,
    ) -> None:
        self._target = target
        self._draft = draft
        self.ids = ids

    def targets(self, prefixes: Ints) -> Batch:
        """Target laws [n, V] at `prefixes` [n, L], checked."""
        return _of_length(check_laws(self._target(prefixes), "target"), len(prefixes), "target")

    def drafts(self, prefixes: Ints) -> Drafts:
        """Draft rows at `prefixes` [n, L], checked."""
        given = self._draft(prefixes)
        count = len(prefixes)
        if isinstance(given, list):
            return [
                row if isinstance(row, DraftRow) else DraftRow.law(row) for row in _of_length(given, count, "draft")
            ]
        if not isinstance(given, tuple):
            return _of_length(check_laws(given, "draft"), count, "draft")
        score, sampling = given
        return (
            _of_length(check_laws(score, "draft"), count, "draft"),
            _of_length(check_laws(sampling, "sampling law"), count, "sampling law"),
        )

    def target_at(self, prefix: Prefix) -> Row:
        """Target law [V] at one prefix."""
        row: Row = self.targets(_alone(prefix))[0]
        return row

    def draft_at(self, prefix: Prefix) -> Row | DraftRow:
        """Draft row at one prefix."""
        given = self.drafts(_alone(prefix))
        if isinstance(given, tuple):
            return DraftRow.pair(given[0][0], given[1][0])
        first: Row | DraftRow = given[0]
        return first


@dataclass(frozen=True)
class Dials:
    """What a synthetic pair is like.

    `vocabulary` V; `overlap` in (0, 1], the mean over contexts of sum min(p, q), which is the draft's quality; `peak`
    >= 0, the exponent of the power law of both models (0: flat); `ties` (0: none), the number of equal steps to which
    probabilities are rounded, so that many are equal and the small ones are 0; `support`, the tokens that the sampling
    law keeps (0: all); `states`, the number of distinct rows, picked by a hash of the whole prefix; `seed`.
    """

    vocabulary: int = 1000
    overlap: float = 0.7
    peak: float = 1.0
    ties: int = 0
    support: int = 128
    states: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("vocabulary", 2), ("ties", 0), ("support", 0), ("states", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(name, value, f"an int of at least {least}")
        if self.vocabulary * self.states > MOST_NUMBERS:
            raise InvalidInput("states", self.states, f"at most {MOST_NUMBERS // self.vocabulary} at this vocabulary")
        if not 0 < self.overlap <= 1:
            raise InvalidInput("overlap", self.overlap, "a number in (0, 1]")
        if not 0 <= self.peak <= 20:
            raise InvalidInput("peak", self.peak, "a number in [0, 20]")


def synthetic(dials: Dials) -> TablePair:
    """A target and a draft of random power-law rows.

    The draft is (1 - w) p + w u with u an independent row of the same family, w solved for the overlap. Raises
    `InvalidInput` where that overlap cannot be reached (it is at least the overlap of two independent rows).
    """
    rng = np.random.default_rng([dials.seed, 0x5EED])
    shape = (dials.states, dials.vocabulary)
    p, other = _power_laws(rng, shape, dials.peak), _power_laws(rng, shape, dials.peak)
    distance = 1 - np.minimum(p, other).sum(axis=1).mean()
    weight = (1 - dials.overlap) / distance if distance > 0 else 0.0
    if weight > 1:
        raise InvalidInput("overlap", dials.overlap, f"at least {1 - distance:.3g} at this vocabulary and peak")
    q = (1 - weight) * p + weight * other
    if dials.ties:
        p, q = _stepped(p, dials.ties), _stepped(q, dials.ties)
    score, sampling = _normalised(q), _normalised(_supported(q, dials.support))
    return TablePair(_normalised(p), (score, sampling), hashed_states(dials.states, dials.seed))


def hashed_states(states: int, seed: int) -> Callable[[Ints], Ints]:
    """A map of whole prefixes [n, L] to 0..states-1 by a hash."""
    key = mix(np.array([seed], dtype=np.uint64))

    def state_of(prefixes: Ints) -> Ints:
        words = np.repeat(key, len(prefixes))
        for column in np.asarray(prefixes, dtype=np.int64).T:
            words = mix(words + column.astype(np.uint64) + np.uint64(1))
        return (words % np.uint64(states)).astype(np.int64)

    return state_of


def overlap(pair: TablePair) -> float:
    """Mean over the rows of sum min(p, q), the one-token acceptance of a draft drawn from its score law."""
    score = scores(pair.draft)
    if pair.ids is not None:
        spread = np.zeros((len(score), pair.target.shape[1]))
        spread[:, list(pair.ids)] = score
        score = spread
    return float(np.minimum(pair.target, score).sum(axis=1).mean())


def rows_pair(rows: Rows) -> TablePair:
    """A rows file as a table: a prefix that the file lacks is refused by name, as everywhere."""
    keys: list[Prefix] = [key for key in rows.contexts if key is not None]
    known = {key: number for number, key in enumerate(keys)}
    if None in rows.contexts:
        keys.append((-1,))

    @cache
    def number_of(prefix: Prefix) -> int:
        rows.target(prefix)
        return known.get(prefix, len(keys) - 1)

    def state_of(prefixes: Ints) -> Ints:
        distinct, inverse = np.unique(prefixes, axis=0, return_inverse=True)
        numbers = [number_of(tuple(prefix)) for prefix in distinct.tolist()]
        return np.array(numbers, dtype=np.int64)[np.reshape(inverse, -1)]

    drafts = [rows.draft(key) for key in keys]
    return TablePair(
        np.stack([_floats(rows.target(key)) for key in keys]),
        [row if isinstance(row, DraftRow) else _floats(row) for row in drafts],
        state_of,
        rows.ids,
    )


def scores(drafts: Drafts) -> Batch:
    """Score laws [n, draft V] of draft rows."""
    if isinstance(drafts, tuple):
        return drafts[0]
    return drafts if isinstance(drafts, np.ndarray) else np.stack([row.score for row in drafts])


def check_laws(values: ArrayLike, name: str) -> Batch:
    """Laws [n, V] of one float type, by the rule of `check_law`: |sum - 1| <= V * eps, entries non-negative."""
    rows = np.asarray(values)
    if rows.ndim != 2 or not rows.size or rows.dtype not in FLOATS:
        raise InvalidInput(name, f"{rows.dtype} of shape {rows.shape}", "float64, float32 or float16 rows [n, V]")
    slack = np.abs(rows.sum(axis=1, dtype=np.float64) - 1)
    border = rows.shape[1] * float(np.finfo(rows.dtype).eps)
    doubtful = ~(slack < 0.9 * border) | ~(rows >= 0).all(axis=1)
    for number in np.flatnonzero(doubtful):
        check_law(rows[number], f"{name}[{number}]")
    return rows


def _of_length(rows: T, count: int, name: str) -> T:
    if len(rows) != count:
        raise InvalidInput(name, f"{len(rows)} rows", f"{count}, one for each prefix")
    return rows


def _alone(prefix: Prefix) -> Ints:
    return np.array([prefix], dtype=np.int64).reshape(1, -1)


def _floats(row: Row) -> Row:
    return row.astype(np.float64) if row.dtype == object else row


def _power_laws(rng: np.random.Generator, shape: tuple[int, int], peak: float) -> Batch:
    """Weights rank^-peak, each with a random factor, in random places."""
    weights = np.arange(1, shape[1] + 1, dtype=np.float64) ** -peak * rng.gamma(4.0, size=shape)
    return _normalised(rng.permuted(weights, axis=1))


def _stepped(rows: Batch, steps: int) -> Batch:
    """Rows rounded to multiples of max / steps."""
    return np.asarray(np.round(rows / rows.max(axis=1, keepdims=True) * steps))


def _supported(rows: Batch, support: int) -> Batch:
    if not 0 < support < rows.shape[1]:
        return rows
    order = np.argsort(-rows, axis=1, kind="stable")
    kept = rows.copy()
    np.put_along_axis(kept, order[:, support:], 0, axis=1)
    return kept


def _normalised(rows: Batch) -> Batch:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
