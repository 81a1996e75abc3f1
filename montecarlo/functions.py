"""The functions of a token that an audit bets on, and what they should be on average.

A function may look at the token, its two rows and anything earlier; never at the realised tree, the coins or how this
token was emitted: an engine may well be lossless and still be biased given those. The tokens that a shortened row does
not list are no token: where functions order tokens, they come last or are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from montecarlo.chunks import Chunk
from montecarlo.history import Guesses

Floats = NDArray[np.float64]

LOG_RANGE = 20.0
"""log p is counted from 0 down to -LOG_RANGE and scaled to [0, 1]."""

RATIO = 1e6
TOLERANT_RATIO = 4.0
LATER_RATIO = 8.0
"""q / p is counted up to here, so that no token wins more; less where the rows are only nearly right."""


@dataclass(frozen=True)
class Function:
    """A function of the token with values in [0, 1]: what a positive and a negative bias mean."""

    name: str
    more: str
    less: str
    needs_draft: bool = False
    one_sided: bool = False
    history: bool = False


def _often(name: str, what: str, *, draft: bool = False, history: bool = False) -> Function:
    return Function(name, f"{what} emitted too often", f"{what} emitted too seldom", draft, history=history)


_LEAN = "the tokens lean towards the draft's law"

FUNCTIONS = (
    _often("target's top-1", "the target's best token is"),
    Function("log p", "likely tokens are emitted too often", "unlikely tokens are emitted too often"),
    Function("rank under p", "low-ranked tokens are emitted too often", "high-ranked tokens are emitted too often"),
    Function("transform", "tokens late in the target's order are too frequent", "tokens early in it are too frequent"),
    Function("transform, folded", "the ends of the target's order are too frequent", "its middle is too frequent"),
    Function("transform by id", "tokens of high id are emitted too often", "tokens of low id are emitted too often"),
    _often("not listed", "tokens that the rows do not list are"),
    _often("draft's top-1", "the draft's best token is", draft=True),
    _often("draft's top-K", "the draft's best tokens are", draft=True),
    Function("log q", "tokens likely under the draft are too frequent", "unlikely ones are too frequent", True),
    Function("q / (p + q)", _LEAN, "the tokens lean away from the draft's law", True),
    Function("q / p", _LEAN, "", True, True),
    _often(Guesses.NAMES[0], "the last token is again", history=True),
    *(_often(name, "what followed the same tokens is again", history=True) for name in Guesses.NAMES[1:-2]),
    _often(Guesses.NAMES[-2], "what followed the same text is again", history=True),
    _often(Guesses.NAMES[-1], "the token of the text before, at the same place, is", history=True),
    _often("recent", "tokens of the last few are", history=True),
    _often("one token later", "tokens of the next row are", history=True),
    Function("transform, serial", "tokens follow one another in rank", "ranks alternate", history=True),
    Function("transform by id, serial", "tokens follow one another in id", "ids alternate", history=True),
    Function("log p, drift", "texts keep to likely or unlikely tokens", "texts make up for it", history=True),
    Function("transform by id, same place", "texts go along with one another", "texts avoid one another", history=True),
)

SIGNED = ("transform", "transform by id", "log p", "transform by id")
"""The functions that the last four of FUNCTIONS play with a sign from earlier tokens."""

_NAMES = [function.name for function in FUNCTIONS]
SIGNED_FROM = [_NAMES.index(name) for name in SIGNED]
FIRST_SIGNED = len(FUNCTIONS) - len(SIGNED)

DIRECTIONS = ("log p", "not listed", "q / (p + q)", "one token later")
"""The functions whose biases are told from one another (montecarlo/causes.py)."""

HISTORY_SHARE = 0.25
HISTORY = np.array([function.history for function in FUNCTIONS])
SHARES: Floats = np.where(HISTORY, HISTORY_SHARE / HISTORY.sum(), (1 - HISTORY_SHARE) / (~HISTORY).sum())
"""The share of the initial wealth that each function is given."""

ONE_SIDED = np.array([function.one_sided for function in FUNCTIONS])
NEEDS_DRAFT = np.array([function.needs_draft for function in FUNCTIONS])


@dataclass(frozen=True)
class Excess:
    """f(token) - E_p f, Var_p f, and whether f could be used, each [n, J] for FUNCTIONS; 0 where it could not.

    The last four columns hold the functions of SIGNED still without their signs. `covariance` [4, 4] is that of the
    functions of DIRECTIONS under the rows, summed over the tokens.
    """

    value: Floats
    variance: Floats
    used: NDArray[np.bool_]
    covariance: Floats


def excesses(chunk: Chunk, v: Floats, ratio_most: float = RATIO) -> Excess:
    """The excesses of a chunk's tokens; `v` [n] are the uniform numbers of the randomised transform."""
    p, q = chunk.p, chunk.q
    index, columns = np.arange(len(chunk)), np.arange(p.shape[1])
    own = p[index, chunk.cell]
    short = chunk.short
    rest = np.where(short, chunk.size - 1, -1)
    listed = (columns < chunk.size[:, None]) & (columns != rest[:, None])
    left = np.where(short, p[index, rest], 0)
    heard = chunk.cell != rest  # the token is a listed one
    known = np.where(listed, p, 0)
    mass = np.where(short, known.sum(axis=1), 1)

    ahead = known > own[:, None]
    before = ahead | ((known == own[:, None]) & (columns < chunk.cell[:, None]) & listed)
    place = np.where(heard, before.sum(axis=1), chunk.size - 1)
    by_rank = np.log1p(columns) * (1 / np.log1p(np.maximum(chunk.size, 2)))[:, None]
    sorted_p = -np.sort(-known, axis=1)
    sorted_p[index[short], rest[short]] = left[short]
    lower = columns < chunk.cell[:, None] if chunk.ids is None else chunk.ids < chunk.token[:, None]

    def transform(earlier: NDArray[np.bool_]) -> Floats:
        below = (known * earlier).sum(axis=1) + v * own
        return np.where(heard, np.clip(below / np.where(mass > 0, mass, 1), 0, 1), 0.5)

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # An unlisted token is at most as likely as the rest, and counts as at most as likely as any listed one.
        rarest = np.minimum(left, np.where(listed, p, np.inf).min(axis=1))
        cell_p = np.where(columns == rest[:, None], rarest[:, None], p)
        log_p = np.clip(1 + np.log(cell_p) / LOG_RANGE, 0, 1)
        log_q = np.clip(1 + np.log(q) / LOG_RANGE, 0, 1)
        lean = np.where(q > 0, q / (p + q), 0)
        later = np.zeros_like(p) if chunk.past is None else chunk.past.later
        next_row = np.minimum(np.where((known > 0) & (later > 0), later / p, 0), LATER_RATIO) / LATER_RATIO
        ratio = np.minimum(np.where((p > 0) | (ratio_most < RATIO), q / p, 0), ratio_most)
        ratio = np.where(q > 0, ratio, 0)

    def marks(cells: NDArray[np.int64]) -> Floats:
        """1 at the given cells [n, k], -1 being none."""
        table = np.zeros_like(p)
        rows, _ = np.nonzero(cells >= 0)
        table[rows, cells[cells >= 0]] = 1
        return table

    def of_cell(values: Floats) -> tuple[Floats, Floats]:
        mean = (p * values).sum(axis=1)
        return values[index, chunk.cell] - mean, (p * values**2).sum(axis=1) - mean**2

    mean_rank = (sorted_p * by_rank).sum(axis=1)
    rank = by_rank[index, place] - mean_rank, (sorted_p * by_rank**2).sum(axis=1) - mean_rank**2
    u, by_id, uniform = transform(before), transform(lower & listed), mass / 12
    guesses = np.full((len(chunk), len(Guesses.NAMES)), -1) if chunk.past is None else chunk.past.guesses
    recent = np.zeros_like(p) if chunk.past is None else chunk.past.recent
    best = chunk.best
    folded = np.where(heard, np.abs(2 * u - 1) - 0.5, 0)
    tables = [
        of_cell(marks(known.argmax(axis=1)[:, None])),
        of_cell(log_p),
        rank,
        (u - 0.5, uniform),
        (folded, uniform),
        (by_id - 0.5, uniform),
        (~heard - left, left * (1 - left)),
        *(of_cell(values) for values in (marks(best[:, :1]), marks(best), log_q, lean)),
        (ratio[index, chunk.cell] - 1, (p * ratio**2).sum(axis=1) - 1),
        *(of_cell(marks(guesses[:, [j]])) for j in range(guesses.shape[1])),
        of_cell(recent.astype(np.float64)),
        of_cell(next_row),
    ]
    tables += [tables[j] for j in SIGNED_FROM]
    value, variance = (np.stack(part, axis=1) for part in zip(*tables, strict=True))
    used = ~NEEDS_DRAFT | chunk.has_draft[:, None]
    used[:, _NAMES.index("not listed")] = short
    used[:, FIRST_SIGNED - 1] = later.any(axis=1)
    used[:, FIRST_SIGNED - 2] = recent.any(axis=1)
    used[:, FIRST_SIGNED - 2 - guesses.shape[1] : FIRST_SIGNED - 2] = guesses >= 0
    at = [_NAMES.index(name) for name in DIRECTIONS]
    apart = [
        (each - (p * each).sum(axis=1, keepdims=True)) * used[:, [j]]
        for each, j in zip((log_p, (columns == rest[:, None]) * 1.0, lean, next_row), at, strict=True)
    ]
    covariance = np.array([[float((p * one * other).sum()) for other in apart] for one in apart])
    return Excess(np.where(used, value, 0), np.where(used, np.maximum(variance, 0), 0), used, covariance)
