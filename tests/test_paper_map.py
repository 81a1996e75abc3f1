"""PAPER_MAP.md names only what exists, and every statement that the paper numbers."""

import importlib
import re
from pathlib import Path

import pytest

from tests.mutation.fault import item_of, lines
from tests.mutation.paper_map import FAULTS

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "PAPER_MAP.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([^`]+)`", TEXT)) - {"module:name", "file::name"})


@pytest.mark.parametrize("name", [name for name in NAMES if "::" not in name])
def test_code_exists(name):
    module, _, attribute = name.partition(":")
    assert hasattr(importlib.import_module(module), attribute), f"{module} has no {attribute}"


@pytest.mark.parametrize("name", [name for name in NAMES if "::" in name])
def test_tests_and_statements_exist(name):
    file, _, inside = name.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    word = "def" if file.endswith(".py") else "(Theorem|Lemma|Corollary)"
    assert re.search(rf"^\s*{word} {re.escape(inside)}\b", text, re.MULTILINE), f"{file} has no {inside}"


def test_a_dangling_name_would_be_seen():
    assert not hasattr(importlib.import_module("exact.enumeration.tree_classes"), "no_such_name")
    assert len(NAMES) > 50


@pytest.mark.parametrize(
    "item",
    ["Algorithm 1", *(f"Theorem {n}" for n in (1, 3, 6)), *(f"Lemma {n}" for n in (4, 5, 7)), "Remark 2"]
    + [f"Table {n}" for n in (1, 4, 5)]
    + ["Tables 2 and 3", *(f"Figure {n}" for n in (1, 2, 3, 4))]
    + ["Eq. (1)", "Eq. (2)", "Eq. (6)", "Eqs. (3)-(5), (7)-(9)", "Eqs. (10)-(13)", "Eqs. (14)-(18)", "Eq. (19)"],
)
def test_every_numbered_item_has_a_line(item):
    assert any(item in line for line in TEXT.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("item", lines())
def test_every_line_has_a_planted_fault_for_each_of_its_tests(item):
    """In the code that the line names; `test_paper_map_faults.py` runs them."""
    faults = [fault for fault in FAULTS if item_of(fault.line) == item]
    modules, tests = lines()[item]
    assert {test for fault in faults for test in fault.tests} == set(tests)
    assert tests
    for fault in faults:
        assert any(f"{fault.module}.".startswith(f"{module}.") for module in modules), fault.key


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.key)
def test_every_planted_fault_has_its_place_in_the_code(fault):
    source, faulty = fault.sources()
    assert source != faulty
    compile(faulty, fault.module, "exec")


def test_keys_of_planted_faults_are_unique():
    assert len({fault.key for fault in FAULTS}) == len(FAULTS)
