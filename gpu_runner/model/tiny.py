"""Tiny random models of the supported families, and tiny EAGLE-3 heads for them.

Small enough to walk every outcome of the whole engine. Weights are large, so that rows are far from uniform and differ
at every prefix: a target whose rows are alike would hide most faults.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from gpu_runner.model.causal_lm import CausalModel

FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {"use_sliding_window": False}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 8}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": None}),
}
HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, SCALE = 16, 24, 2, 1, 8, 0.35


def tiny_model(
    family: str = "llama",
    vocabulary: int = 4,
    layers: int = 4,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: str | torch.device = "cpu",
    **overrides: Any,
) -> CausalModel:
    """A random model; two query heads share one key head."""
    config_class, model_class, extra = FAMILIES[family]
    config = config_class(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        max_position_embeddings=128,
        initializer_range=SCALE,
        tie_word_embeddings=False,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
        **{**extra, **overrides},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = model_class(config)
    return CausalModel(model.to(device=device, dtype=dtype), f"tiny {family}")


def tiny_head(
    folder: Path,
    vocabulary: int = 4,
    draft_vocabulary: int | None = None,
    seed: int = 0,
    hidden: int = HIDDEN,
    speculators: bool = False,
    **config: Any,
) -> Path:
    """Write a random EAGLE-3 head in either layout; the map of a draft vocabulary of its own is not the identity."""
    generator = torch.Generator().manual_seed(seed)
    own = draft_vocabulary or vocabulary
    layer = "layers.0." if speculators else "midlayer."
    shapes = {
        "fc.weight": (hidden, 3 * hidden),
        "lm_head.weight": (own, hidden),
        f"{layer}self_attn.q_proj.weight": (HEADS * HEAD_DIM, 2 * hidden),
        f"{layer}self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, 2 * hidden),
        f"{layer}self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, 2 * hidden),
        f"{layer}self_attn.o_proj.weight": (hidden, HEADS * HEAD_DIM),
        f"{layer}mlp.gate_proj.weight": (FFN, hidden),
        f"{layer}mlp.up_proj.weight": (FFN, hidden),
        f"{layer}mlp.down_proj.weight": (hidden, FFN),
    }
    tensors = {name: torch.randn(shape, generator=generator) * SCALE for name, shape in shapes.items()}
    for name in ("norm", f"{layer}hidden_norm", f"{layer}input_layernorm", f"{layer}post_attention_layernorm"):
        tensors[f"{name}.weight"] = 1 + 0.1 * torch.randn(hidden, generator=generator)
    if own != vocabulary:
        tensors |= _map(vocabulary, own, generator, "draft_id_to_target_id" if speculators else "d2t")
    sizes = {
        "hidden_size": hidden,
        "intermediate_size": FFN,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "vocab_size": vocabulary,
    }
    given = {"speculators_model_type": "eagle3", "transformer_layer_config": sizes} if speculators else sizes
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**given, "draft_vocab_size": own, **config}))
    save_file(tensors, folder / "model.safetensors")
    return folder


def _map(vocabulary: int, own: int, generator: torch.Generator, name: str) -> dict[str, Tensor]:
    ids = torch.randperm(vocabulary, generator=generator)[:own].sort().values
    if torch.equal(ids, torch.arange(own)):
        ids[-1] = vocabulary - 1
    mask = torch.zeros(vocabulary, dtype=torch.bool).index_fill(0, ids, True)
    return {name: ids - torch.arange(own), "t2d": mask}
