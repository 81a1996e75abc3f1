"""Counts on disk, so that a long simulation that was interrupted goes on where it stopped.

The file names what it counts by a digest of the method, the shape, the seed and the laws of all checks; counts of
anything else are refused. It is rewritten whole, every few seconds and at the end.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import numpy as np

from exact.files import save_text
from montecarlo.checks import Suite, Tally
from rheo_core import InvalidInput

FORMAT = 1
SECONDS = 5.0


class Checkpoint:
    """The counts so far of one suite; nothing is kept where `path` is None."""

    def __init__(self, suite: Suite, path: Path | None) -> None:
        self.path = path
        self._head = {"format": FORMAT, "subject": digest(suite)}
        self._sizes = {name: len(law) for name, law in suite.laws.items()}
        self._depths = suite.shape.depth + 2
        self._written = time.monotonic()

    def load(self) -> Tally | None:
        """The counts of an earlier run; None where there are none yet."""
        if self.path is None or not self.path.exists():
            return None
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
            head = {key: document[key] for key in self._head}
            tables = {name: np.array(counts, dtype=np.int64) for name, counts in document["tables"].items()}
            tally = Tally(np.array(document["emitted"], dtype=np.int64), tables)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput("resume", str(self.path), "a file that a simulation wrote") from None
        sizes = {name: len(counts) for name, counts in tables.items()}
        if head != self._head or sizes != self._sizes or len(tally.emitted) != self._depths:
            raise InvalidInput("resume", str(self.path), "counts of this method, models, shape and seed, or a new file")
        return tally

    def save(self, tally: Tally, *, now: bool = False) -> None:
        """Write the counts if some seconds have passed, or now."""
        if self.path is None or (not now and time.monotonic() - self._written < SECONDS):
            return
        tables = {name: counts.tolist() for name, counts in tally.tables.items()}
        document = self._head | {"emitted": tally.emitted.tolist(), "tables": tables}
        save_text(self.path, json.dumps(document) + "\n", "resume")
        self._written = time.monotonic()


def digest(suite: Suite) -> str:
    """What a suite counts, as a hash."""
    lead = getattr(suite.method, "lead", None)
    named = (suite.method.name, lead, suite.shape, suite.uniforms.seed, suite.prefix, suite.length, suite.repeated)
    seen = hashlib.sha256(repr(named).encode())
    for name, law in sorted(suite.laws.items()):
        seen.update(name.encode())
        seen.update(law.tobytes())
    return seen.hexdigest()
