"""How many recorded tokens an audit needs, where the law of the tokens is known.

The wealth of one bet is a sum of independent logs, so its law after n tokens is nearly normal with a mean and a
variance that are computed exactly; the best single bet gives a lower bound for the whole audit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from montecarlo.auditing import ALARM, POSITIONS, TOP
from montecarlo.betting import Floats, Wealth
from montecarlo.chunks import Chunk
from montecarlo.functions import HISTORY, ONE_SIDED, RATIO, SHARES, TOLERANT_RATIO, excesses
from rheo_core import InvalidInput

GRID = 64
"""Points at which the uniform number of the randomised transform is averaged."""


@dataclass(frozen=True)
class EvidenceGrowth:
    """Mean and deviation of the log wealth that a token gains, for each function and bet [J, B], and the bar [J, B].

    The bar is the log wealth at which a unit shared among all bets passes 1/alarm by this bet alone.
    """

    mean: Floats
    deviation: Floats
    bar: Floats

    def power(self, tokens: int) -> float:
        """Probability, nearly a lower bound, that the audit raises its alarm within `tokens` tokens."""
        if tokens < 1:
            raise InvalidInput("tokens", tokens, "an int of at least 1")
        margin = tokens * self.mean - self.bar
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(self.deviation > 0, margin / (math.sqrt(tokens) * self.deviation), np.sign(margin) * 40)
        return NormalDist().cdf(float(np.nanmax(scores)))

    def needed(self, miss: float) -> float:
        """Tokens within which the alarm is raised except with probability `miss`; inf where no bet gains."""
        z = -NormalDist().inv_cdf(miss)
        gains = self.mean > 1e-12
        if not gains.any():
            return math.inf
        mean, spread, bar = self.mean[gains], z * self.deviation[gains], self.bar[gains]
        return float(((spread + np.sqrt(spread**2 + 4 * mean * bar)) ** 2 / (4 * mean**2)).min())


def growth(
    law: ArrayLike, p: ArrayLike, q: ArrayLike, *, alarm: float = ALARM, top: int = TOP, tolerance: float = 0.0
) -> EvidenceGrowth:
    """What bets gain on tokens of law `law` [V] that are recorded beside target `p` [V] and draft `q` [V].

    The tokens are those of one position in the cycle, so that the bets of that position count and no others; nor do
    those that look at earlier tokens.
    """
    real, target, draft = (np.asarray(row, dtype=np.float64) for row in (law, p, q))
    tokens = np.flatnonzero(real > 0)
    if (target[tokens] == 0).any():
        raise InvalidInput("law", real.tolist(), "no mass on tokens of probability 0: the first of them settles it")
    count = len(tokens)
    best = np.argsort(-draft, kind="stable")[:top]
    chunk = Chunk(
        p=np.tile(target, (count, 1)),
        q=np.tile(draft, (count, 1)),
        cell=tokens,
        size=np.full(count, len(target)),
        best=np.tile(best, (count, 1)),
        has_draft=np.full(count, True),
        position=np.zeros(count, dtype=np.int64),
        where=[""] * count,
    )
    ratio = TOLERANT_RATIO if tolerance else RATIO
    wealth = Wealth(POSITIONS + 1, ONE_SIDED, SHARES, tolerance, np.where(ONE_SIDED, ratio, 1))
    first, second = np.zeros(wealth.bar(alarm).shape), np.zeros(wealth.bar(alarm).shape)
    for point in range(GRID):
        found = excesses(chunk, np.full(count, (point + 0.5) / GRID), ratio)
        played = found.used & ~HISTORY
        gain = np.log(wealth.factors(np.where(played, found.value, 0), played))
        first += np.tensordot(real[tokens], gain, axes=1) / GRID
        second += np.tensordot(real[tokens], gain**2, axes=1) / GRID
    return EvidenceGrowth(first, np.sqrt(np.maximum(second - first**2, 0)), wealth.bar(alarm))
