"""Exact numbers longer than Python writes or reads unasked: products of many float rows."""

import itertools
import json
import random
import subprocess
import sys
from fractions import Fraction as F

import pytest

from exact import certify, check
from exact.acceptance.one_layer import acceptance_length
from exact.cli import options
from exact.cli.main import app
from exact.interception import certify_function
from exact.methods.rows_file import read_rows
from exact.runtime.executors import processes
from exact.runtime.journal import Journal, resumed
from exact.verdict.document import number
from rheo_core import ModelPair, TreeShape
from tests.pairs import rule

FEWEST = 640  # the smallest limit that Python takes
SHAPE = TreeShape(3, 3, 8)


@pytest.fixture
def few_digits():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(FEWEST)
    yield
    assert sys.get_int_max_str_digits() == FEWEST, "the setting is the caller's"
    sys.set_int_max_str_digits(before)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows at every prefix of up to three of four tokens, with denominators of eighty digits that share little."""
    prefixes = [prefix for length in range(4) for prefix in itertools.product(range(4), repeat=length)]
    contexts = {}
    for place, prefix in enumerate(prefixes):
        contexts[",".join(map(str, prefix))] = {
            "target": law(10**80 + 2 * place + 1)[::-1],
            "draft": law(10**80 + 2 * place),
        }
    path = tmp_path_factory.mktemp("rows") / "rows.json"
    path.write_text(json.dumps({"contexts": contexts}))
    return path


def law(denominator):
    parts = [denominator // 7, denominator // 5, denominator // 4]
    return [f"{part}/{denominator}" for part in (*parts, denominator - sum(parts))]


@pytest.mark.parametrize(
    "call",
    [
        ["rates", "rheo", "--temperatures", "1"],
        ["rates", "rheo", "--temperatures", "1", "--workers", "2"],
        ["certify", "rheo", "--report", "page.html"],
    ],
)
def test_commands_write_them(few_digits, monkeypatch, tmp_path, capsys, rows, call):
    monkeypatch.chdir(tmp_path)
    assert options.run(app, [*call, "--rows", str(rows), "--save", "saved.json"]) == 0, capsys.readouterr().err
    longest = max(len(number) for number in (tmp_path / "saved.json").read_text().replace('"', "/").split("/"))
    assert longest > FEWEST


def test_a_certificate_is_written_and_checked_by_whoever_asks(few_digits, tmp_path, capsys, rows):
    file = read_rows(rows)
    found = certify(rule("rheo"), file.target, file.draft, SHAPE)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(found.document()))
    assert options.run(app, ["check", str(path)]) == 0
    done = subprocess.run(
        [sys.executable, "-I", "-X", f"int_max_str_digits={FEWEST}", check.__file__, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rows_and_classes_may_be_that_long_themselves(few_digits):
    whole = 10 ** (FEWEST + 60) + 1
    row = [F(whole // 2, whole), F(whole // 3, whole)]
    row.append(1 - sum(row, F(0)))
    document = certify(rule("rheo"), lambda prefix: row, lambda prefix: row, TreeShape(2, 1, 2)).document()
    assert all(len(entry) > FEWEST for entry in document["inputs"]["rows"]["target"][""])


def power(exponent):
    return F(2**exponent + 1, 3)


def test_a_journal_holds_them(few_digits, tmp_path):
    jobs = {"one": 5_000, "two": 6_000}
    with processes(2) as pool:
        whole = list(resumed(power, jobs, pool, Journal(tmp_path / "journal", "powers")))
    assert whole == [power(5_000), power(6_000)]
    again = Journal(tmp_path / "journal", "powers")
    assert again.known == dict(zip(jobs, whole, strict=True))


def test_the_rows_give_numbers_that_long(few_digits, rows):
    file = read_rows(rows)
    length = acceptance_length(rule("rheo"), ModelPair(file.target, file.draft), SHAPE, ())
    assert len(number(length)["exact"]) > 2 * FEWEST


def test_a_law_of_very_long_numbers_is_written(few_digits, tmp_path, capsys):
    path = tmp_path / "own.py"
    rare = "    for _ in range(20):\n        if random.random() >= 1e-300:\n            return 0\n    return 1\n"
    path.write_text(f"import random\n\n\ntarget = [0.5, 0.5]\n\n\ndef own():\n{rare}", encoding="utf-8")
    assert options.run(app, ["certify", "--torch", f"{path}:own"]) == 1
    assert "P(0) is 1, right is 0.5" in capsys.readouterr().out


def test_so_is_the_document_of_a_function(few_digits):
    def own():
        return int(any(random.random() < 1e-300 for _ in range(4)))

    found = certify_function(own, target=[0.5, 0.5])
    assert max(len(mass) for _, mass, _ in found.document()["law"]) > FEWEST
