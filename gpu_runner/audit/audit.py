"""A run of the engine as records for montecarlo's audit: losslessness on real models, end to end.

Each emitted token stands beside reference rows, read from the text apart from the engine. The audit's evidence
is valid whenever it is looked at, so a run may stop at the alarm, and nothing is kept of it but sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_runner.audit.reference_rows import BEST, ReferenceRows
from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.draws import Draws, Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import BenchMethod
from gpu_runner.measure.bench import Setting, engine_of
from gpu_runner.measure.prompts import Question
from gpu_runner.model.chat import Message, end_ids, prompt_ids, text_of
from montecarlo.audit_power import EvidenceGrowth
from montecarlo.auditing import TOP, Audit, Report
from montecarlo.betting import BETS
from montecarlo.chunks import Chunker
from montecarlo.functions import FUNCTIONS, SHARES
from montecarlo.keyed_random import derived
from montecarlo.recording import Record
from rheo_core import InvalidInput

STEP = 32
"""Records that are looked at together; a run goes on for at most that many after its alarm."""


def records(
    setting: Setting,
    method: BenchMethod,
    questions: Sequence[Question],
    seed: int,
    best: int = BEST,
    draft_rows: bool = True,
) -> Iterator[Record]:
    """Records without end: the questions in turn, each time with other draws; `best` entries of each row are listed."""
    engine = audited_engine(setting, method)
    stops = end_ids(setting.target)
    for number in itertools.count():
        for place, question in enumerate(questions):
            messages: list[Message] = []
            for turn, content in enumerate(question):
                messages.append({"role": "user", "content": content})
                prompt = prompt_ids(setting.target, messages, setting.plain)
                draws = Seeded(derived(seed, number, place, turn))
                tokens: list[int] = []
                request = f"{number}/{place}/{turn}"
                for record in text_records(setting, engine, prompt, draws, stops, request, best, draft_rows):
                    tokens.append(record.token)
                    yield record
                if turn + 1 < len(question):
                    messages.append({"role": "assistant", "content": text_of(setting.target, tokens)})


def audited_engine(setting: Setting, method: BenchMethod) -> Engine | None:
    """The engine of a method with the fault planted, None for the baseline (which has no part for a fault)."""
    if method.tree_method is None and setting.fault is not None:
        raise InvalidInput("fault", "a planted fault", f"a method that drafts, not {method.label}")
    return engine_of(setting, method, expect=False)


def text_records(
    setting: Setting,
    engine: Engine | None,
    prompt: Sequence[int],
    draws: Draws,
    stops: Collection[int] = (),
    request: str = "0",
    best: int = BEST,
    draft_rows: bool = True,
) -> Iterator[Record]:
    """The records of one text after `prompt`, cycle by cycle as they are emitted; None: of the baseline."""
    reference = ReferenceRows(setting.target, setting.draft if draft_rows else None, setting.processing, prompt, best)
    done = 0
    for number, tokens in enumerate(_emitted(setting, engine, prompt, draws, stops)):
        for position, (token, (target, draft)) in enumerate(zip(tokens, reference.rows(tokens), strict=True)):
            yield Record(f"{request}: token {done}", token, target, draft, number, position, request)
            done += 1


def _emitted(
    setting: Setting, engine: Engine | None, prompt: Sequence[int], draws: Draws, stops: Collection[int]
) -> Iterator[tuple[int, ...]]:
    """The emitted tokens, cycle by cycle."""
    if engine is None:
        text = autoregressive(setting.target, prompt, setting.length, draws, setting.processing, stops)
        yield from ((token,) for token in text.tokens)
        return
    for cycle in engine.cycles(engine.start(prompt), setting.length, draws, stops, whole=True):
        yield cycle.tokens


@dataclass(frozen=True)
class Audited:
    """A finished audit; `alarm_after` tokens it raised its alarm (None: it did not)."""

    audit: Audit
    alarm_after: int | None


def audited(
    found: Iterator[Record],
    tokens: int,
    running: Audit,
    *,
    top: int = TOP,
    seen: Callable[[Record], object] = lambda record: None,
    progress: Callable[[Audit], object] = lambda audit: None,
) -> Audited:
    """Audit records until the alarm or `tokens` of them; `seen` is shown every one that was looked at."""
    chunker = Chunker(top)
    while running.tokens < tokens:
        before = running.tokens
        held = list(itertools.islice(found, min(STEP, tokens - before)))
        if not held:
            break
        for record in held:
            seen(record)
        for chunk in chunker.chunks(iter(held)):
            running.update(chunk)
        progress(running)
        alarm = running.alarmed_at
        if alarm is not None:
            return Audited(running, before + 1 + [record.where for record in held].index(alarm))
    return Audited(running, None)


def tokens_for(report: Report, miss: float = 0.01) -> float:
    """Tokens within which biases like those of `report` raise an alarm, except with probability `miss`; inf: no bias.

    Each bet b on a function of mean excess d and deviation s gains about b d - b^2 (s^2 + d^2) / 2 a token. d is an
    estimate from the run itself; functions of unbounded excess are left out, as that approximation is not theirs.
    """
    shares = {function.name: share for function, share in zip(FUNCTIONS, SHARES, strict=True) if not function.one_sided}
    biases = [each for each in report.biases if each.name in shares]
    mean = np.array([each.excess for each in biases]).reshape(-1, 1)
    spread = np.array([each.standard_error * math.sqrt(each.tokens) for each in biases]).reshape(-1, 1)
    gains = BETS * mean - BETS**2 * (spread**2 + mean**2) / 2
    share = np.array([shares[each.name] for each in biases]).reshape(-1, 1)
    bar = -math.log(report.alarm) + np.log(2 * len(BETS) / share)
    return EvidenceGrowth(gains, np.abs(BETS) * spread, np.broadcast_to(bar, gains.shape)).needed(miss)
