"""Causal language models as the engine runs them: one sequence, an explicit mask and explicit positions.

Any transformers model with full attention will do; what else could go wrong in silence (a sliding window, a recurrent
state, positions or masks that a model ignores) is refused when the model is taken up, by its configuration and by a
probe that compares a small tree with plain forwards.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.precision import in_float
from rheo_core import InvalidInput

TOLERANCE = {torch.float64: 1e-8, torch.float32: 2e-3, torch.float16: 0.1, torch.bfloat16: 0.5}
"""Largest relative difference that the probe puts down to rounding; a mask that is ignored shows as order 1."""


class CausalModel:
    """A transformers causal LM. Batch size 1: a tree of one sequence at a time.

    `name` says what it is in messages and results; `tokenizer` is optional.
    """

    def __init__(self, model: Any, name: str, tokenizer: Any = None) -> None:
        check_full_attention(model, name)
        self.model = model.eval()
        self.name = name
        self.tokenizer = tokenizer
        self.cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    @property
    def vocabulary(self) -> int:
        """Entries of a row of logits."""
        return int(self.model.config.vocab_size)

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        """The type that the model computes in."""
        return self.embedding.dtype

    @property
    def embedding(self) -> Tensor:
        """Token embeddings [V, H]."""
        weight: Tensor = self.model.get_input_embeddings().weight
        return weight.detach()

    @property
    def layers(self) -> nn.ModuleList:
        """The decoder layers."""
        found = getattr(self.model.base_model, "layers", None)
        if not isinstance(found, nn.ModuleList):
            raise InvalidInput(self.name, type(self.model).__name__, "a decoder whose layers are a list named `layers`")
        return found

    def __call__(
        self,
        tokens: Tensor,
        positions: Tensor,
        visible: Tensor,
        cache: TreeCache,
        *,
        last: int = 0,
        features: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """Logits [n, V] of `tokens` [n] at `positions` [n], and the residual stream entering layers `features`.

        `visible` [n, cached + n] says which keys each token sees; the states are appended to `cache`. `last` > 0 gives
        the logits of that many last tokens only. Logits come in float32 or better; the features [n, H * len(features)]
        in the model's type.
        """
        mask = torch.zeros(visible.shape, dtype=self.dtype, device=self.device).masked_fill(~visible, -torch.inf)
        with torch.no_grad(), memory(f"{self.name}, {len(tokens)} tokens on {cache.length}"):
            with self.watched(features) as seen:
                output = self.model(
                    input_ids=tokens[None],
                    attention_mask=mask[None, None],
                    position_ids=positions[None],
                    use_cache=True,
                    logits_to_keep=last,
                    **{self.cache_name: cache},
                )
            streams = [seen[layer] for layer in features]
            joined = torch.cat(streams, dim=-1)[0] if streams else self.embedding[:0]
            return in_float(output.logits[0]), joined

    @contextmanager
    def watched(self, features: Sequence[int]) -> Iterator[dict[int, Tensor]]:
        """The hidden states that enter the given layers during a forward."""
        seen: dict[int, Tensor] = {}

        def watch(number: int) -> Any:
            def look(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
                seen[number] = given[0] if given else named["hidden_states"]

            return look

        handles = [self.layers[i].register_forward_pre_hook(watch(i), with_kwargs=True) for i in sorted(set(features))]
        try:
            yield seen
        finally:
            for handle in handles:
                handle.remove()

    def without_layers(self, skipped: Sequence[int]) -> CausalModel:
        """The same model, sharing its weights, with some decoder layers left out."""
        count = len(self.layers)
        for layer in skipped:
            if not 0 <= layer < count:
                raise InvalidInput("skip", layer, f"a layer in 0..{count - 1} of {self.name}")
        if len(set(skipped)) == count:
            raise InvalidInput("skip", list(skipped), f"at least one of the {count} layers to be left")
        decoder = shallow(self.model.base_model)
        decoder.layers = nn.ModuleList(layer for i, layer in enumerate(self.layers) if i not in set(skipped))
        whole = shallow(self.model)
        setattr(whole, self.model.base_model_prefix, decoder)
        return CausalModel(whole, f"{self.name} without layers {','.join(map(str, sorted(set(skipped))))}")


def on_device(tokens: Sequence[int], device: torch.device) -> Tensor:
    """Ids from the host [n]; on CUDA through pinned memory, so that the host need not wait for the copy."""
    ids = torch.tensor(tokens, dtype=torch.long)
    return ids.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else ids.to(device)


def shallow(module: nn.Module) -> Any:
    """A copy of a module that owns its list of submodules and shares the submodules and weights."""
    twin = copy.copy(module)
    twin.__dict__["_modules"] = dict(module._modules)
    return twin


def check_full_attention(model: Any, name: str) -> None:
    """Raise for a model with a sliding window, chunked attention or a recurrent state: a tree needs full attention."""
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    if getattr(config, "is_encoder_decoder", False):
        raise InvalidInput(name, config.model_type, "a decoder-only model")
    if getattr(model, "_is_stateful", False):
        raise InvalidInput(
            name, f"{config.model_type}, a recurrent model", "a model with full attention in every layer"
        )
    window = getattr(config, "sliding_window", None)
    if window is not None and getattr(config, "use_sliding_window", True):
        raise InvalidInput(name, f"a sliding window of {window} tokens", "a model with full attention in every layer")
    kinds = set(getattr(config, "layer_types", None) or ()) - {"full_attention"}
    if kinds:
        raise InvalidInput(name, f"layers of type {', '.join(sorted(kinds))}", "full attention in every layer")


def check_tree_attention(model: CausalModel) -> None:
    """Raise unless the logits of a small tree equal those of plain forwards: masks and positions are obeyed."""
    tokens = [token % model.vocabulary for token in (1, 2, 3, 4)]
    text, first, second, below = tokens
    device = model.device
    visible = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 1, 1]], dtype=torch.bool, device=device)
    tree, _ = model(
        torch.tensor(tokens, device=device), torch.tensor([0, 1, 1, 2], device=device), visible, TreeCache()
    )
    for row, path in enumerate(([text], [text, first], [text, second], [text, second, below])):
        ids = torch.tensor(path, device=device)
        places = torch.arange(len(path), device=device)
        plain, _ = model(ids, places, causal(0, len(path), device), TreeCache(), last=1)
        difference = float((tree[row] - plain[0]).abs().max() / plain[0].abs().max().clamp(min=1))
        if not difference <= TOLERANCE[model.dtype]:
            raise InvalidInput(
                model.name,
                f"tree logits that differ from plain ones by {difference:.2g} (relative)",
                "a model that obeys a 4D attention mask and explicit positions",
            )
    check_siblings(model, tokens, visible, tree)


def check_siblings(model: CausalModel, tokens: Sequence[int], visible: Tensor, tree: Tensor) -> None:
    """Raise where a node sees another that the mask hides: its logits change with the other's token.

    The shapes are those of the tree before, so that what is hidden adds exact zeros and rounding is the same: this is
    sharp in bfloat16 too, where a comparison with plain forwards must allow for much.
    """
    positions = torch.tensor([0, 1, 1, 2], device=model.device)
    for changed in (1, 2, 3):
        others = [*tokens[:changed], (tokens[changed] + 1) % model.vocabulary, *tokens[changed + 1 :]]
        again, _ = model(torch.tensor(others, device=model.device), positions, visible, TreeCache())
        hidden = ~visible[:, changed]
        moved = float((tree - again)[hidden].abs().max() / tree.abs().max().clamp(min=1))
        if not moved <= 8 * torch.finfo(model.dtype).eps:
            raise InvalidInput(
                model.name,
                f"nodes of a tree that see a token hidden from them (their logits move by {moved:.2g})",
                "a model that obeys a 4D attention mask",
            )


@contextmanager
def memory(what: str) -> Iterator[None]:
    """Turn a failed allocation into one line that says which size failed."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InvalidInput("device memory", f"not enough for {what}", _first_line(error)) from None
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise InvalidInput("memory", f"not enough for {what}", _first_line(error)) from None


def _first_line(error: Exception) -> str:
    """What the allocator asked for, as it says it."""
    return "room: " + str(error).split("\n", 1)[0][:200]
