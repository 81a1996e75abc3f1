"""`gpu_runner check`: what it says of a pair, and what stands in the way."""

import json

import torch

from gpu_runner.model.tiny import tiny_head
from tests.gpu_runner.words import WORDS, run, saved, worded_model

TREE = ("--width", "3", "--depth", "2", "--budget", "5", "--length", "8", "--device", "cpu")


def test_a_pair_is_looked_at(tmp_path, capsys):
    target = saved(worded_model(dtype=torch.float32), tmp_path / "target")
    head = tiny_head(tmp_path / "head", len(WORDS), 11)
    code, out, _ = run(capsys, "check", "--target", target, "--draft", head, *TREE, "--json")
    assert code == 0
    found = {each["subject"]: each["found"] for each in json.loads(out)["results"]}
    assert "the model's own: 'user X assistant'" in found["template"]
    assert "the head's 10000" in found["RoPE"]
    assert found["layers read"].startswith("2, 2, 1 of 4")
    assert "the draft knows 11" in found["vocabulary"]
    assert "2880 answers of 8 tokens" in found["time"]
    code, out, _ = run(capsys, "check", "--target", target, "--draft", "skip:1", *TREE)
    assert code == 0
    assert out.rstrip().endswith("ready")


def test_what_stands_in_the_way_is_an_exit_code(tmp_path, capsys):
    model = worded_model(dtype=torch.float32)
    model.tokenizer.chat_template = None
    target = saved(model, tmp_path / "target")
    code, out, err = run(capsys, "check", "--target", target, "--draft", "skip:1", *TREE)
    assert code == 2
    assert "memory" in out
    assert "template: got none, expected --plain" in err
    assert run(capsys, "check", "--target", target, "--draft", "skip:1", *TREE, "--plain")[0] == 0
