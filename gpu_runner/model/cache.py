"""The key-value cache of a tree decoder: append the nodes of a tree, then keep only the path that was accepted.

Each layer writes into one buffer that is doubled when full, so a cycle copies the accepted rows and nothing else.
transformers' models use it as their own cache; the EAGLE-3 head uses one layer of it directly.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

LEAST_CAPACITY = 64


class TreeLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Keys and values [1, heads, length, head dimension] of one attention layer."""

    is_sliding = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
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
        keys, values = self._buffers()
        self.keys, self.values = _written(keys, key_states, start), _written(values, value_states, start)
        return self.states()

    def states(self, start: int = 0) -> tuple[Tensor, Tensor]:
        """Keys and values held, from `start` on."""
        keys, values = self._buffers()
        return keys[:, :, start : self.length], values[:, :, start : self.length]

    def _buffers(self) -> tuple[Tensor, Tensor]:
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def keep(self, start: int, rows: Tensor) -> None:
        """Of the states from `start` on keep those at start + `rows`, in that order."""
        for states in self.states(start):
            states[:, :, : len(rows)] = states[:, :, rows]
        self.length = start + len(rows)

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` states."""
        self.length = min(self.length, length)

    def copy(self) -> TreeLayer:
        """An independent layer with the same states."""
        twin = TreeLayer()
        if self.is_initialized:
            twin.keys, twin.values = (states.clone() for states in self.states())
            twin.is_initialized, twin.length = True, self.length
        return twin

    def key(self) -> bytes:
        """The states as bytes: equal keys, equal behaviour from here on."""
        return b"".join(states.cpu().numpy().tobytes() for states in self.states()) if self.is_initialized else b""

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
    def held(self) -> list[TreeLayer]:
        """The layers by number; those that a draft leaves out stay empty."""
        return cast("list[TreeLayer]", self.layers)

    @property
    def length(self) -> int:
        """Tokens held."""
        return max((layer.length for layer in self.held), default=0)

    def keep(self, start: int, rows: Tensor) -> None:
        """Of the tokens from `start` on keep those at start + `rows`: compaction to the accepted path."""
        for layer in self.held:
            if layer.is_initialized:
                layer.keep(start, rows)

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens."""
        for layer in self.held:
            layer.truncate(length)

    def copy(self) -> TreeCache:
        """An independent cache with the same states."""
        twin = TreeCache()
        twin.layers = [layer.copy() for layer in self.held]
        return twin

    def key(self) -> bytes:
        """All states as bytes."""
        return b"|".join(layer.key() for layer in self.held)


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
