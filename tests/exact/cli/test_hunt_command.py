"""`rheo-exact hunt` and the tests that it writes: faulty rules fail them, repaired rules pass them."""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction as F
from functools import partial
from pathlib import Path

import pytest

from exact import Counterexample, certify, hunt
from exact.cli import main, options
from exact.methods.load import with_lead
from exact.search import search
from rheo_core import DraftRow, TreeShape, method, methods

FAULTY = '''
from rheo_core.laws import residual


def verify(p, tail, candidates, sampled, lead, chooser, at):
    """Accepts the sampled candidate with its right probability and then forgets the residual."""
    if sampled != -1 and chooser.accept(min(1, p[candidates[sampled]] / tail[candidates[sampled]])):
        return candidates[sampled], sampled
    law = p
    return chooser.index(law), -1
'''
REPAIRED = FAULTY.replace("    law = p\n", "    law = p if sampled == -1 else residual(p, tail)\n").replace(
    "chooser.index(law)", "chooser.index(p if law is None else law)"
)


@method(claim="lossy")
def first_token_unverified(target, draft, prefix, shape, chooser):
    """Importable as tests.exact.cli.test_hunt_command:first_token_unverified."""
    return [chooser.index(draft(prefix))]


@pytest.fixture(autouse=True)
def _own_time(monkeypatch):
    """Time limits in seconds of this process, so that a busy machine decides nothing."""
    monkeypatch.setattr(time, "time", time.process_time)


def run(*arguments):
    return options.run(main.app, [str(argument) for argument in arguments])


def pytest_on(path: Path) -> subprocess.CompletedProcess[str]:
    root, folder = Path(__file__).parents[3], path if path.is_dir() else path.parent
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def test_a_users_rule_is_refuted_and_its_test_passes_once_it_is_repaired(tmp_path, capsys):
    rules, written = tmp_path / "rules.py", tmp_path / "test_rules.py"
    rules.write_text(FAULTY)
    assert run("hunt", f"{rules}:verify", "--seconds", 5, "--first", "--pytest", written) == 1
    printed = capsys.readouterr().out
    assert "verify is lossy" in printed
    assert written.read_text() in printed
    assert "V = 2, K = 1, D = 1, R = 1, m = 0" in printed
    failed = pytest_on(written)
    assert failed.returncode == 1, failed.stdout
    assert "got 1/4, right 1/2" in failed.stdout
    rules.write_text(REPAIRED)
    passed = pytest_on(written)
    assert passed.returncode == 0, passed.stdout
    assert run("hunt", f"{rules}:verify", "--seconds", 1, "--max-vocabulary", 2) == 0
    assert "no counterexample found" in capsys.readouterr().out


def test_the_written_test_fails_for_a_name_an_importable_method_and_a_fixture(tmp_path):
    """A rule that no module holds comes from a fixture."""
    hidden = method(lambda target, draft, prefix, shape, chooser: [chooser.index(draft(prefix))])
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom rheo_core import method\n\n\n@pytest.fixture\ndef rule():\n"
        "    return method(lambda target, draft, prefix, shape, chooser: [chooser.index(draft(prefix))])\n"
    )
    counterexamples = [hunt(rule, seconds=0.5) for rule in ("rheo-raw", first_token_unverified, hidden)]
    for number, found in enumerate(counterexamples):
        assert found is not None
        (tmp_path / f"test_{number}.py").write_text(found.to_pytest())
    failed = pytest_on(tmp_path)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "3 failed" in failed.stdout
    for found in counterexamples:
        assert found is not None
        assert f"got {found.got}, right {found.right}" in failed.stdout
    assert 'methods["rheo-raw"]' in counterexamples[-1].to_pytest("rheo-raw")  # type: ignore[union-attr]


def test_a_certificates_own_counterexample_knows_a_catalogue_name():
    rows = (F(1, 3), F(2, 3))
    rule = with_lead(methods["rheo-half"], 0)
    found = certify(rule, lambda prefix: rows, lambda prefix: rows, TreeShape(2, 2, 2)).counterexample
    assert found is not None
    assert 'methods["rheo-half"]' in found.to_pytest()
    bare = Counterexample({(): rows}, {(): rows}, TreeShape(1, 1, 1), 0, (0,), F(1), F(1, 3))
    assert "def test_the_rule_is_lossless_here(rule):" in bare.to_pytest()


def test_float_rows_pairs_of_laws_maps_and_prefixes_are_written_too(tmp_path):
    score, sampling = [F(1, 4), F(3, 4)], [F(1, 2), F(1, 2)]
    found = certify(
        with_lead(methods["rheo-raw"], 0),
        lambda prefix: [F(1, 3), F(1, 3), F(1, 3)],
        lambda prefix: DraftRow.pair([*score, 0], [*sampling, 0]),
        TreeShape(2, 1, 1),
        ids=(2, 0, 1),
        prefix=(1,),
    ).counterexample
    floats = certify(
        "rheo-adhoc", lambda prefix: [0.5, 0.2, 0.3], lambda prefix: [0.5, 0.3, 0.2], TreeShape(3, 1, 2)
    ).counterexample
    for each, rule in ((found, "rheo-raw"), (floats, "rheo-adhoc")):
        assert isinstance(each, Counterexample)
        (tmp_path / f"test_{rule.replace('-', '_')}.py").write_text(each.to_pytest(rule))
    failed = pytest_on(tmp_path)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "2 failed" in failed.stdout
    assert "assert False" in failed.stdout or "got" in failed.stdout


def test_a_rule_that_breaks_is_not_reported_as_sound(tmp_path, capsys):
    rules = tmp_path / "broken.py"
    rules.write_text(FAULTY.replace("law = p\n", "law = undefined_name\n"))
    assert run("hunt", f"{rules}:verify", "--seconds", 0.3, "--max-vocabulary", 2) == 2
    assert "NameError" in capsys.readouterr().err.splitlines()[-1]
    rules.write_text(REPAIRED.replace("p if law is None else law", "law if law is not None else p * 0"))
    assert run("hunt", f"{rules}:verify", "--seconds", 0.3, "--max-vocabulary", 2) == 0
    rules.write_text(
        REPAIRED.replace("if sampled != -1 and", "excess = 0 * p\n    if sampled != -1 and chooser.index(excess) and")
    )
    assert run("hunt", f"{rules}:verify", "--seconds", 0.3, "--max-vocabulary", 2) == 2
    assert "weights" in capsys.readouterr().err.splitlines()[-1]


def test_the_document(tmp_path, capsys):
    saved = tmp_path / "hunt.json"
    assert run("hunt", "--method", "rheo-raw", "--seconds", 5, "--first", "--json", "--save", saved) == 1
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(saved.read_text())
    found = document["counterexample"]
    assert found["shape"] == {"width": 2, "depth": 1, "budget": 1}
    assert found["lead"] == 0
    assert found["draft"][""] == ["1/3", "2/3"]
    assert found["got"]["exact"] == "1/9"
    assert found["pytest"].startswith('"""rheo-raw is lossy here')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["hunt"], "METHOD"),
        (["hunt", "rheo", "--method", "rheo"], "METHOD"),
        (["hunt", "nothing"], "method"),
        (["hunt", "rheo", "--seconds", "0"], "seconds"),
        (["hunt", "rheo", "--max-vocabulary", "1"], "max-vocabulary"),
        (["hunt", "chain", "--lead", "1"], "lead"),
        (["hunt", "chain", "--against", "optimum"], "optimum"),
        (["hunt", "rheo", "--workers", "-1"], "workers"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, said, capsys):
    assert run(*arguments) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(lines) == 1
    assert said in lines[0]


def test_all_rows_up_to_a_denominator(capsys):
    assert run("hunt", "chain", "--denominator", 2, "--depth", 1, "--budget", 1, "--width", 1, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["finished"]
    assert document["cases_covered"] == 3**4 + 6**5  # V = 2: q, p and two more p; V = 3: q, p and three more p


def test_gaps_in_acceptance_both_ways(capsys):
    arguments = ("hunt", "rheo", "--lead", 0, "--against", "rheo", "--against-lead", 1, "--max-vocabulary", 2)
    assert run(*arguments) == 1
    printed = capsys.readouterr().out
    assert "rheo m=0 accepts up to 1/2 = 0.5 more than rheo m=1" in printed
    assert run(*arguments, "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["more"]["value"]["exact"] == "1/2"
    assert document["finished"]


def test_one_lead_is_kept_when_given():
    free, fixed = search("rheo-raw", first=True), search("rheo-raw", lead=1, first=True)
    assert free.counterexample is not None
    assert free.counterexample.lead == 0
    assert fixed.counterexample is not None
    assert fixed.counterexample.lead == 1
    assert len(fixed.counterexample.target[()]) == 3


def test_an_interrupted_hunt_ends_with_130_and_goes_on_from_its_journal(tmp_path, capsys):
    journal = tmp_path / "journal"
    command = [
        sys.executable,
        "-c",
        "from exact.cli.main import main; main()",
        "hunt",
        "rheo",
        "--resume",
        str(journal),
    ]
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=heard) as process:
        give_up = time.monotonic() + 60
        while time.monotonic() < give_up and (not journal.exists() or len(journal.read_text().splitlines()) < 30):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    before = journal.read_text().splitlines()
    assert len(before) >= 30
    assert run("hunt", "rheo", "--seconds", 0.5, "--resume", journal) == 0
    assert journal.read_text().splitlines()[: len(before)] == before
    assert run("hunt", "rheo-next", "--seconds", 0.5, "--resume", journal) == 2
    assert "resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lead", "5"], "lead: got 5"),
        (["--lead", "-1"], "lead: got -1"),
        (["--lead", "3", "--denominator", "2"], "lead: got 3, expected 0 to 2"),
        (["--depth", "0"], "depth: got 0"),
        (["--seconds", "nan"], "seconds: got nan"),
        (["--against-lead", "1"], "against-lead: got 1"),
        (["--against", "rheo-rrsw", "--seconds", "nan"], "seconds: got nan"),
        (["--against", "rheo-rrsw", "--against-lead", "99"], "against-lead: got 99"),
    ],
)
def test_a_hunt_of_nothing_is_refused_in_one_line(capsys, arguments, said):
    from exact.cli import options
    from exact.cli.main import app

    assert options.run(app, ["hunt", "rheo", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
