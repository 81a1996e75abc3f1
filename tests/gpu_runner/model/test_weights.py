"""Nothing loads wrongly in silence: weights that lack, add or reshape a tensor, other heads, seen siblings."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from gpu_runner.model import causal_lm, load
from gpu_runner.model.causal_lm import TOLERANCE, check_tree_attention
from gpu_runner.model.chat import prompt_ids
from gpu_runner.model.drafts.checkpoint import read_checkpoint, read_tensors
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import InvalidInput
from tests.gpu_runner.words import worded_model

CPU = torch.device("cpu")
NORM, MATRIX = "model.norm.weight", "model.layers.1.mlp.up_proj.weight"


@pytest.fixture
def folder(tmp_path):
    tiny_model(vocabulary=13, layers=2, dtype=torch.float32).model.save_pretrained(tmp_path)
    return tmp_path


def changed(folder, change):
    """The folder's weights after a change of their mapping."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def test_whole_weights_load(folder):
    assert load.load_target(str(folder), CPU, "float32").vocabulary == 13


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda tensors: tensors.pop(MATRIX), f"missing tensors: {MATRIX}"),
        (lambda tensors: tensors.update(more=torch.ones(2)), "extra tensors: more"),
        (lambda tensors: tensors.update({NORM: torch.ones(3)}), rf"mis-shaped tensors: {NORM} \[3\] for \[16\]"),
        (lambda tensors: tensors.update({"fc.weight": torch.ones(2)}), "a draft head of another kind"),
    ],
    ids=["missing", "extra", "mis-shaped", "EAGLE-2"],
)
def test_wrong_weights_are_refused_by_name(change, said, folder):
    with pytest.raises(InvalidInput, match=said):
        load.load_target(changed(folder, change), CPU, "float32")


def test_without_the_check_a_missing_matrix_loads_as_random_numbers(folder, monkeypatch):
    monkeypatch.setattr(load, "check_weights", lambda place, report: None)
    assert load.load_target(changed(folder, lambda tensors: tensors.pop(MATRIX)), CPU, "float32").vocabulary == 13


def siblings_seen(dtype):
    """A model in which the second child sees the first, and nothing else is wrong."""
    model = tiny_model(vocabulary=13, layers=2, dtype=dtype)
    right = model.model.forward

    def forward(attention_mask, **named):
        mask = attention_mask.clone()
        if mask.shape[-2:] == (4, 4) and mask[0, 0, 2, 1] < 0:
            mask[0, 0, 2:, 1] = 0
        return right(attention_mask=mask, **named)

    model.model.forward = forward
    return model


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_siblings_that_see_each_other_are_refused_in_every_type(dtype):
    check_tree_attention(tiny_model(vocabulary=13, layers=2, dtype=dtype))
    with pytest.raises(InvalidInput, match="obeys a 4D attention mask"):
        check_tree_attention(siblings_seen(dtype))


def test_it_is_the_hidden_token_that_shows_them_in_bfloat16(monkeypatch):
    monkeypatch.setitem(TOLERANCE, torch.bfloat16, 10)  # too wide for plain forwards to show anything
    with pytest.raises(InvalidInput, match="see a token hidden from them"):
        check_tree_attention(siblings_seen(torch.bfloat16))
    monkeypatch.setattr(causal_lm, "check_siblings", lambda *given: None)
    check_tree_attention(siblings_seen(torch.bfloat16))


def test_a_model_without_a_template_must_be_told_so():
    model = worded_model()
    messages = [{"role": "user", "content": "a b"}]
    assert prompt_ids(model, messages) != prompt_ids(model, messages, plain=True)
    model.tokenizer.chat_template = None
    with pytest.raises(InvalidInput, match="no chat template, expected a model that has one, or --plain"):
        prompt_ids(model, messages)
    assert len(prompt_ids(model, messages, plain=True)) == 2


def test_a_sharded_head_is_the_whole_one_and_its_index_is_obeyed(tmp_path):
    folder = tiny_head(tmp_path, 13, 11)
    whole = read_checkpoint(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for place, held in shards.items():
        save_file({name: tensors[name] for name in held}, folder / place)
    places = {name: place for place, held in shards.items() for name in held}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    parts = read_checkpoint(folder)
    assert parts.config == whole.config
    assert all(torch.equal(parts.tensors[name], tensor) for name, tensor in whole.tensors.items())
    index.write_text(json.dumps({"weight_map": {**places, names[0]: "b.safetensors"}}))
    with pytest.raises(InvalidInput, match=r"the tensors that model\.safetensors\.index\.json places there"):
        read_tensors(folder)


def test_the_usual_type_is_bfloat16_on_a_gpu():
    assert load.find_dtype("auto", torch.device("cuda", 0)) == torch.bfloat16
    assert load.find_dtype("auto", CPU) == load.find_dtype("auto") == torch.float32
