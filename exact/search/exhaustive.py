"""The bounded-exhaustive engine: every case within bounds, smallest first, until one is lossy or none is left.

Blocks of cases go to any executor and come back in order, so the first lossy one holds the smallest case whatever the
number of workers. Each finished block is noted in a journal, from which an interrupted sweep goes on.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from exact import methods
from exact.methods.load import as_method, load_method
from exact.runtime import executors
from exact.runtime.journal import Journal
from exact.runtime.pickling import PLUGIN, kept, pack, unpack
from exact.search.case_evaluation import BlockResult, CaseEvaluator, with_lead
from exact.search.cases import Case, CaseBlock, Model, SearchLevel, blocks
from exact.search.state_space import Refusals
from rheo_core import Method, TreeMethod, TreeShape, find_method


@dataclass(frozen=True)
class Subject:
    """A method and, where it was given by name, that name."""

    method: Method
    spec: str | None = None
    given: Any = None

    @classmethod
    def of(cls, given: Any) -> Subject:
        """Give a method by itself or by a name of the methods, a verification rule, or either as `path.py:name`."""
        if isinstance(given, str):
            return cls(load_method(given), given)
        if callable(given) and not hasattr(given, "cycle"):
            name = getattr(given, "__name__", "rule")
            return cls(as_method(given, name, name), given=given)
        return cls(find_method(given), given=given)

    @cached_property
    def source(self) -> str:
        """Where a test can find the method: the name it was given by, or one under which a module holds it; else ""."""
        if self.spec is not None:
            return self.spec
        if with_lead(methods.methods.get(self.method.name), 0) == with_lead(self.method, 0):
            return self.method.name
        places = [
            (module, name)
            for module in list(sys.modules.values())
            for name, held in _held(module)
            if held is self.given
        ]
        for module, name in sorted(places, key=lambda place: (len(place[0].__name__), place[1])):
            own_file = module.__name__ == "__main__" or module.__name__.startswith(PLUGIN)
            return f"{module.__file__ if own_file else module.__name__}:{name}"
        return ""

    @property
    def has_leads(self) -> bool:
        """Tell whether the number of leads m can be chosen."""
        return isinstance(self.method, TreeMethod) and self.method.lead is not None

    @cached_property
    def evaluator(self) -> CaseEvaluator:
        """The evaluator of this process."""
        return CaseEvaluator(self.method)

    @cached_property
    def packed(self) -> str | bytes:
        """What is sent to another process: a file's rule by value where it can be, as that may run elsewhere."""
        by_name = self.spec is not None and (":" not in self.spec or find_spec("cloudpickle") is None)
        return self.spec if by_name and self.spec is not None else pack(self.method)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the name, with the file's text where it is one, or of the pickled object."""
        if self.spec is None:
            return hashlib.sha256(pack(self.method)).hexdigest()
        path = self.spec.rpartition(":")[0]
        text = Path(path).read_bytes() if path else b""
        return hashlib.sha256(self.spec.encode() + b"\0" + text).hexdigest()


def _held(module: ModuleType) -> list[tuple[str, Any]]:
    """What a module that comes from a file holds by name."""
    return list(vars(module).items()) if getattr(module, "__file__", None) else []


def evaluator_of(packed: str | bytes) -> CaseEvaluator:
    """This thread's evaluator of a packed method; what it has computed is kept from job to job."""
    return kept(packed, lambda: CaseEvaluator(load_method(packed) if isinstance(packed, str) else unpack(packed)))


def try_block(packed: str | bytes, deadline: float, block: CaseBlock) -> BlockResult:
    """Give one block of cases, as a job."""
    return evaluator_of(packed).block(block, deadline)


KINDS = (CaseBlock, SearchLevel, TreeShape, BlockResult, Refusals, Case, Model)
"""What a hunt's journal holds."""


@dataclass
class Coverage:
    """What has been covered: levels finished, the cases that they hold, and the work that it took.

    A level with blocks too large to enumerate is listed under `too_large` and its cases are not counted.
    """

    levels: list[SearchLevel] = field(default_factory=list)
    too_large: list[SearchLevel] = field(default_factory=list)
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
    levels: Iterable[SearchLevel],
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
    run = (
        partial(_local, subject.evaluator, deadline)
        if executor is None
        else partial(try_block, subject.packed, deadline)
    )
    fresh = executors.in_order(run, todo, executor)
    try:
        done = 0
        for level in planned:
            whole = True
            for first in range(len(level.laws)):
                block = CaseBlock(level, first)
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


def _local(evaluator: CaseEvaluator, deadline: float, block: CaseBlock) -> BlockResult:
    return evaluator.block(block, deadline)
