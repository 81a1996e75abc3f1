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
from gpu_runner.measure import statistics as stats
from gpu_runner.measure.bench import Answer


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
    difference: stats.Interval | None
    expected_difference: stats.Interval | None
    by_depth: tuple[float, ...]
    tokens_per_second: float
    speed_up: stats.Interval | None
    drafting: float | None
    verifying: float | None

    def document(self) -> dict[str, Any]:
        """JSON-ready; what is not a number is null."""
        return stats.finite(asdict(self))


def figures(found: Sequence[Answer], methods: Sequence[BenchMethod]) -> list[Figures]:
    """The figures of every method, over the questions and seeds that all of them have answered."""
    by_method = stats.answered_by_all(found, [method.label for method in methods])
    return [_figures(method, by_method) for method in methods if by_method[method.label]]


def _figures(method: BenchMethod, by_method: dict[str, list[Answer]]) -> Figures:
    own, label = by_method[method.label], method.label
    emitted, expected = stats.pooled(own, "emitted"), stats.pooled(own, "expected")
    baseline = by_method.get(BASELINE) if label not in (BASELINE, AUTOREGRESSIVE) else None
    plain = by_method.get(AUTOREGRESSIVE) if label != AUTOREGRESSIVE else None
    ratios = [ratio for each in stats.speed_ups(own, plain).values() for ratio in each] if plain else []
    beyond = stats.differences(own, baseline, "expected") if baseline and expected else []
    return Figures(
        method=label,
        answers=len(own),
        cycles=len(emitted),
        tokens=sum(len(answer.tokens) for answer in own),
        tau=statistics.fmean(emitted),
        tau_std=stats.spread(stats.means_by_seed(own, "emitted").values()),
        expected_tau=stats.mean(expected),
        difference=stats.interval(stats.differences(own, baseline, "emitted")) if baseline else None,
        expected_difference=stats.interval(beyond) if beyond else None,
        by_depth=stats.reached_depths(stats.pooled(own, "accepted"), method.shape.depth),
        tokens_per_second=stats.tokens_per_second(own),
        speed_up=stats.interval(ratios) if ratios else None,
        drafting=stats.median(stats.pooled(own, "drafting")),
        verifying=stats.median(stats.pooled(own, "verifying")),
    )
