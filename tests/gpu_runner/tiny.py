"""Tiny random models of the supported families, and tiny EAGLE-3 heads for them."""

from __future__ import annotations

import json

import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen3Config, Qwen3ForCausalLM

from gpu_runner.models import CausalModel

FAMILIES = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": None}),
}


def tiny_model(family="llama", vocabulary=4, layers=4, seed=0, dtype=torch.float64, scale=0.35, **overrides):
    """A random model with rows far from uniform (large weights), and grouped keys."""
    config_class, model_class, extra = FAMILIES[family]
    config = config_class(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        initializer_range=scale,
        tie_word_embeddings=False,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
        **{**extra, **overrides},
    )
    torch.manual_seed(seed)
    return CausalModel(model_class(config).to(dtype), f"tiny {family}")


def tiny_head(folder, vocabulary=4, draft_vocabulary=None, seed=0, hidden=16, speculators=False, scale=0.35, **config):
    """Write a random EAGLE-3 head; a draft vocabulary of its own gets a map that is not the identity."""
    generator = torch.Generator().manual_seed(seed)
    own = draft_vocabulary or vocabulary
    heads, kv, head_dim, ffn = 2, 1, 8, 24
    layer = "layers.0." if speculators else "midlayer."
    shapes = {
        "fc.weight": (hidden, 3 * hidden),
        "lm_head.weight": (own, hidden),
        f"{layer}self_attn.q_proj.weight": (heads * head_dim, 2 * hidden),
        f"{layer}self_attn.k_proj.weight": (kv * head_dim, 2 * hidden),
        f"{layer}self_attn.v_proj.weight": (kv * head_dim, 2 * hidden),
        f"{layer}self_attn.o_proj.weight": (hidden, heads * head_dim),
        f"{layer}mlp.gate_proj.weight": (ffn, hidden),
        f"{layer}mlp.up_proj.weight": (ffn, hidden),
        f"{layer}mlp.down_proj.weight": (hidden, ffn),
    }
    tensors = {name: torch.randn(shape, generator=generator) * scale for name, shape in shapes.items()}
    for name in ("norm", f"{layer}hidden_norm", f"{layer}input_layernorm", f"{layer}post_attention_layernorm"):
        tensors[f"{name}.weight"] = 1 + 0.1 * torch.randn(hidden, generator=generator)
    if own != vocabulary:
        ids = torch.randperm(vocabulary, generator=generator)[:own].sort().values
        if torch.equal(ids, torch.arange(own)):
            ids[-1] = vocabulary - 1
        tensors["draft_id_to_target_id" if speculators else "d2t"] = ids - torch.arange(own)
        tensors["t2d"] = torch.zeros(vocabulary, dtype=torch.bool).index_fill(0, ids, True)
    sizes = {
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": head_dim,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary,
    }
    if speculators:
        given = {"speculators_model_type": "eagle3", "transformer_layer_config": sizes, "draft_vocab_size": own}
    else:
        given = {**sizes, "draft_vocab_size": own}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**given, **config}))
    save_file(tensors, folder / "model.safetensors")
    return folder
