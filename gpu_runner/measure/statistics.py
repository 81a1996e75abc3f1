"""Statistics of answers, the same wherever methods are compared: means, spreads, paired differences, intervals.

Questions differ far more than methods do, so a difference is taken within each question and the questions are the
units. What one question alone cannot say is NaN here, and null in a document.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from gpu_runner.measure.bench import Answer

CONFIDENCE = 0.95
Question = tuple[str, int | str]
"""A question set and the question's id in it."""


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


def answered_by_all(answers: Sequence[Answer], labels: Sequence[str]) -> dict[str, list[Answer]]:
    """The answers of each method to the questions and seeds that all of `labels` have answered, in one order."""
    by = {label: {answer.unit: answer for answer in answers if answer.rule == label} for label in labels}
    units = sorted(set.intersection(*(set(mine) for mine in by.values())), key=repr)
    return {label: [mine[unit] for unit in units] for label, mine in by.items()}


def by_question(answers: Sequence[Answer]) -> dict[Question, list[Answer]]:
    """The answers to each question, all seeds together."""
    found: dict[Question, list[Answer]] = {}
    for answer in answers:
        found.setdefault((answer.question_set, answer.question), []).append(answer)
    return found


def pooled(answers: Sequence[Answer], what: str) -> list[float]:
    """A figure of every cycle ("emitted", "accepted", "expected", "drafting", "verifying") of all answers."""
    return [value for answer in answers for value in getattr(answer, what)]


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return statistics.fmean(values) if values else None


def means_by_seed(answers: Sequence[Answer], what: str) -> dict[int, float]:
    """The mean of a figure over each seed's own cycles."""
    seeds = sorted({answer.seed for answer in answers})
    return {seed: statistics.fmean(pooled([a for a in answers if a.seed == seed], what)) for seed in seeds}


def spread(values: Iterable[float]) -> float | None:
    """The standard deviation of a sample; None of fewer than two values."""
    sample = list(values)
    return statistics.stdev(sample) if len(sample) > 1 else None


def differences(own: Sequence[Answer], base: Sequence[Answer], what: str) -> list[float]:
    """The mean of a figure beyond the base's, question by question, each question's cycles of all seeds pooled."""
    theirs = by_question(base)
    return [
        statistics.fmean(pooled(mine, what)) - statistics.fmean(pooled(theirs[question], what))
        for question, mine in by_question(own).items()
    ]


def reached_depths(accepted: Sequence[float], depth: int) -> tuple[float, ...]:
    """P(at least d drafted tokens accepted) for d = 1..depth; empty without cycles.

    >>> reached_depths([0, 2, 1, 1], 2)
    (0.75, 0.25)
    """
    return tuple(sum(n >= d for n in accepted) / len(accepted) for d in range(1, depth + 1)) if accepted else ()


def tokens_per_second(answers: Sequence[Answer]) -> float:
    """Tokens a second of some answers together, prefill included."""
    return sum(len(answer.tokens) for answer in answers) / sum(answer.seconds for answer in answers)


def speed_ups(own: Sequence[Answer], plain: Sequence[Answer]) -> dict[Question, list[float]]:
    """Ratios of tokens a second to the baseline's answer with the same seed, by question."""
    theirs = {answer.unit: answer for answer in plain}
    return {
        question: [answer.rate / theirs[answer.unit].rate for answer in mine]
        for question, mine in by_question(own).items()
    }


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
