"""Betting against a claim: if it is true, no strategy can expect to gain.

Under losslessness f(token) - E_p f has mean 0 given the past, whatever the past, so 1 + b (f - E_p f) is the gain of a
fair bet. Wealth over many bets of fixed sizes is averaged: the average is a martingale of mean 1, and by Ville's
inequality it ever exceeds 1/a with probability at most a, however often it is looked at.

Where rows are only nearly right, within `tolerance` in total variation, E f can be off by `tolerance` times the range
of f; each bet pays that much beforehand, and so is at best fair under every law within it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from montecarlo.pairs import Ints

Floats = NDArray[np.float64]

SIZES = np.array([2.0**-k for k in range(1, 9)])
"""Bet sizes b; both signs are played. At most 1/2: the rest is kept in cash, so that no token costs more than half."""

BETS = np.concatenate([SIZES, -SIZES])

BLOCK = 32
"""Factors that are multiplied before a logarithm is taken: neither 1/2 nor half of functions.RATIO leaves float64."""


class Wealth:
    """The wealth of bets on J functions, over all tokens and over each of S strata, at every bet size.

    `one_sided` [J]: functions whose excess is only bounded below by -1, on which only b > 0 is played; `shares` [J] of
    the initial wealth (None: equal). Half of it is put on all tokens, half is spread over the strata. `ranges` [J] of
    the functions matter where there is a `tolerance`.
    """

    def __init__(
        self,
        strata: int,
        one_sided: NDArray[np.bool_],
        shares: Floats | None = None,
        tolerance: float = 0.0,
        ranges: Floats | None = None,
    ) -> None:
        self._playable = np.where(one_sided[:, None], BETS > 0, True)
        given = np.full(len(one_sided), 1 / len(one_sided)) if shares is None else shares
        with np.errstate(divide="ignore"):
            self._share: Floats = np.log(self._playable / self._playable.sum(axis=1, keepdims=True) * given[:, None])
        self._price = tolerance * (np.ones(len(one_sided)) if ranges is None else ranges)
        self._bets: Floats = np.where(self._playable, BETS / (1 + self._price[:, None]), 0)
        self._log: Floats = np.zeros((strata + 1, *self._share.shape))
        self._weight = np.log(np.array([0.5] + [0.5 / strata] * strata))

    def factors(self, excess: Floats, used: NDArray[np.bool_]) -> Floats:
        """Each bet's factor [n, J, B], finite and at least 1/2, for f - E f = `excess` [n, J] where f is `used`."""
        price = np.where(used, self._price, 0)
        return np.asarray(1 + (self._bets * excess[:, :, None] - np.abs(self._bets) * price[:, :, None]))

    def play(self, excess: Floats, stratum: Ints, used: NDArray[np.bool_] | None = None) -> Floats:
        """Play n tokens with f - E f = `excess` [n, J] in `stratum` [n] (-1: none); log wealth [n] after each.

        `used` [n, J]: where a function is bet on (None: everywhere); its excess is 0 elsewhere.
        """
        factors = self.factors(excess, np.full(excess.shape, True) if used is None else used)
        everywhere = np.arange(len(excess))
        wealth = np.empty((len(excess), len(self._log)))
        for number, log in enumerate(self._log):
            here = everywhere if number == 0 else np.flatnonzero(stratum == number - 1)
            known = np.empty(len(here) + 1)
            known[0] = _log_sum(log + self._share, axis=(0, 1))
            for first in range(0, len(here), BLOCK):
                path = np.multiply.accumulate(factors[here[first : first + BLOCK]], axis=0)
                logs = log + self._share
                top = logs.max()
                won = np.tensordot(path, np.exp(logs - top), axes=2)
                known[first + 1 : first + 1 + len(path)] = top + np.log(won)
                log += np.log(path[-1])
            # Between its own tokens the wealth of a stratum stays what it was.
            wealth[:, number] = known[np.searchsorted(here, everywhere, side="right")]
        return _log_sum(wealth + self._weight, axis=(1,))

    def bar(self, alarm: float) -> Floats:
        """The log wealth [J, B] at which one bet in one stratum lifts the whole above 1/alarm."""
        return np.asarray(-math.log(alarm) - self._weight[-1] - self._share)

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


def visible_excess(tokens: int, deviation: float, bar: float, share: float, miss: float = 0.01) -> float:
    """The mean excess of one function that `tokens` bets would have shown, except with probability about `miss`.

    `deviation` is the function's standard deviation under the target, `bar` the log of the wealth asked for, `share`
    the function's of the initial wealth. A bet of the best size on a mean excess d gains d^2 / (2 s^2) a token; the
    bets not of that size and the other functions cost the log of their number.
    """
    if tokens == 0:
        return math.inf
    asked = bar + math.log(2 * len(BETS) / share)
    normal = -_normal_quantile(miss)
    return deviation * (normal + math.sqrt(normal**2 + 2 * asked)) / math.sqrt(tokens)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
