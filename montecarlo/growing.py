"""Lines of a file that is still being written, as they come."""

from __future__ import annotations

import time
from typing import IO

PAUSE = 0.2
"""Seconds between two looks at the file."""


class Growing:
    """A binary file whose end is only reached once nothing was added for `idle` seconds.

    A line is handed on when it is whole, or at the end.
    """

    def __init__(self, stream: IO[bytes], idle: float) -> None:
        self._stream = stream
        self._idle = idle

    def readline(self, limit: int) -> bytes:
        """The next line with its newline, at most `limit` bytes of it; empty at the end."""
        line = b""
        last = time.monotonic()
        while len(line) < limit and not line.endswith(b"\n"):
            more = self._stream.readline(limit - len(line))
            if more:
                line += more
                last = time.monotonic()
            elif time.monotonic() - last >= self._idle:
                break
            else:
                time.sleep(min(PAUSE, self._idle))
        return line
