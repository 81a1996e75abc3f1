"""Run tests on a mutant: in a forked child, where one module is loaded from its changed code.

The parent has imported what is heavy (NumPy, SciPy, Hypothesis, pytest) and nothing of this project, so a child starts
at once and sees the mutant everywhere.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

from tests.mutation.mutants import Mutant

MEMORY = 4 * 2**30  # what is written to, not what is reserved: a browser reserves far more
FAILED, SURVIVED, TIMED_OUT, COLLAPSED = "killed", "survived", "killed (no end)", "killed (error)"


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant, and after how many seconds."""

    mutant: Mutant
    outcome: str
    seconds: float

    @property
    def survived(self) -> bool:
        """Whether every test passed."""
        return self.outcome == SURVIVED


class _Finder:
    """Loads one module from changed code."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self.mutant.module:
            return None
        file = str(self.mutant.path.resolve())
        return importlib.util.spec_from_file_location(name, file, loader=_Loader(name, file, self.mutant))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.mutant.code(), self.path, "exec")


def preload() -> None:
    """Import what is heavy, once."""
    import hypothesis.extra.numpy
    import numpy as np
    import pytest
    import rich.table
    import scipy.optimize
    import scipy.sparse
    import scipy.stats
    import typer

    assert all((hypothesis, np, pytest, rich, scipy, typer))


def judge(mutant: Mutant | None, arguments: Sequence[str] | None, seconds: int) -> tuple[str, float]:
    """Run pytest with these arguments, or the quick part (None), on a mutant (None: on the unchanged program).

    `seconds` of processor time at most: a mutant that does not end is killed.
    """
    loaded = [name for name in sys.modules if name.split(".")[0] in ("rheo_core", "exact", "montecarlo")]
    assert not loaded, f"the project is loaded already: {loaded[:3]}"
    start = time.monotonic()
    child = os.fork()
    if not child:
        if mutant is not None:
            _silence()
        os._exit(_run(mutant, arguments, seconds))
    _, status = os.waitpid(child, 0)
    spent = time.monotonic() - start
    if os.WIFSIGNALED(status):
        return TIMED_OUT, spent
    code = os.WEXITSTATUS(status)
    return {0: SURVIVED, 1: FAILED}.get(code, COLLAPSED), spent


def _silence() -> None:
    """A mutant's failures are its verdict; only those of the unchanged program are read."""
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)


def _run(mutant: Mutant | None, arguments: Sequence[str] | None, seconds: int) -> int:
    import pytest

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(10 * seconds)  # what waits uses no processor time
    sys.dont_write_bytecode = True
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    try:
        if arguments is None:
            from tests.mutation.quick import check

            check()
            return 0
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-o", "faulthandler_timeout=0", *arguments]))
    except BaseException:
        return 1
