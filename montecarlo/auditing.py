"""Is the engine that wrote these tokens lossless? Only its tokens and its rows are needed.

Several functions of the token are bet on at once, over all tokens and by position in the cycle. A function may look at
the token, its two rows and anything earlier; never at the realised tree, the coins or how this token was emitted: an
engine may well be lossless and still be biased given those.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.betting import Wealth, visible_excess
from montecarlo.chunks import Chunk
from rheo_core import InvalidInput

Floats = NDArray[np.float64]

ALARM = 1e-6
TOP = 10
POSITIONS = 16
LOG_RANGE = 20.0
"""log p is counted from 0 down to -LOG_RANGE and scaled to [0, 1]."""


@dataclass(frozen=True)
class Function:
    """A function of the token with values in [0, 1]: what a positive and a negative bias mean."""

    name: str
    more: str
    less: str
    needs_draft: bool = False
    one_sided: bool = False


FUNCTIONS = (
    Function(
        "target's top-1",
        "the target's best token is emitted too often",
        "the target's best token is emitted too seldom",
    ),
    Function("log p", "likely tokens are emitted too often", "unlikely tokens are emitted too often"),
    Function("rank under p", "low-ranked tokens are emitted too often", "high-ranked tokens are emitted too often"),
    Function(
        "transform",
        "tokens late in the target's order are emitted too often",
        "tokens early in the target's order are emitted too often",
    ),
    Function(
        "transform, folded",
        "the ends of the target's order are emitted too often",
        "the middle of the target's order is emitted too often",
    ),
    Function("transform by id", "tokens of high id are emitted too often", "tokens of low id are emitted too often"),
    Function(
        "draft's top-1",
        "the draft's best token is emitted too often",
        "the draft's best token is emitted too seldom",
        True,
    ),
    Function(
        "draft's top-K",
        "the draft's best tokens are emitted too often",
        "the draft's best tokens are emitted too seldom",
        True,
    ),
    Function(
        "log q",
        "tokens likely under the draft are emitted too often",
        "tokens unlikely under the draft are emitted too often",
        True,
    ),
    Function(
        "q / (p + q)", "the tokens lean towards the draft's law", "the tokens lean away from the draft's law", True
    ),
    Function("q / p", "the tokens lean towards the draft's law", "", True, True),
)


def excesses(chunk: Chunk, v: Floats) -> tuple[Floats, Floats]:
    """f(token) - E_p f and Var_p f [n, J] for each of FUNCTIONS; 0 where a function needs a draft row that is absent.

    `v` [n] are the uniform numbers of the randomised transform.
    """
    p, q = chunk.p, chunk.q
    index = np.arange(len(chunk))
    columns = np.arange(p.shape[1])
    own = p[index, chunk.cell][:, None]
    before = (p > own) | ((p == own) & (columns < chunk.cell[:, None]))
    place = before.sum(axis=1)
    u = np.clip((p * before).sum(axis=1) + v * own[:, 0], 0, 1)
    scale = 1 / np.log1p(np.maximum(chunk.size, 2))
    by_rank = np.log1p(columns) * scale[:, None]
    sorted_p = -np.sort(-p, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = np.clip(1 + np.log(p) / LOG_RANGE, 0, 1)
        log_q = np.clip(1 + np.log(q) / LOG_RANGE, 0, 1)
        lean = np.where(q > 0, q / (p + q), 0)
        ratio = np.where(p > 0, q / p, 0)
    top = np.zeros_like(p)
    top[index, p.argmax(axis=1)] = 1
    listed = chunk.best >= 0
    best, first = np.zeros_like(p), np.zeros_like(p)
    rows, _ = np.nonzero(listed)
    best[rows, chunk.best[listed]] = 1
    has_first = np.flatnonzero(listed[:, 0])
    first[has_first, chunk.best[has_first, 0]] = 1

    def of_cell(values: Floats) -> tuple[Floats, Floats, Floats]:
        return values[index, chunk.cell], (p * values).sum(axis=1), (p * values**2).sum(axis=1)

    by_id = np.clip((p * (columns < chunk.cell[:, None])).sum(axis=1) + v * own[:, 0], 0, 1)
    uniform = np.full(len(chunk), 0.5), np.full(len(chunk), 1 / 3)
    tables = [
        of_cell(top),
        of_cell(log_p),
        (by_rank[index, place], (sorted_p * by_rank).sum(axis=1), (sorted_p * by_rank**2).sum(axis=1)),
        (u, *uniform),
        (np.abs(2 * u - 1), *uniform),
        (by_id, *uniform),
        *(of_cell(values) for values in (first, best, log_q, lean)),
    ]
    value, mean, square = (np.stack(part, axis=1) for part in zip(*tables, strict=True))
    excess = np.concatenate([value - mean, ratio[index, chunk.cell][:, None] - 1], axis=1)
    variance = np.concatenate([square - mean**2, ((p * ratio**2).sum(axis=1) - 1)[:, None]], axis=1)
    needs = np.array([function.needs_draft for function in FUNCTIONS])
    usable = ~needs | chunk.has_draft[:, None]
    return np.where(usable, excess, 0), np.where(usable, np.maximum(variance, 0), 0)


@dataclass(frozen=True)
class Bias:
    """The mean of f - E_p f over the tokens that a function could be used on, with its standard error under p."""

    name: str
    tokens: int
    excess: float
    standard_error: float
    log10_evidence: float
    visible: float
    meaning: str


@dataclass(frozen=True)
class Position:
    """One position in the cycle (the last one: and beyond): its evidence and the bias of the leading function there."""

    position: int
    tokens: int
    log10_evidence: float
    excess: float
    standard_error: float


@dataclass(frozen=True)
class Report:
    """What an audit found. `log10_evidence` is the greatest ever reached; the bar is -log10 of the alarm rate."""

    tokens: int
    with_draft: int
    alarm: float
    log10_evidence: float
    alarmed_at: str | None
    impossible: int
    first_impossible: str | None
    biases: tuple[Bias, ...]
    positions: tuple[Position, ...]
    unused_fields: tuple[str, ...] = ()

    @property
    def evidence_of_loss(self) -> bool:
        """Whether the evidence ever passed the bar."""
        return self.alarmed_at is not None

    @property
    def variation_at_least(self) -> float:
        """A lower bound, four standard errors in, of the mean total variation between a token's law and its row.

        A function with values in [0, 1] cannot be biased by more than that.
        """
        bounded = {function.name for function in FUNCTIONS if not function.one_sided}
        sure = [abs(bias.excess) - 4 * bias.standard_error for bias in self.biases if bias.name in bounded]
        return max(0.0, *sure) if sure else 0.0

    @property
    def leading(self) -> Bias:
        """The function with the most evidence."""
        return max(self.biases, key=lambda bias: bias.log10_evidence)


class Audit:
    """A running audit; memory does not grow with the number of tokens.

    `alarm`: the probability that a lossless engine ever raises an alarm, whatever is looked at and when; `seed`: of the
    randomised transform, which must not depend on the tokens; `positions` in the cycle are told apart, later ones not.
    """

    def __init__(self, alarm: float = ALARM, seed: int = 0, positions: int = POSITIONS) -> None:
        if not 0 < alarm < 1:
            raise InvalidInput("false-alarm", alarm, "a number between 0 and 1")
        if type(seed) is not int or seed < 0:
            raise InvalidInput("seed", seed, "an int of at least 0")
        self.alarm = alarm
        self.positions = positions
        self._rng = np.random.default_rng([seed, 0xA0D17])
        one_sided = np.array([function.one_sided for function in FUNCTIONS])
        self._wealth = Wealth(positions, one_sided)
        shape = (positions + 1, len(FUNCTIONS))
        self._excess, self._variance, self._used = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
        self.tokens = 0
        self.with_draft = 0
        self.log_wealth = 0.0  # as it stands; `log_evidence` is the highest that it ever was
        self.log_evidence = 0.0
        self.alarmed_at: str | None = None
        self.impossible = 0
        self.first_impossible: str | None = None

    def update(self, chunk: Chunk) -> None:
        """Play one chunk of records."""
        possible = (chunk.cell >= 0) & (chunk.p[np.arange(len(chunk)), chunk.cell] > 0)
        for i in np.flatnonzero(~possible).tolist():
            self.impossible += 1
            self.first_impossible = self.first_impossible or chunk.where[i]
        v = self._rng.random(len(chunk))
        excess, variance = excesses(chunk, v)
        excess[~possible], variance[~possible] = 0, 0
        stratum = np.minimum(chunk.position, self.positions - 1)
        path = self._wealth.play(excess, stratum)
        path[~possible] = math.inf
        self._note(path, chunk)
        self._sum(excess, variance, stratum, chunk)

    def _note(self, path: Floats, chunk: Chunk) -> None:
        self.log_wealth = math.inf if self.impossible else float(path[-1])
        self.log_evidence = max(self.log_evidence, float(path.max()))
        over = np.flatnonzero(path >= -math.log(self.alarm))
        if len(over) and self.alarmed_at is None:
            self.alarmed_at = chunk.where[int(over[0])]

    def _sum(self, excess: Floats, variance: Floats, stratum: Any, chunk: Chunk) -> None:
        needs = np.array([function.needs_draft for function in FUNCTIONS])
        used = (~needs | chunk.has_draft[:, None]).astype(np.int64)
        for sums, values in ((self._excess, excess), (self._variance, variance), (self._used, used)):
            sums[0] += values.sum(axis=0)
            placed = stratum >= 0
            np.add.at(sums, 1 + stratum[placed], values[placed])
        self.tokens += len(chunk)
        self.with_draft += int(chunk.has_draft.sum())

    def report(self, unused_fields: Iterable[str] = ()) -> Report:
        """What has been found so far."""
        return Report(
            tokens=self.tokens,
            with_draft=self.with_draft,
            alarm=self.alarm,
            log10_evidence=self.log_evidence / math.log(10),
            alarmed_at=self.alarmed_at,
            impossible=self.impossible,
            first_impossible=self.first_impossible,
            biases=tuple(self._biases()),
            positions=tuple(self._by_position()),
            unused_fields=tuple(sorted(unused_fields)),
        )

    def _biases(self) -> Iterable[Bias]:
        evidence = self._wealth.by_function() / math.log(10)
        for j, function in enumerate(FUNCTIONS):
            used = int(self._used[0, j])
            if not used:
                continue
            excess, error = self._mean(0, j)
            deviation = math.sqrt(self._variance[0, j] / used)
            visible = visible_excess(used, deviation, -math.log(self.alarm), len(FUNCTIONS))
            meaning = function.more if excess > 0 else function.less
            yield Bias(function.name, used, excess, error, float(evidence[j]), visible, meaning)

    def _by_position(self) -> Iterable[Position]:
        evidence = self._wealth.by_stratum() / math.log(10)
        leading = int(np.argmax(self._wealth.by_function()))
        for position in range(self.positions):
            used = int(self._used[position + 1].max())
            if used:
                excess, error = self._mean(position + 1, leading)
                yield Position(position, used, float(evidence[position + 1]), excess, error)

    def _mean(self, row: int, j: int) -> tuple[float, float]:
        used = max(int(self._used[row, j]), 1)
        return float(self._excess[row, j]) / used, math.sqrt(float(self._variance[row, j])) / used


def audit(
    chunks: Iterable[Chunk], alarm: float = ALARM, seed: int = 0, progress: Callable[[int], object] = lambda done: None
) -> Report:
    """Audit recorded chunks from first to last."""
    running = Audit(alarm, seed)
    for chunk in chunks:
        running.update(chunk)
        progress(running.tokens)
    return running.report()
