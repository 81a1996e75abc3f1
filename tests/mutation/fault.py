"""What a planted fault is, and the lines of PAPER_MAP.md that it belongs to."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

SLOW = (
    *(
        "tests/exact/proofs/",
        "tests/gpu_runner/",
        "tests/montecarlo/",
        "test_losslessness",
        "test_catalogue",
        "test_facts",
    ),
    *("test_verification", "test_the_layered_tree", "test_tree_classes", "test_commands", "test_drawing", "any_rows"),
)
"""Tests that take some seconds each: their faults run under `-m slow`."""


@cache
def lines() -> dict[str, tuple[list[str], list[str]]]:
    """The lines of PAPER_MAP.md: item -> modules of the code that it names, Python tests that it names."""
    found = {}
    for line in (ROOT / "PAPER_MAP.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| item"):
            item, code, tests = (cell.strip() for cell in line.strip("| ").split(" | ", 2))
            modules = [name.partition(":")[0] for name in re.findall(r"`([^`]+)`", code)]
            found[item] = modules, [name for name in re.findall(r"`([^`]+)`", tests) if ".py::" in name]
    return found


def item_of(beginning: str) -> str:
    """The one item of the map that begins so."""
    (item,) = [item for item in lines() if item.startswith(beginning)]
    return item


@dataclass(frozen=True)
class Fault:
    """`old` becomes `new` in a module, and every test of the line whose name holds one of `caught` must fail.

    `old` stands once in the module, and the fault moves no line.
    """

    line: str
    module: str
    old: str
    new: str
    caught: tuple[str, ...] = ("",)

    @property
    def key(self) -> str:
        """The item of the map, and what is broken."""
        return f"{item_of(self.line)}: {self.module}: {self.new.strip()}"

    @property
    def tests(self) -> list[str]:
        """The tests that must fail."""
        return [test for test in lines()[item_of(self.line)][1] if any(name in test for name in self.caught)]

    @property
    def slow(self) -> bool:
        """Whether its tests take longer than a plain run may."""
        return any(name in test for name in SLOW for test in self.tests)

    def sources(self) -> tuple[str, str]:
        """The module's text without and with the fault."""
        spec = importlib.util.find_spec(self.module)
        assert spec is not None
        assert spec.origin is not None
        text = Path(spec.origin).read_text(encoding="utf-8")
        assert text.count(self.old) == 1, f"{self.module} has {text.count(self.old)} times {self.old!r}"
        assert self.old.count("\n") == self.new.count("\n"), f"{self.new!r} moves lines"
        return text, text.replace(self.old, self.new)
