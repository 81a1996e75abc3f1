"""PAPER_MAP.md names only what exists, and every statement that the paper numbers."""

import importlib
import re
from pathlib import Path

import pytest

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
