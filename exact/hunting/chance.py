"""Looking for lossy cases by chance: seeded jobs that can run anywhere, each ending in a case made small.

A job tries a number of directed cases, or lets Hypothesis choose and shrink. The seed of a job is made of the hunt's
seed and the job's number, so the first job that finds something is the same whoever runs it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample, Unsatisfiable

from exact.hunting.bounds import Leads
from exact.hunting.cases import Case
from exact.hunting.families import cases, directed
from exact.hunting.shrink import shrink
from exact.hunting.subject import trier_of
from exact.hunting.tries import Tried, Trier

DIRECTED_CASES, HYPOTHESIS_CASES = 100, 100
"""Cases tried by one job of each kind."""


@dataclass(frozen=True)
class Chance:
    """A job: which vocabularies and m to try, the seed, and whether Hypothesis chooses the cases."""

    vocabularies: tuple[int, ...]
    leads: Leads
    seed: str
    by_hypothesis: bool


def jobs(vocabularies: tuple[int, ...], leads: Leads, seed: int, count: int, start: int = 0) -> Iterator[Chance]:
    """`count` jobs from number `start` on, every third of them by Hypothesis."""
    for number in range(start, start + count):
        yield Chance(vocabularies, leads, f"{seed}/{number}", number % 3 == 2)


def try_chance(packed: str | bytes, deadline: float, chance: Chance) -> Tried:
    """One job, up to the time.time() of `deadline`."""
    return take(trier_of(packed), deadline, chance)


def take(trier: Trier, deadline: float, chance: Chance) -> Tried:
    """One job with a given trier."""
    trier.tried = tried = Tried()
    trier.deadline = deadline

    def may_go_on() -> bool:
        return time.time() < deadline

    def is_lossy(case: Case) -> bool:
        if not may_go_on():
            return False
        tried.computed += 1
        return trier.is_lossy(case)

    def variant(case: Case) -> Case | None:
        tried.computed += 1
        return trier.lossy_variant(case) if may_go_on() else None

    found = _by_hypothesis(chance, is_lossy) if chance.by_hypothesis else _directed(chance, variant)
    tried.finished = may_go_on()
    if found is not None:
        tried.found = shrink(found, trier.lossy_variant, chance.leads, may_go_on)
    return tried


def _directed(chance: Chance, variant: Callable[[Case], Case | None]) -> Case | None:
    choices = random.Random(chance.seed)
    tried = (variant(directed(choices, chance.vocabularies, chance.leads)) for _ in range(DIRECTED_CASES))
    return next((case for case in tried if case is not None), None)


def _by_hypothesis(chance: Chance, is_lossy: Callable[[Case], bool]) -> Case | None:
    quiet = settings(
        database=None,
        deadline=None,
        max_examples=HYPOTHESIS_CASES,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        return find(
            cases(chance.vocabularies, chance.leads), is_lossy, settings=quiet, random=random.Random(chance.seed)
        )
    except (NoSuchExample, Unsatisfiable):
        return None
