"""Mutated command lines and files: every call of the three programs ends in good order; the many are `slow`."""

import pytest

from tests import fuzz

pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")


@pytest.mark.parametrize(
    "count",
    [
        20,
        pytest.param(60, marks=pytest.mark.certificate),
        pytest.param(300, marks=pytest.mark.slow),
        pytest.param(10_000, marks=pytest.mark.slow),
    ],
)
def test_every_malformed_call_ends_in_good_order(count):
    counted, bad = fuzz.fuzz(count)
    print(f"{count} calls: {dict(sorted(counted.items()))}")
    assert [(each.problem, each.line, each.err) for each in bad] == []
    assert sum(counted.values()) == count
    assert counted["exit 2"] > count / 4
    assert counted["exit 0"] > count / 20


@pytest.mark.parametrize(("planted", "problem"), [(ValueError("x"), "nobody thought of"), (None, "exactly one line")])
def test_a_planted_fault_is_seen(monkeypatch, planted, problem):
    """A command with an error of its own; one that refuses without a word."""

    def shape_of(width, depth, budget):
        if planted is not None:
            raise planted
        return 2

    from exact.cli import options

    if planted is None:
        monkeypatch.setattr(options, "refuse", lambda message: options.BAD_INPUT)
    else:
        monkeypatch.setattr(options, "shape_of", shape_of)
    words = ["rheo-exact", "certify", "rheo", "--width", "0"]
    assert problem in fuzz.ended(words).problem


def test_an_exception_that_comes_out_is_seen(monkeypatch):
    def outcome(app, line):
        raise ValueError(line)

    from exact.cli import options

    monkeypatch.setattr(options, "outcome", outcome)
    assert fuzz.ended(["rheo-exact", "table1"]).problem == "ended with None"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("certify rheo --rows /dev/zero --depth 1 --budget 1", "rows file: got /dev/zero, expected at most"),
        ("certify rheo --resume /dev/zero --depth 1 --budget 1", "resume: got /dev/zero, expected a regular file"),
        ("certify rheo --width 2 --depth 99999999999999999999 --budget 1 --arithmetic float64", "error: "),
    ],
)
def test_what_the_fuzz_found(line, said):
    """Endless files, and a depth that no list can have."""
    found = fuzz.ended(["rheo-exact", *line.split()], 60)
    assert (found.code, found.problem) == (2, "")
    assert said in found.err


def test_the_size_of_a_hunt_may_be_beyond_any_float():
    line = "hunt chain --seconds 0.2 --denominator 1 --depth 7 --width 1 --budget 1"
    found = fuzz.ended(["rheo-exact", *line.split()], 60)
    assert (found.code, found.problem) == (0, "")
