"""The lines of a run read back strictly: what no run can have written is refused by file, line and field.

Results lie in a folder for months and are added up by whoever gets them, so a damaged or edited line must not pass for
a measurement. Everything that the engine guarantees of its own lines is checked here, and only here.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NoReturn

from gpu_runner.decode.methods import Rule
from gpu_runner.measure.bench import Answer
from gpu_runner.measure.shared_contexts import SharedAnswer
from gpu_runner.reproduce.experiments import Cell, Task
from gpu_runner.reproduce.results import Walk
from gpu_runner.reproduce.run_folder import Line
from rheo_core import InvalidInput

ROUNDING = 1e-3
"""How far rounding (float32, half precision) may carry a probability, or a sum of some, beyond its bounds."""
TICK = 1e-6
"""How much a clock's numbers may differ by rounding, in seconds."""
LARGEST = sys.float_info.max
TASK = [field.name for field in fields(Task)]


@dataclass(frozen=True)
class Fields:
    """An object of a line, at `place` (file and line): its fields with their types and bounds, or one clear refusal."""

    place: str
    values: Mapping[str, Any]

    @classmethod
    def of(cls, place: str, values: Any, names: Collection[str]) -> Fields:
        """The fields, which must be exactly these."""
        if not isinstance(values, dict):
            raise InvalidInput(place, shown(values), f"an object with {', '.join(names)}")
        if odd := sorted(values.keys() ^ set(names)):
            known = f"the fields {', '.join(names)}"
            raise InvalidInput(place, f"{'no' if odd[0] in names else 'an unknown'} field {shown(odd[0])}", known)
        return cls(place, values)

    def refuse(self, name: str, expected: str) -> NoReturn:
        """Raise for a field."""
        raise InvalidInput(self.place, f"{name} = {shown(self.values[name])}", expected)

    def text(self, name: str) -> str:
        """A string."""
        if not isinstance(self.values[name], str):
            self.refuse(name, "a string")
        return str(self.values[name])

    def integer(self, name: str) -> int:
        """An integer; true and 1.0 are none."""
        if type(self.values[name]) is not int:
            self.refuse(name, "an integer")
        return int(self.values[name])

    def real(self, name: str) -> float:
        """A finite number above 0."""
        if not _is_real(self.values[name], 0, LARGEST) or not self.values[name]:
            self.refuse(name, "a finite number above 0")
        return float(self.values[name])

    def integers(self, name: str, low: int, high: float, length: int | None = None) -> list[int]:
        """A list of integers from `low` to `high`."""
        bounds = f"at least {low}" if high == LARGEST else f"{low} to {high}"
        return [int(each) for each in self._list(name, int, low, high, length, f"integers of {bounds}")]

    def reals(self, name: str, low: float, high: float, length: int | None = None) -> list[float]:
        """A list of finite numbers from `low` to `high`, up to rounding where `high` bounds it."""
        near = 0.0 if high == LARGEST else ROUNDING
        bounds = f"at least {low:g}" if high == LARGEST else f"{low:g} to {high:g}"
        found = self._list(name, float, low - near, high + near, length, f"finite numbers of {bounds}")
        return [float(each) for each in found]

    def _list(self, name: str, kind: type, low: float, high: float, length: int | None, what: str) -> list[Any]:
        found = self.values[name]
        if not isinstance(found, list):
            self.refuse(name, f"a list of {what}")
        if length is not None and len(found) != length:
            self.refuse(name, f"{length} {what}, and not {len(found)} of them")
        for place, each in enumerate(found):
            if not _is_real(each, low, high) or (kind is int and type(each) is not int):
                raise InvalidInput(self.place, f"{name}[{place}] = {shown(each)}", what)
        return found


def _is_real(value: Any, low: float, high: float) -> bool:
    """Whether it is a number within bounds, which NaN, infinities and true are not."""
    return type(value) in (int, float) and low <= value <= high


def shown(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def task_of(line: Line, place: str) -> Task:
    """Which task a line is the end of."""
    missing = next((name for name in TASK if name not in line), None)
    if missing is not None:
        raise InvalidInput(place, f"no field {missing!r}", f"a line with {', '.join(TASK)}")
    given = Fields(place, line)
    question = line["question"]
    if not isinstance(question, str):
        question = given.integer("question")
    seed = given.integer("seed")
    return Task(given.text("cell"), given.text("question_set"), question, seed, given.text("what"))


def answer_of(line: Line, place: str, rule: Rule, length: int, faulty: bool = False) -> Answer:
    """An answer of `rule`, `length` tokens a turn, read back from its line; a planted fault leaves nothing expected."""
    names = [field.name for field in fields(Answer)]
    given = Fields.of(place, line, [*TASK, *(name for name in names if name not in TASK)])
    if given.text("rule") != rule.label:
        given.refuse("rule", f"{rule.label!r}, as `what` says")
    deep = 0 if rule.method is None else rule.shape.depth
    emitted = given.integers("emitted", 1, deep + 1)
    tokens = given.integers("tokens", 0, LARGEST)
    if not emitted or sum(emitted) != len(tokens):
        given.refuse("emitted", f"at least one number, adding up to the {len(tokens)} tokens of the line")
    verifying = given.reals("verifying", 0, LARGEST)
    turns = len(emitted) - len(verifying)
    if turns < 1:
        given.refuse("verifying", f"fewer numbers than cycles ({len(emitted)}): the first of a turn has none")
    if len(tokens) > turns * (length + deep):
        given.refuse("tokens", f"at most {length + deep} tokens in each of {turns} turns")
    accepted = given.integers("accepted", 0, deep, 0 if rule.method is None else len(emitted))
    cut = 0
    for number, (drafted, written) in enumerate(zip(accepted, emitted, strict=False)):
        cut += drafted == written
        if drafted not in (written - 1, written):
            wanted = f"{written - 1}, one less than emitted[{number}] = {written}"
            raise InvalidInput(place, f"accepted[{number}] = {drafted}", wanted)
        if drafted == written and turns == 1 and number < len(emitted) - 1:
            given.refuse("accepted", f"one less than emitted, but in the last cycle (here in cycle {number})")
    if cut > turns:
        given.refuse("accepted", f"one less than emitted, but in the last cycle of each of {turns} turns")
    expecting = rule.method is not None and not faulty
    given.reals("expected", 1, deep + 1, len(emitted) if expecting else 0)
    drafting = given.reals("drafting", 0, LARGEST, 0 if rule.method is None else len(verifying))
    given.reals("gaps", 0, LARGEST, len(tokens) if rule.method is None else 0)
    if given.real("seconds") + TICK * len(emitted) < sum(drafting) + sum(verifying):
        given.refuse("seconds", "at least what drafting and verifying add up to")
    return Answer(**{name: line[name] for name in names})


def walk_of(line: Line, place: str, task: Task, cell: Cell) -> Walk:
    """A walk on shared contexts read back from its line."""
    Fields.of(place, line, [*TASK, "contexts"])
    given = Fields.of(f"{place}: contexts", line["contexts"], [field.name for field in fields(SharedAnswer)])
    rules = {rule.label: rule for rule in cell.rules if rule.method is not None}
    sampling = [
        name for name, rule in rules.items() if rule.method and rule.method.leads(rule.shape) < rule.shape.width
    ]
    labels, advanced = list(rules), given.values["advanced"]
    if not isinstance(advanced, list) or not advanced or not all(each in labels for each in advanced):
        given.refuse("advanced", f"one of {', '.join(labels)} for each context, of which there are some")
    first, count = labels.index(advanced[0]), len(advanced)
    if advanced != [labels[(first + i) % len(labels)] for i in range(count)]:
        given.refuse("advanced", f"{', '.join(labels)} in turns")
    emitted = given.integers("emitted", 1, LARGEST, count)
    for number, (name, tokens) in enumerate(zip(advanced, emitted, strict=True)):
        if tokens > rules[name].shape.depth + 1:
            raise InvalidInput(
                given.place, f"emitted[{number}] = {tokens}", f"at most {rules[name].shape.depth + 1} tokens"
            )
    if sum(emitted) != len(given.integers("tokens", 0, LARGEST)):
        given.refuse("emitted", f"numbers that add up to the {len(given.values['tokens'])} tokens of the line")
    columns = {"expected": labels, "accepted": labels, "coverage": sampling, "by_depth": labels}
    parts = {name: Fields.of(f"{given.place}.{name}", given.values[name], keys) for name, keys in columns.items()}
    for name, rule in rules.items():
        deep = rule.shape.depth
        expected = parts["expected"].reals(name, 1, deep + 1, count)
        accepted = parts["accepted"].reals(name, 0, 1, count)
        reached = parts["by_depth"].reals(name, 0, 1, deep)
        if any(below > above + ROUNDING for above, below in pairwise(reached)):
            parts["by_depth"].refuse(name, "probabilities that do not grow with the depth")
        if abs(reached[0] - sum(accepted) / count) > ROUNDING:
            parts["by_depth"].refuse(name, f"first the mean of `accepted`, {sum(accepted) / count:g}")
        if sum(expected) / count > 1 + sum(reached) + ROUNDING * (1 + deep):
            parts["expected"].refuse(name, f"a mean of at most 1 + the sum of by_depth, {1 + sum(reached):g}")
    for name in sampling:
        parts["coverage"].reals(name, 0, 1, count)
    shared = SharedAnswer(**line["contexts"])
    return Walk(task.cell, task.question_set, task.question, task.seed, shared)
