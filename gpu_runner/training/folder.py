"""The folder of a training: documents, head, where it comes from, a log, and the state to go on from.

Documents are appended as they are made; all else is written whole or not at all, so a kill at any time leaves the last
checkpoint to resume from.
"""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from exact.runtime.atomic_files import save_bytes, save_text
from gpu_runner.training.documents import Document
from gpu_runner.training.head import write_head
from gpu_runner.training.loop import Training
from rheo_core import InvalidInput

STATE, LOG, PROVENANCE, DOCUMENTS = "state.pt", "log.jsonl", "provenance.json", "documents.jsonl"


class TrainingFolder:
    """A folder being written; `groups` are the documents that it holds, a group for each line or sampled answer.

    Raises `InvalidInput` where it holds something and `resume` is not given, or was begun with other `settings`, which
    are the first line of its documents.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], resume: bool) -> None:
        self.path = path
        self.groups: list[list[Document]] = []
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()) and not resume:
                raise InvalidInput("out", f"{path}, which is not empty", "a new folder, or --resume to go on with it")
            lines = self._documents()
            if not lines:
                self._append(settings)
        except OSError as error:
            raise InvalidInput("out", str(path), f"a folder that can be written ({error.strerror})") from None
        for name, value in settings.items() if lines else ():
            if lines[0].get(name) != value:
                raise InvalidInput(f"{name} of a resumed training", value, f"{lines[0].get(name)}, as it began")
        for group in lines[1:]:
            self.groups.append([Document(tuple(tokens), start, source) for source, start, *tokens in group])

    def add(self, group: Sequence[Document]) -> None:
        """Keep the documents of one line or sampled answer."""
        self._append([[each.source, each.start, *each.tokens] for each in group])
        self.groups.append(list(group))

    def _append(self, value: Any) -> None:
        with (self.path / DOCUMENTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")

    def _documents(self) -> list[Any]:
        """The lines of the documents; a last one that a kill cut short is cut off."""
        file = self.path / DOCUMENTS
        whole, end, rest = file.read_bytes().rpartition(b"\n") if file.exists() else (b"", b"", b"")
        if rest:
            file.write_bytes(whole + end)
        return [json.loads(line) for line in whole.splitlines()]

    def save(self, training: Training, source: Mapping[str, Any]) -> None:
        """Write a checkpoint: the head as it is now, its provenance, the log, and the state."""
        write_head(self.path, training.draft, training.target)
        document = {**source, "updates": training.done, "of": len(training.plan)}
        save_text(self.path / PROVENANCE, json.dumps(document, indent=2) + "\n", "out")
        save_text(self.path / LOG, "".join(json.dumps(entry) + "\n" for entry in training.history), "out")
        buffer = io.BytesIO()
        torch.save(training.state(), buffer)
        save_bytes(self.path / STATE, buffer.getvalue(), "out")

    def restore(self, training: Training) -> bool:
        """Go on from the folder's state; False where it has none yet."""
        file = self.path / STATE
        if not file.exists():
            return False
        try:
            training.restore(torch.load(file, map_location=training.target.device, weights_only=True))
        except (OSError, RuntimeError, EOFError, KeyError, TypeError, ValueError, pickle.UnpicklingError):
            raise InvalidInput(str(file), "a file that cannot be read", "the state of a training") from None
        return True
