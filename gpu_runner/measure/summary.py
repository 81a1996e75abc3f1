"""Figures of a benchmark: tau, its spread and paired differences, acceptance by depth, speed.

Differences between methods are paired within questions: the questions differ far more than the methods do. The interval
is Student's over the questions' own differences.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpu_runner.decode.methods import AUTOREGRESSIVE, Rule
from gpu_runner.measure.bench import Answer
from gpu_runner.measure.intervals import Interval, finite, interval, median


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


def figures(found: Sequence[Answer], rules: Sequence[Rule]) -> list[Figures]:
    """The figures of every rule, over the questions and seeds that all rules have answered."""
    units = set.intersection(*({a.unit for a in found if a.rule == rule.label} for rule in rules))
    kept = [answer for answer in found if answer.unit in units]
    by_rule = {rule.label: [answer for answer in kept if answer.rule == rule.label] for rule in rules}
    return [_figures(rule, by_rule) for rule in rules if by_rule[rule.label]]


def _figures(rule: Rule, by_rule: dict[str, list[Answer]]) -> Figures:
    own, label = by_rule[rule.label], rule.label
    emitted = [n for answer in own for n in answer.emitted]
    accepted = [n for answer in own for n in answer.accepted]
    expected = [n for answer in own for n in answer.expected]
    seeds = sorted({answer.seed for answer in own})
    per_seed = [_tau([answer for answer in own if answer.seed == seed]) for seed in seeds]
    baseline = by_rule.get("top-k") if label not in ("top-k", AUTOREGRESSIVE) else None
    plain = by_rule.get(AUTOREGRESSIVE) if label != AUTOREGRESSIVE else None
    speed = [a.rate / b.rate for a, b in zip(own, plain, strict=True)] if plain else []
    return Figures(
        method=label,
        answers=len(own),
        cycles=len(emitted),
        tokens=sum(emitted),
        tau=_tau(own),
        tau_std=statistics.stdev(per_seed) if len(per_seed) > 1 else None,
        expected_tau=statistics.fmean(expected) if expected else None,
        difference=_paired(own, baseline, "emitted") if baseline else None,
        expected_difference=_paired(own, baseline, "expected") if baseline and expected else None,
        by_depth=tuple(sum(n >= depth for n in accepted) / len(accepted) for depth in range(1, rule.shape.depth + 1))
        if accepted
        else (),
        tokens_per_second=sum(emitted) / sum(answer.seconds for answer in own),
        speed_up=interval(speed) if speed else None,
        drafting=median([seconds for answer in own for seconds in answer.drafting]),
        verifying=median([seconds for answer in own for seconds in answer.verifying]),
    )


def _tau(answers: Sequence[Answer]) -> float:
    return sum(sum(a.emitted) for a in answers) / sum(len(a.emitted) for a in answers)


def _paired(own: Sequence[Answer], other: Sequence[Answer], what: str) -> Interval:
    """Differences question by question, each question's cycles of all seeds pooled."""
    first, second = by_question(own, what), by_question(other, what)
    return interval([first[question] - second[question] for question in first])


def by_question(answers: Sequence[Answer], what: str) -> dict[tuple[str, int | str], float]:
    """The mean of a figure of the cycles ("emitted", "accepted", "expected") of each question, all seeds pooled."""
    pooled: dict[tuple[str, int | str], list[float]] = {}
    for answer in answers:
        pooled.setdefault((answer.question_set, answer.question), []).extend(getattr(answer, what))
    return {question: statistics.fmean(values) for question, values in pooled.items()}
