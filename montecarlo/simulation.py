"""Run a suite of checks batch by batch and say what was seen.

The e-processes may be looked at after every batch: the run stops as soon as one on emitted tokens passes its bar.
Chi-square and the total-variation radius are looked at once, at the end. Together they raise a false alarm with
probability at most `alarm`: half of it is shared among the e-processes, half among the tests of the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from exact.runtime.executors import in_order
from montecarlo.checks import INNER, Suite, Tally
from montecarlo.goodness import Fit, fit, log_evidence
from montecarlo.pairs import Ints
from montecarlo.simulator import batches

ALARM = 1e-6
MISS = 0.01


@dataclass(frozen=True)
class Bars:
    """What one check must pass to raise an alarm, when `checks` of them share the false-alarm rate `alarm`."""

    alarm: float
    checks: int

    @property
    def log_evidence(self) -> float:
        """Log of the e-process's bar."""
        return math.log(2 * self.checks / self.alarm)

    @property
    def at_end(self) -> float:
        """False-alarm probability of each of the two tests of the end."""
        return self.alarm / (4 * self.checks)


@dataclass(frozen=True)
class CheckVerdict:
    """One check: its numbers and which of its tests raised an alarm ("" for none)."""

    name: str
    fit: Fit
    alarmed: str

    @property
    def of_tokens(self) -> bool:
        """Whether the check is of the emitted tokens, so that an alarm is evidence of loss."""
        return self.name not in INNER


@dataclass(frozen=True)
class Outcome:
    """Everything seen: tau with its standard error, P(at least d accepted) for d = 0..D, and the checks."""

    cycles: int
    stopped_early: bool
    acceptance_length: float
    standard_error: float
    acceptance_by_depth: tuple[float, ...]
    verdicts: tuple[CheckVerdict, ...]
    alarm: float

    @property
    def evidence_of_loss(self) -> bool:
        """Whether a check of the emitted tokens raised an alarm."""
        return any(verdict.alarmed and verdict.of_tokens for verdict in self.verdicts)

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the claims about the method's inside that raised an alarm."""
        return tuple(verdict.name for verdict in self.verdicts if verdict.alarmed and not verdict.of_tokens)


def simulate(
    suite: Suite,
    cycles: int,
    *,
    alarm: float = ALARM,
    executor: Executor | None = None,
    count: Callable[[Ints], Tally] | None = None,
    start: Tally | None = None,
    progress: Callable[[Tally], object] = lambda tally: None,
) -> Outcome:
    """Run up to `cycles` cycles of a suite; stops at the first alarm of an e-process on emitted tokens.

    With an `executor`, `count` (a picklable function of run numbers, by default `suite.count`) is run in it. `start`
    holds the counts of the first runs, where they have been made already; `progress` is shown the counts after every
    batch.
    """
    bars = Bars(alarm, len(suite.laws))
    tally = start or suite.nothing()
    stopped = _alarm(suite, tally, bars)
    for part in in_order(count or suite.count, batches(tally.cycles, cycles, suite.batch()), executor):
        if stopped:
            break
        tally.add(part)
        progress(tally)
        stopped = tally.cycles < cycles and _alarm(suite, tally, bars)
    return _outcome(suite, tally, bars, stopped)


def _alarm(suite: Suite, tally: Tally, bars: Bars) -> bool:
    """Whether an e-process on emitted tokens has passed its bar."""
    of_tokens = {name: law for name, law in suite.laws.items() if name not in INNER}
    return any(log_evidence(tally.tables[name], law) >= bars.log_evidence for name, law in of_tokens.items())


def _outcome(suite: Suite, tally: Tally, bars: Bars, stopped: bool) -> Outcome:
    n, emitted = tally.cycles, tally.emitted
    mean = float(sum(k * c for k, c in enumerate(emitted)) / n)
    square = float(sum(k * k * c for k, c in enumerate(emitted)) / n)
    verdicts = []
    for name, law in suite.laws.items():
        found = fit(tally.tables[name], law, bars.at_end, MISS)
        verdicts.append(CheckVerdict(name, found, _alarmed(found, bars, stopped)))
    return Outcome(
        cycles=n,
        stopped_early=stopped,
        acceptance_length=mean,
        standard_error=math.sqrt(max(square - mean**2, 0) / n),
        acceptance_by_depth=tuple(float(emitted[d + 1 :].sum() / n) for d in range(suite.shape.depth + 1)),
        verdicts=tuple(verdicts),
        alarm=bars.alarm,
    )


def _alarmed(found: Fit, bars: Bars, stopped: bool) -> str:
    """The first test that raised an alarm; the tests of the end count only when the end was not chosen by the data."""
    if found.impossible:
        return "forbidden outcome"
    if found.log_evidence >= bars.log_evidence:
        return "e-process"
    if not stopped and found.p_value < bars.at_end:
        return "chi-square"
    if not stopped and found.total_variation > found.radius:
        return "total variation"
    return ""
