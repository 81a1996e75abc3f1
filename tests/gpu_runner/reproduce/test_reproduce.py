"""`gpu_runner reproduce` on a tiny model: layouts, kill and resume, parts and processes, every refusal one line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from exact.cli import options
from gpu_runner.cli.main import app
from gpu_runner.cli.reproduce import part_of
from gpu_runner.model.tiny import tiny_head
from gpu_runner.reproduce import run as reproduction
from gpu_runner.reproduce.paper import LLAMA
from gpu_runner.reproduce.run_folder import Shard
from rheo_core import InvalidInput
from tests.gpu_runner import words
from tests.gpu_runner.words import WORDS, saved, worded_model

SIZE = ("--length", 6, "--seeds", 2, "--width", 3, "--depth", 2, "--budget", 5)
ONE_LAYER = ("--length", 6, "--seeds", 2)
TIMES = {"seconds", "drafting", "verifying"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A tiny pair in `model` and `model/head`, question sets in `data`."""
    folder = tmp_path_factory.mktemp("reproduce")
    saved(worded_model(layers=4, dtype=torch.float32), folder / "model")
    tiny_head(folder / "model" / "head", len(WORDS), 9)
    for name, turns in {"gsm8k": [["a b c"], ["d e f g"]], "mt_bench": [["a b", "c d"]]}.items():
        path = folder / "data" / name / "question.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(json.dumps({"question_id": 80 + i, "turns": t}) + "\n" for i, t in enumerate(turns)))
    return folder


def arguments(place, name, out, *more, draft="skip:1", size=SIZE):
    draft = draft if draft.startswith("skip") else place / "model" / draft
    pair = ("--target", place / "model", "--draft", draft, "--device", "cpu")
    given = (name, *pair, "--data", place / "data", *size, "--out", out, *more)
    return ["reproduce", *(str(each) for each in given)]


SETS = ("--sets", "gsm8k", "--sets", "mt_bench")


def run(capsys, *given, **options_given):
    return words.run(capsys, *arguments(*given, **options_given))


def lines(out):
    """All lines of a folder without what a clock has a part in, in an order of their own."""
    found = [json.loads(line) for file in out.glob("answers*.jsonl") for line in file.read_text().splitlines()]
    return sorted(json.dumps({k: v for k, v in line.items() if k not in TIMES}) for line in found)


def untimed(document):
    """The results of a document without what a clock has a part in."""
    timed = {"tokens_per_second", "speed_up", "drafting", "verifying"}
    return [{k: v for k, v in row.items() if k not in timed} for row in document["results"]]


@pytest.fixture(scope="module")
def whole(place):
    """A finished run of table2 and its document."""
    out, save = place / "whole", place / "whole.json"
    assert options.run(app, arguments(place, "table2", out, *SETS, "--save", save)) == 0
    return out, json.loads(save.read_text())


def test_table_2(place, whole, capsys):
    out, document = whole
    assert document["finished"]
    assert document["done"] == document["total"] == len(lines(out)) == 2 * 3 * 4
    answers = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    rheo = [a for a in answers if a["what"] == "rheo m=1" and a["question_set"] == "gsm8k"]
    row = next(e for e in document["results"] if (e["method"], e["question_set"]) == ("rheo m=1", "gsm8k"))
    assert row["mean"] == sum(len(a["tokens"]) for a in rheo) / sum(len(a["emitted"]) for a in rheo)
    assert row["speed_up"]["low"] <= row["speed_up"]["mean"] <= row["speed_up"]["high"]
    assert {a["question"] for a in rheo} == {80, 81}
    source = json.loads((out / "provenance.json").read_text())["runs"][0]
    assert {"time", "commit", "versions", "device", "command", "draft_rope_base"} <= source.keys()
    assert source["shape"] == document["shape"] == {"width": 3, "depth": 2, "budget": 5}
    code = options.run(app, ["reproduce", "table2", "--out", str(out), "--report-only"])
    text = capsys.readouterr().out
    assert code == 0
    for word in ("GSM8K", "MT-bench", "average", "speed-up", "given trees", "to top-k", "rheo m=1"):
        assert word in text
    assert "partial" not in text
    assert "means within 95 % of 0" in text
    assert "cannot be judged" in text


def test_a_narrow_terminal_loses_nothing(whole, capsys, monkeypatch):
    report = ["reproduce", "table2", "--out", str(whole[0]), "--report-only"]
    assert options.run(app, report) == 0
    wide = capsys.readouterr().out
    monkeypatch.setattr(options.out, "width", 40)
    assert options.run(app, report) == 0
    narrow = capsys.readouterr().out
    table = [line for line in wide.splitlines() if "±" in line and ":" not in line]
    assert table
    assert all(line in narrow.splitlines() for line in table)


def test_the_papers_values_stand_beside_the_papers_pair_and_setting(whole, tmp_path, capsys):
    found = [json.loads(line) for line in (whole[0] / "answers.jsonl").read_text().splitlines()]
    for each in found:
        for depths in each.get("contexts", {}).get("by_depth", {}).values():
            depths += [0.0] * (8 - len(depths))
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in found))
    held = json.loads((whole[0] / "provenance.json").read_text())
    held["runs"] += [{**held["runs"][0], "commit": "0123456789"}]
    held["arguments"] |= {"target": LLAMA.target, "draft": LLAMA.draft, "width": 10, "depth": 8, "budget": 59}
    for temperature, shown in ((1.0, True), (0.5, False)):
        held["arguments"]["temperature"] = temperature
        (tmp_path / "provenance.json").write_text(json.dumps(held))
        assert options.run(app, ["reproduce", "table2", "--out", str(tmp_path), "--report-only"]) == 0
        text = capsys.readouterr().out
        assert "different commits" in text
        rows = [line.split() for line in text.splitlines() if line.strip().startswith("paper")]
        top_k, rheo = "5.50±0.03 4.60±0.06 5.04±0.02 2.84x", "5.60±0.08 4.84±0.14 5.25±0.03 2.93x"
        assert rows == ([["paper", *top_k.split()], ["paper", *rheo.split()]] if shown else [])


def test_no_answer_goes_on_after_an_end_token(whole):
    answers = [json.loads(line) for line in (whole[0] / "answers.jsonl").read_text().splitlines()]
    turns = {"gsm8k": 1, "mt_bench": 2}
    ended = [a for a in answers if "tokens" in a and 0 in a["tokens"]]
    assert ended
    for answer in ended:
        assert answer["tokens"].count(0) <= turns[answer["question_set"]]
        if answer["question_set"] == "gsm8k":
            assert answer["tokens"].index(0) == len(answer["tokens"]) - 1
        assert sum(answer["emitted"]) == len(answer["tokens"])


@pytest.mark.parametrize("stop", [7, pytest.param(1, marks=pytest.mark.slow), pytest.param(23, marks=pytest.mark.slow)])
def test_interrupted_and_gone_on_with_it_is_the_same(stop, place, whole, tmp_path, monkeypatch, capsys):
    original, calls = reproduction.TaskRunner.__call__, []

    def interrupted(self, task):
        calls.append(task)
        if len(calls) == stop + 1:
            raise KeyboardInterrupt
        return original(self, task)

    monkeypatch.setattr(reproduction.TaskRunner, "__call__", interrupted)
    out, save = tmp_path / "run", tmp_path / "part.json"
    code, text, err = run(capsys, place, "table2", out, *SETS, "--save", save)
    assert code == 130
    assert "interrupted" in err
    assert f"partial: {stop} of 24" in text
    assert json.loads(save.read_text())["finished"] is False
    with (out / "answers.jsonl").open("ab") as file:
        file.write(b'{"cell": "", "question_s')
    monkeypatch.setattr(reproduction.TaskRunner, "__call__", original)
    code, text, err = run(capsys, place, "table2", out, *SETS, "--resume", "--save", save)
    assert code == 0
    assert "torn" in err
    assert f"{24 - stop} text" in err
    assert lines(out) == lines(whole[0])
    assert untimed(json.loads(save.read_text())) == untimed(whole[1])
    assert len(json.loads((out / "provenance.json").read_text())["runs"]) == 2


def test_a_finished_run_is_gone_on_with_at_once(place, whole, capsys, monkeypatch):
    monkeypatch.setattr("gpu_runner.cli.options.PairOptions.load", None)
    code, text, _ = run(capsys, place, "table2", whole[0], *SETS, "--resume")
    assert code == 0
    assert "rheo m=1" in text


def test_parts_give_the_same(place, whole, tmp_path, capsys):
    out = tmp_path / "parts"
    code, text, _ = run(capsys, place, "table2", out, *SETS, "--shard", "1/2")
    assert code == 0
    assert "partial" in text
    code, text, _ = run(capsys, place, "table2", out, *SETS, "--shard", "0/2", "--save", tmp_path / "s.json")
    assert code == 0
    assert "partial" not in text
    assert lines(out) == lines(whole[0])
    assert untimed(json.loads((tmp_path / "s.json").read_text())) == untimed(whole[1])


@pytest.mark.slow
def test_a_set_gives_the_same_in_other_company(place, whole, tmp_path, capsys):
    code, _, _ = run(capsys, place, "table2", tmp_path / "run", "--sets", "mt_bench")
    assert code == 0
    assert lines(tmp_path / "run") == [line for line in lines(whole[0]) if '"mt_bench"' in line]


def test_table_4(place, tmp_path, capsys):
    more = ("--questions", 2, "--json")
    code, out, _ = run(capsys, place, "table4", tmp_path / "run", *more, draft="head", size=ONE_LAYER)
    assert code == 0
    document = json.loads(out)
    assert document["counted"] == "acceptance"
    assert document["provenance"][0]["draft_rope_base"] == 10000
    assert document["shape"] == document["provenance"][0]["shape"] == {"width": 3, "depth": 1, "budget": 3}
    methods = {row["method"]: row for row in document["results"]}
    assert list(methods) == ["top-k", "rheo-rrsw m=1", "rheo m=1"]
    for row in methods.values():
        assert 0 <= row["mean"] <= 1
        assert 0 <= row["given_trees"] <= 1
        assert len(row["by_depth"]) <= 1
    given = {name: row["given_trees"] for name, row in methods.items()}
    assert len(set(given.values())) == 3  # three rules, three rates; on single contexts either of two may be ahead


def test_table_5_and_the_figures(place, tmp_path, capsys):
    few = ("--questions", 1, "--json", "--length", 3, "--seeds", 1)
    code, out, _ = run(capsys, place, "table5", tmp_path / "5", *few)
    assert code == 0
    results = json.loads(out)["results"]
    assert [row["support"] for row in results[1:]] == [128, 256, 512, 1024, None]
    assert results[-1]["coverage"] == 1
    assert all(row["drafting"] > 0 for row in results)
    plot = tmp_path / "3.png"
    same = (*few, "--sets", "gsm8k", "--on", "same", "--plot", plot)
    code, out, _ = run(capsys, place, "figure3", tmp_path / "3", *same)
    assert code == 0
    results = json.loads(out)["results"]
    assert plot.stat().st_size > 1000
    assert [row["method"] for row in results] == ["top-k", *(f"rheo m={m}" for m in range(4))]
    # With m = K there is no sampled slot: top-k's own tree, and Algorithm 1 without one is sequential rejection.
    assert results[4]["given_difference"]["mean"] == pytest.approx(0, abs=1e-6)
    assert all(row["mean"] is None and row["given_trees"] > 1 for row in results)
    code, out, _ = run(capsys, place, "figure4", tmp_path / "4", *few, "--sets", "gsm8k", "--on", "own")
    assert code == 0
    results = json.loads(out)["results"]
    assert [row["cell"] for row in results[::3]] == [f"T = {t:g}" for t in (0, 0.2, 0.4, 0.6, 0.8, 1)]


def test_a_planted_fault_is_told(place, tmp_path, capsys):
    more = ("--sets", "gsm8k", "--questions", 1, "--fault", "trust-first")
    code, out, _ = run(capsys, place, "table3", tmp_path / "run", *more)
    assert code == 0
    assert "planted fault: trust-first" in out
    assert "given trees  " not in out


REFUSED = {
    "experiment": ("table9", (), "experiment: got table9"),
    "no such set": ("table2", ("--sets", "qa"), "qa/question.jsonl"),
    "the paper's sets": ("table2", (), "alpaca/question.jsonl"),
    "questions": ("table2", (*SETS, "--questions", 0), "questions: got 0"),
    "length": ("table2", (*SETS, "--length", 0), "length: got 0"),
    "seeds": ("table2", (*SETS, "--seeds", 0), "seeds: got 0"),
    "seed": ("table2", (*SETS, "--seed", -1), "seed: got -1"),
    "width": ("table2", (*SETS, "--width", 0), "width: got 0"),
    "temperature": ("table2", (*SETS, "--temperature", -1), "temperature: got -1"),
    "support": ("table2", (*SETS, "--support", -1), "support: got -1"),
    "on": ("table2", (*SETS, "--on", "x"), "on: got x"),
    "fault": ("table2", (*SETS, "--fault", "x"), "fault: got x"),
    "fault on shared contexts": ("table2", (*SETS, "--fault", "trust-first", "--on", "same"), "on: got same"),
    "shard": ("table2", (*SETS, "--shard", "3/2"), "shard: got 3/2"),
    "threads": ("table2", (*SETS, "--threads", -1), "threads: got -1"),
    "dtype": ("table2", (*SETS, "--dtype", "int8"), "dtype: got int8"),
    "shape of table4": ("table4", ("--width", 4), "width: got"),
    "support of table5": ("table5", ("--support", 4), "support: got 4"),
    "temperature of figure4": ("figure4", ("--temperature", 1), "temperature: got 1"),
    "plot of a table": ("table2", (*SETS, "--plot", "x.png"), "plot: got table2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_one_line(name, place, tmp_path, capsys):
    experiment, more, message = REFUSED[name]
    code, _, err = run(capsys, place, experiment, tmp_path / "run", *more)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not list((tmp_path / "run").glob("provenance*"))


def test_bad_folders_are_one_line(place, whole, tmp_path, capsys):
    cases = [
        (("table2", whole[0], *SETS), "is there), or --resume"),
        (("table2", whole[0], *SETS, "--resume", "--seeds", 3), "seeds: got 3, expected 2"),
        (("table2", whole[0], *SETS, "--resume", "--questions", 1), "asked: got"),
        (("table3", whole[0], *SETS, "--resume"), "experiment: got table3, expected table2"),
        (("table3", whole[0], "--report-only"), "experiment: got table3, expected table2"),
        (("table2", tmp_path / "none", "--report-only"), "a folder with results"),
    ]
    for (name, out, *more), message in cases:
        code, _, err = run(capsys, place, name, out, *more)
        assert code == 2
        assert message in err
        assert len(err.strip().splitlines()) == 1
    assert options.run(app, ["reproduce", "table2", "--out", str(tmp_path / "x")]) == 2
    assert "data: got nothing" in capsys.readouterr().err


def test_parts_under_torchrun(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert part_of("1/3", "auto") == (Shard(1, 3), "auto")
    for name, value in (("RANK", "5"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "8")):
        monkeypatch.setenv(name, value)
    assert part_of(None, "auto") == part_of(None, "cuda") == (Shard(5, 8), "cuda:1")
    assert part_of(None, "cpu") == (Shard(5, 8), "cpu")
    with pytest.raises(InvalidInput, match="nothing under torchrun"):
        part_of("0/2", "cpu")
    monkeypatch.setenv("RANK", "x")
    with pytest.raises(InvalidInput, match="shard: got x/8"):
        part_of(None, "cpu")


def test_edited_questions_are_not_mixed(place, whole, tmp_path, capsys):
    for name in ("gsm8k", "mt_bench"):
        text = (place / "data" / name / "question.jsonl").read_text()
        (tmp_path / name).mkdir()
        (tmp_path / name / "question.jsonl").write_text(text.replace("a b c", "a b d"))
    code, _, err = run(capsys, place, "table2", whole[0], *SETS, "--resume", "--data", tmp_path)
    assert code == 2
    assert "digest: got" in err


def test_a_strange_line_is_refused(place, whole, tmp_path, capsys):
    for file in whole[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    first = json.loads((tmp_path / "answers.jsonl").read_text().splitlines()[0])
    with (tmp_path / "answers.jsonl").open("a") as file:
        file.write(json.dumps({**first, "seed": 99}) + "\n")
    code, _, err = run(capsys, place, "table2", tmp_path, "--report-only")
    assert code == 2
    assert "one that the arguments ask for" in err


COMMAND = (sys.executable, "-c", "from gpu_runner.cli.main import main; main()")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def wait_for_lines(process, out, least):
    """Wait until a process has written so many lines; how many it has."""
    seen = 0
    while seen < least:
        assert process.poll() is None, "it ended before it could be stopped"
        seen = sum(file.read_bytes().count(b"\n") for file in out.glob("answers*.jsonl"))
        time.sleep(0.01)
    return seen


@pytest.mark.slow
def test_killed_outright_it_loses_one_question_at_most(place, whole, tmp_path):
    out = tmp_path / "run"
    given = arguments(place, "table2", out, *SETS)
    process = subprocess.Popen([*COMMAND, *given], env=ENVIRONMENT)
    try:
        seen = wait_for_lines(process, out, 5)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (out / "answers.jsonl").read_bytes().count(b"\n") >= seen
    subprocess.run([*COMMAND, *given, "--resume"], env=ENVIRONMENT, check=True)
    assert lines(out) == lines(whole[0])


LAUNCH = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "gpu_runner")


@pytest.mark.slow
def test_torchrun_gives_the_same_as_one_process(place, whole, tmp_path):
    out, save = tmp_path / "run", tmp_path / "run.json"
    given = arguments(place, "table2", out, *SETS, "--save", save)
    done = subprocess.run([*LAUNCH, *given], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {file.name for file in out.glob("answers*")} == {"answers-0-of-2.jsonl", "answers-1-of-2.jsonl"}
    assert lines(out) == lines(whole[0])
    assert untimed(json.loads(save.read_text())) == untimed(whole[1])
    assert done.stdout.count("Table 2") == 1


@pytest.mark.slow
def test_interrupted_under_torchrun_it_reports_what_there_is(place, whole, tmp_path):
    out, save = tmp_path / "run", tmp_path / "run.json"
    given = arguments(place, "table2", out, *SETS, "--save", save)
    process = subprocess.Popen([*LAUNCH, *given, "--length", "60"], env=ENVIRONMENT, start_new_session=True)
    try:
        wait_for_lines(process, out, 5)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    document = json.loads(save.read_text())
    assert not document["finished"]
    assert document["done"] >= 5
    subprocess.run([*LAUNCH, *given, "--length", "60", "--resume"], env=ENVIRONMENT, check=True)
    assert json.loads(save.read_text())["finished"]
