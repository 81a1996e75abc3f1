"""Journals: what is written is read back exactly, and nothing else is taken for a journal."""

import sys
from dataclasses import dataclass
from fractions import Fraction as F

import numpy as np
import pytest

from exact import certify
from exact.cli import options
from exact.cli.main import app
from exact.cli.options import fingerprint
from exact.runtime import journal, own_code
from exact.runtime.journal import Journal, resumed, subject
from exact.verdict.certificate import CERTIFICATE_KINDS
from rheo_core import InvalidInput, TreeShape, methods


@dataclass(frozen=True)
class Point:
    """A kind of its own."""

    where: tuple[int, ...]
    mass: F


KINDS = (Point, *CERTIFICATE_KINDS, TreeShape)
VALUES = [
    None,
    True,
    3,
    0.1,
    float("inf"),
    "a/b",
    F(1, 3),
    (),
    (1, (F(2), "x")),
    [1, [2]],
    {"p": 1, (0, 1): F(1, 2)},
    Point((1, 2), F(5, 7)),
    [Point((), F(0))],
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_come_back_as_they_were(path, value):
    Journal(path, "s", KINDS).note(("key", 1), value)
    (back,) = Journal(path, "s", KINDS).known.values()
    assert back == value
    assert type(back) is type(value)


def test_counts_and_certificates_come_back(path):
    row = (F(1, 2), F(3, 10), F(1, 5))
    certificates = [
        certify(name, lambda x: row, lambda x: row[::-1], TreeShape(3, 1, 2)) for name in ("rheo", "rheo-adhoc")
    ]
    journal = Journal(path, "s", KINDS)
    journal.note("certificates", certificates)
    journal.note("counts", np.arange(3))
    back = Journal(path, "s", KINDS).known
    assert back["certificates"] == certificates
    assert [each.document() for each in back["certificates"]] == [each.document() for each in certificates]
    assert back["counts"].tolist() == [0, 1, 2]
    assert back["counts"].dtype == np.int64


def test_what_has_no_place_is_refused():
    with pytest.raises(TypeError, match="object has no place"):
        Journal._line(Journal(), "key", object())


def test_a_result_noted_again_replaces_the_first(path):
    journal = Journal(path, "s")
    for result in (1, 2, 3):
        journal.note("key", result)
    assert len(path.read_text().splitlines()) == 3  # the head, the own files, the result
    assert Journal(path, "s").known == {"key": 3}


@pytest.mark.parametrize(
    "text",
    [
        "precious notes",
        "precious notes\n",
        '{"journal": 1, "subject": "s"}\n',
        '{"journal": 3, "subject": "t"}\n',
        '{"journal": 3, "subject": "s"}\n{"job": 1}\n',
        '{"journal": 3, "subject": "s"}\n{"job": 1, "result": {"System": []}}\n',
        '{"journal": 3, "subject": "s"}\n{"job": 1, "result": {"Point": [1]}}\n',
        '{"journal": 3, "subject": "s"}\n{"job": 1, "result": {"fraction": "x"}}\n',
        '{"journal": 3, "subject": "s"}\n{"job": {"list": []}, "result": 1}\n',
        '{"journal": 3, "subject": "s"}\n' + "[" * 100_000 + "\n",
    ],
)
def test_a_file_that_is_no_journal_of_this_sweep_is_refused_and_left_alone(path, text):
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"a journal|the journal"):
        Journal(path, "s", KINDS)
    assert path.read_text() == text


@pytest.mark.parametrize("cut", [1, 10, 40, 62, 80, -80, -40, -10, -1])
def test_what_a_crash_cut_short_is_dropped(path, cut):
    journal = Journal(path, "s")
    journal.note("first", 1)
    journal.note("second", 2)
    path.write_text(path.read_text()[:cut])
    again = Journal(path, "s")
    assert list(again.known) == ["first"][: max(0, len(path.read_text().splitlines()) - 2)]
    again.note("second", 2)
    assert Journal(path, "s").known["second"] == 2


def test_finished_jobs_are_not_done_again_and_order_is_kept(path):
    done = []

    def job(number):
        done.append(number)
        return number * number

    assert list(resumed(job, {"b": 2, "a": 1}, None, Journal(path, "s"))) == [4, 1]
    assert list(resumed(job, {"a": 1, "c": 3, "b": 2}, None, Journal(path, "s"))) == [1, 9, 4]
    assert done == [2, 1, 3]


def test_what_was_done_before_a_failure_is_kept(path):
    def job(number):
        if number == 2:
            raise InvalidInput("job", number, "another")
        return number

    with pytest.raises(InvalidInput, match="job: got 2"):
        list(resumed(job, {number: number for number in range(4)}, None, Journal(path, "s")))
    assert Journal(path, "s").known == {0: 0, 1: 1}


def test_a_sweep_is_told_from_another_by_all_that_it_depends_on(tmp_path):
    rules = tmp_path / "rules.py"
    rules.write_text("a = 1\n")
    spec = f"{rules}:a"
    first = fingerprint([spec], "rates", TreeShape(1, 2, 3))
    assert first == fingerprint([spec], "rates", TreeShape(1, 2, 3))
    others = {fingerprint([spec], "rates", TreeShape(1, 2, 4)), fingerprint(["rheo"], "rates", TreeShape(1, 2, 3))}
    rules.write_text("a = 2\n")
    others.add(fingerprint([spec], "rates", TreeShape(1, 2, 3)))
    assert len(others | {first}) == 4
    assert subject(methods["rheo"].name) != subject(methods["top-k"].name)


HELPER = "def factor():\n    return {}\n"
RULE = """
from rheo_core.verification import algorithm_1
from pathlib import Path


def verify(p, tail, candidates, sampled, lead, chooser, at):
    import journal_helper
    (Path(__file__).parent / "journal_data.txt").read_text()
    if journal_helper.factor() == 2 and candidates:
        return candidates[0], 0
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)
"""


@pytest.fixture
def with_helper(tmp_path, monkeypatch):
    """A rule whose helper is imported late and which reads a file; its spec."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "journal_helper.py").write_text(HELPER.format(1))
    (tmp_path / "journal_data.txt").write_text("1")
    (tmp_path / "helped.py").write_text(RULE)
    yield f"{tmp_path / 'helped.py'}:verify"
    sys.modules.pop("journal_helper", None)


@pytest.mark.parametrize("changed", ["journal_helper.py", "journal_data.txt"])
def test_a_journal_of_other_helpers_or_data_is_refused(with_helper, path, tmp_path, capsys, changed):
    call = ["certify", with_helper, "--width", "2", "--depth", "1", "--budget", "1", "--resume", str(path)]
    assert options.run(app, call) == 0
    assert options.run(app, call) == 0  # nothing has changed
    sys.modules.pop("journal_helper", None)
    (tmp_path / changed).write_text(HELPER.format(2))
    own_code.first_digest.cache_clear()  # as in a process of its own
    capsys.readouterr()
    assert options.run(app, call) == 2
    said = capsys.readouterr().err
    assert changed in said
    assert said.count("\n") == 1


def test_without_the_check_of_files_a_stale_journal_answers(with_helper, path, tmp_path, monkeypatch):
    """The planted fault: the helper makes the rule lossy, and the journal still says lossless."""
    call = ["certify", with_helper, "--width", "2", "--depth", "1", "--budget", "1", "--resume", str(path)]
    assert options.run(app, call) == 0
    sys.modules.pop("journal_helper", None)
    (tmp_path / "journal_helper.py").write_text(HELPER.format(2) + "# another length\n")
    assert options.run(app, call[:-2]) == 1
    monkeypatch.setattr(Journal, "_check_files", lambda self: None)
    assert options.run(app, call) == 0


def test_a_journal_of_other_source_of_this_project_is_refused(path, monkeypatch):
    before = subject("sweep")
    monkeypatch.setattr(journal, "project_digest", lambda: "another")
    assert subject("sweep") != before
