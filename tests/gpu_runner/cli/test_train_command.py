"""`gpu_runner train` on a tiny saved model: from text to a head that drafts, kills and resumes, what is refused."""

import json
import os
import signal

import pytest
import torch

from exact.cli import options
from gpu_runner.cli.main import app
from gpu_runner.model.chat import prompt_ids
from gpu_runner.model.drafts.checkpoint import read_checkpoint
from gpu_runner.training import sampling
from gpu_runner.training.documents import DocumentFile, documents_of
from gpu_runner.training.loop import Training
from gpu_runner.training.text import Line, parse_line, read_text
from rheo_core import InvalidInput
from tests.gpu_runner.words import WORDS, worded_model


@pytest.fixture(scope="module")
def model():
    return worded_model(layers=4, dtype=torch.float32)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    """The model saved, and training text beside it."""
    place = tmp_path_factory.mktemp("tiny")
    model.model.save_pretrained(place)
    model.tokenizer.save_pretrained(place)
    letters = WORDS[3:]
    lines = [
        {"question": " ".join(letters[(i + j) % 10] for j in range(3)), "answer": " ".join(letters[i % 10 :])}
        for i in range(24)
    ]
    (place / "text.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    asked = [{"question_id": i, "turns": [letters[i], letters[-1 - i]]} for i in range(5)]
    (place / "asked.jsonl").write_text("\n".join(json.dumps(line) for line in asked))
    return place


def run(capsys, *arguments):
    code = options.run(app, [str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def trained(folder, out, *more):
    text = () if "--text" in more else ("--text", folder / "text.jsonl")
    fixed = ("--target", folder, "--device", "cpu", "--length", 32, "--batch", 2, "--draft-vocabulary", 8)
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
    assert source["updates"] == source["of"] > 4
    assert source["draft_rope_base"] == 10000.0
    assert source["draft_reads_layers"] == [2, 2, 1]
    assert source["training"]["learning_rate"] == 0.01
    assert {"time", "commit", "versions", "device", "command", "text_sha256"} <= source.keys()
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [line["update"] for line in log if "loss" in line] == list(range(1, source["of"] + 1))
    assert [line["update"] for line in log if "held_out" in line] == [0, source["of"]]
    asked = ("--target", folder, "--device", "cpu", "--prompt", "a b", "--length", 6, "--seeds", 1, "--json")
    code, shown, _ = run(capsys, "bench", "chain", "--draft", out, *asked)
    assert code == 0
    assert json.loads(shown)["provenance"]["draft"] == str(out)
    code, shown, _ = run(
        capsys, "train", "--evaluate", "--init", out, "--target", folder, "--device", "cpu", "--json",
        "--text", folder / "text.jsonl", "--steps", 2,
    )  # fmt: skip
    judged = json.loads(shown)["held_out"]
    assert code == 0
    assert judged["predictions"][0] == sum(len(range(i % 10, 10)) + 1 for i in range(24))
    assert all(0 < each < 1 for each in judged["acceptance"])


def weights(out):
    return (out / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    "by", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)], ids=["SIGINT", "SIGTERM"]
)
def test_killed_and_resumed_equals_uninterrupted(folder, tmp_path, capsys, monkeypatch, by):
    more = ("--epochs", 2, "--every", 2, "--held-out", 0.25)
    assert run(capsys, *trained(folder, tmp_path / "whole", *more))[0] == 0
    update = Training.update
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def killed(self):
        if self.done == 3:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Training, "update", killed)
    cut = tmp_path / "cut"
    assert run(capsys, *trained(folder, cut, *more))[0] == 130
    with (cut / "log.jsonl").open("a") as file:
        file.write('{"update": 3, "lo')

    def asked_to_stop(self):
        done = update(self)
        if self.done == 5:
            os.kill(os.getpid(), by)
        return done

    monkeypatch.setattr(Training, "update", asked_to_stop)
    code, _, said = run(capsys, *trained(folder, cut, *more, "--resume"))
    assert code == 130
    assert "resumed after 2 of" in said
    assert "stopped after 5 of" in said
    assert {each: signal.getsignal(each) for each in before} == before
    monkeypatch.setattr(Training, "update", update)
    code, _, said = run(capsys, *trained(folder, cut, *more))
    assert code == 2
    assert "--resume to go on with it" in said
    code, _, said = run(capsys, *trained(folder, cut, *more, "--resume", "--seed", 1))
    assert code == 2
    assert "seed of a resumed training: got 1, expected 0" in said
    code, _, said = run(capsys, *trained(folder, cut, *more, "--resume"))
    assert code == 0
    assert "resumed after 5 of" in said
    assert weights(cut) == weights(tmp_path / "whole")
    logs = [
        [(line["update"], line.get("loss")) for line in map(json.loads, (place / "log.jsonl").open())]
        for place in (tmp_path / "whole", cut)
    ]
    assert logs[0] == logs[1]
    assert run(capsys, *trained(folder, cut, *more, "--resume"))[0] == 0
    assert weights(cut) == weights(tmp_path / "whole")


def test_sampled_answers_are_kept_and_gone_on_with(folder, tmp_path, capsys, monkeypatch):
    given = ("--text", folder / "asked.jsonl", "--answer-length", 8, "--held-out", 0.3)
    kept = tmp_path / "kept.jsonl"
    code, _, said = run(capsys, *trained(folder, tmp_path / "whole", *given, "--generate", 7, "--documents", kept))
    assert code == 0
    assert "7 answers of at most 8 tokens, 0 there already" in said
    whole = kept.read_text().splitlines()
    assert len(whole) == 8
    assert [len(json.loads(line)) for line in whole[1:]] == [2] * 7
    assert [json.loads(line)[0][0] for line in whole[1:]] == [1, 2, 3, 4, 5, 1, 2]
    sample, calls = sampling.sample, []

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return sample(*arguments)

    monkeypatch.setattr(sampling, "sample", killed)
    cut = tmp_path / "cut"
    assert run(capsys, *trained(folder, cut, *given, "--generate", 7, "--at-once", 3))[0] == 130
    with (cut / "documents.jsonl").open("a") as file:
        file.write("[[4, 2, 1")
    monkeypatch.setattr(sampling, "sample", sample)
    code, _, said = run(capsys, *trained(folder, cut, *given, "--generate", 7, "--resume"))
    assert code == 0
    assert "3 there already" in said
    assert (cut / "documents.jsonl").read_text().splitlines() == whole
    assert weights(cut) == weights(tmp_path / "whole")
    code, _, said = run(capsys, *trained(folder, cut, *given, "--generate", 7, "--resume", "--seed", 1))
    assert code == 2
    assert "documents.jsonl: sampled with seed: got 0, expected 1" in said


def test_a_turn_after_a_sampled_answer_sees_it(model):
    line = Line(3, ({"role": "user", "content": "a"}, {"role": "user", "content": "b"}))
    (((first, second),),) = sampling.sampled(model, [line], 0, 1, 5, 0, 1, False)
    answer = model.tokenizer.decode(first.tokens[first.start :], skip_special_tokens=True)
    history = [line.messages[0], {"role": "assistant", "content": answer}, line.messages[1]]
    assert list(second.tokens[: second.start]) == prompt_ids(model, history)
    assert first.source == second.source == 3


def test_documents_of_a_conversation_begin_where_the_engine_does(model):
    said = [("user", "a b"), ("assistant", "c"), ("user", "d"), ("assistant", "e f")]
    line = Line(1, tuple({"role": role, "content": content} for role, content in said))
    first, second = documents_of(line, model, plain=False)
    assert model.tokenizer.decode(first.tokens[: first.start]) == "user a b assistant"
    assert model.tokenizer.decode(first.tokens[first.start :]) == "c <end>"
    assert model.tokenizer.decode(second.tokens[: second.start]) == "user a b assistant c user d assistant"
    assert model.tokenizer.decode(second.tokens[second.start :]) == "e f <end>"
    (running,) = documents_of(Line(2, text="a b c"), model, plain=False)
    assert (len(running.tokens), running.start) == (3, 0)


GOOD = [
    ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}, ["system", "user"]),
    ({"conversations": [{"from": "human", "value": "u"}, {"from": "gpt", "value": "a"}]}, ["user", "assistant"]),
    ({"question": "q", "answer": None}, ["user"]),
    ({"question_id": 3, "turns": ["q", "r"], "reference": []}, ["user", "user"]),
]


@pytest.mark.parametrize(("fields", "roles"), GOOD)
def test_good_lines(fields, roles):
    assert [each["role"] for each in parse_line(json.dumps(fields), 1, "f", False).messages] == roles


BAD = [
    ("{", "t.jsonl, line 3: got Expecting"),
    ("[1]", "line 3: got list, expected a JSON object"),
    ('{"prompt": "a"}', "line 3: got fields prompt, expected messages, conversations"),
    ("{}", "line 3: got fields none"),
    ('{"question": 4, "answer": "b"}', "line 3: question: got 4, expected a text"),
    ('{"question": "a", "answer": " "}', "line 3: answer: got , expected a text"),
    ('{"question": "a"}', "line 3: got no answer, expected an answer to learn from"),
    ('{"turns": ["a"]}', "line 3: got no answer"),
    ('{"turns": []}', r"line 3: turns: got \[\], expected a list of at least one"),
    ('{"turns": ["a", 2]}', r"line 3: turns\[1\]: got 2"),
    ('{"text": ""}', "line 3: text: got , expected a text"),
    ('{"messages": ["a"]}', r"line 3: messages\[0\]: got str, expected an object with role"),
    ('{"messages": [{"role": "tool", "content": "a"}]}', r"messages\[0\]: role: got tool"),
    ('{"messages": [{"role": "assistant", "content": "a"}]}', "role: got assistant, expected user: users and"),
    ('{"conversations": [{"from": "human"}]}', r"conversations\[0\]: content: got None"),
]


@pytest.mark.parametrize(("line", "message"), BAD)
def test_bad_lines_are_named(line, message, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"question": "a", "answer": "b"}\n\n' + line + "\n")
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
    file.write_text("no json\n")
    with pytest.raises(InvalidInput, match="format: got None, expected rheo-lossless training documents 1"):
        DocumentFile(file, {"a": 1})
    kept = tmp_path / "documents.jsonl"
    DocumentFile(kept, {"a": 1})
    with pytest.raises(InvalidInput, match="a: got 1, expected 2"):
        DocumentFile(kept, {"a": 2})
    kept.write_text(kept.read_text() + "[[3]]\n")
    with pytest.raises(InvalidInput, match=r"line 2: got \[\[3\]\], expected documents written by this command"):
        DocumentFile(kept, {"a": 1})


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--steps", 0), "steps: got 0, expected an int of at least 1"),
        (("--every", 0), "every: got 0"),
        (("--generate", -1), "generate: got -1"),
        (("--held-out", 0), "held-out: got 0.0"),
        (("--draft-vocabulary", 99), f"draft-vocabulary: got 99, expected 1 to {len(WORDS)}"),
        (("--rope-base", 0), "rope-base: got 0.0"),
        (("--evaluate",), "evaluate: got no head, expected --init FOLDER"),
        (("--evaluate", "--init", "x"), "evaluate: got --out or --resume beside it"),
        (("--init", "nowhere"), "nowhere/config.json"),
        (("--dtype", "int8"), "dtype: got int8"),
        (("--documents", "/nowhere/d.jsonl"), "documents: got /nowhere/d.jsonl, expected a file that can be"),
        (("--out", __file__), "a folder that can be written"),
    ],
)
def test_refusals_are_one_line(folder, tmp_path, capsys, more, message):
    code, _, said = run(capsys, *trained(folder, tmp_path / "out", *more))
    assert code == 2
    assert said.splitlines()[-1].startswith("error: ")
    assert message in said.splitlines()[-1]
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_init_goes_on_from_a_head_and_keeps_its_vocabulary(folder, tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run(capsys, *trained(folder, first))[0] == 0
    assert run(capsys, *trained(folder, second, "--init", first))[0] == 0
    assert torch.equal(*(read_checkpoint(place).ids for place in (first, second)))  # type: ignore[arg-type]
    starts = [json.loads((place / "log.jsonl").read_text().splitlines()[0])["held_out"] for place in (first, second)]
    assert starts[1]["loss"][0] < starts[0]["loss"][0]
    code, _, said = run(capsys, *trained(folder, tmp_path / "third", "--init", first, "--draft-vocabulary", 9))
    assert code == 2
    assert "draft-vocabulary: got 9, expected 8, as --init has" in said
