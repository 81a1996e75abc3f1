"""The EAGLE-3 head: one decoder layer over the target's features, drafting over a vocabulary of its own.

At a root it reads, for every newly committed position t, three residual streams of the target at t and the embedding of
token t + 1; below, a node reads its parent's own output and its token's embedding, and all nodes of a level share one
position. The head runs in the target's type; its logits leave in float32 or better.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from gpu_runner.model.cache import TreeLayer, causal
from gpu_runner.model.causal_lm import CausalModel, memory
from gpu_runner.model.drafts.base import Level, check_vocabulary
from gpu_runner.model.drafts.checkpoint import LAYER, Checkpoint, read_checkpoint
from gpu_runner.model.precision import FLOATS, in_float
from rheo_core import InvalidInput


class Keys(Protocol):
    """Where the layer keeps its states: `TreeLayer` when drafting; in training one that gradients pass through."""

    def update(self, key_states: Tensor, value_states: Tensor, /) -> tuple[Tensor, Tensor]:
        """Append states; all keys and values so far [1, heads, length, head dimension]."""
        ...


class EagleDraft:
    """An EAGLE-3 head drafting for `target`."""

    def __init__(self, checkpoint: Checkpoint, target: CausalModel, name: str) -> None:
        config = checkpoint.config
        check_vocabulary(name, config.vocabulary, target.name, target.vocabulary)
        hidden = target.embedding.shape[-1]
        if config.target_hidden != hidden:
            raise InvalidInput(
                f"{name}: target_hidden_size", config.target_hidden, f"{hidden}, as target {target.name} has"
            )
        if checkpoint.embedding is None and config.hidden != hidden:
            raise InvalidInput(
                f"{name}: embed_tokens.weight", None, f"there, as hidden sizes are {config.hidden} and {hidden}"
            )
        self.config = replace(config, capture=read_layers(config.capture, len(target.layers), name))
        self.features: tuple[int, ...] = self.config.capture or ()
        self.name = name
        self.vocabulary = config.draft_vocabulary
        with memory(name):
            self.ids = None if checkpoint.ids is None else checkpoint.ids.to(target.device)
            self.weights = {key: value.to(target.device, target.dtype) for key, value in checkpoint.tensors.items()}
            own = checkpoint.embedding
            self.embedding = target.embedding if own is None else own.to(target.device, target.dtype)

    @classmethod
    def load(cls, folder: Path, target: CausalModel, rope_base: float | None = None) -> EagleDraft:
        """From a folder in the official or the speculators layout."""
        return cls(read_checkpoint(folder, rope_base), target, str(folder))

    def start(self) -> EagleSession:
        """A fresh state for one text."""
        return EagleSession(self, TreeLayer(), 0)

    def combine(self, features: Tensor) -> Tensor:
        """fc: the streams [n, 3 * target H] to the head's own width [n, H]."""
        return F.linear(features, self.weights["fc.weight"])

    def layer(self, tokens: Tensor, hidden: Tensor, positions: Tensor, visible: Tensor, cache: Keys) -> Tensor:
        """The decoder layer: un-normed outputs [n, H] for target ids `tokens` [n] and inputs `hidden` [n, H]."""
        embedded = self._norm(F.embedding(tokens, self.embedding), "input_layernorm")
        normed = self._norm(hidden, "hidden_norm")
        residual = normed if self.config.norm_before_residual else hidden
        mixed = self._attention(torch.cat([embedded, normed], dim=-1), positions, visible, cache)
        hidden = residual + mixed
        x = self._norm(hidden, "post_attention_layernorm")
        return hidden + self._linear(
            F.silu(self._linear(x, "mlp.gate_proj")) * self._linear(x, "mlp.up_proj"), "mlp.down_proj"
        )

    def logits(self, hidden: Tensor) -> Tensor:
        """lm_head(norm(hidden)) [n, draft V], in float32 or better."""
        normed = rms_norm(hidden, self.weights["norm.weight"], self.config.eps)
        return in_float(F.linear(normed, self.weights["lm_head.weight"]))

    def _attention(self, x: Tensor, positions: Tensor, visible: Tensor, cache: Keys) -> Tensor:
        config = self.config
        q = self._linear(x, "self_attn.q_proj").view(len(x), config.heads, config.head_dim).transpose(0, 1)
        k = self._linear(x, "self_attn.k_proj").view(len(x), config.kv_heads, config.head_dim).transpose(0, 1)
        v = self._linear(x, "self_attn.v_proj").view(len(x), config.kv_heads, config.head_dim).transpose(0, 1)
        cos, sin = rotation(positions, config.head_dim, config.rope_base, x.dtype)
        keys, values = cache.update(rotated(k, cos, sin)[None], v[None])
        groups = config.heads // config.kv_heads
        mixed = F.scaled_dot_product_attention(
            rotated(q, cos, sin)[None],
            keys.repeat_interleave(groups, dim=1),
            values.repeat_interleave(groups, dim=1),
            attn_mask=visible[None, None],
        )
        return self._linear(mixed[0].transpose(0, 1).reshape(len(x), -1), "self_attn.o_proj")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return F.linear(x, self.weights[f"{LAYER}{name}.weight"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return rms_norm(x, self.weights[f"{LAYER}{name}.weight"], self.config.eps)


class EagleSession:
    """A head along one text: its cache holds one state for each position whose features were read."""

    def __init__(self, draft: EagleDraft, cache: TreeLayer, consumed: int) -> None:
        self.draft = draft
        self.cache = cache
        self._consumed = consumed
        self.level = Level(0, draft.embedding.device)
        self.hidden = draft.embedding[:0]

    @property
    def consumed(self) -> int:
        """Positions of the text whose target features have been read."""
        return self._consumed

    @torch.no_grad()
    def root(self, tokens: Tensor, features: Tensor) -> Tensor:
        """Read the new positions' features, each with the token behind it; logits [1, draft V] after the text."""
        past, self._consumed = self._consumed, len(tokens) - 1
        new = self._consumed - past
        if new < 1 or len(features) != new:
            raise InvalidInput("prompt", f"{len(tokens)} tokens", "at least 2 for an EAGLE-3 draft")
        self.cache.truncate(past)
        device = tokens.device
        positions = torch.arange(past, self._consumed, device=device)
        with memory(f"{self.draft.name}, {new} tokens on {past}"):
            inputs = self.draft.combine(features)
            output = self.draft.layer(tokens[past + 1 :], inputs, positions, causal(past, new, device), self.cache)
        self.hidden, self.level = output[-1:], Level(self._consumed, device)
        return self.draft.logits(self.hidden)

    @torch.no_grad()
    def expand(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """One level of nodes, from their parents' outputs; logits [n, draft V] after each."""
        visible = self.level.below(parents)
        positions = torch.full_like(tokens, self._consumed + self.level.depth - 1)
        with memory(f"{self.draft.name}, {len(tokens)} nodes on {self.cache.length}"):
            self.hidden = self.draft.layer(tokens, self.hidden[parents], positions, visible, self.cache)
        return self.draft.logits(self.hidden)

    def rewind(self, length: int) -> None:
        """Only the first `length` tokens still hold: position t was read together with token t + 1.

        The last position is read again, for its output.
        """
        self._consumed = min(self._consumed, max(length - 2, 0))

    def copy(self) -> EagleSession:
        """An independent state between cycles."""
        twin = EagleSession(self.draft, self.cache.copy(), self._consumed)
        twin.cache.truncate(self._consumed)
        return twin

    def key(self) -> bytes:
        """The committed states as bytes."""
        return self.copy().cache.key()


def read_layers(capture: tuple[int, ...] | None, layers: int, name: str) -> tuple[int, ...]:
    """The target layers to read; low, middle and high by default."""
    chosen = (2, layers // 2, layers - 3) if capture is None else capture
    for layer in chosen:
        if not 0 <= layer < layers:
            raise InvalidInput(f"{name}: target layer to read", layer, f"one of 0..{layers - 1}")
    return chosen


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm over the last dimension, in float32 or better, as Llama rounds it."""
    wide = x if x.dtype in FLOATS else x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def rotation(positions: Tensor, head_dim: int, base: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """cos and sin [n, head dimension] of rotary positions, from float32 or better."""
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    exponents = torch.arange(0, head_dim, 2, device=positions.device).to(wide) / head_dim
    angles = positions[:, None].to(wide) * (1.0 / base**exponents)
    both = torch.cat([angles, angles], dim=-1)
    return both.cos().to(dtype), both.sin().to(dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `x` [heads, n, head dimension], halves as pairs."""
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-right, left], dim=-1) * sin
