"""The command line on a tiny saved model: results, exit codes, and every refusal one line."""

import json
import subprocess
import sys

import pytest
import torch

from exact.cli import options
from exact.cli.main import app as exact_app
from gpu_runner.measure import bench as bench_module
from gpu_runner.model.chat import prompt_ids
from gpu_runner.model.tiny import tiny_head, tiny_model
from montecarlo.cli.main import app as montecarlo_app
from tests.gpu_runner.model.test_eagle3 import changed
from tests.gpu_runner.words import WORDS, run, saved, worded_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny Llama with a tokenizer and a chat template, and a head for it in `head`."""
    place = tmp_path_factory.mktemp("tiny")
    saved(worded_model(layers=4, dtype=torch.float32), place)
    tiny_head(place / "head", len(WORDS), 9)
    return place


def pair(folder, draft="skip:1"):
    return ("--target", folder, "--draft", draft if draft.startswith("skip") else folder / draft, "--device", "cpu")


def test_bench(folder, tmp_path, capsys):
    save = tmp_path / "bench.json"
    asked = ("--prompt", "a b c", "--prompt", "d e f", "--length", 10, "--seeds", 2, "--save", save)
    code, out, _ = run(capsys, "bench", *pair(folder), *asked)
    assert code == 0
    for word in ("autoregressive", "top-k", "rheo m=0", "rheo m=1", "rheo m=2", "rheo-rrsw m=1", "speed-up"):
        assert word in out
    document = json.loads(save.read_text())
    assert document["provenance"]["draft"].endswith("without layers 1")
    assert {"time", "versions", "device", "commit", "command"} <= document["provenance"].keys()
    by_method = {each["method"]: each for each in document["results"]}
    plain, top_k = by_method["autoregressive"], by_method["top-k"]
    assert plain["tau"] == 1
    assert plain["speed_up"] is top_k["difference"] is None
    for each in document["results"]:
        assert each["tau"] == each["tokens"] / each["cycles"]
        assert each["answers"] == 4
        assert list(each["by_depth"]) == sorted(each["by_depth"], reverse=True)
    assert by_method["rheo m=1"]["difference"]["low"] < by_method["rheo m=1"]["difference"]["high"]
    assert 1 <= by_method["rheo m=1"]["expected_tau"] <= 5


def test_bench_with_an_eagle_head_records_its_rope_base(folder, capsys):
    asked = ("--prompt", "a b", "--length", 6, "--seeds", 1, "--rope-base", 500, "--json")
    code, out, _ = run(capsys, "bench", "chain", "top-k", *pair(folder, "head"), *asked)
    document = json.loads(out)
    assert code == 0
    assert document["provenance"]["draft_rope_base"] == 500
    assert [each["method"] for each in document["results"]] == ["chain of 4", "top-k"]


def test_bench_at_temperature_0_compares_with_greedy(folder, capsys):
    asked = ("--prompt", "a b", "--length", 20, "--seeds", 1, "--temperature", 0, "--json")
    code, out, _ = run(capsys, "bench", "autoregressive", "top-k", "rheo", *pair(folder), *asked)
    assert code == 0
    greedy = json.loads(out)["greedy"]
    assert greedy["different"] == 0
    assert greedy["equal"] + greedy["different_after_small_gap"] == 2


def test_two_turns_keep_their_history(folder, monkeypatch, capsys):
    seen = []
    original = prompt_ids

    def spy(target, messages, plain):
        seen.append([message["role"] for message in messages])
        return original(target, messages, plain)

    monkeypatch.setattr(bench_module, "prompt_ids", spy)
    monkeypatch.setattr("gpu_runner.measure.prompts.QUESTIONS", (("a b", "c d"),))
    code, out, _ = run(capsys, "bench", "rheo", *pair(folder), "--length", 5, "--seeds", 1, "--json")
    assert code == 0
    assert seen[-2:] == [["user"], ["user", "assistant", "user"]]
    assert json.loads(out)["results"][0]["tokens"] <= 2 * (5 + 4)


def test_an_interrupted_benchmark_reports_what_it_has(folder, monkeypatch, capsys, tmp_path):
    original = bench_module.answer
    calls = []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(bench_module, "answer", interrupted)
    save = tmp_path / "part.json"
    asked = ("--prompt", "a b", "--length", 5, "--seeds", 9, "--save", save)
    code, out, err = run(capsys, "bench", "top-k", "rheo", *pair(folder), *asked)
    assert code == 130
    assert "interrupted" in err
    assert "interrupted: only questions" in out
    document = json.loads(save.read_text())
    assert document["provenance"]["finished"] is False
    assert [each["answers"] for each in document["results"]] == [1, 1]


@pytest.mark.parametrize("draft", ["skip:1", "head"])
def test_rows_are_read_by_certify(draft, folder, tmp_path, capsys):
    save = tmp_path / "rows.json"
    asked = ("--prompt", "a b c", "--tokens", 4, "--levels", 2, "--save", save)
    code, out, _ = run(capsys, "rows", *pair(folder, draft), *asked)
    assert code == 0
    assert "21 prefixes" in out
    document = json.loads(save.read_text())
    assert len(document["contexts"]) == 21
    assert document["source"]["prompt"] == "a b c"
    certify = ["certify", "rheo", "top-k", "--rows", str(save), "--width", "2", "--depth", "2", "--budget", "3"]
    assert options.run(exact_app, certify) == 0
    assert options.run(exact_app, ["certify", "rheo-raw", *certify[3:]]) == 1


def test_rows_hold_the_models_own_logits(folder, capsys):
    model = tiny_model(vocabulary=len(WORDS), layers=4, dtype=torch.float32).model
    arguments = ("--prompt", "a b c", "--tokens", 3, "--levels", 2, "--json", "--save", folder / "r.json")
    _, out, _ = run(capsys, "rows", *pair(folder), *arguments)
    document = json.loads(out)
    ids = [each["token_id"] for each in document["vocabulary"]]
    prompt = [WORDS.index(word) for word in ("user", "a", "b", "c", "assistant")]
    for key, context in document["contexts"].items():
        text = [*prompt, *(ids[int(part)] for part in key.split(",") if part)]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([text])).logits[0, -1]
        assert torch.allclose(torch.tensor(context["target_logits"]), logits[ids], atol=1e-4)
        assert abs(context["target_log_normaliser"] - float(logits.logsumexp(-1))) < 1e-4


def test_tree(folder, capsys):
    code, out, _ = run(capsys, "tree", *pair(folder), "--prompt", "a b", "--budget", 6, "--cycles", 2, "--check")
    assert code == 0
    assert "cycle 2: 6 nodes" in out
    assert "~" in out
    assert "->" in out
    assert "equal to rheo_core's" in out
    code, out, _ = run(capsys, "tree", *pair(folder), "--prompt", "a b", "--budget", 6, "--json")
    (cycle,) = json.loads(out)["cycles"]
    assert len(cycle["nodes"]) == 6
    assert sum(node["accepted"] for node in cycle["nodes"]) == cycle["accepted"] == len(cycle["emitted"]) - 1


def test_tree_draws_what_it_prints(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra `plot`)")
    drawn = []
    monkeypatch.setattr("gpu_runner.cli.tree.save_figure", lambda figure, path: drawn.append(figure))
    asked = ("--prompt", "a b", "--budget", 6, "--cycles", 2, "--json", "--plot", tmp_path / "trees.svg")
    code, out, _ = run(capsys, "tree", *pair(folder), *asked)
    assert code == 0
    (figure,) = drawn
    for ax, cycle in zip(figure.axes, json.loads(out)["cycles"], strict=False):
        words = [text.get_text() for text in ax.texts]
        assert words[0].endswith(f"6 nodes, {cycle['accepted']} accepted")
        assert {node["text"] for node in cycle["nodes"]} <= set(words)
    code, out, err = run(capsys, "tree", *pair(folder), "--plot", tmp_path / "trees.jpg")
    assert (code, out) == (2, "")
    assert err.startswith("error: plot: got ")


def test_tree_check_tells_a_planted_fault(folder, capsys):
    asked = ("--prompt", "a b", "--cycles", 5, "--check", "--fault", "trust-first", "--json")
    code, out, _ = run(capsys, "tree", *pair(folder), *asked)
    assert code == 1
    assert any(cycle["difference"] for cycle in json.loads(out)["cycles"])


def test_certify_with_and_without_a_fault(capsys):
    code, out, _ = run(capsys, "certify", "top-k", "chain", "--draft", "causal", "--device", "cpu")
    assert code == 0
    assert out.count("lossless") == 2
    code, out, _ = run(capsys, "certify", "top-k", "--draft", "causal", "--fault", "parent-row", "--json")
    assert code == 1
    assert json.loads(out)["results"][0]["lossless"] is False
    code, out, _ = run(capsys, "certify", "rheo", "--draft", "eagle3", "--fault", "shifted-map")
    assert code == 1
    assert "the engine refused: tail" in out


def test_audit_keeps_a_recording_that_audits_alike(folder, tmp_path, capsys):
    record = tmp_path / "run.jsonl.gz"
    asked = ("--prompt", "a b", "--prompt", "c", "--tokens", 70, "--length", 12, "--best", 8, "--record", record)
    code, out, _ = run(capsys, "audit", *pair(folder, "head"), *asked, "--json")
    assert code == 0
    document = json.loads(out)
    assert document["tokens"] == document["with_draft"] == 70
    assert document["alarm_after"] is None
    assert document["provenance"]["method"] == "rheo m=1"
    assert options.run(montecarlo_app, ["audit", str(record), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["tokens"] == 70
    assert again["log10_evidence"] == pytest.approx(document["log10_evidence"])
    assert [each["position"] for each in again["positions"]] == [each["position"] for each in document["positions"]]


def test_audit_of_a_planted_fault_ends_at_the_alarm(folder, tmp_path, capsys):
    save = tmp_path / "audit.json"
    asked = ("--fault", "trust-first", "--tokens", 600, "--length", 30, "--prompt", "a b c", "--save", save)
    code, out, _ = run(capsys, "audit", *pair(folder), *asked)
    assert code == 1
    assert "EVIDENCE OF LOSS" in out
    assert "planted fault: trust-first" in out
    document = json.loads(save.read_text())
    assert f"alarm after {document['alarm_after']} tokens" in out
    assert document["alarm_after"] <= document["tokens"] < 600
    assert document["tokens_for_these_biases"] > 0


def test_audit_reports_what_the_engine_refuses(folder, capsys):
    code, out, _ = run(capsys, "audit", *pair(folder, "head"), "--fault", "shifted-map", "--prompt", "a", "--json")
    document = json.loads(out)
    assert code == 1
    assert document["verdict"] == "evidence of loss"
    assert document["refusal"] is None or document["refusal"].startswith("tail: got 0")


def test_audit_of_question_sets_and_the_baseline(folder, tmp_path, capsys):
    for name, text in (("one", "a b"), ("two", "c d")):
        (tmp_path / name).mkdir()
        line = json.dumps({"question_id": 1, "turns": [text, "e"]})
        (tmp_path / name / "question.jsonl").write_text(line + "\n")
    asked = ("--data", tmp_path, "--sets", "one", "--sets", "two", "--tokens", 30, "--length", 4, "--no-draft-rows")
    code, out, _ = run(capsys, "audit", "--method", "autoregressive", *pair(folder), *asked, "--json")
    document = json.loads(out)
    assert code == 0
    assert document["tokens"] == 30
    assert document["with_draft"] == 0
    assert document["provenance"]["questions"] == 2


REFUSED = {
    "audit: greedy": (("audit", "--temperature", "0"), "temperature: got 0"),
    "audit: tokens": (("audit", "--tokens", "0"), "tokens: got 0"),
    "audit: entries": (("audit", "--best", "0"), "best: got 0"),
    "audit: alarm": (("audit", "--alarm", "1"), "false-alarm: got 1"),
    "audit: fault": (("audit", "--method", "autoregressive", "--fault", "trust-first"), "fault: got trust-first"),
    "audit: dtype": (("audit", "--dtype", "bf16", "--top-k", "5"), "dtype: got"),
    "audit: sets": (("audit", "--sets", "gsm8k"), "data: got"),
    "audit: folder": (("audit", "--data", "/nowhere", "--sets", "gsm8k"), "data: got"),
    "audit: record": (("audit", "--record", "/nowhere/run.jsonl"), "record: got"),
    "method": (("bench", "--method", "nothing"), "method: got nothing"),
    "lead": (("bench", "--method", "rheo:9"), "lead: got 9"),
    "lead word": (("bench", "--method", "rheo:x"), "method: got rheo:x"),
    "fault": (("bench", "--fault", "none"), "fault: got none"),
    "length": (("bench", "--length", "0"), "length: got 0"),
    "budget": (("bench", "--budget", "0"), "budget: got 0"),
    "temperature": (("bench", "--temperature", "-1"), "temperature: got -1"),
    "top-p": (("bench", "--top-p", "2"), "top_p: got 2"),
    "support": (("bench", "--support", "-1"), "support: got -1"),
    "threads": (("bench", "--threads", "-1"), "threads: got -1"),
    "device": (("bench", "--device", "tpu"), "device: got tpu"),
    "dtype": (("bench", "--dtype", "int8"), "dtype: got int8"),
    "tokens": (("rows", "--tokens", "1"), "tokens: got 1"),
    "contexts": (("rows", "--tokens", "20", "--levels", "5"), "contexts: got"),
    "levels": (("rows", "--levels", "0"), "levels: got 0"),
    "tree's lead": (("tree", "--method", "rheo:4"), "lead: got 4"),
    "not a tree": (("tree", "--method", "autoregressive"), "method: got autoregressive"),
    "layers": (("tree", "--draft", "skip:a"), "draft: got skip:a"),
    "cycles": (("tree", "--cycles", "0"), "cycles: got 0"),
    "draft kind": (("certify", "--draft", "x"), "draft: got x"),
    "nothing to certify": (("certify", "autoregressive"), "method: got autoregressive"),
    "seed": (("tree", "--seed", "-1"), "seed: got -1"),
    "questions": (("bench", "--questions", "99"), "questions: got 99"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_one_line_before_a_model_is_loaded(name, folder, monkeypatch, capsys):
    arguments, message = REFUSED[name]
    monkeypatch.setattr("gpu_runner.model.load.load_model", lambda *spec: pytest.fail("a model was loaded"))
    given = () if arguments[0] == "certify" else ("--target", folder, "--draft", "skip:1")
    code, _, err = run(capsys, arguments[0], *given, *arguments[1:])
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_bad_models_are_one_line(folder, tmp_path, capsys):
    broken = tiny_head(tmp_path / "broken", len(WORDS), 9)
    changed(broken, lambda tensors: tensors.pop("norm.weight"))
    other = tmp_path / "other"
    tiny_model(vocabulary=9, dtype=torch.float32).model.save_pretrained(other)
    (tmp_path / "empty").mkdir()
    window = tmp_path / "window"
    model = tiny_model("mistral", len(WORDS), dtype=torch.float32).model
    model.config.sliding_window = 4
    model.save_pretrained(window)
    cases = [
        (("--target", tmp_path / "empty"), "model: got"),
        (("--target", tmp_path / "none.gguf"), "GGUF file"),
        (("--target", window), "sliding window of 4 tokens"),
        (("--target", folder, "--draft", "skip:99"), "skip: got 99"),
        (("--target", folder, "--draft", "skip:a"), "skip: and layer numbers"),
        (("--target", folder, "--draft", broken), "no tensor norm.weight"),
        (("--target", folder, "--draft", other), "vocabulary of draft"),
    ]
    for arguments, message in cases:
        code, _, err = run(capsys, "tree", *arguments, "--device", "cpu")
        assert code == 2
        assert message in err
        assert len(err.strip().splitlines()) == 1


def test_no_cuda_where_asked_for(folder, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = run(capsys, "bench", "--target", folder, "--draft", "skip:1", "--device", "cuda")
    assert code == 2
    assert "device: got cuda" in err


def test_a_missing_extra_is_named(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = run(capsys, "bench")
    assert code == 2
    assert "rheo-lossless[torch]" in err


def test_the_command_line_is_read_without_torch():
    blocked = "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers', 'safetensors']))"
    code = "from gpu_runner.cli.main import app; from exact.cli.options import run; sys.exit(run(app, ['--help']))"
    done = subprocess.run([sys.executable, "-c", f"{blocked}; {code}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "certify" in done.stdout
