"""How fast the exact law and the classes are; limits are asserted at three times the figure that is aimed at."""

import re
import time
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction as F
from multiprocessing import get_context
from pathlib import Path

import pytest

from exact import target_law
from exact.enumeration.rationals import rational_models
from exact.enumeration.tree_classes import brute_force_classes, grown_classes
from exact.verdict.every_target import first_failing, first_moved, most_probable
from rheo_core import ModelPair, TreeShape
from tests.exact.laws import text_law
from tests.pairs import alike, both, rational, rule

pytestmark = pytest.mark.benchmark


def best_of(times, program):
    """The least of several wall times in seconds, and the last result."""
    least = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        result = program()
        least = min(least, time.perf_counter() - start)
    return least, result


def test_the_law_of_four_tokens():
    """0.5 s is the figure: V = 5, m = 1, K = 3, D = 4, R = 12, everywhere q = [10, 4, 3, 2, 1] / 20."""
    row = rational(10, 4, 3, 2, 1)
    target = alike(rational(1, 2, 3, 4, 5))
    seconds, found = best_of(3, lambda: text_law("rheo", target, alike(row), TreeShape(3, 4, 12), 4))
    assert found == target_law(target, 4)
    assert seconds < 3 * 0.5


def test_classes_are_a_hundred_times_faster_than_brute_force():
    """Brute force over growth at V = 8, m = 1, K = 4, D = 2, R = 10, uniform q: 343 classes; both read kept rows."""
    shape, row = TreeShape(4, 2, 10), [F(1, 8)] * 8
    drafter = rule("rheo").drafter(rational_models(ModelPair(*both(row))), shape)
    fast, classes = best_of(20, lambda: list(grown_classes(drafter, (), shape)))
    slow, oracle = best_of(2, lambda: brute_force_classes(drafter, (), shape))
    assert len(classes) == len(oracle) == 343
    assert slow / fast >= 100


def _share(part):
    """One process's part of the certificate at the paper's own shape: every second class, one filling a class."""
    parts, row = 2, rational(7, 2, 1)
    shape = TreeShape(10, 8, 59)
    drafter = rule("rheo").drafter(rational_models(ModelPair(*both(row))), shape)
    mine = [each for number, each in enumerate(grown_classes(drafter, (), shape)) if number % parts == part]
    moved = first_moved(mine, drafter, (), shape, (most_probable,))
    failing = first_failing(mine, drafter, ())
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # `ru_maxrss` would keep the parent's peak
    memory = int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 2**20
    return len(mine), moved is None and failing is None, memory


def test_the_certificate_at_the_papers_own_shape():
    """120 s and 2 GiB are the figures: D = 8, R = 59, K = 10, V = 3, m = 1, 27,536 classes, two processes."""
    start = time.perf_counter()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_share, range(2)))
    seconds = time.perf_counter() - start
    print(f"\n27,536 classes in {seconds:.1f} s, {sum(memory for _, _, memory in found):.2f} GiB")
    assert sum(count for count, _, _ in found) == 27_536
    assert all(holds for _, holds, _ in found)
    assert seconds < 3 * 120
    assert sum(memory for _, _, memory in found) < 2
