"""Where a result comes from: time, commit, versions, device, arguments. Written beside every result."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from exact.runtime.provenance import commit, versions
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.eagle3 import EagleDraft

PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "gguf")


def provenance(target: CausalModel, draft: Draft, **arguments: Any) -> dict[str, Any]:
    """A JSON-ready record of what made a result."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": versions() | {name: _version(name) for name in PACKAGES},
        "device": device_name(target.device),
        "threads": torch.get_num_threads(),
        "dtype": str(target.dtype).removeprefix("torch."),
        "target": target.name,
        "draft": draft.name,
        "draft_reads_layers": list(draft.features),
        "draft_rope_base": draft.config.rope_base if isinstance(draft, EagleDraft) else None,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        **arguments,
    }


def device_name(device: torch.device) -> str:
    """The device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
