"""EAGLE-3 heads: a tiny checkpoint against a step-by-step recomputation, and everything that must be refused."""

import json
import math
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import tree_method
from gpu_runner.model.drafts.checkpoint import is_eagle3, read_checkpoint
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import InvalidInput, TreeShape

HEADS, KV, HEAD_DIM, EPS = 2, 1, 8, 1e-5


class StepByStep:
    """Oracle: one sequence, one position after another, everything recomputed, no cache, no mask, no batching."""

    def __init__(self, folder, target, layers, base=10000.0, prefix="midlayer.", before=False):
        self.w = {name: tensor.double() for name, tensor in load_file(folder / "model.safetensors").items()}
        self.target, self.layers, self.base, self.prefix, self.before = target, layers, base, prefix, before

    def features(self, tokens):
        """The residual streams that enter the layers, through transformers' own hidden_states."""
        with torch.no_grad():
            states = self.target.model(input_ids=torch.tensor([tokens]), output_hidden_states=True).hidden_states
        return torch.cat([states[layer][0] for layer in self.layers], -1)

    def norm(self, x, name):
        return self.w[name] * x / torch.sqrt((x * x).mean() + EPS)

    def rotate(self, head, position):
        half = HEAD_DIM // 2
        out = head.clone()
        for i in range(half):
            angle = position * self.base ** (-2 * i / HEAD_DIM)
            a, b = head[i], head[i + half]
            out[i] = a * math.cos(angle) - b * math.sin(angle)
            out[i + half] = b * math.cos(angle) + a * math.sin(angle)
        return out

    def layer(self, inputs):
        """Outputs for a list of (token, hidden, position), causal from left to right."""
        name = self.prefix
        mixed, keys, values, residuals = [], [], [], []
        for token, hidden, position in inputs:
            embedded = self.norm(self.target.embedding[token].double(), f"{name}input_layernorm.weight")
            normed = self.norm(hidden, f"{name}hidden_norm.weight")
            x = torch.cat([embedded, normed])
            residuals.append(normed if self.before else hidden)
            q = (self.w[f"{name}self_attn.q_proj.weight"] @ x).view(HEADS, HEAD_DIM)
            k = (self.w[f"{name}self_attn.k_proj.weight"] @ x).view(KV, HEAD_DIM)
            values.append((self.w[f"{name}self_attn.v_proj.weight"] @ x).view(KV, HEAD_DIM))
            keys.append(torch.stack([self.rotate(head, position) for head in k]))
            heads = []
            for h in range(HEADS):
                turned = self.rotate(q[h], position)
                weights = torch.softmax(torch.stack([turned @ key[h // 2] / math.sqrt(HEAD_DIM) for key in keys]), -1)
                heads.append(sum(weight * value[h // 2] for weight, value in zip(weights, values, strict=True)))
            mixed.append(self.w[f"{name}self_attn.o_proj.weight"] @ torch.cat(heads))
        outputs = []
        for residual, attended in zip(residuals, mixed, strict=True):
            h = residual + attended
            x = self.norm(h, f"{name}post_attention_layernorm.weight")
            gate = self.w[f"{name}mlp.gate_proj.weight"] @ x
            up = self.w[f"{name}mlp.up_proj.weight"] @ x
            outputs.append(h + self.w[f"{name}mlp.down_proj.weight"] @ (gate * torch.sigmoid(gate) * up))
        return outputs

    def law(self, text, path):
        """softmax of the logits after `text` and the drafted `path`."""
        fused = [self.w["fc.weight"] @ row for row in self.features(text[:-1])]
        inputs = [(text[t + 1], fused[t], t) for t in range(len(text) - 1)]
        outputs = self.layer(inputs)
        for token in path:
            inputs.append((token, outputs[-1], len(inputs)))
            outputs = self.layer(inputs)
        return torch.softmax(self.w["lm_head.weight"] @ self.norm(outputs[-1], "norm.weight"), -1)


@pytest.mark.parametrize("speculators", [False, True], ids=["official", "speculators"])
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_head_equals_a_step_by_step_recomputation(family, speculators, tmp_path):
    target = tiny_model(family, 11, layers=6)
    options: dict[str, Any] = {"norm_before_residual": True, "rope_theta": 500.0} if speculators else {}
    folder = tiny_head(tmp_path, 11, 7, speculators=speculators, **options)
    draft = EagleDraft.load(folder, target)
    assert draft.features == (2, 3, 3)
    assert draft.config.rope_base == (500.0 if speculators else 10000.0)
    prefix = "layers.0." if speculators else "midlayer."
    oracle = StepByStep(folder, target, (2, 3, 3), draft.config.rope_base, prefix, speculators)
    engine = Engine(target, draft, tree_method("rheo"), TreeShape(3, 3, 8))
    session = engine.start([1, 5, 2, 7])
    for cycle in range(3):
        drafted = engine.draft_tree(session, Seeded(cycle))
        expanded = [node for node in range(len(drafted.tree)) if int(drafted.nodes.row[node]) >= 0]
        assert expanded
        for node in [-1, *expanded]:
            expected = oracle.law(session.tokens, drafted.tree.tokens_to(node))
            assert torch.allclose(drafted.score(node), expected, rtol=0, atol=1e-6)
        engine.commit(session, drafted, engine.score(session, drafted), Seeded(cycle))


def test_capture_layers_and_base_of_the_config(tmp_path):
    target = tiny_model(vocabulary=11, layers=6)
    folder = tiny_head(tmp_path, 11, eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1, 4]})
    draft = EagleDraft.load(folder, target, rope_base=777.0)
    assert draft.features == (1, 2, 5)
    assert draft.config.rope_base == 777.0
    other = tiny_head(tmp_path / "s", 11, speculators=True, eagle_aux_hidden_state_layer_ids=[0, 1, 4])
    assert EagleDraft.load(other, target).features == (0, 1, 4)


def test_bin_files_are_read_without_running_code(tmp_path):
    folder = tiny_head(tmp_path, 11, 7)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    assert len(read_checkpoint(folder).tensors) == len(tensors) - 2
    torch.save({"fc.weight": print}, folder / "pytorch_model.bin")
    with pytest.raises(InvalidInput, match="a readable file of tensors"):
        read_checkpoint(folder)


def changed(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


NORM = "midlayer.hidden_norm.weight"
BROKEN = {
    "missing": (lambda t: t.pop(NORM), f"no tensor {NORM}"),
    "extra": (lambda t: t.update(more=torch.ones(1)), "extra tensors more"),
    "bias": (lambda t: t.update({"fc.bias": torch.ones(16)}), "extra tensors fc.bias"),
    "shape": (
        lambda t: t.update({"fc.weight": torch.ones(16, 47)}),
        r"\(16, 47\), expected floats of shape \(16, 4",
    ),
    "one input": (
        lambda t: t.update({"midlayer.self_attn.q_proj.weight": torch.ones(16, 16)}),
        r"q_proj.weight: got torch.float32 \(16, 16\), expected floats of shape \(16, 32\)",
    ),
    "integers": (lambda t: t.update({NORM: torch.ones(16, dtype=torch.long)}), "expected floats"),
    "nan": (lambda t: t[NORM].__setitem__(0, float("nan")), "NaN"),
    "d2t missing": (lambda t: t.pop("d2t"), "d2t: got None"),
    "t2d missing": (lambda t: t.pop("t2d"), "t2d: got None"),
    "d2t as ids": (lambda t: t.update(d2t=t["d2t"] + torch.arange(7)), "d2t|t2d"),
    "collision": (lambda t: t.update(d2t=-torch.arange(7)), "collide"),
    "outside": (lambda t: t.update(d2t=t["d2t"] + 11), "leave the vocabulary"),
    "mask": (lambda t: t.update(t2d=torch.ones(11, dtype=torch.bool)), "t2d: got 11 tokens"),
    "mask of other tokens": (lambda t: t.update(t2d=t["t2d"].roll(1)), "the 7 tokens that d2t maps to"),
    "short d2t": (lambda t: t.update(d2t=t["d2t"][:6].clone()), r"\(6,\), expected ints of shape \(7,\)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_checkpoints_are_refused(name, tmp_path):
    change, message = BROKEN[name]
    folder = tiny_head(tmp_path, 11, 7)
    changed(folder, change)
    with pytest.raises(InvalidInput, match=message):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hidden_size", None, "hidden_size"),
        ("num_hidden_layers", 2, "one layer"),
        ("rope_scaling", {"rope_type": "llama3", "factor": 8.0}, "rope_scaling"),
        ("rope_theta", -1, "RoPE base"),
        ("head_dim", 4, "q_proj.weight"),
        ("hidden_act", "gelu", "hidden_act"),
        ("eagle_aux_hidden_state_layer_ids", "2", "layer numbers"),
        ("draft_vocab_size", 8, "d2t"),
    ],
)
def test_broken_configs_are_refused(field, value, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        read_checkpoint(tiny_head(tmp_path, 11, 7, **{field: value}))


def test_a_head_of_another_target_is_refused(tmp_path):
    target = tiny_model(vocabulary=11)
    with pytest.raises(InvalidInput, match="vocabulary of draft"):
        EagleDraft.load(tiny_head(tmp_path / "a", 12), target)
    with pytest.raises(InvalidInput, match="target_hidden_size: got 8"):
        EagleDraft.load(tiny_head(tmp_path / "b", 11, hidden=8), target)
    with pytest.raises(InvalidInput, match="target layer to read: got 2"):
        EagleDraft.load(tiny_head(tmp_path / "c", 11), tiny_model(vocabulary=11, layers=2))


def test_missing_files_and_layout_recognised(tmp_path):
    with pytest.raises(InvalidInput, match=r"config\.json"):
        read_checkpoint(tmp_path)
    folder = tiny_head(tmp_path / "h", 11)
    assert is_eagle3(folder)
    assert not is_eagle3(tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InvalidInput, match="no weights"):
        read_checkpoint(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama"}))
    assert not is_eagle3(folder)
