"""Where a result comes from: versions, commit, time, and the command that made it."""

from __future__ import annotations

import platform
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

DISTRIBUTION = "rheo-lossless"


@dataclass(frozen=True)
class Provenance:
    """What made a result; `commit` is None outside of this project's own checkout."""

    command: str
    time: str
    commit: str | None
    versions: dict[str, str]


def versions() -> dict[str, str]:
    """The versions of this package, of Python and of NumPy."""
    try:
        own = version(DISTRIBUTION)
    except PackageNotFoundError:
        own = "not installed"
    return {DISTRIBUTION: own, "python": platform.python_version(), "numpy": np.__version__}


def of_command(line: Sequence[str]) -> Provenance:
    """The provenance of what the command line `line` makes now."""
    return Provenance(shlex.join(line), datetime.now(UTC).isoformat(timespec="seconds"), commit(), versions())


def commit() -> str | None:
    """The commit of the checkout that this very file is tracked in, with + where it was changed."""
    here = Path(__file__)
    git = ["git", "-C", str(here.parent)]
    try:
        tracked = subprocess.run([*git, "ls-files", "--error-unmatch", here.name], capture_output=True, timeout=10)
        if tracked.returncode != 0:
            return None
        describe = ["describe", "--always", "--abbrev=40", "--dirty=+", "--exclude=*"]
        found = subprocess.run([*git, *describe], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
