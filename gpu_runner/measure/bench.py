"""The benchmark: every method on the same questions and seeds, taking turns, timed alike.

Methods take turns within a question, so that a drifting clock or a busy machine favours none. tau counts emitted tokens
over cycles, the target's own token included; tokens after an end token do not count, and the last cycle is not cut at
the length; wall time includes the prefill on both sides of a speed-up.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpu_runner.certify.faults import Fault
from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine, now
from gpu_runner.decode.methods import BenchMethod
from gpu_runner.decode.processing import Processing
from gpu_runner.measure.prompts import Question
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.chat import Message, end_ids, prompt_ids, text_of
from gpu_runner.model.drafts.base import Draft
from montecarlo.keyed_random import derived


@dataclass(frozen=True)
class Setting:
    """What all methods of a benchmark share."""

    target: CausalModel
    draft: Draft
    processing: Processing
    length: int
    plain: bool = False
    fault: Fault | None = None
    backend: str | None = None


@dataclass
class Answer:
    """One method's answer to one question with one seed, all turns together; JSON-ready.

    `question_set` and `cell` say which set the question is of and which part of an experiment asked it.

    `emitted`, `accepted` and `expected` have one entry a cycle; `drafting` and `verifying` seconds one a cycle but the
    first of a turn, whose time holds the prefill. `gaps` are the top-2 logit gaps of the baseline.
    """

    rule: str
    question: int | str
    seed: int
    question_set: str = ""
    cell: str = ""
    tokens: list[int] = field(default_factory=list)
    emitted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)
    drafting: list[float] = field(default_factory=list)
    verifying: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def unit(self) -> tuple[str, int | str, int]:
        """What answers are paired by: question set, question, seed."""
        return (self.question_set, self.question, self.seed)

    @property
    def rate(self) -> float:
        """Tokens a second, prefill included."""
        return len(self.tokens) / self.seconds


def answers(
    setting: Setting, methods: Sequence[BenchMethod], questions: Sequence[Question], seeds: Sequence[int]
) -> Iterator[Answer]:
    """Every method on every question with every seed, the methods taking turns."""
    engines = {method.label: engine_of(setting, method) for method in methods}
    for seed in seeds:
        for number, question in enumerate(questions):
            for method in methods:
                yield answer(setting, method, engines[method.label], number, question, seed)


def engine_of(setting: Setting, method: BenchMethod, expect: bool = True) -> Engine | None:
    """The engine of a method, None for the baseline; `expect` has it compute expected tokens (never with a fault)."""
    if method.tree_method is None:
        return None
    return Engine(
        setting.target,
        setting.draft,
        method.tree_method,
        method.shape,
        setting.processing,
        method.support,
        setting.fault,
        expect=expect and setting.fault is None,
        backend=setting.backend,
    )


def answer(
    setting: Setting, method: BenchMethod, engine: Engine | None, number: int, question: Question, seed: int
) -> Answer:
    """All turns of one question; each turn's history holds the answers before it."""
    done = Answer(method.label, number, seed)
    stops = end_ids(setting.target)
    messages: list[Message] = []
    session = None
    for turn, content in enumerate(question):
        messages.append({"role": "user", "content": content})
        prompt = prompt_ids(setting.target, messages, setting.plain)
        draws = Seeded(derived(seed, number, turn))
        began = now(setting.target.device)
        if engine is None:
            text = autoregressive(setting.target, prompt, setting.length, draws, setting.processing, stops)
            tokens = text.tokens
            done.emitted += [1] * len(tokens)
            done.verifying += text.seconds[1:]
            done.gaps += text.gaps
        else:
            session = engine.start(prompt) if session is None else session
            engine.set_text(session, prompt)
            session.cycles = 0
            cycles = list(engine.cycles(session, setting.length, draws, stops, whole=True))
            tokens = tuple(token for cycle in cycles for token in cycle.tokens)
            done.emitted += [len(cycle.tokens) for cycle in cycles]
            done.accepted += [cycle.accepted for cycle in cycles]
            done.expected += [cycle.expected for cycle in cycles if cycle.expected is not None]
            done.drafting += [cycle.drafting for cycle in cycles[1:]]
            done.verifying += [cycle.verifying for cycle in cycles[1:]]
            done.seconds -= sum(cycle.aside for cycle in cycles)
        done.seconds += now(setting.target.device) - began
        done.tokens += tokens
        if turn + 1 < len(question):
            messages.append({"role": "assistant", "content": text_of(setting.target, tokens)})
    return done


def warm_up(setting: Setting, methods: Sequence[BenchMethod], question: Question) -> dict[str, float]:
    """Run every method twice, outside of the results; the seconds that an answer of the full length should take."""
    short = replace(setting, length=min(8, setting.length))
    for _ in answers(short, methods, [question[:1]], [0]):
        pass
    return {done.rule: _seconds(done, setting.length) for done in answers(short, methods, [question[:1]], [1])}


def _seconds(done: Answer, length: int) -> float:
    """How long an answer of `length` tokens will take, by the cycles of a shorter one."""
    cycle = sum(statistics.median(times) for times in (done.drafting, done.verifying) if times)
    return done.seconds + (length - len(done.tokens)) * cycle * len(done.emitted) / len(done.tokens)
