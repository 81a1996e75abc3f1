"""Mean paired differences with their confidence intervals, the same wherever methods are compared.

Questions differ far more than methods do, so a difference is taken within each question and the questions are the
units. What one question alone cannot say is NaN here, and null in a document.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean of paired differences and its confidence interval; NaN bounds where one pair gives none."""

    mean: float
    low: float
    high: float


def interval(values: Sequence[float]) -> Interval:
    """Mean and Student's interval of `values`, of which there are some."""
    return _added([values])


def stratified(groups: Sequence[Sequence[float]]) -> Interval | None:
    """The mean of the groups' means and its interval: variances of the groups added up, Welch's degrees of freedom.

    One group gives Student's interval; None where a group is empty, NaN bounds where one has a single value.

    >>> found = stratified([[1.0, 3.0], [5.0, 5.0]])
    >>> found.mean, round(found.low, 3), round(found.high, 3)
    (3.5, -2.853, 9.853)
    """
    return _added(groups) if all(groups) else None


def _added(groups: Sequence[Sequence[float]]) -> Interval:
    mean = statistics.fmean(statistics.fmean(group) for group in groups)
    if min(len(group) for group in groups) < 2:
        return Interval(mean, math.nan, math.nan)
    variances = [statistics.variance(group) / len(group) for group in groups]
    total = sum(variances)
    if total == 0:
        return Interval(mean, mean, mean)
    freedom = total**2 / sum(v**2 / (len(group) - 1) for v, group in zip(variances, groups, strict=True))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(total) / len(groups)
    return Interval(mean, mean - half, mean + half)


def deviation(variance: float, jump: float) -> float:
    """How far a sum of steps with mean 0 strays at most, with probability 0.95, however few or skewed the steps are.

    `variance` bounds the sum of the steps' variances given all before each, `jump` every step's size. Freedman's
    inequality: |sum| >= x with probability at most 2 exp(-x^2 / (2 (variance + jump x / 3))), solved for x.

    >>> round(deviation(100.0, 1.0), 2), round(deviation(0.1, 1.0), 2)
    (28.42, 2.73)
    """
    log = math.log(2 / (1 - CONFIDENCE))
    third = log * jump / 3
    return third + math.sqrt(third**2 + 2 * log * variance)


def median(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return statistics.median(values) if values else None


def finite(figures: dict[str, Any]) -> dict[str, Any]:
    """Figures for a JSON document: what is not a finite number is null.

    >>> finite({"difference": {"mean": 0.5, "low": math.nan}})
    {'difference': {'mean': 0.5, 'low': None}}
    """
    return {key: _finite(value) for key, value in figures.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return finite(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
