"""One run of an experiment: what was asked for, which questions, and how each task of it is done.

The arguments are kept with the results and must be the same when a run is gone on with; they include a digest of the
questions, so that an edited file is not mixed with what it held before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from gpu_runner.bench import Answer, Setting, answer, engine_of
from gpu_runner.contexts import SharedAnswer, same_contexts
from gpu_runner.draws import check_seed
from gpu_runner.engine import Engine
from gpu_runner.experiments import (
    BOTH,
    OWN,
    PAPER,
    SAME,
    SAME_CONTEXTS,
    Base,
    Cell,
    Experiment,
    Task,
    find_experiment,
    number_of,
    tasks,
)
from gpu_runner.layouts import Paper
from gpu_runner.paper import paper_values
from gpu_runner.question_sets import SetQuestion, load_set
from gpu_runner.results import Entry, Walk, entries
from gpu_runner.rows import check_support
from gpu_runner.rules import AUTOREGRESSIVE
from gpu_runner.run_folder import WHOLE, Line, Shard, read
from rheo_core import InvalidInput, TreeShape


@dataclass(frozen=True)
class Arguments:
    """Everything that the results of a run depend on, as the user gave it.

    `asked` are the ids of the questions of each set, `digest` the SHA-256 of their texts; `support` 0 is the full
    vocabulary; `backend` compiles the levels of the draft tree.
    """

    experiment: str
    target: str
    draft: str
    dtype: str
    device: str
    threads: int
    rope_base: float | None
    plain: bool
    fault: str | None
    width: int
    depth: int
    budget: int
    temperature: float
    support: int
    length: int
    seeds: int
    seed: int
    on: str
    asked: dict[str, list[int | str]]
    digest: str
    backend: str | None = None

    def __post_init__(self) -> None:
        for name in ("length", "seeds"):
            if getattr(self, name) < 1:
                raise InvalidInput(name, getattr(self, name), "an int of at least 1")
        check_seed(self.seed)
        check_support(self.support or None)
        if self.on not in (OWN, SAME, BOTH):
            raise InvalidInput("on", self.on, f"{OWN}, {SAME} or {BOTH}")
        if self.fault is not None and self.on != OWN:
            raise InvalidInput("on", self.on, f"{OWN}: a planted fault has no known acceptance")
        self.made()

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Arguments:
        """The arguments that were kept with results."""
        names = {field.name for field in fields(cls)}
        document = {"backend": None, **document}
        if document.keys() != names:
            odd = sorted(document.keys() ^ names)[0]
            raise InvalidInput("arguments", odd, f"the fields {', '.join(sorted(names))}")
        return cls(**document)

    @property
    def as_in_the_paper(self) -> bool:
        """Whether the setting is the paper's, so that its values may stand beside ours."""
        base = Base(TreeShape(self.width, self.depth, self.budget), self.temperature, self.support or None)
        return base == PAPER and self.fault is None

    def document(self) -> Line:
        """JSON-ready; `backend` only where there is one."""
        return {name: value for name, value in asdict(self).items() if name != "backend" or value is not None}

    def made(self) -> Experiment:
        """The experiment that they ask for."""
        shape = TreeShape(self.width, self.depth, self.budget)
        return find_experiment(self.experiment, Base(shape, self.temperature, self.support or None))

    def tasks(self, shard: Shard = WHOLE) -> tuple[Task, ...]:
        """What one process has to do."""
        seeds = range(self.seed, self.seed + self.seeds)
        return tuple(tasks(self.made(), self.asked, seeds, self.on, shard))


Questions = dict[str, tuple[SetQuestion, ...]]


def load_questions(data: Path, names: Sequence[str], most: int) -> Questions:
    """The first `most` questions of each set in the folder `data`."""
    if most < 1:
        raise InvalidInput("questions", most, "an int of at least 1")
    return {name: load_set(data, name)[:most] for name in dict.fromkeys(names)}


def digest(questions: Questions) -> str:
    """SHA-256 of the texts asked."""
    texts = {name: [[each.id, *each.turns] for each in found] for name, found in questions.items()}
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


class Performer:
    """Does the tasks of a run with a loaded pair."""

    def __init__(self, setting: Setting, experiment: Experiment, questions: Questions) -> None:
        self.experiment = experiment
        self.setting = setting
        self._turns = {(name, each.id): each.turns for name, found in questions.items() for each in found}
        self._engines: dict[tuple[str, str], Engine | None] = {}

    def __call__(self, task: Task) -> Line:
        """The line that a task ends in."""
        cell = self.experiment.cell(task.cell)
        if task.what == SAME_CONTEXTS:
            shared = self._shared(cell, task)
            return {**asdict(task), "contexts": shared.document()}
        done = self._answer(cell, task)
        return {**asdict(task), **asdict(done)}

    def setting_of(self, cell: Cell) -> Setting:
        """What all methods of a cell share."""
        return replace(self.setting, processing=replace(self.setting.processing, temperature=cell.temperature))

    def _answer(self, cell: Cell, task: Task) -> Answer:
        rule = next(rule for rule in cell.rules if rule.label == task.what)
        setting, key = self.setting_of(cell), (cell.name, rule.label)
        if key not in self._engines:
            self._engines[key] = engine_of(setting, rule)
        number = number_of(task.question_set, task.question)
        turns = self._turns[task.question_set, task.question]
        done = answer(setting, rule, self._engines[key], number, turns, task.seed)
        return replace(done, question=task.question, question_set=task.question_set, cell=cell.name)

    def _shared(self, cell: Cell, task: Task) -> SharedAnswer:
        rules = [rule for rule in cell.rules if rule.method is not None]
        number = number_of(task.question_set, task.question)
        turns = self._turns[task.question_set, task.question]
        return same_contexts(self.setting_of(cell), rules, number, turns, task.seed)


def remaining(tasks: Sequence[Task], lines: Sequence[Line]) -> list[Task]:
    """The tasks that have no line yet."""
    done = {task_of(line) for line in lines}
    return [task for task in tasks if task not in done]


def expected_seconds(each: Mapping[str, float], todo: Sequence[Task], asked: Questions) -> float:
    """How long tasks take, from the seconds of one whole turn by each method; shared contexts cost all of them."""
    turns = {(name, question.id): len(question.turns) for name, found in asked.items() for question in found}
    drafting = sum(seconds for label, seconds in each.items() if label != AUTOREGRESSIVE)
    return sum(turns[task.question_set, task.question] * each.get(task.what, drafting) for task in todo)


def task_of(line: Line) -> Task:
    """Which task a line is the end of."""
    names = [field.name for field in fields(Task)]
    if not all(name in line for name in names):
        raise InvalidInput("answer", sorted(line), f"a line with {', '.join(names)}")
    return Task(*(line[name] for name in names))


@dataclass(frozen=True)
class Report:
    """What a folder holds, summed up: `done` of `total` tasks."""

    arguments: Arguments
    sources: tuple[Line, ...]
    experiment: Experiment
    entries: tuple[Entry, ...]
    paper: Paper | None
    done: int
    total: int

    def document(self) -> Line:
        """JSON-ready."""
        return {
            "command": "reproduce",
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "counted": "acceptance" if self.experiment.count == "accepted" else "tau",
            "arguments": self.arguments.document(),
            "provenance": list(self.sources),
            "done": self.done,
            "total": self.total,
            "finished": self.done == self.total,
            "results": [entry.document() for entry in self.entries],
            "paper": None if self.paper is None else [[*key, value] for key, value in self.paper.items()],
        }


def read_report(folder: Path, name: str) -> Report:
    """The figures of what a folder holds of the experiment `name`, finished or not."""
    held = read(folder)
    arguments = Arguments.of(held.arguments)
    if arguments.experiment != name:
        raise InvalidInput("experiment", name, f"{arguments.experiment}, whose results are in {folder}")
    every = arguments.tasks()
    lines: dict[Task, Line] = {}
    for line in held.lines:
        lines.setdefault(task_of(line), line)
    if strange := lines.keys() - set(every):
        raise InvalidInput("answer", strange.pop(), "one that the arguments ask for")
    kept = [(task, lines[task]) for task in every if task in lines]
    answers = [answer_of(line) for task, line in kept if task.what != SAME_CONTEXTS]
    walks = [walk_of(task, line) for task, line in kept if task.what == SAME_CONTEXTS]
    experiment = arguments.made()
    found = entries(experiment, list(arguments.asked), answers, walks)
    paper = paper_values(name, arguments.target, arguments.draft) if arguments.as_in_the_paper else None
    return Report(arguments, held.sources, experiment, tuple(found), paper, len(kept), len(every))


def answer_of(line: Line) -> Answer:
    """An answer read back from its line."""
    names = [field.name for field in fields(Answer)]
    if not all(name in line for name in names):
        raise InvalidInput("answer", sorted(line), f"a line with {', '.join(names)}")
    return Answer(**{name: line[name] for name in names})


def walk_of(task: Task, line: Line) -> Walk:
    """A walk on shared contexts read back from its line."""
    shared = SharedAnswer.from_document(line["contexts"])
    return Walk(task.cell, task.question_set, task.question, task.seed, shared)
