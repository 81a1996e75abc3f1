"""A function that does not end: on the command line there are bounds, and what was covered until then is said."""

import time
from contextlib import suppress
from fractions import Fraction as F

import pytest

from exact.cli import options
from exact.cli.certify_torch import LIMIT, SECONDS, FunctionOutOfTime, RunLimits, timed
from exact.cli.main import app
from exact.enumeration.walk import DRAWS, EnumerationError, TooManyDraws, TooManyOutcomes, law
from exact.interception import Interception
from rheo_core import InvalidInput

pytestmark = pytest.mark.exact

ENDLESS = """
import random
target = {0: 0.5, 1: 0.5}

def until_it_accepts():
    while random.random() >= 0.5:
        pass
    return 0

def while_it_accepts():
    while random.random() < 0.5:
        pass
    return 0

def spins():
    if random.random() < 0.5:
        return 0
    while True:
        pass


def ends():
    return int(random.random() < 0.5)
"""


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS, encoding="utf-8")
    return lambda name: f"{path}:{name}"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        (
            "until_it_accepts",
            ["--limit", "40"],
            "more than 40 outcomes (those enumerated hold all but 9.09e-13 of the mass)",
        ),
        ("while_it_accepts", ["--limit", "40"], f"a run of more than {DRAWS} random calls, which may never end"),
        ("while_it_accepts", [], f"a run of more than {DRAWS} random calls, which may never end"),
        ("spins", ["--seconds", "1.5"], "not done after 1.5 s (the runs enumerated hold 0.5 of the mass)"),
    ],
)
def test_what_does_not_end_is_ended_with_the_mass_covered(spec, capsys, name, arguments, said):
    start = time.monotonic()
    assert options.run(app, ["certify", "--torch", spec(name), *arguments]) == 2
    assert time.monotonic() - start < 60
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert said in err
    assert "--limit N" in err or "--seconds" in err


def test_what_ends_within_the_bounds_is_certified(spec):
    assert options.run(app, ["certify", "--torch", spec("ends"), "--limit", "2"]) == 0
    assert options.run(app, ["certify", "--torch", spec("ends"), "--limit", "1"]) == 2
    assert options.run(app, ["certify", "--torch", spec("ends"), "--limit", "0", "--seconds", "0"]) == 0


def test_zero_lifts_a_bound_and_none_is_the_default():
    assert (RunLimits().limit, RunLimits().seconds) == (LIMIT, SECONDS)
    assert RunLimits(0, 0).limit is None
    for outcomes, seconds in ((-1, 1), (True, 1), (1.5, 1), (1, -1), (1, float("inf")), (1, float("nan"))):
        with pytest.raises(InvalidInput, match="limit" if seconds == 1 else "seconds"):
            RunLimits(outcomes, seconds)  # type: ignore[arg-type]


def test_the_alarm_passes_code_that_swallows_every_exception_but_its_own_end():
    def stubborn():
        while True:
            with suppress(Exception):
                time.sleep(0.01)

    with pytest.raises(FunctionOutOfTime, match=r"not done after 0\.05 s; --seconds"), timed(0.05):
        stubborn()
    with timed(0.05):
        pass
    time.sleep(0.1)  # an alarm that was not taken back would ring here


def test_without_a_limit_a_long_run_is_walked():
    def long(chooser):
        return sum(chooser.accept(1) for _ in range(DRAWS + 1))

    assert law(long) == {DRAWS + 1: 1}
    with pytest.raises(TooManyDraws) as caught:
        law(long, limit=5)
    assert (caught.value.most, caught.value.covered) == (DRAWS, F(0))
    assert isinstance(caught.value, EnumerationError)


def test_interception_takes_the_same_limit():
    import random

    def endless():
        while random.random() >= 0.25:
            pass
        return 0

    with pytest.raises(TooManyOutcomes) as caught:
        Interception(limit=3).law(endless)
    assert caught.value.covered == 1 - F(3, 4) ** 3
