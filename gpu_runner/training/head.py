"""Heads in training: made new, and written in the official layout.

The weights are those of `EagleDraft`, by the official names, as float32 parameters whatever the target computes in;
what is written is read back strictly by `drafts/checkpoint.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from exact.runtime.atomic_files import save_bytes, save_text
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.checkpoint import ROPE_BASE, Checkpoint, parse_config
from gpu_runner.model.drafts.eagle3 import EagleDraft, read_layers
from montecarlo.keyed_random import derived

SPREAD = 0.02
"""Standard deviation of new matrices."""
SOFTENED = 0.3
"""What the target's last norm is scaled by, so that a new head is not sure of what it cannot know yet."""


def new_head(target: CausalModel, ids: Tensor | None, seed: int, rope_base: float = ROPE_BASE) -> Checkpoint:
    """A head of the target's own sizes, drafting over the target ids `ids` [draft V] (None: the whole vocabulary).

    It starts as a softened reading of the target's highest stream: fc hands that on, lm_head and the last norm (scaled
    down) are the target's own where it has them. The other norms are 1, the other matrices small random numbers.
    """
    size = target.vocabulary if ids is None else len(ids)
    config = parse_config(head_document(target, size, rope_base), Path(f"{target.name} for a head"))
    shapes = config.shapes()
    generator = torch.Generator().manual_seed(derived(seed, len("head")))
    tensors = {
        name: torch.ones(shape) if len(shape) == 1 else torch.randn(shape, generator=generator) * SPREAD
        for name, shape in shapes.items()
    }
    lower = shapes["fc.weight"][1] - config.target_hidden
    tensors["fc.weight"] = torch.cat([torch.zeros(config.hidden, lower), torch.eye(config.hidden)], dim=-1)
    rows, norm = target.model.get_output_embeddings(), getattr(target.model.base_model, "norm", None)
    if rows is not None and tuple(rows.weight.shape) == (target.vocabulary, config.hidden):
        kept = rows.weight.detach() if ids is None else rows.weight.detach()[ids.to(rows.weight.device)]
        tensors["lm_head.weight"] = kept.to("cpu", torch.float32, copy=True)
    if norm is not None and tuple(norm.weight.shape) == (config.hidden,):
        tensors["norm.weight"] = SOFTENED * norm.weight.detach().to("cpu", torch.float32)
    return Checkpoint(config, tensors, ids, None)


def trainable(checkpoint: Checkpoint, target: CausalModel, name: str) -> EagleDraft:
    """The drafting head itself, its weights parameters in float32 (float64 for a float64 target)."""
    draft = EagleDraft(checkpoint, target, name)
    kind = torch.promote_types(target.dtype, torch.float32)
    draft.weights = {
        key: nn.Parameter(value.to(target.device, kind, copy=True)) for key, value in checkpoint.tensors.items()
    }
    return draft


def write_head(folder: Path, draft: EagleDraft, target: CausalModel) -> None:
    """Write config.json and model.safetensors in the official layout, weights in the target's type."""
    tensors = {key: value.detach().to("cpu", target.dtype).contiguous() for key, value in draft.weights.items()}
    if draft.ids is not None:
        ids = draft.ids.cpu()
        tensors["d2t"] = ids - torch.arange(len(ids))
        tensors["t2d"] = torch.zeros(target.vocabulary, dtype=torch.bool).index_fill(0, ids, True)
    document = head_document(target, draft.vocabulary, draft.config.rope_base)
    save_bytes(folder / "model.safetensors", save(tensors), "out")
    save_text(folder / "config.json", json.dumps(document, indent=2) + "\n", "out")


def head_document(target: CausalModel, draft_vocabulary: int, rope_base: float) -> dict[str, Any]:
    """config.json in the official layout of a head with the target's own sizes."""
    config = target.model.config
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    hidden, heads = target.embedding.shape[-1], config.num_attention_heads
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": getattr(config, "intermediate_size", None),
        "num_attention_heads": heads,
        "num_key_value_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_dim": getattr(config, "head_dim", None) or hidden // heads,
        "num_hidden_layers": 1,
        "rms_norm_eps": float(getattr(config, "rms_norm_eps", 1e-5)),
        "rope_theta": rope_base,
        "max_position_embeddings": getattr(config, "max_position_embeddings", None),
        "attention_bias": False,
        "tie_word_embeddings": False,
        "torch_dtype": str(target.dtype).removeprefix("torch."),
        "vocab_size": target.vocabulary,
        "draft_vocab_size": draft_vocabulary,
        "target_hidden_size": hidden,
        # layers behind which the stream is read, one less than those that it enters
        "eagle_config": {
            "eagle_aux_hidden_state_layer_ids": [i - 1 for i in read_layers(None, len(target.layers), "head")]
        },
    }
