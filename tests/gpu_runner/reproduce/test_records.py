"""Lines of a run read back: what a run writes is read; what none can have written is one clear line, exit code 2."""

import json
import math

import pytest

from exact.cli import options
from gpu_runner.cli.main import app
from gpu_runner.decode.methods import AUTOREGRESSIVE, BASELINE
from gpu_runner.reproduce.experiments import SAME_CONTEXTS, Arguments, Task
from gpu_runner.reproduce.run import read_records, read_report
from rheo_core import InvalidInput

ARGUMENTS = Arguments(
    experiment="table2", target="t", draft="d", dtype="float32", device="cpu", threads=1, rope_base=None, plain=False,
    fault=None, width=3, depth=2, budget=5, temperature=1.0, support=128, length=6, seeds=1, seed=0, on="both",
    asked={"gsm8k": [1]}, digest="0",
)  # fmt: skip
OWN = {
    "cell": "", "question_set": "gsm8k", "question": 1, "seed": 0, "what": BASELINE, "rule": BASELINE,
    "tokens": [5, 6, 7, 8, 9, 0], "emitted": [1, 3, 2], "accepted": [0, 2, 2], "expected": [1.5, 2.5, 2.0],
    "drafting": [0.1, 0.1], "verifying": [0.1, 0.1], "gaps": [], "seconds": 1.0,
}  # fmt: skip
"""The last cycle was cut at an end token among what was drafted."""
PLAIN = {
    **OWN, "what": AUTOREGRESSIVE, "rule": AUTOREGRESSIVE, "emitted": [1] * 6, "accepted": [], "expected": [],
    "drafting": [], "verifying": [0.1] * 5, "gaps": [0.5] * 6,
}  # fmt: skip
RHEO = "rheo m=1"
CONTEXTS = {
    "expected": {BASELINE: [1.5, 2.0], RHEO: [1.5, 2.5]},
    "accepted": {BASELINE: [0.25, 0.75], RHEO: [0.5, 1.0]},
    "coverage": {RHEO: [0.9, 1.0]},
    "by_depth": {BASELINE: [0.5, 0.25], RHEO: [0.75, 0.25]},
    "advanced": [RHEO, BASELINE],
    "emitted": [1, 2],
    "tokens": [5, 6, 7],
}
WALK = {**{name: OWN[name] for name in ("cell", "question_set", "question", "seed")}, "what": SAME_CONTEXTS}
WALK["contexts"] = CONTEXTS

SOURCE = {"device": "cpu", "draft_rope_base": None, "target": "t", "draft": "d", "dtype": "float32"}


@pytest.fixture
def reported(tmp_path, capsys):
    """Exit code and stderr of a report on lines."""

    def report(*lines, source=SOURCE):
        document = {"arguments": ARGUMENTS.document(), "runs": [source]}
        (tmp_path / "provenance.json").write_text(json.dumps(document))
        (tmp_path / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        code = options.run(app, ["reproduce", "table2", "--out", str(tmp_path), "--report-only"])
        return code, capsys.readouterr().err

    return report


@pytest.mark.parametrize("name", SOURCE)
def test_a_provenance_that_does_not_say_what_ran_is_refused(reported, name):
    without = {key: value for key, value in SOURCE.items() if key != name}
    for source, shown in ((without, "nothing"), ({**without, name: [1]}, [1])):
        code, err = reported(OWN, source=source)
        assert code == 2
        assert f"a run's provenance: {name}: got {shown}, expected" in err
        assert err.count("\n") == 1


def test_what_a_run_writes_is_read(reported, tmp_path):
    code, err = reported(OWN, PLAIN, WALK, OWN)
    assert code == 0, err
    report = read_report(tmp_path, "table2")
    assert (report.done, report.total) == (3, 4)


DAMAGED = [
    {"expected": [math.nan, 2.5, 2.0]},
    {"expected": [math.inf, 2.5, 2.0]},
    {"expected": [1.5, 2.5]},
    {"expected": []},
    {"expected": [1.5, 2.5, 3.5]},
    {"emitted": None},
    {"emitted": "abc"},
    {"emitted": [500]},
    {"emitted": [1, 3.0, 2]},
    {"emitted": [True, 3, 2]},
    {"emitted": [2, 2, 2]},
    {"emitted": [1, 127, 2]},
    {"emitted": [], "tokens": [], "accepted": [], "expected": [], "drafting": [], "verifying": []},
    {"accepted": [7, 2, 2]},
    {"accepted": [-3, 2, 2]},
    {"accepted": [1, 2, 2]},
    {"accepted": [1, 2, 1]},
    {"accepted": [0, 2]},
    {"accepted": [10**400, 2, 2]},
    {"rule": "rheo m=1"},
    {"rule": ["top-k"]},
    {"question": [1]},
    {"question": True},
    {"question": 1.0},
    {"seed": "0"},
    {"seed": 7},
    {"what": None},
    {"cell": {}},
    {"seconds": 0},
    {"seconds": -1.0},
    {"seconds": math.nan},
    {"seconds": None},
    {"seconds": 0.1},
    {"verifying": [0.1, 0.1, 0.1]},
    {"drafting": [0.1]},
    {"drafting": [-0.1, 0.1]},
    {"gaps": [0.5]},
    {"tokens": [5, 6, 7, 8, 9, -1]},
    {"tokens": [5, 6, 7, 8, 9]},
    {"note": "mine"},
]


@pytest.mark.parametrize("edit", DAMAGED, ids=lambda edit: json.dumps(edit)[:50])
def test_an_edited_answer_is_refused_by_file_and_line(reported, edit):
    code, err = reported(PLAIN, {**OWN, **edit})
    assert code == 2
    assert "answers.jsonl:2" in err.replace("\n", "")
    assert "Traceback" not in err


@pytest.mark.parametrize("name", list(OWN))
def test_an_answer_without_a_field_is_refused(reported, name):
    code, err = reported({key: value for key, value in OWN.items() if key != name})
    assert code == 2
    assert "answers.jsonl:1" in err.replace("\n", "")


SHARED = [
    {"expected": None},
    {"expected": {BASELINE: [1.5, 2.0]}},
    {"expected": {BASELINE: [1.5, 2.0], RHEO: [1.5]}},
    {"expected": {BASELINE: [1.5, 2.0], RHEO: [1.5, math.nan]}},
    {"expected": {BASELINE: [3.0, 3.0], RHEO: [1.5, 2.5]}},
    {"accepted": {BASELINE: [0.25, 1.75], RHEO: [0.5, 1.0]}},
    {"accepted": {BASELINE: [0.9, 0.75], RHEO: [0.5, 1.0]}},
    {"coverage": {RHEO: [0.9, 1.5]}},
    {"coverage": {BASELINE: [0.9, 1.0]}},
    {"by_depth": {BASELINE: [0.5, 0.6], RHEO: [0.75, 0.25]}},
    {"by_depth": {BASELINE: [0.5], RHEO: [0.75, 0.25]}},
    {"advanced": []},
    {"advanced": [RHEO, RHEO]},
    {"advanced": [RHEO, "mine"]},
    {"advanced": [RHEO, [1]]},
    {"emitted": [1, 5], "tokens": [5] * 6},
    {"emitted": [2, 2]},
    {"tokens": "abc"},
    {"note": 1},
]


@pytest.mark.parametrize("edit", SHARED, ids=lambda edit: json.dumps(edit)[:50])
def test_edited_contexts_are_refused_by_file_and_line(reported, edit):
    code, err = reported(OWN, {**WALK, "contexts": {**CONTEXTS, **edit}})
    assert code == 2
    assert "answers.jsonl:2" in err.replace("\n", "")


@pytest.mark.parametrize("contexts", [None, [], 3, "abc", {}])
def test_no_contexts_are_refused(reported, contexts):
    code, err = reported({**WALK, "contexts": contexts})
    assert code == 2
    assert "answers.jsonl:1" in err.replace("\n", "")


def test_a_second_line_that_says_otherwise_is_refused(reported):
    code, err = reported(OWN, PLAIN, {**OWN, "seconds": 2.0})
    assert code == 2
    assert "answers.jsonl:3" in err.replace("\n", "")


def test_a_run_is_not_gone_on_with_on_an_edited_line():
    with pytest.raises(InvalidInput, match=r"here:1: emitted: got \[500\]"):
        read_records(ARGUMENTS, [{**OWN, "emitted": [500]}], ["here:1"])


def test_a_planted_fault_leaves_nothing_expected():
    faulty = Arguments(**{**ARGUMENTS.document(), "fault": "verify-with-q", "on": "own"})
    (task,) = read_records(faulty, [{**OWN, "expected": []}], ["here:1"])
    assert task == Task("", "gsm8k", 1, 0, BASELINE)
    with pytest.raises(InvalidInput, match="here:1: expected: got"):
        read_records(faulty, [OWN], ["here:1"])


KEPT: list[tuple[str, object]] = [("length", "x"), ("seeds", None), ("seed", True), ("temperature", "hot")]
KEPT += [("experiment", [1]), ("asked", []), ("asked", {}), ("asked", {"gsm8k": []}), ("asked", {"gsm8k": [[1]]})]


@pytest.mark.parametrize(("name", "value"), KEPT, ids=str)
def test_edited_arguments_are_refused(name, value):
    assert Arguments.of(ARGUMENTS.document()) == ARGUMENTS
    with pytest.raises(InvalidInput, match=f"arguments: {name}.*: got"):
        Arguments.of({**ARGUMENTS.document(), name: value})


@pytest.mark.parametrize("edit", [{"runs": []}, {"runs": 3}, {"runs": [1]}, {"arguments": 3}], ids=json.dumps)
def test_an_edited_provenance_is_refused(tmp_path, edit):
    document = {"arguments": ARGUMENTS.document(), "runs": [{}], **edit}
    (tmp_path / "provenance.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=r"provenance\.json: got"):
        read_report(tmp_path, "table2")
