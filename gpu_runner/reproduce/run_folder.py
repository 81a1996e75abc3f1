"""The results of a long run as a folder: one JSON line a question, appended as it ends, and where they come from.

A run of hours is killed sooner or later, and whatever was measured until then has to be worth something. Each process
of a run writes a file of its own, so that several can share a folder; a reader takes all files together.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from exact.runtime.atomic_files import save_text
from rheo_core import InvalidInput

Line = dict[str, Any]


@dataclass(frozen=True)
class Shard:
    """The part of a run that one process does: `index` of `count`.

    >>> Shard.read("1/4")
    Shard(index=1, count=4)
    """

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.count < 1 or not 0 <= self.index < self.count:
            raise InvalidInput("shard", f"{self.index}/{self.count}", "I/N with I of 0 to N - 1")

    @classmethod
    def read(cls, text: str) -> Shard:
        """A shard from I/N."""
        index, _, count = text.partition("/")
        if not index.isdecimal() or not count.isdecimal():
            raise InvalidInput("shard", text, "I/N with I of 0 to N - 1, as in 0/4")
        return cls(int(index), int(count))

    @property
    def suffix(self) -> str:
        """What the names of its files end in."""
        return "" if self.count == 1 else f"-{self.index}-of-{self.count}"

    def has(self, number: int) -> bool:
        """Whether question `number` is this process's."""
        return number % self.count == self.index


WHOLE = Shard()
"""A run of one process."""


@dataclass(frozen=True)
class Results:
    """What a folder holds: the arguments that all its files agree on, one source a process and start, the lines.

    `places` says of each line where it stands (file:line).
    """

    arguments: Line
    sources: tuple[Line, ...]
    lines: tuple[Line, ...]
    places: tuple[str, ...]


class RunFolder:
    """A folder being written by one process of a run; `lines` are those that it held before, of all processes.

    Raises `InvalidInput` where it holds results and `resume` is not given, where its arguments are others (naming the
    first that differs), where it cannot be written, or where another process writes the same part.
    """

    def __init__(self, path: Path, arguments: Mapping[str, Any], resume: bool = False, shard: Shard = WHOLE) -> None:
        self.path = path
        self.shard = shard
        self.arguments: Line = json.loads(json.dumps(arguments))
        self._source = path / f"provenance{self.shard.suffix}.json"
        self.lines: tuple[Line, ...] = ()
        self.places: tuple[str, ...] = ()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._check_new(resume)
            for source in path.glob("provenance*.json"):
                check_same(self.arguments, _document(source)["arguments"])
            self._stream = self._answers.open("ab", buffering=0)  # a line is one write: no reader sees half
            self._lock()
            if _files(path):
                held = read(path, mend=self._answers)
                self.lines, self.places = held.lines, held.places
        except OSError as error:
            raise InvalidInput("out", str(path), f"a folder that can be written ({error.strerror})") from None

    @property
    def _answers(self) -> Path:
        return self.path / f"answers{self.shard.suffix}.jsonl"

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def started(self, source: Mapping[str, Any]) -> None:
        """Write where the results come from; a run that is gone on with adds to the list."""
        runs = _document(self._source)["runs"] if self._source.is_file() else []
        document = {"arguments": self.arguments, "runs": [*runs, dict(source)]}
        save_text(self._source, json.dumps(document, indent=2) + "\n", "out")

    @property
    def has_started(self) -> bool:
        """Whether the folder says where its results come from."""
        return any(self.path.glob("provenance*.json"))

    def count_lines(self) -> int:
        """Lines in the folder now, of all processes."""
        return sum(file.read_bytes().count(b"\n") for file in self.path.glob("answers*.jsonl"))

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line for good before returning."""
        left = memoryview(json.dumps(line).encode() + b"\n")
        try:
            while left:
                left = left[self._stream.write(left) :]
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise InvalidInput("out", str(self.path), f"a folder that can be written ({error.strerror})") from None

    def _check_new(self, resume: bool) -> None:
        """Refuse results of another run; parts of other processes with the same count may be being written now."""
        if resume:
            return
        siblings = {f"-{i}-of-{self.shard.count}" for i in range(self.shard.count)} - {self.shard.suffix}
        old = [name for name in _files(self.path) if not any(name.stem.endswith(other) for other in siblings)]
        if old:
            raise InvalidInput("out", str(self.path), f"a folder without results ({old[0].name} is there), or --resume")

    def _lock(self) -> None:
        """Keep a second process from writing the same file, where the system can."""
        try:
            import fcntl
        except ImportError:
            return
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._stream.close()
            raise InvalidInput("out", str(self.path), "a folder that no other process is writing to") from None


def read(path: Path, mend: Path | None = None) -> Results:
    """All that a folder holds; a torn last line is left out with a word on stderr, and cut off in the file `mend`."""
    sources = sorted(path.glob("provenance*.json"))
    if not sources:
        raise InvalidInput("out", str(path), "a folder with results (provenance.json in it)")
    documents = [_document(source) for source in sources]
    for other in documents[1:]:
        check_same(other["arguments"], documents[0]["arguments"])
    files = {file: _lines(file, file == mend) for file in sorted(path.glob("answers*.jsonl"))}
    lines = [line for held in files.values() for line in held]
    places = [f"{file}:{number}" for file, held in files.items() for number in range(1, len(held) + 1)]
    runs = tuple(run for document in documents for run in document["runs"])
    return Results(documents[0]["arguments"], runs, tuple(lines), tuple(places))


def check_same(given: Mapping[str, Any], held: Mapping[str, Any]) -> None:
    """Raise, naming the first argument that differs from the one that results were made with."""
    for name in [*held, *(name for name in given if name not in held)]:
        mine, theirs = given.get(name), held.get(name)
        if mine != theirs:
            raise InvalidInput(name, mine, f"{_shown(theirs)}, which the results in the folder were made with")


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _files(path: Path) -> list[Path]:
    """The files of a folder that hold anything."""
    found = [*path.glob("provenance*.json"), *path.glob("answers*.jsonl")]
    return sorted(file for file in found if file.stat().st_size)


def _document(path: Path) -> Line:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidInput(str(path), "a file that cannot be read", f"the provenance of a run ({error})") from None
    if not isinstance(found, dict) or not {"arguments", "runs"} <= found.keys():
        raise InvalidInput(str(path), "a document without arguments and runs", "the provenance of a run")
    runs = found["runs"]
    if not isinstance(found["arguments"], dict) or not isinstance(runs, list):
        raise InvalidInput(str(path), "arguments or runs of another kind", "an object, and a list")
    if not all(isinstance(run, dict) for run in runs):
        raise InvalidInput(str(path), "a run that is no object", "one object for each start")
    return found


def _lines(path: Path, mend: bool) -> list[Line]:
    """The lines of one file; anything but an object, other than at the end, is refused by file and line."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    found: list[Line] = []
    rows = whole.splitlines(keepends=True)
    for number, row in enumerate(rows, 1):
        try:
            line = json.loads(row)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            if number < len(rows):
                raise InvalidInput(f"{path}:{number}", repr(row[:60]), "one JSON object a line")
            whole = whole[: -len(row)]
            break
        found.append(line)
    if len(whole) < len(content):
        sys.stderr.write(f"{path.name}: a torn last line is dropped (its question is asked again)\n")
        if mend:
            os.truncate(path, len(whole))
    return found
