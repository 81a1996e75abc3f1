"""Models by name: hub names, local folders, GGUF files, EAGLE-3 heads, and the target without some layers.

Everything that the command line says about models ends here, so that a wrong name, folder, device or type is one clear
line. Models are probed when they are loaded: see `models.check_tree_attention`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gpu_runner.model.causal_lm import CausalModel, check_tree_attention, memory
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.checkpoint import is_eagle3
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.smollm2 import smollm2
from rheo_core import InvalidInput

SMOLLM2 = "smollm2"
AUTO = "auto"
NAMED = 5
"""Tensors that a refusal names."""
DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "fp16": torch.float16,
    "float16": torch.float16,
    "bf16": torch.bfloat16,
    "bfloat16": torch.bfloat16,
}


def find_device(name: str) -> torch.device:
    """The device by name; "auto" is CUDA where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name != "cpu" and name != "cuda" and not name.startswith("cuda:"):
        raise InvalidInput("device", name, "auto, cpu, cuda or cuda:N")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InvalidInput(
            "device", name, "a machine with a CUDA device and a CUDA build of torch (here: --device cpu)"
        )
    number = name.partition(":")[2]
    if number and (not number.isdigit() or int(number) >= torch.cuda.device_count()):
        raise InvalidInput("device", name, f"cuda:0 to cuda:{torch.cuda.device_count() - 1}")
    return torch.device(name)


def find_dtype(name: str, device: torch.device | None = None) -> torch.dtype:
    """The type by name; "auto" is bfloat16 on a CUDA `device` and float32 elsewhere."""
    if name == AUTO:
        return torch.bfloat16 if device is not None and device.type == "cuda" else torch.float32
    if name not in DTYPES:
        raise InvalidInput("dtype", name, f"one of {', '.join([AUTO, *DTYPES])}")
    return DTYPES[name]


def load_target(spec: str, device: torch.device, dtype: str) -> CausalModel:
    """A causal LM by hub name, local folder or GGUF file, or "smollm2"; probed for tree attention."""
    model = load_model(spec, device, dtype)
    check_tree_attention(model)
    return model


def load_model(spec: str, device: torch.device, dtype: str) -> CausalModel:
    """A causal LM with its tokenizer."""
    kind = find_dtype(dtype, device)
    place = smollm2(_unpacked) if spec == SMOLLM2 else Path(spec)
    _check_place(spec, place, "model")
    with memory(f"the weights of {spec}"):
        if place.suffix == ".gguf":
            model, tokenizer = load_gguf(place, kind)
        else:
            model, tokenizer = _pretrained(str(place) if place.exists() else spec, {}, kind)
        return CausalModel(model.to(device), spec, tokenizer)


def _check_place(spec: str, place: Path, name: str) -> None:
    """Refuse a missing folder that no hub name can be, before the hub is asked; a missing GGUF file says so itself."""
    is_path = spec.startswith(("/", ".", "~")) or spec.count("/") > 1 or spec.endswith("/") or "\\" in spec
    if is_path and not place.exists() and place.suffix != ".gguf":
        raise InvalidInput(name, spec, "a folder that exists, or a hub name")


def _unpacked(gguf: Path, folder: Path) -> None:
    """De-quantise to float32 and save model, tokenizer and chat template as transformers keeps them."""
    model, tokenizer = load_gguf(gguf, torch.float32)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_gguf(path: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """A de-quantised model and its tokenizer from a GGUF file."""
    from transformers import GgufConfig

    if not path.is_file():
        raise InvalidInput("GGUF file", str(path), "a file")
    named = {"gguf_file": path.name}
    return _pretrained(str(path.parent), named, dtype, quantization_config=GgufConfig(dequantize=True))


def _pretrained(place: str, named: dict[str, str], dtype: torch.dtype, **options: Any) -> tuple[Any, Any]:
    """Model and tokenizer by transformers' own loaders; what they cannot load is one line."""
    quiet()
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            place, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **named, **options
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput("model", place, f"a causal LM: hub name, folder or GGUF file ({reason})") from None
    model, report = loaded
    check_weights(place, report)
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **named)
    except (OSError, ValueError, KeyError, ImportError):
        tokenizer = None
    return model, tokenizer


def check_weights(place: str, report: Mapping[str, Any]) -> None:
    """Raise unless every tensor of the model came from its files, in its shape, and the files hold no other.

    transformers fills what is missing with random numbers and only warns; such a model still answers and still drafts.
    """
    unexpected = sorted(report["unexpected_keys"])
    mismatched = [f"{name} {list(found)} for {list(wanted)}" for name, found, wanted in report["mismatched_keys"]]
    if any(name.startswith(("fc.", "midlayer.")) for name in unexpected):
        raise InvalidInput(
            place,
            f"a draft head of another kind (it holds {unexpected[0]} and is no EAGLE-3 head: EAGLE-1, EAGLE-2?)",
            "an EAGLE-3 head or a whole causal LM",
        )
    for kind, names in (("missing", sorted(report["missing_keys"])), ("mis-shaped", mismatched), ("extra", unexpected)):
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            raise InvalidInput(
                place,
                f"{kind} tensors: {', '.join(names[:NAMED])}{more}",
                "the model's tensors, all of them and no other",
            )


def load_draft(spec: str, target: CausalModel, dtype: str, rope_base: float | None = None) -> Draft:
    """A draft for `target`: "skip:17,18", an EAGLE-3 folder (either layout), or a causal LM; a hub name for both."""
    if spec.startswith("skip:"):
        return CausalDraft.skipping(target, skipped_layers(spec))
    folder = Path(spec)
    _check_place(spec, folder, "draft")
    if not folder.exists() and not spec.endswith(".gguf") and spec != SMOLLM2:
        folder = _snapshot(spec)
    if is_eagle3(folder):
        return EagleDraft.load(folder, target, rope_base)
    model = load_model(spec, target.device, dtype)
    check_tree_attention(model)
    return CausalDraft(model, target)


def skipped_layers(spec: str) -> Sequence[int]:
    """The layer numbers of "skip:17,18"."""
    numbers = spec.removeprefix("skip:").split(",")
    if not all(number.strip().isdigit() for number in numbers):
        raise InvalidInput("draft", spec, "skip: and layer numbers joined by commas, as in skip:17,18")
    return [int(number) for number in numbers]


def _snapshot(spec: str) -> Path:
    """The files of a hub repository."""
    quiet()
    from huggingface_hub import snapshot_download

    patterns = ["*.json", "*.safetensors", "*.bin", "*.model", "*.txt", "*.jinja"]
    try:
        return Path(snapshot_download(spec, allow_patterns=patterns))
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput(
            "draft", spec, f"skip:LAYERS, a folder, or a hub name that can be fetched ({reason})"
        ) from None


def quiet() -> None:
    """Keep the libraries' progress bars and notices off the terminal."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    for library in ("accelerate", "huggingface_hub"):
        logging.getLogger(library).setLevel(logging.ERROR)
