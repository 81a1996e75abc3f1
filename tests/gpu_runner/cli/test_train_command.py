"""`gpu_runner train` on a tiny saved model: from text to a head that drafts, kills and resumes, what is refused."""

import json

import pytest
import torch

from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.model.chat import prompt_ids
from gpu_runner.model.drafts.checkpoint import read_checkpoint
from gpu_runner.training.documents import read_documents, sample_documents
from gpu_runner.training.loop import Training
from gpu_runner.training.text import Line, parse_line, read_text
from rheo_core import InvalidInput
from tests.gpu_runner.words import WORDS, run, saved, worded_model


@pytest.fixture(scope="module")
def model():
    return worded_model(layers=4, dtype=torch.float32)


def conversation(*said):
    """The fields of a line in which user and assistant take turns."""
    return {"messages": [{"role": ("user", "assistant")[i % 2], "content": words} for i, words in enumerate(said)]}


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """The model saved, and training text beside it."""
    place = tmp_path_factory.mktemp("tiny")
    saved(model, place)
    letters = WORDS[3:]
    lines = [
        conversation(" ".join(letters[(i + j) % 10] for j in range(3)), " ".join(letters[i % 10 :])) for i in range(24)
    ]
    (place / "text.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    asked = [{"question_id": i, "turns": [letters[i], letters[-1 - i]]} for i in range(5)]
    (place / "asked.jsonl").write_text("\n".join(json.dumps(line) for line in asked))
    return place


def trained(folder, out, *more):
    text = () if "--text" in more else ("--text", folder / "text.jsonl")
    fixed = ("--target", folder, "--device", "cpu", "--length", 32, "--batch", 6, "--draft-vocabulary", 8)
    return ("train", *fixed, "--out", out, "--learning-rate", 0.01, "--threads", 1, *text, *more)


def test_from_text_to_a_head_that_drafts(folder, tmp_path, capsys):
    out = tmp_path / "head"
    code, shown, said = run(capsys, *trained(folder, out, "--held-out", 0.25, "--epochs", 2))
    assert code == 0
    assert f"head written to {out}" in shown
    assert "18 documents to learn from, 6 held out" in said
    assert "draft vocabulary 8" in said
    assert read_checkpoint(out).config.draft_vocabulary == 8
    source = json.loads((out / "provenance.json").read_text())
    assert source["updates"] == source["of"] == 6
    assert source["draft_rope_base"] == 10000.0
    assert source["draft_reads_layers"] == [2, 2, 1]
    assert source["training"]["learning_rate"] == 0.01
    assert {"time", "commit", "versions", "device", "command", "text"} <= source.keys()
    log = log_of(out)
    assert [line["update"] for line in log if "loss" in line] == list(range(1, source["of"] + 1))
    assert [line["update"] for line in log if "held_out" in line] == [0, source["of"]]
    asked = ("--target", folder, "--device", "cpu", "--prompt", "a b", "--length", 6, "--seeds", 1, "--json")
    code, shown, _ = run(capsys, "bench", "chain", "--draft", out, *asked)
    assert code == 0
    assert json.loads(shown)["provenance"]["draft"] == str(out)


def log_of(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def weights(out):
    return (out / "model.safetensors").read_bytes()


def test_killed_and_resumed_equals_uninterrupted(folder, tmp_path, capsys, monkeypatch):
    more = ("--epochs", 2, "--every", 2, "--held-out", 0.25)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(capsys, *trained(folder, whole, *more))[0] == 0
    update = Training.update

    def killed(self):
        if self.done == 3:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Training, "update", killed)
    assert run(capsys, *trained(folder, cut, *more))[0] == 130
    monkeypatch.setattr(Training, "update", update)
    code, _, said = run(capsys, *trained(folder, cut, *more))
    assert code == 2
    assert "--resume to go on with it" in said
    code, _, said = run(capsys, *trained(folder, cut, *more, "--resume", "--seed", 1))
    assert code == 2
    assert "seed of a resumed training: got 1, expected 0" in said
    for done in (2, 6):
        code, _, said = run(capsys, *trained(folder, cut, *more, "--resume"))
        assert code == 0
        assert f"resumed after {done} of 6 updates" in said
        assert weights(cut) == weights(whole)
    logs = [[line["loss"] for line in log_of(place) if "loss" in line] for place in (whole, cut)]
    assert logs[0] == logs[1]


def test_sampled_answers_are_kept_and_gone_on_with(folder, tmp_path, capsys, monkeypatch):
    given = ("--text", folder / "asked.jsonl", "--answer-length", 8, "--held-out", 0.3, "--generate", 7)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(capsys, *trained(folder, whole, *given))[0] == 0
    kept = (whole / "documents.jsonl").read_text().splitlines()
    assert [len(json.loads(line)) for line in kept[1:]] == [2] * 7
    assert [json.loads(line)[0][0] for line in kept[1:]] == [1, 2, 3, 4, 5, 1, 2]
    answer, calls = autoregressive, []

    def killed(*arguments, **named):
        calls.append(arguments)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return answer(*arguments, **named)

    monkeypatch.setattr("gpu_runner.training.documents.autoregressive", killed)
    assert run(capsys, *trained(folder, cut, *given))[0] == 130
    assert len((cut / "documents.jsonl").read_text().splitlines()) == 4
    with (cut / "documents.jsonl").open("a") as file:
        file.write("[[4, 2, 1")
    monkeypatch.setattr("gpu_runner.training.documents.autoregressive", answer)
    assert run(capsys, *trained(folder, cut, *given, "--resume"))[0] == 0
    assert (cut / "documents.jsonl").read_text().splitlines() == kept
    assert weights(cut) == weights(whole)


def test_a_turn_after_a_sampled_answer_sees_it(model):
    line = Line(3, ({"role": "user", "content": "a"}, {"role": "user", "content": "b"}))
    first, second = sample_documents(line, model, False, 5, 0)
    answer = model.tokenizer.decode(first.tokens[first.start :], skip_special_tokens=True)
    history = [line.messages[0], {"role": "assistant", "content": answer}, line.messages[1]]
    assert list(second.tokens[: second.start]) == prompt_ids(model, history)
    assert first.source == second.source == 3


def test_documents_of_a_conversation_begin_where_the_engine_does(model):
    said = [("user", "a b"), ("assistant", "c"), ("user", "d"), ("assistant", "e f")]
    line = Line(1, tuple({"role": role, "content": content} for role, content in said))
    first, second = read_documents(line, model, plain=False)
    assert model.tokenizer.decode(first.tokens[: first.start]) == "user a b assistant"
    assert model.tokenizer.decode(first.tokens[first.start :]) == "c <end>"
    assert model.tokenizer.decode(second.tokens[: second.start]) == "user a b assistant c user d assistant"
    assert model.tokenizer.decode(second.tokens[second.start :]) == "e f <end>"
    (running,) = read_documents(Line(2, text="a b c"), model, plain=False)
    assert (len(running.tokens), running.start) == (3, 0)


GOOD = [
    ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}, ["system", "user"]),
    ({"question_id": 3, "turns": ["q", "r"], "reference": []}, ["user", "user"]),
]


@pytest.mark.parametrize(("fields", "roles"), GOOD)
def test_good_lines(fields, roles):
    assert [each["role"] for each in parse_line(json.dumps(fields), 1, "f", False).messages] == roles


BAD = [
    ("{", "t.jsonl, line 3: got Expecting"),
    ("[1]", "line 3: got list, expected a JSON object"),
    ('{"prompt": "a"}', "line 3: got fields prompt, expected messages"),
    ("{}", "line 3: got fields none"),
    ('{"turns": ["a"]}', "line 3: got no answer, expected an answer to learn from"),
    ('{"turns": []}', r"line 3: turns: got \[\], expected a list of at least one"),
    ('{"turns": ["a", 2]}', r"line 3: turns\[1\]: got 2"),
    ('{"text": " "}', "line 3: text: got , expected a text"),
    ('{"messages": ["a"]}', r"line 3: messages\[0\]: got str, expected an object with role"),
    ('{"messages": [{"role": "tool", "content": "a"}]}', r"messages\[0\]: role: got tool"),
    ('{"messages": [{"role": "assistant", "content": "a"}]}', "role: got assistant, expected user: users and"),
    ('{"messages": [{"role": "user"}]}', r"messages\[0\]: content: got None"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_bad_lines_are_named(line, message, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"text": "a b"}\n\n' + line + "\n")
    with pytest.raises(InvalidInput, match=message):
        read_text(tmp_path / "t.jsonl", answers=True)


def test_files_that_cannot_be_read_are_named(tmp_path):
    file = tmp_path / "t.jsonl"
    with pytest.raises(InvalidInput, match="no such file"):
        read_text(file, True)
    file.write_bytes(b"\n \n")
    with pytest.raises(InvalidInput, match="got no lines"):
        read_text(file, True)
    file.write_bytes(b'{"text": "\xff"}')
    with pytest.raises(InvalidInput, match="not UTF-8"):
        read_text(file, True)
    file.write_text('{"text": "a b"}')
    with pytest.raises(InvalidInput, match="line 1: got nothing that a user says"):
        read_text(file, False)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--steps", 0), "steps: got 0, expected an int of at least 1"),
        (("--every", 0), "every: got 0"),
        (("--generate", -1), "generate: got -1"),
        (("--held-out", 0), "held-out: got 0.0"),
        (("--draft-vocabulary", 99), f"draft-vocabulary: got 99, expected 1 to {len(WORDS)}"),
        (("--rope-base", 0), "RoPE base: got 0.0"),
        (("--dtype", "int8"), "dtype: got int8"),
        (("--out", __file__), "a folder that can be written"),
    ],
)
def test_refusals_are_one_line(folder, tmp_path, capsys, more, message):
    code, _, said = run(capsys, *trained(folder, tmp_path / "out", *more))
    assert code == 2
    assert said.splitlines()[-1].startswith("error: ")
    assert message in said.splitlines()[-1]
    assert not (tmp_path / "out" / "model.safetensors").exists()
