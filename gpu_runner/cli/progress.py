"""Long commands: how far one has come (a bar on a terminal, a line a minute in a log), and how one is ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from exact.cli import options as shared

MINUTE = 60.0


class Progress:
    """Counts `total` pieces of work, `done` of them before; a context manager. `quiet` shows nothing."""

    def __init__(self, total: int, done: int = 0, quiet: bool = False) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TimeRemainingColumn(),
        )
        self._bar = shared.progress(not quiet, *columns)
        self._task = self._bar.add_task("answering", total=total, completed=done)
        self._lines = not quiet and not shared.err.is_terminal
        self._total, self._done, self._before = total, done, done
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self, description: str) -> None:
        """One more piece is done."""
        self.reach(self._done + 1, description)

    def reach(self, done: int, description: str) -> None:
        """So many pieces are done."""
        self._done = done
        self._bar.update(self._task, completed=done, description=description)
        if self._lines and time.monotonic() - self._said >= MINUTE:
            self._said = time.monotonic()
            each = (self._said - self._began) / (self._done - self._before)
            left = each * (self._total - self._done) / MINUTE
            shared.err.print(f"{self._done}/{self._total} done, about {left:.0f} min left", highlight=False)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM (of torchrun, of a batch system) ends a run as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
