"""Figures of a benchmark: tau, its spread and paired differences, acceptance by depth, speed.

Differences between methods are paired within questions: the questions differ far more than the methods do. The interval
is Student's over the questions' own differences.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpu_runner.decode.methods import AUTOREGRESSIVE, BASELINE, BenchMethod
from gpu_runner.measure.bench import Answer
from gpu_runner.measure.statistics import (
    Interval,
    answered_by_all,
    differences,
    finite,
    interval,
    mean,
    means_by_seed,
    median,
    pooled,
    reached_depths,
    speed_ups,
    spread,
    tokens_per_second,
)


@dataclass(frozen=True)
class Figures:
    """One method's figures.

    `tau` pools all cycles (emitted / cycles), `tau_std` is over the seeds' own tau, `expected_tau` the mean expected
    number given the trees. `difference` (counted) and `expected_difference` are to top-k, paired within questions.
    `by_depth[d-1]` = P(at least d drafted tokens accepted). Latencies are medians in seconds.
    """

    method: str
    answers: int
    cycles: int
    tokens: int
    tau: float
    tau_std: float | None
    expected_tau: float | None
    difference: Interval | None
    expected_difference: Interval | None
    by_depth: tuple[float, ...]
    tokens_per_second: float
    speed_up: Interval | None
    drafting: float | None
    verifying: float | None

    def document(self) -> dict[str, Any]:
        """JSON-ready; what is not a number is null."""
        return finite(asdict(self))


def figures(found: Sequence[Answer], methods: Sequence[BenchMethod]) -> list[Figures]:
    """The figures of every method, over the questions and seeds that all of them have answered."""
    by_method = answered_by_all(found, [method.label for method in methods])
    return [_figures(method, by_method) for method in methods if by_method[method.label]]


def _figures(method: BenchMethod, by_method: dict[str, list[Answer]]) -> Figures:
    own, label = by_method[method.label], method.label
    emitted, expected = pooled(own, "emitted"), pooled(own, "expected")
    baseline = by_method.get(BASELINE) if label not in (BASELINE, AUTOREGRESSIVE) else None
    plain = by_method.get(AUTOREGRESSIVE) if label != AUTOREGRESSIVE else None
    ratios = [ratio for each in speed_ups(own, plain).values() for ratio in each] if plain else []
    return Figures(
        method=label,
        answers=len(own),
        cycles=len(emitted),
        tokens=sum(len(answer.tokens) for answer in own),
        tau=statistics.fmean(emitted),
        tau_std=spread(means_by_seed(own, "emitted").values()),
        expected_tau=mean(expected),
        difference=interval(differences(own, baseline, "emitted")) if baseline else None,
        expected_difference=interval(differences(own, baseline, "expected")) if baseline and expected else None,
        by_depth=reached_depths(pooled(own, "accepted"), method.shape.depth),
        tokens_per_second=tokens_per_second(own),
        speed_up=interval(ratios) if ratios else None,
        drafting=median(pooled(own, "drafting")),
        verifying=median(pooled(own, "verifying")),
    )
