"""Betting against a claim: if it is true, no strategy can expect to gain.

Under losslessness f(token) - E_p f has mean 0 given the past, whatever the past, so 1 + b (f - E_p f) is the gain of a
fair bet. Wealth over many bets of fixed sizes is averaged: the average is a martingale of mean 1, and by Ville's
inequality it ever exceeds 1/a with probability at most a, however often it is looked at.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from montecarlo.pairs import Ints

Floats = NDArray[np.float64]

SIZES = np.array([2.0**-k for k in range(8)]) * 0.9
"""Bet sizes b; both signs are played. Below 1, so that wealth stays positive."""

BETS = np.concatenate([SIZES, -SIZES])


class Wealth:
    """The wealth of bets on J functions, over all tokens and over each of S strata, at every bet size.

    `one_sided` [J]: functions whose excess is only bounded below by -1, on which only b > 0 is played. Half of the
    initial wealth is put on all tokens, half is spread over the strata.
    """

    def __init__(self, strata: int, one_sided: NDArray[np.bool_]) -> None:
        self._playable = np.where(one_sided[:, None], BETS > 0, True)
        with np.errstate(divide="ignore"):
            self._share: Floats = np.log(self._playable / self._playable.sum(axis=1, keepdims=True) / len(one_sided))
        self._log: Floats = np.zeros((strata + 1, *self._share.shape))
        self._weight = np.log(np.array([0.5] + [0.5 / strata] * strata))

    def play(self, excess: Floats, stratum: Ints) -> Floats:
        """Play n tokens with f - E f = `excess` [n, J] in `stratum` [n] (-1: none); log wealth [n] after each."""
        gain = np.log1p(np.where(self._playable, BETS * excess[:, :, None], 0))
        wealth = np.empty((len(excess), len(self._log)))
        for number, log in enumerate(self._log):
            before = _log_sum(log + self._share, axis=(0, 1))
            here = np.arange(len(excess)) if number == 0 else np.flatnonzero(stratum == number - 1)
            path = log + np.add.accumulate(gain[here], axis=0)
            if len(here):
                self._log[number] = path[-1]
            known = np.concatenate([before[None], _log_sum(path + self._share, axis=(1, 2))])
            # Between its own tokens the wealth of a stratum stays what it was.
            wealth[:, number] = known[np.searchsorted(here, np.arange(len(excess)), side="right")]
        return _log_sum(wealth + self._weight, axis=(1,))

    def by_function(self) -> Floats:
        """Log of the wealth [J] that each function's bets have made of a unit put on it alone."""
        weight = self._weight[:, None, None] + self._share
        return _log_sum(self._log + weight, axis=(0, 2)) - _log_sum(weight, axis=(0, 2))

    def by_stratum(self) -> Floats:
        """Log of the wealth [S + 1] that each stratum's bets have made of a unit; entry 0 is that of all tokens."""
        return _log_sum(self._log + self._share, axis=(1, 2))


def _log_sum(logs: Floats, axis: tuple[int, ...]) -> Floats:
    if not logs.size:
        return np.zeros(logs.shape[0])
    top = logs.max(axis=axis, keepdims=True)
    return np.asarray(np.log(np.exp(logs - top).sum(axis=axis)) + np.squeeze(top, axis=axis))


def visible_excess(tokens: int, deviation: float, bar: float, functions: int, miss: float = 0.01) -> float:
    """The mean excess of one function that `tokens` bets would have shown, except with probability about `miss`.

    `deviation` is the function's standard deviation under the target, `bar` the log of the wealth asked for. A bet of
    the best size on a mean excess d gains d^2 / (2 s^2) a token; the bets not of that size and the other functions
    cost the log of their number.
    """
    if tokens == 0:
        return math.inf
    asked = bar + math.log(2 * functions * len(BETS))
    normal = -_normal_quantile(miss)
    return deviation * (normal + math.sqrt(normal**2 + 2 * asked)) / math.sqrt(tokens)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
