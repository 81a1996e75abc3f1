"""One run of an experiment: what was asked for, which questions, and how each task of it is done.

The arguments are kept with the results and must be the same when a run is gone on with; they include a digest of the
questions, so that an edited file is not mixed with what it held before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import AUTOREGRESSIVE
from gpu_runner.measure.bench import Answer, Setting, answer, engine_of
from gpu_runner.measure.shared_contexts import SharedAnswer, same_contexts
from gpu_runner.reproduce.experiments import (
    SAME_CONTEXTS,
    Arguments,
    Cell,
    Experiment,
    Task,
    number_of,
)
from gpu_runner.reproduce.paper import paper_values
from gpu_runner.reproduce.question_sets import SetQuestion, load_set
from gpu_runner.reproduce.records import read_answer, read_shared, read_task
from gpu_runner.reproduce.results import ResultRow, SharedContextAnswer, result_rows
from gpu_runner.reproduce.run_folder import Line, read
from gpu_runner.reproduce.strict_json import Fields, read_fields
from gpu_runner.reproduce.tables import Paper
from rheo_core import InvalidInput

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


class TaskRunner:
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
        method = next(method for method in cell.methods if method.label == task.what)
        setting, key = self.setting_of(cell), (cell.name, method.label)
        if key not in self._engines:
            self._engines[key] = engine_of(setting, method)
        number = number_of(task.question_set, task.question)
        turns = self._turns[task.question_set, task.question]
        done = answer(setting, method, self._engines[key], number, turns, task.seed)
        return replace(done, question=task.question, question_set=task.question_set, cell=cell.name)

    def _shared(self, cell: Cell, task: Task) -> SharedAnswer:
        methods = [method for method in cell.methods if method.tree_method is not None]
        number = number_of(task.question_set, task.question)
        turns = self._turns[task.question_set, task.question]
        return same_contexts(self.setting_of(cell), methods, number, turns, task.seed)


def remaining(tasks: Sequence[Task], done: Collection[Task]) -> list[Task]:
    """The tasks that have no line yet."""
    return [task for task in tasks if task not in done]


def expected_seconds(each: Mapping[str, float], todo: Sequence[Task], asked: Questions) -> float:
    """How long tasks take, from the seconds of one whole turn by each method; shared contexts cost all of them."""
    turns = {(name, question.id): len(question.turns) for name, found in asked.items() for question in found}
    drafting = sum(seconds for label, seconds in each.items() if label != AUTOREGRESSIVE)
    return sum(turns[task.question_set, task.question] * each.get(task.what, drafting) for task in todo)


def read_records(
    arguments: Arguments, lines: Sequence[Line], places: Sequence[str]
) -> dict[Task, Answer | SharedContextAnswer]:
    """What the lines of a folder hold, in the order of the tasks; a line that is there twice counts once.

    Raises `InvalidInput`, naming file and line, where a line is none that the arguments ask for, none that a run can
    have written, or says other things of a task than a line before it.
    """
    experiment, every = arguments.made(), arguments.tasks()
    asked = set(every)
    found: dict[Task, Answer | SharedContextAnswer] = {}
    first: dict[Task, int] = {}
    for number, (line, place) in enumerate(zip(lines, places, strict=True)):
        task = read_task(line, place)
        if task not in asked:
            raise InvalidInput(place, task, "one that the arguments ask for")
        if task in found:
            if line != lines[first[task]]:
                raise InvalidInput(place, f"another line for {task}", f"the same as {places[first[task]]}")
            continue
        cell = experiment.cell(task.cell)
        first[task] = number
        if task.what == SAME_CONTEXTS:
            found[task] = read_shared(line, place, task, cell)
        else:
            method = next(method for method in cell.methods if method.label == task.what)
            found[task] = read_answer(line, place, method, arguments.length, arguments.fault is not None)
    return {task: found[task] for task in every if task in found}


@dataclass(frozen=True)
class Report:
    """What a folder holds, summed up: `done` of `total` tasks."""

    arguments: Arguments
    sources: tuple[Line, ...]
    experiment: Experiment
    rows: tuple[ResultRow, ...]
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
            "shape": vars(self.experiment.shape),
            "provenance": list(self.sources),
            "done": self.done,
            "total": self.total,
            "finished": self.done == self.total,
            "results": [row.document() for row in self.rows],
            "paper": None if self.paper is None else [[*key, value] for key, value in self.paper.items()],
        }


class SourceFields(Fields, extra="allow"):
    """What a report says of each start of a run."""

    target: str
    draft: str
    dtype: str
    device: str
    draft_rope_base: float | None


def read_report(folder: Path, name: str) -> Report:
    """The figures of what a folder holds of the experiment `name`, finished or not."""
    held = read(folder)
    if not held.sources:
        raise InvalidInput(str(folder / "provenance.json"), "no runs", "one object for each start")
    for source in held.sources:
        read_fields(SourceFields, source, f"{folder}: a run's provenance")
    arguments = Arguments.of(held.arguments)
    if arguments.experiment != name:
        raise InvalidInput("experiment", name, f"{arguments.experiment}, whose results are in {folder}")
    every = arguments.tasks()
    kept = read_records(arguments, held.lines, held.places)
    answers = [each for each in kept.values() if isinstance(each, Answer)]
    shared = [each for each in kept.values() if isinstance(each, SharedContextAnswer)]
    experiment = arguments.made()
    found = result_rows(experiment, list(arguments.asked), answers, shared)
    paper = paper_values(name, arguments.target, arguments.draft) if arguments.as_in_the_paper else None
    return Report(arguments, held.sources, experiment, tuple(found), paper, len(kept), len(every))
