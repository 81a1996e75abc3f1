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

from gpu_runner.decode.methods import AUTOREGRESSIVE, Rule
from gpu_runner.measure.bench import Answer
from gpu_runner.measure.intervals import Interval, deviation, finite, median, stratified
from gpu_runner.measure.shared_contexts import SharedAnswer
from gpu_runner.measure.summary import by_question
from gpu_runner.reproduce.experiments import BASELINE, Cell, Experiment

Question = tuple[str, int | str]
FEWEST = 10
"""Acceptances to expect before agreement with what was counted says anything."""


@dataclass(frozen=True)
class Walk:
    """A text on whose contexts all methods of a cell drafted, and where it belongs."""

    cell: str
    question_set: str
    question: int | str
    seed: int
    shared: SharedAnswer

    def given(self, count: str) -> dict[str, list[float]]:
        """By method, one entry a context: what "emitted" or "accepted" is expected to be given the trees."""
        return self.shared.accepted if count == "accepted" else self.shared.expected


@dataclass(frozen=True)
class Entry:
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
    difference: Interval | None
    surplus: Interval | None
    given_trees: float | None
    given_difference: Interval | None
    by_depth: tuple[float, ...]
    given_by_depth: tuple[float, ...]
    tokens_per_second: float | None
    speed_up: Interval | None
    drafting: float | None
    verifying: float | None
    coverage: float | None

    def document(self) -> dict[str, Any]:
        """JSON-ready; what is not a number is null."""
        return finite(asdict(self))


@dataclass
class _Part:
    """One method on one set, before anything is averaged."""

    questions: set[Question] = field(default_factory=set)
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


def entries(
    experiment: Experiment, sets: Sequence[str], answers: Sequence[Answer], walks: Sequence[Walk]
) -> list[Entry]:
    """Every method of every cell: each set with anything measured, then their average where there are several."""
    found: list[Entry] = []
    for cell in experiment.cells:
        parts: dict[str, dict[str, _Part]] = {rule.label: {} for rule in cell.rules}
        for name in sets:
            own = [answer for answer in answers if (answer.cell, answer.question_set) == (cell.name, name)]
            shared = [walk for walk in walks if (walk.cell, walk.question_set) == (cell.name, name)]
            for label, part in _parts(cell, own, shared, experiment.count).items():
                parts[label][name] = part
        for rule in cell.rules:
            mine = parts[rule.label]
            found += [_entry(cell, rule, name, [part]) for name, part in mine.items()]
            if len(mine) > 1:
                found.append(_entry(cell, rule, None, list(mine.values())))
    return found


def _parts(cell: Cell, own: Sequence[Answer], shared: Sequence[Walk], count: str) -> dict[str, _Part]:
    """The parts of all methods on one set."""
    labels = [rule.label for rule in cell.rules]
    units = set.intersection(*({answer.unit for answer in own if answer.rule == label} for label in labels))
    if not units and not shared:
        return {}
    parts = {label: _Part() for label in labels}
    for label, part in parts.items():
        mine = {answer.unit: answer for answer in own if answer.rule == label}
        part.answers = [mine[unit] for unit in sorted(units, key=repr)]
        part.questions = {(walk.question_set, walk.question) for walk in shared}
        part.questions |= {(answer.question_set, answer.question) for answer in part.answers}
        _count(part, count if label != AUTOREGRESSIVE else "emitted")
        _walk(part, shared, label, count)
    for label, part in parts.items():
        if label in (AUTOREGRESSIVE, BASELINE):
            part.differences, part.given_differences = [], []
        elif part.answers:
            mine_by, base_by = by_question(part.answers, count), by_question(parts[BASELINE].answers, count)
            part.differences = [mine_by[question] - base_by[question] for question in mine_by]
        if AUTOREGRESSIVE in parts and label != AUTOREGRESSIVE:
            part.speed = _ratios(part.answers, parts[AUTOREGRESSIVE].answers)
    return parts


def _count(part: _Part, count: str) -> None:
    """Means over the cycles of the own texts: all pooled, and seed by seed."""
    cycles = {seed: [n for a in part.answers if a.seed == seed for n in getattr(a, count)] for seed in _seeds(part)}
    part.means = {seed: statistics.fmean(values) for seed, values in cycles.items()}
    pooled = [n for values in cycles.values() for n in values]
    part.mean = statistics.fmean(pooled) if pooled else None
    accepted = [n for answer in part.answers for n in answer.accepted]
    if accepted:
        part.by_depth = tuple(sum(n >= d for n in accepted) / len(accepted) for d in range(1, max(accepted) + 1))


def _walk(part: _Part, shared: Sequence[Walk], label: str, count: str) -> None:
    """What is expected given the trees, on shared contexts."""
    by: dict[Question, list[float]] = {}
    deep: list[list[float]] = []
    for walk in shared:
        given = walk.given(count)
        if label not in given:
            return
        part.given += given[label]
        part.coverage += walk.shared.coverage.get(label, [])
        deep.append([len(given[label]) * value for value in walk.shared.by_depth[label]])
        pairs = zip(given[label], given[BASELINE], strict=True)
        by.setdefault((walk.question_set, walk.question), []).extend(a - b for a, b in pairs)
    part.given_by_depth = tuple(sum(column) / len(part.given) for column in zip(*deep, strict=True))
    part.given_differences = [statistics.fmean(values) for values in by.values()]


def _ratios(own: Sequence[Answer], plain: Sequence[Answer]) -> list[float]:
    """Speed-ups, one a question: the mean over its seeds of tokens a second to the baseline's."""
    by: dict[Question, list[float]] = {}
    for mine, other in zip(own, plain, strict=True):
        by.setdefault((mine.question_set, mine.question), []).append(mine.rate / other.rate)
    return [statistics.fmean(values) for values in by.values()]


def _entry(cell: Cell, rule: Rule, name: str | None, parts: Sequence[_Part]) -> Entry:
    """One set's part, or the average of several; what one of them lacks is missing in the average."""
    answers = [answer for part in parts for answer in part.answers]
    seeds = set.intersection(*(set(part.means) for part in parts))
    per_seed = [statistics.fmean(part.means[seed] for part in parts) for seed in sorted(seeds)]
    means = [part.mean for part in parts if part.mean is not None]
    given = [statistics.fmean(part.given) for part in parts if part.given]
    coverage = [statistics.fmean(part.coverage) for part in parts if part.coverage]
    seconds = sum(answer.seconds for answer in answers)
    whole = len(parts)
    return Entry(
        cell=cell.name,
        method=rule.label,
        question_set=name,
        support=rule.support,
        questions=sum(len(part.questions) for part in parts),
        answers=len(answers),
        cycles=sum(len(answer.emitted) for answer in answers),
        contexts=sum(len(part.given) for part in parts),
        mean=statistics.fmean(means) if len(means) == whole else None,
        std=statistics.stdev(per_seed) if len(per_seed) > 1 else None,
        difference=stratified([part.differences for part in parts]),
        surplus=_surplus(answers, rule.shape.depth),
        given_trees=statistics.fmean(given) if len(given) == whole else None,
        given_difference=stratified([part.given_differences for part in parts]),
        by_depth=_columns([part.by_depth for part in parts]),
        given_by_depth=_columns([part.given_by_depth for part in parts]),
        tokens_per_second=sum(len(answer.tokens) for answer in answers) / seconds if seconds else None,
        speed_up=stratified([part.speed for part in parts]),
        drafting=median([each for answer in answers for each in answer.drafting]),
        verifying=median([each for answer in answers for each in answer.verifying]),
        coverage=statistics.fmean(coverage) if len(coverage) == whole else None,
    )


def _surplus(answers: Sequence[Answer], depth: int) -> Interval | None:
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
    half = deviation(sum(a * (depth - a) for a in accepted), depth) / len(pairs)
    if abs(mean) <= half and sum(accepted) < FEWEST:
        return Interval(mean, math.nan, math.nan)
    return Interval(mean, mean - half, mean + half)


def _columns(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The mean of rows, place by place; a shorter row goes on with zeros."""
    return tuple(statistics.fmean(column) for column in zip_longest(*rows, fillvalue=0.0))


def _seeds(part: _Part) -> list[int]:
    return sorted({answer.seed for answer in part.answers})
