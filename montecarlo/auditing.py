"""Is the engine that wrote these tokens lossless? Only its tokens and its rows are needed.

Several functions of the token are bet on at once (montecarlo/functions.py), over all tokens and by position in the
cycle. The evidence is the greatest wealth that the bets ever reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo import causes
from montecarlo.betting import Wealth, visible_excess
from montecarlo.causes import Position
from montecarlo.chunks import Chunk
from montecarlo.copies import Copies
from montecarlo.functions import (
    DIRECTIONS,
    FIRST_SIGNED,
    FUNCTIONS,
    ONE_SIDED,
    RATIO,
    SHARES,
    SIGNED_FROM,
    TOLERANT_RATIO,
    excesses,
)
from montecarlo.history import OPEN_TEXTS, TABLE
from montecarlo.patterns import Patterns
from rheo_core import InvalidInput

Floats = NDArray[np.float64]

ALARM = 1e-6
TOP = 10
PLAIN = {each.name for each in FUNCTIONS if not (each.one_sided or each.history or each.needs_draft)}
AT = [[function.name for function in FUNCTIONS].index(name) for name in DIRECTIONS]
POSITIONS = 16


NOTHING_LISTED = 0.99
"""Mean mass of tokens that rows do not list above which an audit looks at nothing."""


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
    tolerance: float = 0.0
    unlisted: float = 0.0
    copies_by_key: int = 0
    copies_by_text: int = 0
    other_texts_by_key: int = 0
    """Texts under the request and seed of an earlier one that are other texts: dropped, and no copies."""
    first_other_text: str | None = None
    first_copy: str | None = None
    repeated: int = 0
    log10_evidence_beyond_patterns: float | None = None
    points_to: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    @property
    def evidence_of_loss(self) -> bool:
        """Whether the evidence ever passed the bar, and no way of recording explains all of it."""
        return self.alarmed_at is not None and not self._explained

    @property
    def _explained(self) -> bool:
        """Whether a pattern was seen and what it cannot touch is no evidence."""
        certain = self.impossible and not self.tolerance
        beyond = (self.log10_evidence_beyond_patterns or 0.0) >= -math.log10(self.alarm)
        return bool(self.patterns) and not certain and not beyond

    @property
    def refusal(self) -> str | None:
        """Why there is no verdict, with the remedy; None where there is one."""
        if self.alarmed_at is not None and self._explained:
            return f"evidence 10^{self.log10_evidence:.1f}, but {'; '.join(self.patterns)}"
        if self.evidence_of_loss:
            return None
        if self.other_texts_by_key:
            return (
                f"{self.other_texts_by_key} texts came again under their request and seed with other tokens (the "
                f"first: {self.first_other_text}): no copies; give each request an id of its own"
            )
        if self.unlisted > NOTHING_LISTED:
            return (
                f"the rows leave {self.unlisted:.1%} to tokens that they do not list, so that nothing is told apart; "
                "list the likely ones"
            )
        if self.tokens and self.visible > 1:
            return f"{self.tokens} tokens show no bias at all, however large; record more"
        if self.copies_by_text:
            return (
                f"{self.copies_by_text} texts repeat an earlier one (the first: {self.first_copy}), which independent "
                "requests do with probability below 1e-9: recorded twice, or drawn from one stream of random numbers; "
                "record each text once, with the seed of each request"
            )
        return None

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.evidence_of_loss:
            return "evidence of loss"
        return "no loss seen" if self.refusal is None else "refused"

    @property
    def variation_at_least(self) -> float:
        """A lower bound, four standard errors in, of the mean total variation between a token's law and its row.

        A function with values in [0, 1] cannot be biased by more than that.
        """
        bounded = {function.name for function in FUNCTIONS if not function.one_sided}
        sure = [
            (abs(bias.excess) - 4 * bias.standard_error) * bias.tokens / self.tokens
            for bias in self.biases
            if bias.name in bounded
        ]
        return max(0.0, *sure) if sure else 0.0

    @property
    def visible(self) -> float:
        """The bias of any one function of the token's place in its row that would have been seen (99 %)."""
        return max((bias.visible for bias in self.biases if bias.name in PLAIN), default=math.inf)

    def tokens_needed(self, bias: float) -> int | None:
        """Tokens like these with which a bias of that size is seen (99 %); None where the tolerance covers it."""
        over = bias - self.tolerance
        if over <= 0 or math.isinf(self.visible):
            return None
        return math.ceil(self.tokens * ((self.visible - self.tolerance) / over) ** 2)

    @property
    def leading(self) -> Bias:
        """The function with the most evidence."""
        return max(self.biases, key=lambda bias: bias.log10_evidence)


class _Signs:
    """Signs [n, 4] for the functions of SIGNED: of the text's last two transforms, of its log p so far, and of what the
    text before had at this place."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float, float]] = {}
        self._there = np.zeros(TABLE)

    def of(self, chunk: Chunk, values: Floats) -> Floats:
        """Signs for the excesses `values` [n, 4] of SIGNED, each known before its own token."""
        signs = np.zeros((len(chunk), 4))
        if chunk.past is None:
            return signs
        for i, (text, place, own) in enumerate(
            zip(chunk.past.text.tolist(), chunk.past.place.tolist(), values.tolist(), strict=True)
        ):
            last = self._last.pop(text, (0.0, 0.0, 0.0))
            signs[i] = *last, self._there[place % TABLE]
            self._last[text] = own[0], own[1], last[2] + own[2]
            self._there[place % TABLE] = own[1]
            if len(self._last) > OPEN_TEXTS:
                del self._last[next(iter(self._last))]
        return np.sign(signs)


class Audit:
    """A running audit; memory does not grow with the number of tokens.

    `alarm`: the probability that a lossless engine ever raises an alarm, whatever is looked at and when; `seed`: of the
    randomised transform, which must not depend on the tokens; `positions` in the cycle are told apart, later ones not.
    `tolerance`: each token's law may be off its row by that much in total variation, as rounding makes it. `patterns`:
    look for ways of recording that make a lossless engine look lossy (montecarlo/patterns.py).
    """

    def __init__(
        self,
        alarm: float = ALARM,
        seed: int = 0,
        positions: int = POSITIONS,
        tolerance: float = 0.0,
        patterns: bool = True,
    ) -> None:
        if not 0 < alarm < 1:
            raise InvalidInput("false-alarm", alarm, "a number between 0 and 1")
        if type(seed) is not int or seed < 0:
            raise InvalidInput("seed", seed, "an int of at least 0")
        if not 0 <= tolerance < 1:
            raise InvalidInput("tolerance", tolerance, "a total variation in [0, 1)")
        self.alarm = alarm
        self.positions = positions
        self.tolerance = tolerance
        self._rng = np.random.default_rng([seed, 0xA0D17])
        self._ratio = TOLERANT_RATIO if tolerance else RATIO
        strata = positions + 1  # the last one: position 0 after a rejection
        self._wealth = Wealth(strata, ONE_SIDED, SHARES, tolerance, np.where(ONE_SIDED, self._ratio, 1))
        self._signs = _Signs()
        self._patterns = Patterns(strata, tolerance) if patterns else None
        self._copies: Copies | None = None
        shape = (strata + 1, len(FUNCTIONS))
        self._excess, self._variance, self._used = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=np.int64)
        self._covariance = np.zeros((len(DIRECTIONS), len(DIRECTIONS)))
        self._unlisted = 0.0
        self.tokens = 0
        self.with_draft = 0
        self.log_wealth = 0.0  # as it stands; `log_evidence` is the highest that it ever was
        self.log_evidence = 0.0
        self.alarmed_at: str | None = None
        self.impossible = 0
        self.first_impossible: str | None = None

    def update(self, chunk: Chunk) -> None:
        """Play one chunk of records."""
        index = np.arange(len(chunk))
        possible = chunk.p[index, chunk.cell] > 0
        for i in np.flatnonzero(~possible).tolist():
            self.impossible += 1
            self.first_impossible = self.first_impossible or chunk.where[i]
        v = self._rng.random(len(chunk))
        found = excesses(chunk, v, self._ratio)
        signs = self._signs.of(chunk, found.value[:, SIGNED_FROM])
        excess, used = found.value.copy(), found.used.copy()
        excess[:, FIRST_SIGNED:] *= signs
        used[:, FIRST_SIGNED:] &= signs != 0
        stratum = np.minimum(chunk.position, self.positions - 1)
        if chunk.past is not None:
            stratum = np.where(chunk.past.after_rejection, self.positions, stratum)
        path = self._wealth.play(excess, stratum, used)
        if self._patterns is not None:
            self._patterns.update(chunk, v, stratum)
        if chunk.past is not None:
            self._copies = chunk.past.copies
        if not self.tolerance:
            path[~possible] = math.inf  # no lossless engine emits such a token
        self._note(path, chunk)
        self._sum(excess, np.where(used, found.variance, 0), used, stratum)
        self._covariance += found.covariance
        self._unlisted += float(chunk.p[index, chunk.size - 1][chunk.short].sum())
        self.tokens += len(chunk)
        self.with_draft += int(chunk.has_draft.sum())

    def _note(self, path: Floats, chunk: Chunk) -> None:
        self.log_wealth = math.inf if self.impossible and not self.tolerance else float(path[-1])
        self.log_evidence = max(self.log_evidence, float(path.max()))
        over = np.flatnonzero(path >= -math.log(self.alarm))
        if len(over) and self.alarmed_at is None:
            self.alarmed_at = chunk.where[int(over[0])]

    def _sum(self, excess: Floats, variance: Floats, used: NDArray[np.bool_], stratum: Any) -> None:
        for sums, values in ((self._excess, excess), (self._variance, variance), (self._used, used.astype(np.int64))):
            sums[0] += values.sum(axis=0)
            placed = stratum >= 0
            np.add.at(sums, 1 + stratum[placed], values[placed])

    def report(self, unused_fields: Iterable[str] = ()) -> Report:
        """What has been found so far."""
        copies, looked = self._copies or Copies(), self._patterns
        positions = tuple(self._by_position())
        directions = causes.directions(self._excess[0, AT], self._covariance, self.with_draft > 0)
        return Report(
            tokens=self.tokens,
            with_draft=self.with_draft,
            alarm=self.alarm,
            log10_evidence=self.log_evidence / math.log(10),
            alarmed_at=self.alarmed_at,
            impossible=self.impossible,
            first_impossible=self.first_impossible,
            biases=tuple(self._biases()),
            positions=positions,
            unused_fields=tuple(sorted(unused_fields)),
            tolerance=self.tolerance,
            unlisted=self._unlisted / max(self.tokens, 1),
            copies_by_key=copies.by_key,
            copies_by_text=copies.by_text,
            other_texts_by_key=copies.other,
            first_other_text=copies.first_other,
            first_copy=copies.first,
            repeated=copies.repeated,
            log10_evidence_beyond_patterns=None if looked is None else looked.log_evidence / math.log(10),
            points_to=(*causes.places(positions), *directions) if self.alarmed_at is not None else (),
            patterns=tuple(looked.seen()) if looked is not None and self.alarmed_at is not None else (),
        )

    def _biases(self) -> Iterable[Bias]:
        evidence = self._wealth.by_function() / math.log(10)
        for j, function in enumerate(FUNCTIONS):
            used = int(self._used[0, j])
            if not used:
                continue
            excess, error = self._mean(0, j)
            deviation = math.sqrt(self._variance[0, j] / used)
            visible = self.tolerance + visible_excess(used, deviation, -math.log(self.alarm), float(SHARES[j]))
            meaning = function.more if excess > 0 else function.less
            yield Bias(function.name, used, excess, error, float(evidence[j]), visible, meaning)

    def _by_position(self) -> Iterable[Position]:
        evidence = self._wealth.by_stratum() / math.log(10)
        leading = int(np.argmax(self._wealth.by_function()))
        for stratum in (0, self.positions, *range(1, self.positions)):
            used = int(self._used[stratum + 1].max())
            if used:
                excess, error = self._mean(stratum + 1, leading)
                after = stratum == self.positions
                yield Position(0 if after else stratum, used, float(evidence[stratum + 1]), excess, error, after)

    def _mean(self, row: int, j: int) -> tuple[float, float]:
        used = max(int(self._used[row, j]), 1)
        return float(self._excess[row, j]) / used, math.sqrt(float(self._variance[row, j])) / used


def audit(
    chunks: Iterable[Chunk],
    alarm: float = ALARM,
    seed: int = 0,
    progress: Callable[[int], object] = lambda done: None,
    tolerance: float = 0.0,
) -> Report:
    """Audit recorded chunks from first to last; `tolerance` as in `Audit`."""
    running = Audit(alarm, seed, tolerance=tolerance)
    for chunk in chunks:
        running.update(chunk)
        progress(running.tokens)
    return running.report()
