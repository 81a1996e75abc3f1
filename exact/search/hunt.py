"""The hunt: the exhaustive engine at the small end, chance beyond it, and the smallest case that time allows.

Quick bounds come first. What they miss is looked for by chance and made small. Whatever was found is then held against
wider bounds: every case that is smaller is tried, until nothing smaller is left within them or the time is up. What a
finished hunt finds depends on its seed alone, not on the executor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.enumeration.walk import EnumerationError
from exact.methods.load import own_errors
from exact.runtime import executors
from exact.runtime.journal import Journal
from exact.search.case_evaluation import CaseEvaluator, with_lead
from exact.search.cases import Bounds, Case, Leads, SearchLevel, in_order
from exact.search.exhaustive import KINDS, Coverage, Progress, Subject, sweep
from exact.verdict.certificate import Certificate
from exact.verdict.certify import certify
from exact.verdict.counterexample import Counterexample
from exact.verdict.handed import RefusedCall
from exact.verdict.replay_check import own_parts
from exact.verdict.small_models import small_pairs
from rheo_core import InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.checks import check_count

QUICK, OWN, WIDE, WIDER = "quick", "own lead", "wide", "wider"

BY_STATE: dict[str, tuple[Bounds, ...]] = {
    QUICK: (Bounds(2, 1, 2, 3, 5, 3), Bounds(2, 2, 3, 2, 4, 3), Bounds(3, 1, 3, 3, 3, 2), Bounds(3, 2, 2, 2, 3, 2)),
    OWN: (Bounds(3, 1, 3, 3, 5, 0), Bounds(3, 2, 2, 2, 3, 3), Bounds(3, 2, 3, 3, 3, 2), Bounds(4, 1, 3, 3, 2, 0)),
    WIDE: (
        Bounds(2, 1, 3, 4, 8, 4),
        Bounds(2, 2, 6, 3, 6, 4),
        Bounds(2, 3, 4, 2, 4, 2),
        Bounds(3, 1, 4, 4, 5, 3),
        Bounds(3, 2, 4, 3, 4, 3),
        Bounds(4, 1, 4, 4, 3, 2),
        Bounds(4, 2, 3, 3, 2, 1),
    ),
    WIDER: (
        Bounds(2, 1, 4, 4, 12, 6),
        Bounds(2, 2, 6, 3, 8, 5),
        Bounds(2, 3, 6, 3, 6, 3),
        Bounds(3, 1, 4, 4, 6, 4),
        Bounds(3, 2, 5, 3, 5, 3),
        Bounds(3, 3, 4, 2, 3, 2),
        Bounds(4, 1, 4, 4, 4, 3),
        Bounds(4, 2, 4, 3, 3, 2),
    ),
}
"""For methods that are tried state by state."""

BY_REPLAY: dict[str, tuple[Bounds, ...]] = {
    QUICK: (
        Bounds(2, 1, 2, 3, 4, 2),
        Bounds(2, 2, 2, 2, 3, 1),
        Bounds(3, 1, 1, 2, 4, 0),
        Bounds(3, 1, 3, 3, 3, 1),
        Bounds(3, 2, 2, 2, 2, 1),
    ),
    OWN: (),
    WIDE: (
        Bounds(2, 1, 3, 4, 6, 3),
        Bounds(2, 2, 3, 3, 4, 2),
        Bounds(3, 1, 4, 4, 4, 2),
        Bounds(3, 2, 3, 3, 3, 1),
        Bounds(4, 1, 3, 3, 2, 1),
    ),
    WIDER: (
        Bounds(2, 1, 4, 4, 8, 4),
        Bounds(2, 2, 4, 3, 6, 2),
        Bounds(2, 3, 3, 2, 3, 1),
        Bounds(3, 1, 4, 4, 5, 2),
        Bounds(3, 2, 4, 3, 3, 2),
        Bounds(4, 1, 4, 4, 3, 1),
    ),
}
"""For methods that have to be replayed whole."""

RANDOM_JOBS = 30
"""Jobs of chance before the wide bounds, and as many again after them."""


@dataclass
class Search:
    """What a hunt found and what it tried. `finished` says that all it had planned was done in the time given."""

    method: str
    source: str = ""
    certificate: Certificate | None = None
    coverage: Coverage = field(default_factory=Coverage)
    random_cases: int = 0
    seconds: float = 0
    finished: bool = False

    @property
    def counterexample(self) -> Counterexample | None:
        """The smallest lossy case found."""
        found = None if self.certificate is None else self.certificate.counterexample
        return None if found is None else replace(found, source=self.source)


def search(
    method: Method | str,
    *,
    seconds: float = 60,
    max_vocabulary: int = 4,
    seed: int = 0,
    executor: Executor | None = None,
    lead: int | None = None,
    first: bool = False,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Search:
    """Hunt for the smallest case on which `method` is lossy, for at most `seconds`, and say what was tried.

    `lead` keeps m at one number (a tree method is otherwise tried with every m); `first` stops at the first case found,
    which is small but not held against the wide bounds; `resume` is the file of a journal, in which finished work is
    noted and found again; `progress` is called with what is being tried and the share done.
    Raises `InvalidInput` where the rule breaks on some rows, or refuses all of them, and no counterexample was found.
    """
    check_count("max_vocabulary", max_vocabulary, 2)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidInput("seed", seed, "an int")
    return _Hunt(Subject.of(method), SearchOptions(seconds, executor, lead, resume, progress)).search(
        max_vocabulary, seed, first
    )


def exhaust(
    method: Method | str,
    bounds: Sequence[Bounds],
    *,
    seconds: float = math.inf,
    executor: Executor | None = None,
    lead: int | None = None,
    resume: Path | None = None,
    progress: Progress | None = None,
) -> Search:
    """Try every case within `bounds`, smallest first, until one is lossy: the bounded-exhaustive engine by itself.

    The other arguments are those of `search`. `coverage` of the result says how many cases were covered.

    >>> tried = exhaust("chain", [Bounds(2, depth=1, budget=1, width=1, alike=4, dependent=2)])
    >>> tried.counterexample, tried.finished, tried.coverage.cases
    (None, True, 121)
    """
    return _Hunt(Subject.of(method), SearchOptions(seconds, executor, lead, resume, progress)).exhaust(bounds)


def hunt(
    method: Method | str,
    *,
    seconds: float = 60,
    max_vocabulary: int = 4,
    seed: int = 0,
    executor: Executor | None = None,
) -> Counterexample | None:
    """Give the smallest case on which `method` is lossy that is found within `seconds`; None where none is.

    `method` is a Method, a name of the catalogue, `path.py:name`, or a verification rule. Vocabularies go from 2 to
    `max_vocabulary`; a tree method is tried with every number of leads, and the counterexample says which. `executor`
    is any `concurrent.futures` executor. Raises `InvalidInput` where the rule breaks on some rows and no counterexample
    was found.

    >>> found = hunt("rheo-raw", seconds=20)
    >>> found.shape, found.lead, str(found)
    (TreeShape(width=2, depth=1, budget=1), 0, '(0,): got 1/9, right 1/3')
    """
    return search(method, seconds=seconds, max_vocabulary=max_vocabulary, seed=seed, executor=executor).counterexample


def plan_of(
    subject: Subject, max_vocabulary: int, lead: int | None, bounds: Sequence[Bounds] | None = None
) -> list[SearchLevel]:
    """Give every level that a hunt goes through if it finds nothing, or all those of given bounds."""
    phases = (QUICK, OWN, WIDE, WIDER)
    found = bounds or [each for phase in phases for each in bounds_of(subject.method, phase, max_vocabulary)]
    return in_order(found, Leads(subject.has_leads, lead, isinstance(subject.method, TreeMethod)))


def bounds_of(method: Method, phase: str, max_vocabulary: int) -> list[Bounds]:
    """Give the bounds of one phase up to a vocabulary."""
    by_phase = BY_STATE if isinstance(method, (TreeMethod, FixedTreeMethod)) else BY_REPLAY
    bounds = [each for each in by_phase[phase] if each.vocabulary <= max_vocabulary]
    if phase == OWN:
        bounds += [Bounds(v, 1, 2, 2, 2 if v <= 6 else 1, 0) for v in range(5, max_vocabulary + 1)]
    return bounds


@dataclass(frozen=True)
class SearchOptions:
    """What a hunt is given besides its method; see `search`."""

    seconds: float
    executor: Executor | None = None
    lead: int | None = None
    resume: Path | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        given: Any = self.seconds
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise InvalidInput("seconds", self.seconds, "a positive number of seconds")


class _Hunt:
    """One hunt under way."""

    def __init__(self, subject: Subject, options: SearchOptions) -> None:
        if options.lead is not None and not subject.has_leads:
            raise InvalidInput("lead", options.lead, f"no lead with {subject.method.name}, which has no lead to set")
        self.subject = subject
        self.options = options
        self.start = time.time()
        of_tree = isinstance(subject.method, TreeMethod)
        own = getattr(subject.method, "lead", None) if options.lead is None and subject.has_leads else options.lead
        self.leads = Leads(subject.has_leads, options.lead, of_tree)
        self.own_lead = Leads(subject.has_leads, own, of_tree)
        self.journal = Journal() if options.resume is None else Journal(options.resume, subject.digest, KINDS)
        self.best: Case | None = None
        self.result = Search(subject.method.name, subject.source)

    def search(self, max_vocabulary: int, seed: int, first: bool) -> Search:
        """Give all phases, as far as time goes."""
        self.result.finished = self.phases(max_vocabulary, seed, first) and self.time_is_left(1)
        return self.outcome()

    def exhaust(self, bounds: Sequence[Bounds]) -> Search:
        """Give the bounds given, and nothing else."""
        self.result.finished = self.sweep(bounds, 1)
        return self.outcome()

    def outcome(self) -> Search:
        """Give the result, certified."""
        self.result.seconds = time.time() - self.start
        if self.best is not None:
            self.result.certificate = self.certified(self.best)
        else:
            self.refuse_broken()
            self.watch()
        return self.result

    def watch(self) -> None:
        """Certify a user's own rule on a few rows, where its calls are watched: a refused one was not hunted at all."""
        for pair in islice(small_pairs(), 4) if own_parts(self.subject.method) else ():
            shape = TreeShape(pair.size, 2, 2 * pair.size)
            with suppress(EnumerationError), own_errors(self.subject.method):
                try:
                    certify(self.subject.method, pair.target, pair.draft, shape, every_target=False)
                except InvalidInput as refusal:  # a rule may have no tree of this shape
                    if isinstance(refusal, RefusedCall):
                        raise

    def phases(self, max_vocabulary: int, seed: int, first: bool) -> bool:
        """Look, then look for something smaller; whether everything within the bounds was tried."""

        def within(phase: str) -> list[Bounds]:
            return bounds_of(self.subject.method, phase, max_vocabulary)

        vocabularies = tuple(range(2, max_vocabulary + 1))
        done = self.sweep(within(QUICK), 0.6)
        if not (self.best and first):
            done = self.sweep(within(OWN), 0.8, self.own_lead) and done
        if self.best is None:
            self.random_phase(vocabularies, seed, 0, 0.9)
        if self.best and first:
            return False
        done = self.sweep(within(WIDE), 1) and done
        if self.best is None:
            done = self.sweep(within(WIDER), 1) and done
        if self.best is None and done:
            self.random_phase(vocabularies, seed, RANDOM_JOBS, 1)
        return done

    def deadline(self, share: float) -> float:
        return self.start + share * self.options.seconds

    def time_is_left(self, share: float) -> bool:
        return time.time() < self.deadline(share)

    def sweep(self, bounds: Sequence[Bounds], share: float, leads: Leads | None = None) -> bool:
        """Try every case within the bounds that is smaller than the best so far; whether all were tried."""
        tried = {*self.result.coverage.levels, *self.result.coverage.too_large}
        levels = [
            level for level in in_order(bounds, leads or self.leads) if level not in tried and self.is_smaller(level)
        ]
        found = sweep(
            self.subject,
            levels,
            self.result.coverage,
            executor=self.options.executor,
            deadline=self.deadline(share),
            journal=self.journal,
            progress=self.options.progress,
        )
        if found is not None and (self.best is None or found.size < self.best.size):
            self.best = found
        return found is not None or self.time_is_left(share)

    def is_smaller(self, level: SearchLevel) -> bool:
        """Tell whether the level has cases smaller than the best so far."""
        return self.best is None or level.key <= self.best.level

    def random_phase(self, vocabularies: tuple[int, ...], seed: int, start: int, share: float) -> None:
        """Jobs of random_search, one after another, until one finds something."""
        from exact.search import random_search

        jobs = random_search.jobs(vocabularies, self.leads, seed, RANDOM_JOBS, start)
        deadline = self.deadline(share)
        run = (
            partial(random_search.take, CaseEvaluator(self.subject.method), deadline)
            if self.options.executor is None
            else partial(random_search.run_packed, self.subject.packed, deadline)
        )
        results = executors.in_order(run, jobs, self.options.executor)
        for number, tried in enumerate(results):
            if self.options.progress is not None:
                self.options.progress("by chance", number / RANDOM_JOBS)
            self.result.random_cases += tried.computed
            self.result.coverage.refusals.add(tried.refusals)
            if tried.found is not None:
                self.best = tried.found
            if self.best is not None or not tried.finished:
                results.close()
                return

    def certified(self, case: Case) -> Certificate:
        """Give the certificate of the case found, from the reference code itself."""
        rule = with_lead(self.subject.method, case.lead)
        with own_errors(rule):
            certificate = certify(rule, case.target, case.draft, case.shape, every_target=False)
        if certificate.counterexample is None:
            raise RuntimeError(f"the screen says lossy and the certificate does not, at {case}")
        return certificate

    def refuse_broken(self) -> None:
        """A rule that broke, or that took nothing at all, was not hunted: say so instead of "not found"."""
        refusals = self.result.coverage.refusals
        if refusals.broken:
            expected = f"a rule that runs on every branch (it broke on {refusals.broken} of the rows tried)"
            raise InvalidInput(self.subject.method.name, refusals.first_broken, expected)
        if refusals.refused and not self.result.coverage.computed:
            raise InvalidInput(
                self.subject.method.name, refusals.first_refused, "a rule that takes some rows and shape"
            )
