"""Planted faults in loaded modules, and a test run in which each fault meets its own tests in a forked child.

`python -m tests.mutation.planted [slow] FILE` collects the tests that PAPER_MAP.md names once, forks for each fault of
`paper_map.FAULTS`, exchanges the code of one function (or a value) in the child and runs there the tests that must
fail. FILE gets, as JSON, what became of every test on every fault (with the seconds), and with no fault planted.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from hypothesis import Phase, settings

from tests.mutation.fault import Fault
from tests.mutation.paper_map import FAULTS

PLAIN = (int, float, str, tuple, range, type(None))
"""Values of a module that are exchanged by rebinding their name; other values change in place."""


def plant(fault: Fault) -> None:
    """Exchange the code and the values of a loaded module for those of its faulty source.

    Functions keep their identity, so that every module which imported one runs the faulty code.
    """
    module = importlib.import_module(fault.module)
    source, faulty = fault.sources()
    path = str(module.__file__)
    both = (compile(text, path, "exec", dont_inherit=True) for text in (source, faulty))
    exchange_code(module.__name__, *both)
    twin = ModuleType(module.__name__)
    twin.__file__ = path
    sys.modules[module.__name__], kept = twin, module  # dataclasses look their module up
    try:
        exec(compile(faulty, path, "exec", dont_inherit=True), vars(twin))
    finally:
        sys.modules[module.__name__] = kept
    exchange_values(module, vars(twin))


def exchange_code(name: str, old: CodeType, new: CodeType) -> None:
    """Give every living function of a module that runs a part of `old` the same part of `new`."""
    other = {one: two for one, two in zip(parts(old), parts(new), strict=True) if one != two}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__module__ == name and thing.__code__ in other:
            thing.__code__ = other[thing.__code__]


def parts(code: CodeType) -> Iterator[CodeType]:
    """The code objects within a code object, outer ones first."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from parts(each)


def exchange_values(module: ModuleType, faulty: dict[str, Any]) -> None:
    """Give a module's own values those of the faulty one: plain ones wherever they were imported, others in place."""
    for name, old in list(vars(module).items()):
        if name.startswith("__") or name not in faulty or isinstance(old, (type, ModuleType, FunctionType)):
            continue
        new = faulty[name]
        if isinstance(old, PLAIN):
            if repr(old) != repr(new):
                for each in list(sys.modules.values()):
                    if getattr(each, "__dict__", {}).get(name, faulty) is old:
                        setattr(each, name, new)
        elif type(old).__module__ == module.__name__:
            vars(old).update(vars(new))


class Plugin:
    """Runs the collected tests once for each fault, each time in a child of its own."""

    def __init__(self, faults: Sequence[Fault], path: Path) -> None:
        self.faults = faults
        self.path = path
        self.found: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the control, then every fault."""
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            items.setdefault(item.nodeid.partition("[")[0], []).append(item)
        for fault in self.faults:
            started = time.perf_counter()
            self.found[fault.key] = {test: in_child(fault, items.get(test, [])) for test in fault.tests}
            self.seconds[fault.key] = time.perf_counter() - started
            self.save()
        tests = sorted({test for fault in self.faults for test in fault.tests})
        self.found["control"] = {test: in_child(None, items.get(test, [])) for test in tests}
        self.save()
        return True

    def save(self) -> None:
        """Write what was found so far."""
        found = {"outcomes": self.found, "seconds": self.seconds}
        self.path.write_text(json.dumps(found, indent=1), encoding="utf-8")


def in_child(fault: Fault | None, items: Sequence[pytest.Item]) -> str:
    """What becomes of one test under a fault: "passed", "failed" at its first failure, else why it says nothing."""
    if not items:
        return "not collected"
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 3
        try:
            code = outcome(fault, items)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return {0: "passed", 1: "failed", 2: "skipped"}.get(os.waitstatus_to_exitcode(status), "no fault could be planted")


def outcome(fault: Fault | None, items: Sequence[pytest.Item]) -> int:
    """0 where every test passes, 1 at the first failure, 2 where all are skipped."""
    from _pytest.runner import runtestprotocol

    if fault is not None:
        plant(fault)
    ran = False
    for item in items:
        test: Any = getattr(item, "obj", None)
        given = getattr(test, "_hypothesis_internal_use_settings", None)
        if given is not None:  # that it fails is enough: no smaller example is wanted
            test._hypothesis_internal_use_settings = settings(given, phases=(Phase.explicit, Phase.generate))
        reports = runtestprotocol(item, log=False, nextitem=None)
        if any(report.failed for report in reports):
            return 1
        ran = ran or all(report.passed for report in reports)
    return 0 if ran else 2


def main(arguments: Sequence[str]) -> int:
    """Run the faults of one kind, or those whose key contains a word, and write what was found."""
    *words, path = arguments
    slow = "slow" in words
    chosen = [fault for fault in FAULTS if fault.slow == slow]
    if others := [word for word in words if word != "slow"]:
        chosen = [fault for fault in FAULTS if any(word in fault.key for word in others)]
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(Path(path).parent / "hypothesis")
    tests = sorted({test for fault in chosen for test in fault.tests})
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "faulthandler_timeout=0", "-s", "--tb=no"]
    pytest.main([*options, *tests], plugins=[Plugin(chosen, Path(path))])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
