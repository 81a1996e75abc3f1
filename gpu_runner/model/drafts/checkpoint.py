"""EAGLE-3 checkpoints, read strictly: official and speculators layouts.

The public loaders are silent about what a file lacks, holds too much or shapes wrongly, and a head with one random
matrix still drafts. Here every tensor must be there, in its shape, and nothing else may be; the id map is checked
against its mask. RoPE's base is an explicit, recorded field, since official heads do not use their target's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.model.causal_lm import memory
from rheo_core import InvalidInput

ROPE_BASE = 10000.0
"""The base that the official code falls back on where config.json names none."""
LAYER, SPECULATORS_LAYER = "midlayer.", "layers.0."
PRETRAINED_FILES = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class EagleConfig:
    """Sizes and options of an EAGLE-3 head.

    `capture` are the target layers whose entering residual stream is read, None for {2, L//2, L-3};
    `norm_before_residual` is a variant of the speculators layout: the residual is taken after hidden_norm.
    """

    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    vocabulary: int
    draft_vocabulary: int
    target_hidden: int
    rope_base: float
    capture: tuple[int, ...] | None
    norm_before_residual: bool
    speculators: bool

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor that must be there, in the official names; maps and embedding excepted."""
        h, q, kv = self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim
        streams = 3 if self.capture is None else len(self.capture)
        return {
            "fc.weight": (h, streams * self.target_hidden),
            "norm.weight": (h,),
            "lm_head.weight": (self.draft_vocabulary, h),
            f"{LAYER}self_attn.q_proj.weight": (q, 2 * h),
            f"{LAYER}self_attn.k_proj.weight": (kv, 2 * h),
            f"{LAYER}self_attn.v_proj.weight": (kv, 2 * h),
            f"{LAYER}self_attn.o_proj.weight": (h, q),
            f"{LAYER}mlp.gate_proj.weight": (self.ffn, h),
            f"{LAYER}mlp.up_proj.weight": (self.ffn, h),
            f"{LAYER}mlp.down_proj.weight": (h, self.ffn),
            f"{LAYER}hidden_norm.weight": (h,),
            f"{LAYER}input_layernorm.weight": (h,),
            f"{LAYER}post_attention_layernorm.weight": (h,),
        }


@dataclass(frozen=True)
class Checkpoint:
    """A validated head: tensors by official name, id map [draft V] (None: one vocabulary), own embedding."""

    config: EagleConfig
    tensors: Mapping[str, Tensor]
    ids: Tensor | None
    embedding: Tensor | None


def is_eagle3(folder: Path) -> bool:
    """Whether a folder holds an EAGLE-3 head rather than a causal LM."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return False
    if not isinstance(config, dict):
        return False
    named = any("eagle3" in str(name).lower() for name in config.get("architectures") or ())
    return "draft_vocab_size" in config or config.get("speculators_model_type") == "eagle3" or named


def read_config(folder: Path, rope_base: float | None = None) -> EagleConfig:
    """config.json of a head; `rope_base` overrides what it says."""
    path = folder / "config.json"
    try:
        given = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidInput(str(path), str(error), "the config.json of an EAGLE-3 head") from None
    if not isinstance(given, dict):
        raise InvalidInput(str(path), given, "a JSON object")
    return parse_config(given, path, rope_base)


def parse_config(given: Mapping[str, Any], path: Path, rope_base: float | None = None) -> EagleConfig:
    """Sizes and options from the fields of a config.json; `path` names it in messages."""
    speculators = "speculators_model_type" in given or isinstance(given.get("transformer_layer_config"), dict)
    layer = {**given, **given.get("transformer_layer_config", {})} if speculators else given

    def size(name: str, *fallback: Any) -> int:
        value = next((source[name] for source in (layer, given) if source.get(name) is not None), None)
        value = next((v for v in (value, *fallback) if v is not None), None)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidInput(f"{path}: {name}", value, "an int of at least 1")
        return value

    if size("num_hidden_layers", 1) != 1:
        raise InvalidInput(
            f"{path}: num_hidden_layers", layer["num_hidden_layers"], "1 (an EAGLE-3 head has one layer)"
        )
    if layer.get("hidden_act", "silu") != "silu":
        raise InvalidInput(f"{path}: hidden_act", layer["hidden_act"], "silu")
    hidden, heads = size("hidden_size"), size("num_attention_heads")
    vocabulary = size("vocab_size")
    return EagleConfig(
        hidden=hidden,
        ffn=size("intermediate_size"),
        heads=heads,
        kv_heads=size("num_key_value_heads", heads),
        head_dim=size("head_dim", hidden // heads),
        eps=float(layer.get("rms_norm_eps", 1e-6)),
        vocabulary=vocabulary,
        draft_vocabulary=size("draft_vocab_size", vocabulary),
        target_hidden=size("target_hidden_size", hidden),
        rope_base=_rope_base(layer, rope_base, path),
        capture=_capture(given, path),
        norm_before_residual=bool(given.get("norm_before_residual", False)),
        speculators=speculators,
    )


def _rope_base(layer: Mapping[str, Any], given: float | None, path: Path) -> float:
    """The base asked for, else the file's, else the official code's default; scaled RoPE is refused."""
    parameters = layer.get("rope_parameters") or {}
    scaling = layer.get("rope_scaling") or parameters
    kind = scaling.get("rope_type", scaling.get("type", "unnamed" if "factor" in scaling else "default"))
    if kind != "default":
        raise InvalidInput(f"{path}: rope_scaling", kind, 'none ("default"): a scaled RoPE is not supported for heads')
    base = next(b for b in (given, layer.get("rope_theta"), parameters.get("rope_theta"), ROPE_BASE) if b is not None)
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not base > 0:
        raise InvalidInput("RoPE base", base, "a positive number")
    return float(base)


def _capture(given: Mapping[str, Any], path: Path) -> tuple[int, ...] | None:
    """Target layers whose entering stream is read.

    At the top level (speculators, vLLM) the ids are those layers; inside `eagle_config` they are the layers *behind*
    which the stream is read, one less.
    """
    name = "eagle_aux_hidden_state_layer_ids"
    direct, behind = given.get(name), (given.get("eagle_config") or {}).get(name)
    ids, shift = (direct, 0) if direct is not None else (behind, 1)
    if ids is None:
        return None
    if not isinstance(ids, list) or not ids or any(type(layer) is not int for layer in ids):
        raise InvalidInput(f"{path}: {name}", ids, "a list of layer numbers")
    return tuple(layer + shift for layer in ids)


def read_checkpoint(folder: Path, rope_base: float | None = None) -> Checkpoint:
    """A head from a folder with config.json and model.safetensors or pytorch_model.bin, in either layout."""
    config = read_config(folder, rope_base)
    tensors = _official_names(read_tensors(folder), config, folder)
    ids = _id_map(tensors.pop("d2t", None), tensors.pop("t2d", None), config, folder)
    embedding = tensors.pop("embed_tokens.weight", None)
    shapes = config.shapes()
    missing, extra = sorted(shapes.keys() - tensors.keys()), sorted(tensors.keys() - shapes.keys())
    if missing:
        raise InvalidInput(f"{folder}", f"no tensor {', '.join(missing)}", "every tensor of an EAGLE-3 head")
    if extra:
        raise InvalidInput(
            f"{folder}", f"extra tensors {', '.join(extra)}", "the tensors of an EAGLE-3 head and no more"
        )
    if embedding is not None:
        tensors["embed_tokens.weight"] = embedding
        shapes["embed_tokens.weight"] = (config.vocabulary, config.hidden)
    for name, shape in shapes.items():
        if tuple(tensors[name].shape) != shape or not tensors[name].is_floating_point():
            found = f"{tensors[name].dtype} {tuple(tensors[name].shape)}"
            raise InvalidInput(f"{folder}: {name}", found, f"floats of shape {shape}, as config.json says")
        if not bool(torch.isfinite(tensors[name]).all()):
            raise InvalidInput(f"{folder}: {name}", "a NaN or infinite entry", "finite weights")
    return Checkpoint(config, tensors, ids, tensors.pop("embed_tokens.weight", None))


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder: safetensors, or a .bin read without running any code in it."""
    index = next((found for name in PRETRAINED_FILES if (found := folder / f"{name}.index.json").is_file()), None)
    path = next((folder / name for name in PRETRAINED_FILES if (folder / name).is_file()), None)
    if path is None and index is not None:
        return _read_shards(index)
    if path is None:
        raise InvalidInput(str(folder), "no weights", f"{' or '.join(PRETRAINED_FILES)} in it")
    return _read_file(path)


def _read_shards(index: Path) -> dict[str, Tensor]:
    """The tensors of a sharded checkpoint, each from the file that its index names, and no other."""
    try:
        places: dict[str, str] = json.loads(index.read_text())["weight_map"]
        names = sorted(set(places.values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(str(index), f"{type(error).__name__}: {error}", "an index with a weight_map") from None
    found: dict[str, Tensor] = {}
    for name in names:
        if Path(name).name != name or not (index.parent / name).is_file():
            raise InvalidInput(str(index), name, "the name of a file beside it")
        shard = _read_file(index.parent / name)
        if shard.keys() != {tensor for tensor, place in places.items() if place == name}:
            raise InvalidInput(str(index.parent / name), sorted(shard), f"the tensors that {index.name} places there")
        found |= shard
    return found


def _read_file(path: Path) -> dict[str, Tensor]:
    try:
        with memory(str(path)):
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file

                return load_file(path)
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(str(path), f"{type(error).__name__}: {error}", "a readable file of tensors") from None
    if not isinstance(loaded, dict) or not all(isinstance(value, Tensor) for value in loaded.values()):
        raise InvalidInput(str(path), type(loaded).__name__, "a mapping of names to tensors")
    return dict(loaded)


def _official_names(tensors: Mapping[str, Tensor], config: EagleConfig, folder: Path) -> dict[str, Tensor]:
    """The speculators layout under the official names; a tensor of both names is refused."""
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        official = name
        if config.speculators:
            official = "d2t" if name == "draft_id_to_target_id" else name
            if name.startswith(SPECULATORS_LAYER):
                official = LAYER + name.removeprefix(SPECULATORS_LAYER)
        if official in renamed:
            raise InvalidInput(f"{folder}: {name}", "a tensor given under two names", "one of them")
        renamed[official] = tensor
    return renamed


def _id_map(d2t: Tensor | None, t2d: Tensor | None, config: EagleConfig, folder: Path) -> Tensor | None:
    """target id = draft id + d2t[draft id] (an offset); checked against the mask t2d where that is given."""
    size, target_size = config.draft_vocabulary, config.vocabulary
    if d2t is None:
        if size != target_size or t2d is not None:
            raise InvalidInput(
                f"{folder}: d2t", None, f"offsets [{size}], as the vocabularies are {size} and {target_size}"
            )
        return None
    if tuple(d2t.shape) != (size,) or d2t.is_floating_point() or d2t.dtype == torch.bool:
        raise InvalidInput(f"{folder}: d2t", f"{d2t.dtype} {tuple(d2t.shape)}", f"ints of shape ({size},)")
    ids = torch.arange(size) + d2t.long()
    if not bool(((ids >= 0) & (ids < target_size)).all()) or len(set(ids.tolist())) != size:
        raise InvalidInput(f"{folder}: d2t", "offsets that leave the vocabulary or collide", "one target id a draft id")
    if t2d is None:
        if not config.speculators:
            raise InvalidInput(f"{folder}: t2d", None, f"a mask [{target_size}] beside d2t")
        return ids
    if tuple(t2d.shape) != (target_size,) or t2d.dtype != torch.bool:
        raise InvalidInput(
            f"{folder}: t2d", f"{t2d.dtype} {tuple(t2d.shape)}", f"a bool mask of shape ({target_size},)"
        )
    if int(t2d.sum()) != size or not torch.equal(t2d.nonzero()[:, 0], ids):
        raise InvalidInput(
            f"{folder}: t2d", f"{int(t2d.sum())} tokens", f"the {size} tokens that d2t maps to, in their order"
        )
    return ids
