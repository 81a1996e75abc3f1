"""The command line of montecarlo: verdicts, exit codes, documents, refusals in one line, interrupted runs."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exact.cli import options
from exact.runtime.journal import Journal
from montecarlo.checks import Suite, Tally
from montecarlo.cli.main import app
from montecarlo.recording import Writer

FAST = ["--vocabulary", "12", "--states", "4", "--overlap", "0.8", "--width", "3", "--depth", "2", "--budget", "4"]


def rheo_montecarlo(*arguments):
    return options.run(app, [str(argument) for argument in arguments])


@pytest.fixture
def recorded(tmp_path):
    """A lossless and a lossy recording."""
    rng = np.random.default_rng(0)
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.7, 0.2, 0.1])
    for name, law in (("good", p), ("bad", q)):
        with Writer(tmp_path / f"{name}.jsonl.gz") as writer:
            for i, token in enumerate(rng.choice(3, size=900, p=law)):
                writer.write(token, p, q, cycle=i // 2, position=i % 2)
    return tmp_path


def test_simulate_reports_and_exits_0_on_a_lossless_method(capsys):
    assert rheo_montecarlo("simulate", "rheo", "--cycles", 800, *FAST) == 0
    out = capsys.readouterr().out
    assert "no loss seen" in out
    assert "Scope: these models and this shape" in out


def test_simulate_exits_1_on_a_broken_claim(capsys):
    code = rheo_montecarlo("simulate", "--method", "rheo-raw", "--cycles", 4000, "--json", *FAST)
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert document["results"][0]["evidence_of_loss"] or document["results"][0]["broken_claims"]


def test_simulate_is_reproduced_by_its_seed_and_by_any_number_of_workers(capsys, tmp_path):
    documents = []
    for number, extra in enumerate((["--workers", 1], ["--workers", 2], ["--seed", 5])):
        file = tmp_path / f"{number}.json"
        rheo_montecarlo("simulate", "rheo", "--cycles", 9000, "--save", file, *FAST, *extra)
        documents.append(json.loads(file.read_text()))
    capsys.readouterr()
    assert documents[0] == documents[1]
    assert documents[0]["results"][0]["acceptance_length"] != documents[2]["results"][0]["acceptance_length"]


def test_simulate_takes_real_rows_and_a_users_pair_and_method(capsys, tmp_path):
    assert (
        rheo_montecarlo("simulate", "rheo", "--real", "--width", 3, "--depth", 3, "--budget", 8, "--cycles", 300) == 0
    )
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from montecarlo.pairs import CallablePair\n"
        "import rheo_core\n"
        "def rows(prefixes, salt):\n"
        "    weights = 1.5 + np.sin(prefixes.sum(axis=1)[:, None] + salt + np.arange(9))\n"
        "    return weights / weights.sum(axis=1, keepdims=True)\n"
        "pair = CallablePair(lambda x: rows(x, 0), lambda x: rows(x, 1))\n"
        "@rheo_core.method\n"
        "def plain(target, draft, prefix, shape, chooser):\n"
        "    return [chooser.index(target(prefix))]\n"
    )
    for method in ("rheo", f"{tmp_path}/mine.py:plain"):
        assert (
            rheo_montecarlo("simulate", method, "--pair", f"{tmp_path}/mine.py:pair", "--cycles", 200, *FAST[6:]) == 0
        )
    assert "tokens a cycle" in capsys.readouterr().out


def test_power_plans_and_lists_every_lossy_method(capsys):
    assert rheo_montecarlo("power", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["method"] for each in document["methods"]} >= {"rheo-raw", "rheo-adhoc", "rheo-half", "typical"}
    assert all(each["needed"]["chi-square"] < 2000 and each["audit_tokens"] < 2000 for each in document["methods"])
    assert rheo_montecarlo("power", "--tv", "0.01", "--cells", 100) == 0
    assert rheo_montecarlo("power", "rheo", "--samples", 1000) == 0
    assert "total variation" in capsys.readouterr().out


def test_audit_exits_by_what_it_found(capsys, recorded):
    assert rheo_montecarlo("audit", recorded / "good.jsonl.gz") == 0
    out = capsys.readouterr().out
    assert "no loss seen, down to a bias of" in out
    assert "it trusts the recorded rows" in " ".join(out.split())
    assert rheo_montecarlo("audit", recorded / "bad.jsonl.gz") == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "EVIDENCE OF LOSS" in out
    assert "bias: " in out
    assert "position in the cycle" in out


def test_audit_writes_one_document(capsys, recorded):
    code = rheo_montecarlo("audit", recorded / "bad.jsonl.gz", "--json", "--save", recorded / "report.json")
    document = json.loads(capsys.readouterr().out)
    assert code == 1
    assert document == json.loads((recorded / "report.json").read_text())
    assert document["verdict"] == "evidence of loss"
    assert document["alarmed_at"].startswith("bad.jsonl.gz:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "absent.jsonl"], "got absent.jsonl (no such file or directory)"),
        (["audit"], "FILE...: got nothing"),
        (["audit", "absent.jsonl", "--false-alarm", "2"], "false-alarm: got 2"),
        (["audit", "absent.jsonl", "--top", "0"], "top: got 0"),
        (["audit", "absent.jsonl", "--tolerance", "-1"], "tolerance: got -1"),
        (["audit", "absent.jsonl", "--sum-tolerance", "1"], "sum-tolerance: got 1"),
        (["simulate", "no-such-method"], "method: got no-such-method"),
        (["simulate", "rheo", "--cycles", "0"], "cycles: got 0, expected an int of at least 1"),
        (["simulate", "rheo", "--lead", "11"], "lead: got 11, expected 0 to the width K = 10"),
        (["simulate", "rheo", "--budget", "0"], "budget: got 0"),
        (["simulate", "rheo", "--overlap", "0"], "overlap: got 0"),
        (["simulate", "rheo", "--vocabulary", "1"], "vocabulary: got 1"),
        (["simulate", "rheo", "--seed", "-1"], "seed: got -1"),
        (["simulate", "rheo", "--real", "--pair", "x.py:y"], "models: got --real and --pair"),
        (["simulate", "rheo", "--pair", "x.py:y"], "pair: got x.py"),
        (["simulate", "rheo", "--temperature", "0.5"], "temperature: got 0.5"),
        (["simulate", "rheo", "--false-alarm", "0"], "false-alarm: got 0"),
        (["simulate", "rheo", "--real", "--cycles", "5"], "prefix"),
        (["power", "--tv", "0"], "tv: got 0"),
        (["power", "--samples", "-1"], "samples: got -1"),
        (["power", "--cells", "1", "--tv", "0.1"], "cells: got 1"),
        (["simulate", "rheo", "--states", "10000000"], "states: got 10000000, expected at most"),
        (["simulate", "rheo", "--workers", "-1"], "workers: got -1"),
        (["power", "--miss", "0"], "miss: got 0"),
        (["simulate", "rheo", "--nonsense"], "option: got --nonsense, expected"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, arguments, message):
    assert rheo_montecarlo(*arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def subject_of(path):
    return json.loads(path.read_text().splitlines()[0])["subject"]


def test_a_simulation_goes_on_where_it_stopped(capsys, tmp_path, monkeypatch):
    """Interrupted after its second batch and resumed, it reports what an uninterrupted one reports."""
    arguments = ["simulate", "rheo", "--cycles", 15_000, "--json", *FAST]
    assert rheo_montecarlo(*arguments) == 0
    expected = capsys.readouterr().out
    count, calls = Suite.count, []

    def interrupted(self, runs):
        calls.append(runs)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return count(self, runs)

    monkeypatch.setattr(Suite, "count", interrupted)
    assert rheo_montecarlo(*arguments, "--resume", tmp_path / "counts.json") == 130
    monkeypatch.setattr(Suite, "count", count)
    (tally,) = Journal(tmp_path / "counts.json", subject_of(tmp_path / "counts.json"), (Tally,)).known.values()
    assert 0 < tally.cycles < 15_000
    capsys.readouterr()
    assert rheo_montecarlo(*arguments, "--resume", tmp_path / "counts.json") == 0
    assert capsys.readouterr().out == expected
    assert rheo_montecarlo(*arguments, "--resume", tmp_path / "counts.json", "--seed", 1) == 2
    assert "resume: got" in capsys.readouterr().err
    fewer = [*arguments[:2], "--cycles", 10, *arguments[4:]]
    assert rheo_montecarlo(*fewer, "--resume", tmp_path / "counts.json") == 2
    assert "cycles: got 10, expected at least 15000, which the journal holds" in capsys.readouterr().err
    (tmp_path / "counts.json").write_text("[]")
    assert rheo_montecarlo(*arguments, "--resume", tmp_path / "counts.json") == 2


def test_audit_reads_standard_input(recorded):
    content = (recorded / "bad.jsonl.gz").read_bytes()
    code = "from montecarlo.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "audit", "-"], input=content, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"EVIDENCE OF LOSS" in done.stdout


def test_plots_are_drawn_or_refused_in_one_line(capsys, recorded):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")
    assert rheo_montecarlo("audit", recorded / "bad.jsonl.gz", "--plot", recorded / "audit.png") == 1
    arguments = ["simulate", "rheo", "top-k", "--cycles", 200, *FAST]
    assert rheo_montecarlo(*arguments, "--plot", recorded / "simulate.svg") == 0
    assert (recorded / "audit.png").stat().st_size > 5000
    assert (recorded / "simulate.svg").stat().st_size > 5000
    capsys.readouterr()
    assert rheo_montecarlo(*arguments, "--plot", recorded / "absent" / "simulate.svg") == 2
    assert "plot: got" in capsys.readouterr().err


def test_an_interrupt_exits_130(monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("montecarlo.checks.Suite.count", interrupted)
    assert rheo_montecarlo("simulate", "rheo", *FAST) == 130


def test_the_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-c", "from montecarlo.cli.main import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "simulate" in done.stdout
    assert "audit" in done.stdout


def test_the_pair_of_the_document_runs(capsys, tmp_path):
    document = (Path(__file__).parents[2] / "docs" / "montecarlo.md").read_text(encoding="utf-8")
    code = document.split("```python\n")[1].split("```")[0]
    (tmp_path / "my_models.py").write_text(code)
    assert (
        rheo_montecarlo("simulate", "rheo", "--pair", f"{tmp_path}/my_models.py:pair", "--cycles", 100, *FAST[6:]) == 0
    )
    capsys.readouterr()
