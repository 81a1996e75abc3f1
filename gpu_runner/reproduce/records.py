"""The lines of a run read back strictly: what no run can have written is refused by file, line and field.

Results lie in a folder for months and are added up by whoever gets them, so a damaged or edited line must not pass for
a measurement. Everything that the engine guarantees of its own lines is checked here, and only here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field

from gpu_runner.decode.methods import BenchMethod
from gpu_runner.measure.bench import Answer
from gpu_runner.measure.shared_contexts import SharedAnswer
from gpu_runner.reproduce.experiments import Cell, Task
from gpu_runner.reproduce.results import SharedContextAnswer
from gpu_runner.reproduce.run_folder import Line
from gpu_runner.reproduce.strict_json import Fields, read_fields
from rheo_core import InvalidInput

ROUNDING = 1e-3
"""How far rounding (float32, half precision) may carry a probability, or a sum of some, beyond its bounds."""
TICK = 1e-6
"""How much a clock's numbers may differ by rounding, in seconds."""

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=-ROUNDING, le=1 + ROUNDING)]
Expected = Annotated[float, Field(ge=1 - ROUNDING)]


class TaskFields(Fields):
    """What every line says of the task that it ends."""

    cell: str
    question_set: str
    question: int | str
    seed: int
    what: str


class AnswerFields(TaskFields):
    """The line of an answer."""

    rule: str
    tokens: list[Count]
    emitted: Annotated[list[Positive], Field(min_length=1)]
    accepted: list[Count]
    expected: list[Expected]
    drafting: list[NonNegative]
    verifying: list[NonNegative]
    gaps: list[NonNegative]
    seconds: Annotated[float, Field(gt=0)]


class ContextFields(Fields):
    """A text on shared contexts; by method, with an row for each context (`by_depth`: for each depth)."""

    expected: dict[str, list[Expected]]
    accepted: dict[str, list[Probability]]
    coverage: dict[str, list[Probability]]
    by_depth: dict[str, list[Probability]]
    advanced: Annotated[list[str], Field(min_length=1)]
    emitted: list[Positive]
    tokens: list[Count]


class SharedFields(TaskFields):
    """The line of a text on shared contexts."""

    contexts: ContextFields


def read_task(line: Line, place: str) -> Task:
    """Which task a line is the end of."""
    given = {name: line[name] for name in TaskFields.model_fields if name in line}
    return Task(**vars(read_fields(TaskFields, given, place)))


def require(holds: bool, place: str, value: object, expected: str) -> None:
    """Raise unless a field is what a run can have written."""
    if not holds:
        raise InvalidInput(place, value, expected)


def read_answer(line: Line, place: str, method: BenchMethod, length: int, faulty: bool = False) -> Answer:
    """An answer of `method`, `length` tokens a turn, read back from its line; a fault leaves nothing expected."""
    given = read_fields(AnswerFields, line, place)

    def check(holds: bool, name: str, expected: str) -> None:
        require(holds, f"{place}: {name}", getattr(given, name), expected)

    drafts, cycles = method.tree_method is not None, len(given.emitted)
    deep = method.shape.depth if drafts else 0
    check(given.rule == method.label, "rule", f"{method.label}, as `what` says")
    check(max(given.emitted) <= deep + 1, "emitted", f"at most {deep + 1} tokens a cycle")
    check(sum(given.emitted) == len(given.tokens), "emitted", f"the {len(given.tokens)} tokens of the line in all")
    turns = cycles - len(given.verifying)  # the first cycle of a turn, which holds the prefill, has no latency
    check(turns >= 1, "verifying", f"fewer numbers than cycles ({cycles}): the first of a turn has none")
    check(len(given.tokens) <= turns * (length + deep), "tokens", f"at most {length + deep} in each of {turns} turns")
    check(len(given.accepted) == (cycles if drafts else 0), "accepted", "a number for each cycle of a drafting method")
    pairs = list(zip(given.accepted, given.emitted, strict=False))
    # an end token among the accepted ones cuts the target's own token off, in the last cycle of a turn alone
    cut = [number for number, (accepted, emitted) in enumerate(pairs) if accepted == emitted]
    check(all(emitted - accepted in (0, 1) for accepted, emitted in pairs), "accepted", "one less than `emitted`")
    last = len(cut) <= turns and (turns > 1 or set(cut) <= {cycles - 1})
    check(last, "accepted", f"one less than `emitted`, but in the last cycle of each of {turns} turns")
    counted = cycles if drafts and not faulty else 0
    check(len(given.expected) == counted, "expected", f"{counted} numbers")
    check(max(given.expected, default=1) <= deep + 1 + ROUNDING, "expected", f"at most {deep + 1} tokens a cycle")
    check(
        len(given.drafting) == (len(given.verifying) if drafts else 0), "drafting", "a number for each of `verifying`"
    )
    check(len(given.gaps) == (0 if drafts else len(given.tokens)), "gaps", "a number for each token of the baseline")
    timed = sum(given.drafting) + sum(given.verifying)
    check(given.seconds + TICK * cycles >= timed, "seconds", "at least what drafting and verifying add up to")
    return Answer(**{name: value for name, value in vars(given).items() if name != "what"})


def read_shared(line: Line, place: str, task: Task, cell: Cell) -> SharedContextAnswer:
    """A text on shared contexts read back from its line."""
    given = read_fields(SharedFields, line, place).contexts
    methods = {method.label: method for method in cell.methods if method.tree_method is not None}
    labels, count = list(methods), len(given.advanced)

    def check(holds: bool, name: str, value: object, expected: str) -> None:
        require(holds, f"{place}: contexts.{name}", value, expected)

    first = labels.index(given.advanced[0]) if given.advanced[0] in labels else 0
    turns = [labels[(first + i) % len(labels)] for i in range(count)]
    check(given.advanced == turns, "advanced", given.advanced, f"{', '.join(labels)} in turns")
    check(len(given.emitted) == count, "emitted", given.emitted, f"{count} numbers")
    deepest = [methods[label].shape.depth + 1 for label in given.advanced]
    within = all(n <= most for n, most in zip(given.emitted, deepest, strict=True))
    check(within, "emitted", given.emitted, f"at most {deepest} tokens")
    check(sum(given.emitted) == len(given.tokens), "emitted", given.emitted, f"{len(given.tokens)} tokens in all")
    sampling = [label for label, method in methods.items() if _samples(method)]
    for name, known in (("expected", labels), ("accepted", labels), ("coverage", sampling), ("by_depth", labels)):
        check(sorted(getattr(given, name)) == sorted(known), name, getattr(given, name), ", ".join(known))
    for label, method in methods.items():
        deep, reached = method.shape.depth, given.by_depth[label]
        expected, accepted = given.expected[label], given.accepted[label]
        check(len(expected) == len(accepted) == count, f"expected.{label}", expected, f"{count} numbers")
        check(max(expected) <= deep + 1 + ROUNDING, f"expected.{label}", expected, f"at most {deep + 1} tokens")
        check(len(reached) == deep, f"by_depth.{label}", reached, f"{deep} numbers")
        falling = all(below <= above + ROUNDING for above, below in pairwise(reached))
        check(falling, f"by_depth.{label}", reached, "probabilities that do not grow with the depth")
        rate = sum(accepted) / count
        check(
            abs(reached[0] - rate) <= ROUNDING, f"by_depth.{label}", reached, f"first the mean of `accepted`, {rate:g}"
        )
        most = 1 + sum(reached)
        mean = sum(expected) / count
        check(mean <= most + ROUNDING * (1 + deep), f"expected.{label}", expected, f"a mean of at most {most:g}")
    for label in sampling:
        check(len(given.coverage[label]) == count, f"coverage.{label}", given.coverage[label], f"{count} numbers")
    return SharedContextAnswer(task.cell, task.question_set, task.question, task.seed, SharedAnswer(**vars(given)))


def _samples(method: BenchMethod) -> bool:
    assert method.tree_method is not None
    return method.tree_method.leads(method.shape) < method.shape.width
