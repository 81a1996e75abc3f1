"""The key-value cache of a tree decoder: append the nodes of a tree, then keep only the path that was accepted.

Each layer writes into one buffer that is doubled when full, so a cycle copies the accepted rows and nothing else.
transformers' models use it as their own cache; the EAGLE-3 head uses one layer of it directly.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

LEAST_CAPACITY = 64


class TreeLayer(CacheLayerMixin):
    """Keys and values [1, heads, length, head dimension] of one attention layer."""

    is_sliding = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.length = 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Empty buffers of the type, device and head shape of the first states."""
        self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append states; all keys and values so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        start, self.length = self.length, self.length + key_states.shape[-2]
        self.keys = _written(self.keys, key_states, start)
        self.values = _written(self.values, value_states, start)
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def keep(self, start: int, rows: Tensor) -> None:
        """Of the states from `start` on keep those at start + `rows`, in that order."""
        self.length = start + len(rows)
        for states in (self.keys, self.values):
            if states is not None:
                states[:, :, start : self.length] = states[:, :, start + rows]

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` states."""
        self.length = min(self.length, length)

    def copy(self) -> TreeLayer:
        """An independent layer with the same states."""
        twin = TreeLayer()
        if self.is_initialized:
            twin.keys, twin.values = self.keys[:, :, : self.length].clone(), self.values[:, :, : self.length].clone()
            twin.is_initialized, twin.length = True, self.length
        return twin

    def key(self) -> bytes:
        """The states as bytes: equal keys, equal behaviour from here on."""
        if not self.is_initialized:
            return b""
        return b"".join(states[:, :, : self.length].cpu().numpy().tobytes() for states in (self.keys, self.values))

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of the keys that `query_length` new tokens may see."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """States held."""
        return self.length

    def get_max_length(self) -> int:
        """No maximum."""
        return -1

    def get_max_cache_shape(self) -> int:
        """No maximum (the name that older transformers releases ask by)."""
        return -1


class TreeCache(Cache):
    """A `TreeLayer` for every attention layer that has been run."""

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=TreeLayer)

    @property
    def length(self) -> int:
        """Tokens held; layers that a draft leaves out hold none."""
        return max((layer.length for layer in self.layers), default=0)

    def keep(self, start: int, rows: Tensor) -> None:
        """Of the tokens from `start` on keep those at start + `rows`: compaction to the accepted path."""
        for layer in self.layers:
            if layer.is_initialized:
                layer.keep(start, rows)

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens."""
        for layer in self.layers:
            layer.truncate(length)

    def copy(self) -> TreeCache:
        """An independent cache with the same states."""
        twin = TreeCache()
        twin.layers = [layer.copy() for layer in self.layers]
        return twin

    def key(self) -> bytes:
        """All states as bytes."""
        return b"|".join(layer.key() for layer in self.layers)


def _written(buffer: Tensor, states: Tensor, start: int) -> Tensor:
    """`buffer` with `states` from `start` on, enlarged where they do not fit."""
    end = start + states.shape[-2]
    if end > buffer.shape[-2]:
        larger = buffer.new_empty(*buffer.shape[:2], max(LEAST_CAPACITY, 2 * end), buffer.shape[-1])
        larger[:, :, :start] = buffer[:, :, :start]
        buffer = larger
    buffer[:, :, start:end] = states
    return buffer


def causal(past: int, new: int, device: torch.device) -> Tensor:
    """What `new` tokens in a row may see: all `past` ones, themselves and those before, bool [new, past + new]."""
    return torch.ones(new, past + new, dtype=torch.bool, device=device).tril(past)
