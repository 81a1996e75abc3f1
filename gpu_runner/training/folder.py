"""The folder of a training: the head, where it comes from, the documents, a log, and the state to go on from.

Everything is written whole or not at all, so a kill at any time leaves the last checkpoint to resume from.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from exact.runtime.atomic_files import save_bytes, save_text
from gpu_runner.training.head import write_head
from gpu_runner.training.loop import Training
from rheo_core import InvalidInput

STATE, LOG, PROVENANCE, DOCUMENTS = "state.pt", "log.jsonl", "provenance.json", "documents.jsonl"


def open_folder(path: Path, resume: bool) -> None:
    """Make the folder; one that holds something is only taken to resume."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        used = any(path.iterdir())
    except OSError as error:
        raise InvalidInput("out", str(path), f"a folder that can be written ({error.strerror})") from None
    if used and not resume:
        raise InvalidInput("out", f"{path}, which is not empty", "a new folder, or --resume to go on with it")


def save(path: Path, training: Training, made_from: Mapping[str, Any], source: Mapping[str, Any]) -> None:
    """A checkpoint: the head as it is now, its provenance, and the state."""
    write_head(path, training.draft, training.target, training.embedding)
    document = {**source, "updates": training.done, "of": len(training.plan)}
    save_text(path / PROVENANCE, json.dumps(document, indent=2) + "\n", "out")
    buffer = io.BytesIO()
    torch.save({"made_from": dict(made_from), **training.state()}, buffer)
    save_bytes(path / STATE, buffer.getvalue(), "out")


def resume(path: Path, training: Training, made_from: Mapping[str, Any]) -> bool:
    """Go on from the folder's state; False where it has none yet. One made with other settings is refused."""
    file = path / STATE
    if not file.exists():
        return False
    try:
        state = torch.load(file, map_location=training.target.device, weights_only=True)
        found = dict(state["made_from"])
    except (OSError, RuntimeError, EOFError, KeyError, TypeError, ValueError, pickle.UnpicklingError):
        raise InvalidInput(str(file), "a file that cannot be read", "the state of a training") from None
    for name, value in made_from.items():
        if found.get(name) != value:
            raise InvalidInput(f"{name} of a resumed training", value, f"{found.get(name)}, as it began")
    training.restore(state)
    return True


def log(path: Path, entry: Mapping[str, Any]) -> None:
    """Append one line."""
    with (path / LOG).open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def cut_log(path: Path, done: int) -> None:
    """Drop the lines of updates after `done`, which will be made again, and a last line that was cut short."""
    file = path / LOG
    if file.exists():
        whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
        kept = [line for line in whole.split("\n") if line and json.loads(line)["update"] <= done]
        save_text(file, "".join(line + "\n" for line in kept), "out")
