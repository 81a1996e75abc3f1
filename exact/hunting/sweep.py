"""The bounded-exhaustive engine: every case within bounds, smallest first, until one is lossy or none is left.

Blocks of cases go to any executor and come back in order, so the first lossy one holds the smallest case whatever the
number of workers. Each finished block is noted in a journal, from which an interrupted sweep goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial

from exact import executors
from exact.hunting.bounds import blocks
from exact.hunting.cases import Case, Level, Model
from exact.hunting.process import Refusals
from exact.hunting.subject import Subject, try_block
from exact.hunting.tries import Block, Tried, Trier
from exact.journal import Journal
from rheo_core import TreeShape

KINDS = (Block, Level, TreeShape, Tried, Refusals, Case, Model)
"""What a hunt's journal holds."""


@dataclass
class Coverage:
    """What has been covered: levels finished, the cases that they hold, and the work that it took.

    A level with blocks too large to enumerate is listed under `too_large` and its cases are not counted.
    """

    levels: list[Level] = field(default_factory=list)
    too_large: list[Level] = field(default_factory=list)
    computed: int = 0
    refusals: Refusals = field(default_factory=Refusals)

    @property
    def cases(self) -> int:
        """The number of cases in the levels covered."""
        return sum(level.cases for level in self.levels)


Progress = Callable[[str, float], None]
"""Called with what is being tried and the share of blocks that are done."""


def sweep(
    subject: Subject,
    levels: Iterable[Level],
    coverage: Coverage,
    *,
    executor: Executor | None = None,
    deadline: float = float("inf"),
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Case | None:
    """Try `levels` in order up to the time.time() of `deadline`; the first lossy case, which is the smallest.

    `coverage` grows with every level that is done; whether all are done shows in its levels.
    """
    planned = list(levels)
    journal = journal or Journal()
    total = sum(len(level.laws) for level in planned)
    todo = [block for block in blocks(planned) if block not in journal.known]
    run = partial(_local, subject.trier, deadline) if executor is None else partial(try_block, subject.packed, deadline)
    fresh = executors.in_order(run, todo, executor)
    try:
        done = 0
        for level in planned:
            whole = True
            for first in range(len(level.laws)):
                block = Block(level, first)
                if progress is not None:
                    progress(str(level), done / total)
                tried = journal.known[block] if block in journal.known else next(fresh)
                coverage.computed += tried.computed
                coverage.refusals.add(tried.refusals)
                if tried.finished and block not in journal.known:
                    journal.note(block, tried)
                if tried.found is not None or not tried.finished:
                    return tried.found
                whole = whole and not tried.too_large
                done += 1
            (coverage.levels if whole else coverage.too_large).append(level)
            if time.time() > deadline:
                return None
        return None
    finally:
        fresh.close()


def _local(trier: Trier, deadline: float, block: Block) -> Tried:
    return trier.block(block, deadline)
