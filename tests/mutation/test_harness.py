"""The harness itself: what it changes, that it kills what it must, and (slow) its whole run."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.__main__ import MODULES
from tests.mutation.mutants import mutants
from tests.mutation.survivors import REASONS

SOURCE = '''
"""A module."""
LIMIT = 3

def pick(row: list[int], flag: bool = True) -> int:
    """A docstring with 1 + 1."""
    if not row:
        raise ValueError(f"{1 + 1} is not enough")
    best = min(row)
    for entry in row:
        if entry > best and flag:
            best += entry
    return best - LIMIT
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sample.py").write_text(SOURCE)
    return Path("sample.py")


def test_every_kind_of_change_is_made_once(module):
    keys = [mutant.key.partition("::")[2] for mutant in mutants(module)]
    assert keys == [
        "module: 3 -> 4",
        "pick: line dropped: best = min(row)",
        "pick: line dropped: for entry in row: if entry > best and flag: best += entry",
        "pick: line dropped: return best - LIMIT",
        "pick: True -> False",
        "pick: min(row) -> max(row)",
        "pick: line dropped: if entry > best and flag: best += entry",
        "pick: condition negated: entry > best and flag",
        "pick: line dropped: best += entry",
        "pick: entry > best and flag -> entry > best or flag",
        "pick: entry > best -> entry >= best",
        "pick: best += entry -> best -= entry",
        "pick: best - LIMIT -> best + LIMIT",
    ]


def test_mutants_compile_and_differ_from_the_source(module):
    original = ast.unparse(ast.parse(SOURCE))
    for mutant in mutants(module):
        compile(mutant.code(), "sample.py", "exec")
        assert ast.unparse(mutant.code()) != original


@pytest.mark.parametrize("name", MODULES)
def test_keys_are_unique(name):
    keys = [mutant.key for mutant in mutants(MODULES[name])]
    assert len(keys) == len(set(keys))


@pytest.mark.slow
def test_every_reason_belongs_to_a_mutant():
    keys = {mutant.key for name in MODULES for mutant in mutants(MODULES[name])}
    assert set(REASONS) <= keys


def harness(*arguments):
    command = [sys.executable, "-m", "tests.mutation", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_quick_part_kills_a_planted_fault_and_lets_an_equivalent_change_live():
    planted = harness("--quick", "--module", "verification", "--only", "algorithm_1: line dropped: r = residual")
    assert "1 mutants, 1 killed, 0 survive" in planted.stdout
    harmless = harness("--quick", "--module", "verification", "--only", "ratio: p >= q -> p > q")
    assert "1 mutants, 0 killed, 1 survive" in harmless.stdout
    assert (planted.returncode, harmless.returncode) == (0, 0)


@pytest.mark.slow
def test_every_mutant_is_killed_or_explained():
    run = harness()
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr
