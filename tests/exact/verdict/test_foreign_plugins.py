"""`assert_lossless` where other people's pytest plugins count, trace, reseed and patch around it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.exact

PLUGIN = """
import builtins, gc, os, random, sys, time

import numpy
import pytest
import rheo_core.verification

CALLS = {"gc": 0, "import": 0, "profile": 0, "trace": 0}
loaded = builtins.__import__


def count(name):
    CALLS[name] += 1


def imported(*args, **kwargs):
    count("import")
    return loaded(*args, **kwargs)


def traced(frame, event, arg):
    count("trace")
    return traced


builtins.__import__ = imported
gc.callbacks.append(lambda phase, info: count("gc"))


@pytest.fixture(autouse=True)
def reseeded():
    random.seed(1)
    numpy.random.seed(1)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    os.environ["LAST"] = str(time.perf_counter())
    sys.setprofile(lambda frame, event, arg: count("profile"))
    sys.settrace(traced)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        sys.setprofile(None)


def pytest_sessionfinish():
    assert all(CALLS.values()), CALLS
"""

RULES = """
from exact import assert_lossless
from rheo_core import TreeShape, method
from rheo_core.verification import algorithm_1

SMALL = TreeShape(2, 1, 1)


def ratio(p, q):
    return min(1, p / q)


@method
def chain(target, draft, prefix, shape, chooser):
    p, q = target(prefix), draft(prefix)
    x = chooser.index(q)
    if chooser.accept(ratio(p[x], q[x])):
        return [x]
    return [chooser.index([max(0, a - b) for a, b in zip(p, q, strict=True)])]


def test_a_cycle():
    assert_lossless(chain, examples=1, shape=SMALL)


def test_a_verification_rule():
    assert_lossless(algorithm_1, examples=1, shape=SMALL)


def test_a_name_by_the_fixture(assert_lossless):
    assert_lossless("rheo", examples=1, shape=SMALL)
"""

KEEPS_SOMETHING = '''
import functools

def pytest_collection_finish(session):
    """Counts in the user's own module, which the rule reaches."""
    module = session.items[0].module
    original = module.ratio

    @functools.wraps(original)
    def counted(p, q):
        counted.calls += 1
        return original(p, q)

    counted.calls = 0
    module.ratio = counted
'''


def run_beside(folder, plugin):
    (folder / "foreign.py").write_text(plugin)
    (folder / "test_rules.py").write_text(RULES)
    path = os.pathsep.join([str(folder), str(Path(__file__).parents[3])])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "foreign", str(folder)]
    return subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.certificate
def test_what_a_plugin_keeps_for_itself_is_nothing_of_the_rules(tmp_path):
    run = run_beside(tmp_path, PLUGIN)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr
    assert "3 passed" in run.stdout


def test_what_a_plugin_keeps_in_the_rule_is_refused_by_name(tmp_path):
    """The planted fault: a patch of the user's own function that counts its calls."""
    run = run_beside(tmp_path, KEEPS_SOMETHING)
    assert "1 failed, 2 passed" in run.stdout, run.stdout[-3000:] + run.stderr
    assert "a call that changes attribute `calls` of ratio" in run.stdout
