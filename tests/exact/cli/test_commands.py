"""`rheo-exact` as a person meets it: outputs, exit codes, one line for bad input."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exact import check
from exact.cli import options
from exact.cli.main import app

pytestmark = pytest.mark.exact

UNIFORM = {"contexts": {"*": {"target": ["1/3", "1/3", "1/3"], "draft": ["1/2", "3/10", "1/5"]}}}
OWN = """
from rheo_core import method, TreeMethod, proxies
from rheo_core.verification import algorithm_1

def good(p, tail, candidates, sampled, lead, chooser, at):
    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)

def greedy(p, tail, candidates, sampled, lead, chooser, at):
    return (candidates[0], 0) if candidates else (chooser.index(p), -1)

def broken(p, tail, candidates, sampled, lead, chooser, at):
    return 1 // 0, -1

@method
def plain(target, draft, prefix, shape, chooser):
    return [chooser.index(target(prefix))]

half = TreeMethod("half", "lossy", 0, proxies.HALF_LEAST)
number = 7
"""


def run(*arguments):
    """The exit code of a command line."""
    return options.run(app, list(arguments))


@pytest.fixture
def rows(tmp_path):
    """Writes a rows file; its path."""

    def write(document, name="rows.json"):
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def own(tmp_path):
    """A user's file of rules."""
    path = tmp_path / "own.py"
    path.write_text(OWN, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["rheo"], 0),
        (["--method", "rheo", "--method", "top-k"], 0),
        (["rheo-raw"], 1),
        (["rheo", "rheo-raw"], 1),
        (["rheo", "--lead", "0"], 0),
        (["rheo", "--arithmetic", "float32"], 0),
        (["rheo", "--temperature", "1"], 0),
    ],
)
def test_exit_codes_follow_the_verdict(rows, arguments, code):
    shape = ["--width", "3", "--depth", "1", "--budget", "2"]
    assert run("certify", "--rows", rows(UNIFORM), *shape, *arguments) == code


@pytest.mark.parametrize(("name", "code"), [("good", 0), ("greedy", 1), ("plain", 0), ("half", 1)])
def test_a_users_own_rule(rows, own, name, code):
    shape = ["--width", "3", "--depth", "2", "--budget", "3"]
    assert run("certify", "--rows", rows(UNIFORM), *shape, f"{own}:{name}") == code


def test_shipped_rows_serve_when_no_file_is_named(own, capsys):
    assert run("certify", f"{own}:greedy", "--width", "2", "--depth", "1", "--budget", "2") == 1
    out = capsys.readouterr().out
    assert "gsm8k-21" in out
    assert "P(" in out


def test_json_is_one_document_that_check_accepts(rows, tmp_path, capsys):
    saved = tmp_path / "certificate.json"
    shape = ["--width", "3", "--depth", "1", "--budget", "2"]
    assert run("certify", "rheo", "rheo-raw", "--rows", rows(UNIFORM), *shape, "--json", "--save", str(saved)) == 1
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(saved.read_text(encoding="utf-8"))
    lossless, lossy = document["results"]
    assert (lossless["lossless"], lossless["every_target"], lossy["lossless"]) == (True, True, False)
    assert set(lossless["total_variation"]) == {"exact", "float"}
    assert lossy["counterexample"]["got"] != lossy["counterexample"]["right"]
    assert run("check", str(saved)) == 0
    assert check.main(str(saved)) == 0
    forged = saved.read_text(encoding="utf-8").replace('"lossless": false', '"lossless": true')
    saved.write_text(forged, encoding="utf-8")
    assert run("check", str(saved)) == 1
    assert list(tmp_path.glob(".*part")) == []


def test_table1_is_the_papers(capsys):
    assert run("table1", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    survivors = [(pool["proxy"][:4], pool["sampled"], pool["survivors"]) for pool in document["pools"]]
    assert survivors == [
        ("Rheo", "B", ["A", "Y=B"]),
        ("Rheo", "C", ["A", "Y=C"]),
        ("Ad h", "B", ["A", "Y=B"]),
        ("Ad h", "C", ["A", "B"]),
    ]
    assert [[mass["exact"] for mass in law] for law in document["laws"].values()] == [
        ["1/2", "1/5", "3/10"],
        ["3/5", "7/25", "3/25"],
    ]
    assert run("table1") == 0
    assert "9/50" in capsys.readouterr().out


def test_classes_are_printed_with_their_probabilities(rows, capsys):
    assert run("classes", "--rows", rows(UNIFORM), "--width", "3", "--depth", "1", "--budget", "2") == 0
    out = capsys.readouterr().out
    assert "2 classes" in out
    assert "probability 0.6" in out
    assert run("classes", "--rows", rows(UNIFORM), "--width", "3", "--depth", "1", "--budget", "2", "--json") == 0
    classes = json.loads(capsys.readouterr().out)["results"][0]["classes"]
    assert [each["probability"]["exact"] for each in classes] == ["3/5", "2/5"]
    assert [each["token"] for each in classes] == [[0, 1], [0, 2]]


def row(target, draft):
    """A file with one row for every prefix."""
    return {"contexts": {"*": {"target": target, "draft": draft}}}


H = ["1/2", "1/2"]
BAD_FILES = {
    "": "JSON",
    "[1, 2]": "contexts",
    "{}": "contexts",
    '{"contexts": {}}': "non-empty",
    '{"contexts": {"": 3}}': "exactly one of target and target_logits",
    json.dumps(row(["1/2", "1/3"], H)): "its sum is 5/6, not exactly 1",
    json.dumps(row([0.5, 0.4], H)): "its sum is 0.9",
    json.dumps(row(["3/2", "-1/2"], H)): "a non-negative number",
    json.dumps(row([0.5, float("nan")], H)): "number",
    json.dumps(row(["1/0", "1"], H)): '"a/b"',
    json.dumps(row(["a", "b"], H)): '"a/b"',
    json.dumps(row([True, False], H)): "a number",
    json.dumps(row([], H)): "non-empty",
    json.dumps(row(["1/3", "1/3", "1/3"], H)): "draft vocabulary: got 2",
    json.dumps({"contexts": {"x": row(H, H)["contexts"]["*"]}}): "token ids joined",
    json.dumps({"contexts": {"-1": row(H, H)["contexts"]["*"]}}): "token ids joined",
    json.dumps({"contexts": {"": row(H, H)["contexts"]["*"]}}): "prefix: got 0",
    json.dumps({"contexts": {"7": row(H, H)["contexts"]["*"]}}): "ids of its own vocabulary, 0..1",
    json.dumps({"contexts": {"00": row(H, H)["contexts"]["*"]}}): "token ids joined",
    json.dumps({**row(["1/3", "1/3", "1/3"], H), "ids": [0, 0]}): "a target id of its own",
    json.dumps({**row(["1/3", "1/3", "1/3"], H), "ids": [0, 3]}): "a token id in 0..2",
    json.dumps({**row(["1/3", "1/3", "1/3"], H), "ids": "01"}): "a list of target ids",
    json.dumps({"contexts": {"*": {"target_logits": [1, None], "draft_logits": [0, 0]}}}): "a number",
    json.dumps({"contexts": {"*": {"target_logits": [1, float("inf")], "draft_logits": [0, 0]}}}): "finite logits",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_bad_rows_file_is_one_line_and_exit_2(rows, capsys, text):
    assert run("certify", "rheo", "--rows", rows(text), "--width", "2", "--depth", "2", "--budget", "3") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert BAD_FILES[text] in said


BAD_CALLS = [
    (["certify", "--budget", "0"], "budget: got 0, expected an int of at least 1"),
    (["certify", "--width", "-1"], "width: got -1"),
    (["certify", "--depth", "two"], "depth: got two, expected an int"),
    (["certify", "nothing"], "method: got nothing, expected one of top-k, rheo"),
    (["certify", "--method", "missing.py:rule"], "missing.py, expected an existing Python file"),
    (["certify", "rules.py"], "path.py:name"),
    (["certify", "rheo", "--lead", "4"], "lead: got 4, expected 0 to the width K = 3"),
    (["certify", "rheo", "--lead", "-1"], "lead: got -1"),
    (["certify", "top-k", "--lead", "1"], "no lead to set"),
    (["certify", "--rows", "missing.json"], "missing.json, expected a readable file"),
    (["certify", "--temperature", "-1"], "temperature: got -1"),
    (["certify", "--support", "-3"], "support: got -3"),
    (["certify", "--arithmetic", "float8"], "arithmetic: got float8"),
    (["certify", "--save", "missing/folder/file.json", "--width", "2", "--depth", "1"], "a file that can be written"),
    (["certify", "--nonsense"], "--nonsense"),
    (["nonsense"], "nonsense"),
    (["check"], "FILE"),
    (["classes", "chain"], "a tree method"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD_CALLS)
def test_a_bad_call_is_one_line_and_exit_2(capsys, arguments, said):
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error


LEAVES = """
import sys
from rheo_core import method

def leaves(p, tail, candidates, sampled, lead, chooser, at):
    sys.exit(0)

@method
def few(target, draft):
    return [0]
"""


@pytest.mark.parametrize(("name", "said"), [("leaves", "SystemExit"), ("few", "TypeError")])
def test_a_rule_that_leaves_or_cannot_be_called_is_no_verdict(rows, tmp_path, capsys, name, said):
    path = tmp_path / "leaves.py"
    path.write_text(LEAVES, encoding="utf-8")
    shape = ["--width", "2", "--depth", "1", "--budget", "1"]
    assert run("certify", "--rows", rows(UNIFORM), f"{path}:{name}", *shape) == 2
    assert said in capsys.readouterr().err
    path.write_text("raise SystemExit(0)", encoding="utf-8")
    assert run("certify", "--rows", rows(UNIFORM), f"{path}:{name}", *shape) == 2


@pytest.mark.parametrize("name", [".", "/", ""])
def test_a_folder_is_no_file_to_save_to(rows, capsys, name):
    assert run("certify", "rheo", "--rows", rows(UNIFORM), "--budget", "1", "--save", name) == 2
    assert "the name of a file" in capsys.readouterr().err


def test_a_reader_that_leaves_early_does_not_change_the_verdict(rows):
    program = "import sys; sys.argv = ['rheo-exact', *sys.argv[1:]]; from exact.cli.main import main; main()"
    command = [sys.executable, "-c", program, "classes", "--rows", rows(UNIFORM), "--budget", "5", "--depth", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("call", [("certify", "rheo"), ("certify", "rheo", "--json"), ("rates", "--json")])
def test_a_full_disk_is_no_verdict(rows, call):
    """Also where all that is said fits into one buffer."""
    laws = ["--target", "1/2,1/2", "--draft", "1/2,1/2"]
    rest = ["--rows", rows(UNIFORM), "--budget", "1"] if call[0] == "certify" else laws
    program = "import sys; from exact.cli.main import main; main()"
    command = [sys.executable, "-c", program, *call, *rest]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    assert done.returncode == 2
    assert done.stderr.startswith("error: output: got No space left on device")
    assert done.stderr.count("\n") == 1


LATE = """
from rheo_core import method

@method
def memo(target, draft, prefix, shape, chooser):
    row = target(prefix)
    return [0 if len(prefix) > 2 else chooser.index(row)]
"""


def test_cycles_and_length_decide_how_far_is_looked(rows, tmp_path, capsys):
    path = tmp_path / "late.py"
    path.write_text(LATE, encoding="utf-8")
    call = ["certify", f"{path}:memo", "--rows", rows(UNIFORM), "--depth", "1", "--budget", "1"]
    for more, code, said in (
        ([], 0, "first 2 tokens after prefix (), one cycle"),
        (["--cycles", "4"], 0, "first 2 tokens after prefix (), 4 cycles"),
        (["--cycles", "4", "--length", "4"], 1, "first 4 tokens after prefix (), 4 cycles"),
    ):
        assert run(*call, *more) == code
        assert said in capsys.readouterr().out
    assert run("hunt", f"{path}:memo", "--seconds", "1") == 0
    shown = capsys.readouterr()
    assert "one cycle continued from the target" in shown.out
    assert "late.py:memo" in shown.err + shown.out
    assert run(*call, "--resume", str(tmp_path / "journal")) == 0
    assert run(*call, "--length", "3", "--resume", str(tmp_path / "journal")) == 2


@pytest.mark.parametrize("console", [options.out, options.err])
def test_names_are_no_pictures(console):
    with console.capture() as printed:
        console.print("rule.py:memo:")
    assert printed.get() == "rule.py:memo:\n"


def test_a_target_elsewhere_that_refutes_is_shown(rows, tmp_path, capsys):
    path = tmp_path / "tied.py"
    path.write_text(
        "from rheo_core.verification import algorithm_1\n\n"
        "def tied(p, tail, candidates, sampled, lead, chooser, at):\n"
        "    if p[0] == p[1] and candidates:\n        return candidates[0], 0\n"
        "    return algorithm_1(p, tail, candidates, sampled, lead, chooser, at)\n",
        encoding="utf-8",
    )
    skew = {"contexts": {"*": {"target": ["1/2", "1/3", "1/6"], "draft": ["1/2", "3/10", "1/5"]}}}
    saved = tmp_path / "saved.json"
    call = ["certify", f"{path}:tied", "--rows", rows(skew), "--depth", "1", "--budget", "2", "--save", str(saved)]
    assert run(*call) == 0
    (result,) = json.loads(saved.read_text())["results"]
    assert result["every_target_reason"].startswith("refuted with another target; at the given one V1 and V2 hold")
    out = capsys.readouterr().out
    assert "every p, tied m=1 on rows: with p = [" in out
    assert "right is" in out


@pytest.mark.parametrize(
    ("name", "said"),
    [("number", "a verify function"), ("absent", "a name that the file defines"), ("broken", "ZeroDivisionError")],
)
def test_a_bad_rule_is_one_line_and_exit_2(rows, own, capsys, name, said):
    shape = ["--width", "2", "--depth", "1", "--budget", "1"]
    assert run("certify", "--rows", rows(UNIFORM), f"{own}:{name}", *shape) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error


def test_an_interruption_ends_with_130(monkeypatch, capsys):
    def interrupted(*arguments, **options_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("exact.verdict.certify.cycle_law", interrupted)
    assert run("certify", "rheo", "--width", "2", "--depth", "1", "--budget", "1") == 130
    assert "interrupted" in capsys.readouterr().err


def test_help_names_every_command(capsys):
    assert run() == 0
    out = capsys.readouterr().out
    for name in ("certify", "check", "classes", "table1"):
        assert name in out


COIN_FILE = """
import random
target = {True: 0.25, False: 0.75}

def fair():
    return random.random() < 0.25

def biased():
    return random.random() <= 0.5
"""


@pytest.mark.parametrize(("name", "code"), [("fair", 0), ("biased", 1), ("absent", 2)])
def test_a_function_as_it_stands(tmp_path, capsys, name, code):
    path = tmp_path / "coin.py"
    path.write_text(COIN_FILE, encoding="utf-8")
    assert run("certify", "--torch", f"{path}:{name}") == code
    said = capsys.readouterr()
    assert ("P(" in said.out) if code == 1 else (said.err.count("\n") == int(code == 2)), said


def test_a_function_takes_no_methods_and_no_rows(capsys):
    assert run("certify", "rheo", "--torch", "coin.py:fair") == 2
    assert "no methods and no rows" in capsys.readouterr().err
    assert run("certify", "--length", "2", "--torch", "coin.py:fair") == 2
    assert "no --length beside --torch" in capsys.readouterr().err
