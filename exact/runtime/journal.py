"""A journal of finished jobs: one JSON line each, written as it comes, so that an interrupted sweep goes on.

The first line names what is swept by a digest; a journal of anything else is refused, and a last line cut short by a
crash is dropped. Values are exact and of a closed set of kinds, so that reading a journal never runs code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from exact.enumeration.rationals import long_numbers
from exact.runtime import atomic_files, streams
from exact.runtime.executors import as_done
from exact.runtime.own_code import digest_of, notes_opened, own_files, project_digest
from exact.runtime.provenance import versions
from rheo_core import InvalidInput

Job = TypeVar("Job")
Result = TypeVar("Result")

FORMAT = 3


class Journal:
    """Finished jobs by key; on disk where a path is given.

    `subject` is the digest of what is swept; `kinds` are the dataclasses that keys and results are made of, besides
    numbers, strings, tuples, lists, mappings and arrays of integers.
    """

    def __init__(self, path: Path | None = None, subject: str = "", kinds: Sequence[type] = ()) -> None:
        if path is not None and atomic_files.SUFFIX:
            path = path.with_name(path.name + atomic_files.SUFFIX)
        self.path = path
        self.files: dict[str, str] = {}
        self.known: dict[Any, Any] = {}
        self._kinds = {kind.__name__: kind for kind in kinds}
        self._head = {"journal": FORMAT, "subject": subject}
        if path is not None:
            self._open(path)

    @long_numbers()
    def _open(self, path: Path) -> None:
        if path.exists() and not path.is_file():
            raise InvalidInput("resume", str(path), "a regular file, or a new one")
        try:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
            whole = [line for line in lines if line.endswith("\n")]
            records = [json.loads(line) for line in whole]
            begun = "".join(lines)
            if records[:1] != [self._head] and (whole or not json.dumps(self._head).startswith(begun)):
                raise InvalidInput("resume", str(path), "the journal of this very sweep as it is now, or a new file")
            for record in records[1:]:
                if "files" in record:
                    self.files |= record["files"]
                else:
                    self.known[_read(record["job"], self._kinds)] = _read(record["result"], self._kinds)
            self._check_files()
        except OSError as error:
            raise InvalidInput("resume", str(path), f"a file that can be read ({error.strerror})") from None
        except InvalidInput:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InvalidInput("resume", str(path), "a journal that this command wrote, or a new file") from None
        if len(whole) < max(1, len(lines)):
            self._save()

    def _check_files(self) -> None:
        """Raise where the user's code or data is not what the results are of."""
        changed = [path for path, digest in self.files.items() if digest_of(path) != digest]
        if self.known and notes_opened():
            changed += [path for path in self._own() if path not in self.files]
        if changed:
            expected = f"a journal of the code and data as they are now ({changed[0]} has changed since), or a new file"
            raise InvalidInput("resume", str(self.path), expected)

    def _own(self) -> dict[str, str]:
        """The user's own files; none where a command runs a method by name."""
        if streams.running() and not notes_opened():
            return {}
        return {path: digest for path, digest in own_files().items() if path != os.path.abspath(self.path or "")}

    def note(self, key: Hashable, result: Any) -> None:
        """Write a finished job; what was noted for it before is replaced."""
        again = key in self.known
        self.known[key] = result
        if self.path is None:
            return
        if again:
            self._save()
            return
        try:
            fresh = {path: digest for path, digest in self._own().items() if path not in self.files}
            self.files |= fresh
            with self.path.open("a", encoding="utf-8") as file:
                file.write((json.dumps({"files": fresh}) + "\n" if fresh else "") + self._line(key, result))
        except OSError as error:
            raise InvalidInput("resume", str(self.path), f"a file that can be written ({error.strerror})") from None

    def _save(self) -> None:
        assert self.path is not None
        lines = [self._line(key, result) for key, result in self.known.items()]
        if self.files:
            lines.insert(0, json.dumps({"files": self.files}) + "\n")
        text = "".join([json.dumps(self._head) + "\n", *lines])
        atomic_files.write_now(self.path, text.encode(), "resume")

    @long_numbers()
    def _line(self, key: Hashable, result: Any) -> str:
        return json.dumps({"job": _written(key), "result": _written(result)}) + "\n"


def subject(*things: Any) -> str:
    """A digest of what is swept, from the repr of things that have one, of this project and of versions."""
    return hashlib.sha256(repr((project_digest(), versions(), things)).encode(errors="backslashreplace")).hexdigest()


def resumed(
    function: Callable[[Job], Result],
    jobs: Mapping[Any, Job],
    executor: Executor | None = None,
    journal: Journal | None = None,
) -> Generator[Result, None, None]:
    """`function(job)` for each job by key, in their order; those that the journal knows are not done again.

    Each is noted as soon as it is done, before those that come earlier in the order.
    """
    journal = journal or Journal()
    fresh = [key for key in jobs if key not in journal.known]
    with closing(as_done(function, [jobs[key] for key in fresh], executor)) as done:
        for key in jobs:
            while key not in journal.known:
                number, result = next(done)
                journal.note(fresh[number], result)
            yield journal.known[key]


def _written(value: Any) -> Any:
    """A value as JSON: a list stands for a tuple, and an object says what it is."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, list):
        return {"list": [_written(each) for each in value]}
    if isinstance(value, Mapping):
        return {"map": [[_written(key), _written(each)] for key, each in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind == "i":
        return {"integers": value.tolist()}
    if is_dataclass(value) and not isinstance(value, type):
        held: Any = value.__getstate__()  # what would be pickled: without functions, where the class says so
        return {type(value).__name__: [_written(held[field.name]) for field in fields(value)]}
    raise TypeError(f"{type(value).__name__} has no place in a journal")


def _read(value: Any, kinds: Mapping[str, type]) -> Any:
    """What `_written` wrote."""
    if isinstance(value, list):
        return tuple(_read(each, kinds) for each in value)
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "fraction":
        return Fraction(held)
    if kind == "integers":
        return np.array(held, dtype=np.int64)
    if kind == "map":
        return {_read(key, kinds): _read(each, kinds) for key, each in held}
    parts = [_read(each, kinds) for each in held]
    if kind == "list":
        return parts
    made = kinds[kind]
    return made(**dict(zip([field.name for field in fields(made)], parts, strict=True)))
