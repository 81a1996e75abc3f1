"""Each test that PAPER_MAP.md names fails on a fault planted in the code of its line, and passes without one.

All faults of a kind run in one process that forks for each (`tests/mutation/planted.py`); those whose tests take long
are marked slow. That a line without a fault, and a fault without a place, fail is in `test_paper_map.py`.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.mutation.paper_map import FAULTS

pytest.importorskip("torch", reason="torch is not installed (extra `torch`): lines of gpu_runner cannot be broken")
pytest.importorskip("z3", reason="z3 is not installed (extra `prove`): lines of exact.proofs cannot be broken")
pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed (extra `plot`): lines of figures cannot be broken"
)

if not hasattr(os, "fork"):
    pytest.skip("this system has no fork", allow_module_level=True)


def outcomes(tmp_path_factory, *words):
    path = tmp_path_factory.mktemp("planted") / "found.json"
    command = [sys.executable, "-m", "tests.mutation.planted", *words, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    assert path.exists(), run.stdout[-2000:] + run.stderr[-2000:]
    return json.loads(path.read_text())["outcomes"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return outcomes(tmp_path_factory)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return outcomes(tmp_path_factory, "slow")


@pytest.mark.parametrize("fault", [each for each in FAULTS if not each.slow], ids=lambda fault: fault.key)
def test_a_planted_fault_is_caught_by_the_tests_of_its_line(fault, quick):
    assert set(quick[fault.key].values()) == {"failed"}, quick[fault.key]


@pytest.mark.slow
@pytest.mark.parametrize("fault", [each for each in FAULTS if each.slow], ids=lambda fault: fault.key)
def test_a_planted_fault_is_caught_by_the_slower_tests_of_its_line(fault, slow):
    assert set(slow[fault.key].values()) == {"failed"}, slow[fault.key]


def test_without_a_fault_the_same_tests_pass(quick):
    """The control; of the slow faults' tests where those are run."""
    assert set(quick["control"].values()) == {"passed"}, quick["control"]


@pytest.mark.slow
def test_without_a_fault_the_slower_tests_pass(slow):
    assert set(slow["control"].values()) == {"passed"}, slow["control"]
