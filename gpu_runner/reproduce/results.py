"""The figures of an experiment from its lines: each method on each question set, and the average of the sets.

Only questions that every method of a cell has answered are counted, so a partial run gives a fair, smaller table. An
average weighs the sets alike, as the paper's does, and its interval adds up the sets' own variances.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from typing import Any

from gpu_runner.decode.methods import AUTOREGRESSIVE, BASELINE, BenchMethod
from gpu_runner.measure import statistics as stats
from gpu_runner.measure.bench import Answer
from gpu_runner.measure.shared_contexts import SharedAnswer
from gpu_runner.reproduce.experiments import Cell, Experiment

FEWEST = 10
"""Acceptances to expect before agreement with what was counted says anything."""


@dataclass(frozen=True)
class SharedContextAnswer:
    """A text on whose contexts all methods of a cell drafted, and where it belongs."""

    cell: str
    question_set: str
    question: int | str
    seed: int
    shared: SharedAnswer

    def given(self, count: str) -> dict[str, list[float]]:
        """By method, one row a context: what "emitted" or "accepted" is expected to be given the trees."""
        return self.shared.accepted if count == "accepted" else self.shared.expected


@dataclass(frozen=True)
class ResultRow:
    """One method of a cell on one question set; `question_set` None is the average of the sets.

    `mean` is tau, or the acceptance rate where the experiment counts accepted tokens: all cycles of the own texts
    pooled; `std` is over the seeds' own means. `given_trees` is the same expected given the trees, on the contexts that
    all methods share. Differences are to top-k, paired within questions. `by_depth[d-1]` = P(at least d drafted tokens
    accepted), counted and given the trees. `surplus` is what the own cycles emitted beyond what was expected given
    their trees: noise, with a bound valid for few acceptances too. Latencies are medians in seconds.
    """

    cell: str
    method: str
    question_set: str | None
    support: int | None
    questions: int
    answers: int
    cycles: int
    contexts: int
    mean: float | None
    std: float | None
    difference: stats.Interval | None
    surplus: stats.Interval | None
    given_trees: float | None
    given_difference: stats.Interval | None
    by_depth: tuple[float, ...]
    given_by_depth: tuple[float, ...]
    tokens_per_second: float | None
    speed_up: stats.Interval | None
    drafting: float | None
    verifying: float | None
    coverage: float | None

    def document(self) -> dict[str, Any]:
        """JSON-ready; what is not a number is null."""
        return stats.finite(asdict(self))


@dataclass
class SetStatistics:
    """One method on one set, before anything is averaged."""

    questions: set[stats.Question] = field(default_factory=set)
    answers: list[Answer] = field(default_factory=list)
    means: dict[int, float] = field(default_factory=dict)
    mean: float | None = None
    differences: list[float] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    by_depth: tuple[float, ...] = ()
    given: list[float] = field(default_factory=list)
    given_by_depth: tuple[float, ...] = ()
    given_differences: list[float] = field(default_factory=list)
    coverage: list[float] = field(default_factory=list)


def result_rows(
    experiment: Experiment, sets: Sequence[str], answers: Sequence[Answer], shared: Sequence[SharedContextAnswer]
) -> list[ResultRow]:
    """Every method of every cell: each set with anything measured, then their average where there are several."""
    found: list[ResultRow] = []
    for cell in experiment.cells:
        of_set: dict[str, dict[str, SetStatistics]] = {method.label: {} for method in cell.methods}
        for name in sets:
            own = [answer for answer in answers if (answer.cell, answer.question_set) == (cell.name, name)]
            same = [each for each in shared if (each.cell, each.question_set) == (cell.name, name)]
            for label, measured in _set_statistics(cell, own, same, experiment.count).items():
                of_set[label][name] = measured
        for method in cell.methods:
            mine = of_set[method.label]
            found += [_row(cell, method, name, [measured]) for name, measured in mine.items()]
            if len(mine) > 1:
                found.append(_row(cell, method, None, list(mine.values())))
    return found


def _set_statistics(
    cell: Cell, own: Sequence[Answer], shared: Sequence[SharedContextAnswer], count: str
) -> dict[str, SetStatistics]:
    """The statistics of all methods on one set."""
    by_label = stats.answered_by_all(own, [method.label for method in cell.methods])
    if not any(by_label.values()) and not shared:
        return {}
    found = {}
    for label, answers in by_label.items():
        measured = SetStatistics(answers=answers, questions={(each.question_set, each.question) for each in shared})
        measured.questions |= set(stats.by_question(answers))
        # the target's own token is all that the baseline emits, so a rate of accepted drafts would be 0 of nothing
        counted = count if label != AUTOREGRESSIVE else "emitted"
        measured.means = stats.means_by_seed(answers, counted)
        measured.mean = stats.mean(stats.pooled(answers, counted))
        accepted = stats.pooled(answers, "accepted")
        measured.by_depth = stats.reached_depths(accepted, int(max(accepted, default=0)))
        _add_shared(measured, shared, label, count)
        if label not in (AUTOREGRESSIVE, BASELINE):
            measured.differences = stats.differences(answers, by_label[BASELINE], count)
        if AUTOREGRESSIVE in by_label and label != AUTOREGRESSIVE:
            ratios = stats.speed_ups(answers, by_label[AUTOREGRESSIVE])
            measured.speed = [statistics.fmean(values) for values in ratios.values()]
        found[label] = measured
    return found


def _add_shared(measured: SetStatistics, shared: Sequence[SharedContextAnswer], label: str, count: str) -> None:
    """Add what is expected given the trees, on shared contexts."""
    beyond: dict[stats.Question, list[float]] = {}
    deep: list[list[float]] = []
    for each in shared:
        given = each.given(count)
        if label not in given:
            return
        measured.given += given[label]
        measured.coverage += each.shared.coverage.get(label, [])
        deep.append([len(given[label]) * value for value in each.shared.by_depth[label]])
        pairs = zip(given[label], given[BASELINE], strict=True)
        beyond.setdefault((each.question_set, each.question), []).extend(a - b for a, b in pairs)
    measured.given_by_depth = tuple(sum(column) / len(measured.given) for column in zip(*deep, strict=True))
    if label != BASELINE:
        measured.given_differences = [statistics.fmean(values) for values in beyond.values()]


def _row(cell: Cell, method: BenchMethod, name: str | None, sets: Sequence[SetStatistics]) -> ResultRow:
    """One set's statistics, or the average of several; what one of them lacks is missing in the average."""
    answers = [answer for each in sets for answer in each.answers]
    seeds = set.intersection(*(set(each.means) for each in sets))
    return ResultRow(
        cell=cell.name,
        method=method.label,
        question_set=name,
        support=method.support,
        questions=sum(len(each.questions) for each in sets),
        answers=len(answers),
        cycles=sum(len(answer.emitted) for answer in answers),
        contexts=sum(len(each.given) for each in sets),
        mean=_average([each.mean for each in sets]),
        std=stats.spread(statistics.fmean(each.means[seed] for each in sets) for seed in sorted(seeds)),
        difference=stats.stratified([each.differences for each in sets]),
        surplus=_surplus(answers, method.shape.depth),
        given_trees=_average([stats.mean(each.given) for each in sets]),
        given_difference=stats.stratified([each.given_differences for each in sets]),
        by_depth=_columns([each.by_depth for each in sets]),
        given_by_depth=_columns([each.given_by_depth for each in sets]),
        tokens_per_second=stats.tokens_per_second(answers) if answers else None,
        speed_up=stats.stratified([each.speed for each in sets]),
        drafting=stats.median(stats.pooled(answers, "drafting")),
        verifying=stats.median(stats.pooled(answers, "verifying")),
        coverage=_average([stats.mean(each.coverage) for each in sets]),
    )


def _average(values: Sequence[float | None]) -> float | None:
    """The mean of the sets' values; None where one has none."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if len(known) == len(values) else None


def _surplus(answers: Sequence[Answer], depth: int) -> stats.Interval | None:
    """Emitted minus expected tokens of the own cycles, with a bound that holds for rare acceptances too.

    Each cycle has mean 0 given all before it. A number of 0 to D accepted tokens with mean a varies by at most
    a (D - a), whatever the tree, so Freedman's inequality bounds the sum. NaN bounds where nothing is seen but too few
    acceptances are expected for agreement to mean anything.
    """
    pairs = [pair for a in answers if a.expected for pair in zip(a.emitted, a.expected, strict=True)]
    if not pairs:
        return None
    accepted = [min(max(expected - 1, 0.0), depth) for _, expected in pairs]
    mean = statistics.fmean(emitted - expected for emitted, expected in pairs)
    half = stats.deviation(sum(a * (depth - a) for a in accepted), depth) / len(pairs)
    if abs(mean) <= half and sum(accepted) < FEWEST:
        return stats.Interval(mean, math.nan, math.nan)
    return stats.Interval(mean, mean - half, mean + half)


def _columns(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean of rows, place by place; a shorter row goes on with zeros."""
    return tuple(statistics.fmean(column) for column in zip_longest(*rows, fillvalue=0.0))
