"""`rheo-exact prove`: what it prints, its document and its exit codes."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import pytest

from exact.cli import options
from exact.cli import prove as command
from exact.cli.main import app
from exact.proofs import pools, suite, survival
from exact.proofs.claims import EQUATION_18, POOL_CLAIMS, RHEO_OVER_RRSW, RRSW_CLAIMS
from exact.proofs.proof import Control, CounterModel, Proof

pytestmark = pytest.mark.exact


def rheo_exact(capsys, *arguments):
    code = options.run(app, [str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


LINE = Proof(
    name="one line",
    source="Eq. (6)",
    statement="a = a",
    latex="a = a",
    domain="every V",
    method="by hand [here]",
    verdict="proved",
    cases=1,
    seconds=0.1,
    assumptions=CounterModel({"p": [Fraction(1, 2), Fraction(1, 2)]}, "two laws"),
    control=Control("a = b", "refuted", CounterModel({"V": 1}, "a is not b")),
)


@pytest.fixture
def lines(monkeypatch):
    """The report made of given lines, so that its shape is tested without the proofs."""

    def give(*found):
        monkeypatch.setattr(suite, "prove", lambda *rest, **named: iter(found))

    return give


def test_the_report_and_the_document(capsys, lines, tmp_path):
    lines(
        LINE,
        replace(LINE, name="refuted", verdict="refuted", expected="refuted", witness=CounterModel({"V": 2}, "fails")),
    )
    code, out, err = rheo_exact(capsys, "prove", "--workers", 1, "--save", tmp_path / "proofs.json", "--latex")
    assert (code, err) == (0, "")
    assert "2 of 2 as expected" in out
    assert "refuted: V = 2; fails" in out
    assert "by hand [here]" in " ".join(out.split())
    assert "% one line" in out or "% refuted" in out
    saved = json.loads((tmp_path / "proofs.json").read_text())
    code, out, _ = rheo_exact(capsys, "prove", "--workers", 1, "--json")
    document = json.loads(out)
    assert document["results"] == saved["results"]
    assert document["as_expected"] is True
    first = document["results"][0]
    assert first["assumptions_hold_at"]["case"]["p"] == ["1/2", "1/2"]
    assert {"statement", "domain", "method", "verdict", "seconds", "control", "witness", "latex"} <= set(first)


@pytest.mark.parametrize(
    "line",
    [
        replace(LINE, verdict="unknown"),
        replace(LINE, verdict="refuted"),
        replace(LINE, assumptions=None),
        replace(LINE, control=Control("a = b", "proved", None)),
    ],
)
def test_anything_unexpected_ends_with_1_and_says_why(capsys, lines, line):
    lines(LINE, line)
    code, out, _ = rheo_exact(capsys, "prove", "--workers", 1)
    assert code == 1
    assert "NOT as expected" in out
    assert "1 of 2 as expected" in out


@pytest.mark.parametrize("given", ["0", "15", "-3", "many"])
def test_a_bad_vocabulary_is_one_line_and_2(capsys, given):
    code, out, err = rheo_exact(capsys, "prove", "--max-vocabulary", given)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_missing_extra_is_one_line_and_2(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, out, err = rheo_exact(capsys, "prove")
    assert (code, out) == (2, "")
    assert "rheo-lossless[prove]" in err
    assert err.count("\n") == 1


def test_the_base_install_never_imports_the_heavy_libraries():
    code = "import exact, exact.cli.main, sys; print([x for x in ('sympy', 'flint', 'z3') if x in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.certificate
def test_a_small_run_end_to_end(capsys, monkeypatch):
    """Every kind of line but the long ones, through the command, in two processes."""
    monkeypatch.setattr(survival, "MAX_VOCABULARY", 3)
    code, out, _ = rheo_exact(capsys, "prove", "--max-vocabulary", 3, "--workers", 2, "--json")
    results = json.loads(out)["results"]
    assert code == 0
    verdicts = [each["verdict"] for each in results]
    assert (verdicts.count("proved"), verdicts.count("refuted"), verdicts.count("unknown")) == (27, 5, 0)
    assert all(each["control"]["verdict"] == "refuted" for each in results)
    assert all(each["assumptions_hold_at"] for each in results)


def test_statements_print_as_latex():
    for claim in (*POOL_CLAIMS, *RRSW_CLAIMS, EQUATION_18, RHEO_OVER_RRSW):
        assert r"\tilde{q}" in claim.latex() or claim.over == "w"
        assert r"\tilde" not in claim.text()
        assert claim.statement != claim.control


def test_progress_counts_what_is_done():
    ticks = []
    found = pools.prove_pools(limit=2, tick=lambda: ticks.append(1))
    assert len(ticks) == 3  # (V, m) = (1, 0), (2, 0), (2, 1)
    assert len(found) == len(POOL_CLAIMS)


def test_verdicts_are_named_in_the_help(capsys):
    assert command.command.__doc__ is not None
    code, out, _ = rheo_exact(capsys, "prove", "--help")
    assert code == 0
    assert "--max-vocabulary" in out
