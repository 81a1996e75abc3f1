"""Randomness that nobody catches is refused by name and line; libraries may use it for themselves."""

import cProfile
import ctypes
import datetime
import functools
import os
import pathlib
import random
import secrets
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from random import Random
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from exact.runtime.census import Census, place_of
from exact.runtime.patches import applied
from exact.runtime.unseen import Watch, stand_ins
from exact.runtime.unsupported import Unsupported

pytestmark = pytest.mark.exact
MADE_BEFORE = Random(1)
IN_C = Random.__base__(1)  # type: ignore[misc]
NUMPYS = np.random.default_rng(1)
RARELY = [0]


def rarely():
    RARELY[0] += 1
    return os.urandom(1) if RARELY[0] == 3 else 0


def swallowed():
    try:
        return os.urandom(1)
    except Exception:
        return 0


SOURCES: dict[str, Any] = {
    "os.urandom": lambda: os.urandom(1),
    "os.getrandom": lambda: os.getrandom(1),
    "os.urandom, swallowed": swallowed,
    "os.urandom, by map": lambda: list(map(os.urandom, [2])),
    "os.urandom, by partial": lambda: functools.partial(os.urandom, 2)(),
    "os.urandom, by a thread's name": lambda: list(map(getattr(os, "uran" + "dom"), [2])),
    "os.urandom, by secrets": lambda: secrets.randbelow(2),
    "os.urandom, by SystemRandom": lambda: random.SystemRandom().random(),
    "os.urandom, by uuid": lambda: uuid.uuid4(),
    "os.urandom, by NumPy": lambda: np.random.default_rng(),
    "time.time": lambda: time.time(),
    "time.perf_counter": lambda: perf_counter(),
    "time.perf_counter_ns": lambda: sorted([1, 2], key=lambda _: time.perf_counter_ns()),
    "datetime.datetime.now": lambda: datetime.datetime.now(),
    "datetime.date": lambda: datetime.date.today(),
    "open../dev/urandom": lambda: open("/dev/urandom", "rb"),  # noqa: SIM115
    "open../dev/random": lambda: os.open("/dev/random", os.O_RDONLY),
    "open.*urandom": lambda: pathlib.Path("/dev/urandom").open("rb"),  # noqa: SIM115
    "open.*urandom, by NumPy": lambda: np.fromfile("/dev/urandom", count=1),
    "subprocess.Popen": lambda: subprocess.run(["true"]),
    "os.fork": lambda: os.fork(),
    "threading.start_new_thread": lambda: threading.Thread(target=print).start(),
    "random.Random.random": lambda: MADE_BEFORE.random(),
    "random.Random.getrandbits": lambda: MADE_BEFORE.choice([1, 2]),
    "_random.Random.random": lambda: IN_C.random(),
    "builtins.id": lambda: id(SOURCES) % 2,
    "builtins.hash": lambda: hash("a") % 2,
    "os.getpid": lambda: os.getpid(),
    "tempfile.mktemp": lambda: tempfile.mktemp(),
    "tempfile.mkdtemp": lambda: tempfile.mkdtemp(),
    "the name of a temporary file": lambda: len(tempfile.NamedTemporaryFile().name),  # noqa: SIM115
    "ctypes": lambda: ctypes.CDLL(None).rand(),
}


@pytest.mark.parametrize("named", SOURCES)
def test_a_source_is_refused_by_name_and_line(named):
    patches, originals = stand_ins()
    assert id(time.time) in originals
    with applied(patches), pytest.raises(Unsupported, match=named.partition(",")[0]) as error:
        Watch().call(SOURCES[named])
    assert "test_unseen.py:" in str(error.value)
    assert sys.getprofile() is None


def test_without_the_hook_they_would_pass():
    for function in (lambda: time.time(), lambda: os.getrandom(1), lambda: IN_C.random(), lambda: os.getpid()):
        assert function() is not None  # the same calls, not watched: nothing stops them
    with applied(stand_ins()[0]):
        assert time.time() > 0  # and the replacements refuse only under a watch
    assert Watch().call(lambda: list(map(os.urandom, [2])))  # which C calls past the hook, without the replacement


def test_a_rare_branch_is_seen_when_it_is_run():
    watch = Watch()
    assert [watch.call(rarely) for _ in range(2)] == [0, 0]
    with pytest.raises(Unsupported, match=r"os\.urandom"):
        watch.call(rarely)


def test_libraries_draw_for_themselves():
    def quiet():
        with tempfile.NamedTemporaryFile():
            return 1

    assert Watch().call(quiet) == 1
    assert Watch().call(lambda: open(os.devnull).close()) is None


def test_a_profiler_that_was_there_comes_back():
    events = []

    def outer(frame, event, arg):
        events.append(event)

    sys.setprofile(outer)
    try:
        Watch().call(lambda: len([1]))
        assert sys.getprofile() is outer
    finally:
        sys.setprofile(None)
    assert "c_call" in events
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        assert Watch().call(lambda: 2) == 2
        with pytest.raises(Unsupported):
            Watch().call(lambda: time.time())
        len([1])
    finally:
        profiler.disable()
    assert any("len" in str(entry.code) for entry in profiler.getstats())


def hidden():
    deep = {"a": {"b": [np.random.default_rng(3)]}}
    return lambda: deep["a"]["b"][0].random()


class Held:
    def __init__(self):
        self.state = np.random.RandomState(1)


HELD = Held()


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda: NUMPYS.random(), "`NUMPYS` of tests.exact.runtime.test_unseen"),
        (lambda: next(iter(NUMPYS.random, None)), "NUMPYS"),
        (lambda: list(map(NUMPYS.integers, [5])), "NUMPYS"),
        (lambda: sorted([1, 2], key=lambda _: NUMPYS.random()), "NUMPYS"),
        (hidden(), "PCG64"),
        (lambda: HELD.state.rand(), "RandomState"),
        (lambda: list(map(MADE_BEFORE.gauss, [0], [1])), "MADE_BEFORE"),
        (lambda: next(iter(IN_C.random, None)), "IN_C"),
        (lambda: np.random.random(), "numpy.random"),
    ],
)
def test_a_generator_that_moved_is_named(function, named):
    census = Census({"IN_C": IN_C})
    assert census.moved() == []
    function()
    moved = census.moved()
    assert len(moved) >= 1
    assert any(named in each for each in moved), moved
    assert census.moved() == []


def test_a_census_knows_torch_generators_by_place():
    torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
    generator = torch.Generator()
    census = Census({"`g`": generator})
    torch.rand(1, generator=generator)
    assert census.moved() == ["torch._C.Generator (`g`)"]
    assert "HELD" in place_of(HELD)
