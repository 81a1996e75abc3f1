"""Recorded runs: one record a token, as JSON lines or npz, plain or gzipped (docs/recording.md has the format).

A record is read as a row of cells: the listed tokens, and one more cell for all the others where the row is given by
its best tokens. Everything that the audit computes is a function of the cell, so a shortened row costs power but
never validity. Files are read line by line; a bad record is refused by file and line.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.growing import Growing
from montecarlo.pairs import Ints
from rheo_core import InvalidInput

Floats = NDArray[np.float64]

TOLERANCE = 1e-4

ROUNDING = 1e-9
"""A shortened row whose numbers miss 1 by more than this was rounded: what it does not list may have that much."""

LINE_BYTES = 2**26
LARGEST = 2**53

FIELDS = ("token", "target", "draft", "cycle", "position", "request", "prompt", "seed", "stop")
STOPS = ("end", "length", "stop", "abort")
"""Why a text ends: an end token, the length limit, a stop string, or from outside."""
REFUSED: Mapping[str, str] = {
    "kind": "how this token was emitted",
    "accepted": "how this token was emitted",
    "coin": "the coins that decided this token",
    "tree": "the realised draft tree",
    "slot": "the realised draft tree",
}


@dataclass(frozen=True)
class Row:
    """A recorded law: `ids` None means every token in order; `rest` is the mass of all unlisted ones."""

    ids: Ints | None
    probs: Floats
    rest: float

    def cells(self) -> Floats:
        """Probabilities of the cells: the listed tokens, then the rest where the row is shortened; they sum to 1."""
        p: Floats = self.probs if self.ids is None else np.append(self.probs, self.rest)
        law: Floats = p / p.sum()
        return law

    def cell(self, token: int) -> int:
        """The cell of a token; -1 where the row has no room for it."""
        if self.ids is None:
            return token if token < len(self.probs) else -1
        found = np.flatnonzero(self.ids == token)
        return int(found[0]) if len(found) else len(self.probs)

    def places(self, tokens: Iterable[int]) -> Ints:
        """The cells of tokens that the row lists; -1 for the others."""
        asked = np.array(list(tokens), dtype=np.int64)
        if self.ids is None:
            return np.where(asked < len(self.probs), asked, -1)
        same = asked[:, None] == self.ids
        return np.where(same.any(axis=1), same.argmax(axis=1), -1)

    def best(self, count: int) -> Ints:
        """The `count` most probable listed tokens, equal ones by place."""
        order = np.argsort(-self.probs, kind="stable")[:count]
        return order if self.ids is None else self.ids[order]


@dataclass(frozen=True)
class Record:
    """One emitted token and the rows it is held against; `where` names its file and line.

    `seed` of the request's draws; `stop` why the text ends with this token (one of STOPS), None where it goes on;
    `end` the ids that end a text, as the run says; `source` counts the files, whose requests are told apart.
    """

    where: str
    token: int
    target: Row
    draft: Row | None
    cycle: int | None
    position: int | None
    request: str | None
    seed: int | None = None
    stop: str | None = None
    end: tuple[int, ...] = ()
    source: str = ""


def read(
    path: Path | str, tolerance: float = TOLERANCE, unused: set[str] | None = None, idle: float | None = None
) -> Iterator[Record]:
    """The records of one file ("-": standard input), in order. Names of fields not used are added to `unused`.

    `idle`: the file may still grow, and ends when nothing was added for so many seconds.
    """
    file = Path(path)
    count = 0
    end: tuple[int, ...] = ()
    with _opened(file, wait=idle) as (stream, is_npz):
        records = _read_npz(stream, file.name) if is_npz else _read_lines(stream, file.name)
        for where, fields in records:
            if "run" in fields:
                end = _run(where, fields)
                continue
            count += 1
            record = _record(where, fields, tolerance, unused if unused is not None else set())
            _check(record, end)
            yield replace(record, end=end, source=str(path))
    if not count:
        raise InvalidInput(str(path), "no records", "JSON lines or npz, one record a token")


@contextmanager
def _opened(file: Path, wait: float | None = None) -> Iterator[tuple[IO[bytes] | Growing, bool]]:
    """(the file, whether it is npz), through gzip where its first bytes say so; else refused in one line."""
    try:
        with ExitStack() as stack:
            stream: Any = sys.stdin.buffer if str(file) == "-" else stack.enter_context(file.open("rb"))
            zipped = stream.peek(2)[:2] == b"\x1f\x8b"
            if wait is not None and (zipped or stream.peek(2)[:2] == b"PK"):
                raise InvalidInput("follow", str(file), "JSON lines as they are, neither gzipped nor npz")
            if zipped:
                stream = stack.enter_context(gzip.open(stream))
            is_npz = stream.peek(2)[:2] == b"PK"
            if is_npz and (zipped or not stream.seekable()):  # its members are read side by side
                unpacked = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(stream, unpacked)
                unpacked.seek(0)
                stream = unpacked
            yield (stream if wait is None else Growing(stream, wait)), is_npz
    except InvalidInput:
        raise
    except (OSError, EOFError, zlib.error) as error:
        got = f"{file} ({str(getattr(error, 'strerror', None) or error).lower()})"
        raise InvalidInput("FILE", got, "a readable file (JSON lines or npz, gzipped or not)") from None


def _read_lines(stream: IO[bytes] | Growing, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    number = 0
    while line := stream.readline(LINE_BYTES + 1):
        number += 1
        where = f"{name}:{number}"
        if len(line) > LINE_BYTES:
            raise InvalidInput(where, f"a line of more than {LINE_BYTES} bytes", "one record a line")
        if line.strip():
            yield where, _object(where, line)


def _object(where: str, text: str | bytes) -> Mapping[str, Any]:
    """The JSON object of a line, every key once."""
    try:
        fields = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:  # numbers of too many digits and bad UTF-8 are ValueErrors too
        raise InvalidInput(where, repr(text[:60]), f"one JSON object ({error})") from None
    if not isinstance(fields, dict):
        raise InvalidInput(where, fields, "one JSON object a line")
    return fields


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} twice")
    return fields


def _read_npz(stream: Any, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from montecarlo.npz import columns

    with columns(stream, name) as (run, count, arrays):
        if run is not None:
            yield f"{name}: run", {"run": _object(f"{name}: run", run)}
        for number in range(count):
            yield f"{name}: record {number}", {key: next(values) for key, values in arrays.items()}


def _run(where: str, fields: Mapping[str, Any]) -> tuple[int, ...]:
    """The end ids of a run's header; its other entries are the recorder's own."""
    run = fields["run"]
    if len(fields) > 1 or not isinstance(run, Mapping):
        raise InvalidInput(f"{where}: run", run, "an object about the run, on a line of its own")
    end = run.get("end", [])
    return tuple(_ids(f"{where}: run.end", end, len(end) if isinstance(end, list) else -1).tolist()) if end else ()


def _check(record: Record, end: tuple[int, ...]) -> None:
    """Raise where a text is said to end by an end token and ends by another: end tokens were left out."""
    if record.stop == "end" and end and record.token not in end:
        raise InvalidInput(
            f"{record.where}: stop",
            f"end after token {record.token}",
            f"one of the run's end ids {list(end)} as its last token: record end tokens like all others",
        )


def _record(where: str, fields: Mapping[str, Any], tolerance: float, unused: set[str]) -> Record:
    for name in fields:
        if name in REFUSED:
            raise InvalidInput(
                f"{where}: {name}",
                fields[name],
                f"no such field: conditioning on {REFUSED[name]} raises false alarms on lossless engines",
            )
    unused.update(name for name in fields if name not in FIELDS)
    for name in ("token", "target"):
        if name not in fields:
            raise InvalidInput(f"{where}: {name}", "nothing", "this field in every record")
    target = _row(f"{where}: target", fields["target"], tolerance)
    draft = fields.get("draft")
    token = _count(f"{where}: token", fields["token"])
    if target.ids is None and token >= len(target.probs):
        raise InvalidInput(f"{where}: token", token, f"an id below {len(target.probs)}, the length of the target row")
    request = fields.get("request")
    if request is not None and not isinstance(request, str):
        raise InvalidInput(f"{where}: request", request, "a string")
    stop = fields.get("stop")
    stop = None if stop == "" else stop  # an npz has an entry for every token
    if stop is not None and stop not in STOPS:
        raise InvalidInput(f"{where}: stop", stop, f"why the text ends with this token: one of {', '.join(STOPS)}")
    return Record(
        where=where,
        token=token,
        target=target,
        draft=None if draft is None else _draft_row(f"{where}: draft", draft, target, tolerance),
        cycle=_optional_count(where, "cycle", fields),
        position=_optional_count(where, "position", fields),
        request=request,
        seed=_optional_count(where, "seed", fields),
        stop=stop,
    )


def _draft_row(where: str, given: Any, target: Row, tolerance: float) -> Row:
    row = _row(where, given, tolerance)
    if row.ids is None and target.ids is None and len(row.probs) != len(target.probs):
        raise InvalidInput(
            f"{where}.probs", f"{len(row.probs)} entries", f"{len(target.probs)}, in target ids, as in the target row"
        )
    return row


def _row(where: str, given: Any, tolerance: float) -> Row:
    if isinstance(given, np.ndarray):
        given = {"probs": given}
    if not isinstance(given, Mapping) or "probs" not in given:
        raise InvalidInput(where, given, 'an object {"probs": [...]} or {"ids": [...], "probs": [...], "rest": x}')
    probs = _numbers(f"{where}.probs", given["probs"])
    ids = None
    rest = 0.0
    if given.get("ids") is not None:
        ids = _ids(f"{where}.ids", given["ids"], len(probs))
        rest = float(_numbers(f"{where}.rest", [given.get("rest", 0)])[0])
    elif given.get("rest"):
        raise InvalidInput(f"{where}.rest", given["rest"], "ids beside it: without them probs is the whole vocabulary")
    mass = float(probs.sum()) + rest
    missing = abs(mass - 1)
    if missing > tolerance:
        raise InvalidInput(where, f"a sum of {mass:.9g}", f"1 within {tolerance:g}")
    return Row(ids, probs, rest if ids is None or missing <= ROUNDING else max(rest, missing))


def _numbers(where: str, given: Any) -> Floats:
    row = _array(given)
    if row.ndim != 1 or not len(row) or row.dtype.kind not in "iuf":
        raise InvalidInput(where, given, "a non-empty list of numbers")
    bad = np.flatnonzero(~((row >= 0) & (row <= 1 + TOLERANCE)))
    if len(bad):
        raise InvalidInput(f"{where}[{bad[0]}]", row[bad[0]].item(), "a probability")
    return row.astype(np.float64)


def _array(given: Any) -> NDArray[Any]:
    """A list as an array; empty where it is uneven or holds truth values, which NumPy would take for numbers."""
    if isinstance(given, list) and bool in set(map(type, given)):
        return np.empty(0)
    try:
        return np.asarray(given)
    except ValueError:
        return np.empty(0)


def _ids(where: str, given: Any, count: int) -> Ints:
    ids = _array(given)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(ids) != count:
        raise InvalidInput(where, given, f"a list of {count} token ids, one for each of probs")
    if (ids < 0).any() or (ids >= LARGEST).any() or len(np.unique(ids)) != count:
        raise InvalidInput(where, given, f"distinct ids of at least 0 and below {LARGEST}")
    return ids.astype(np.int64)


def _count(where: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidInput(where, value, "an int of at least 0")
    if value >= LARGEST:
        raise InvalidInput(where, value, f"an int below {LARGEST}")
    return int(value)


def _optional_count(where: str, name: str, fields: Mapping[str, Any]) -> int | None:
    value = fields.get(name)
    return None if value is None else _count(f"{where}: {name}", value)


class Writer:
    """Writes records as JSON lines, gzipped where the name ends in .gz; a context manager.

    `target` and `draft` are whole rows [V], (ids, probs, rest), or objects {"ids": ..., "probs": ..., "rest": ...};
    `run` is what holds for the whole run (docs/recording.md). What the audit would refuse is refused at once.
    """

    def __init__(self, path: Path | str, **run: Any) -> None:
        file = Path(path)
        opened: IO[Any] = gzip.open(file, "wb") if file.suffix == ".gz" else file.open("wb")  # type: ignore[assignment]  # noqa: SIM115
        self._stream = opened
        self._end: tuple[int, ...] = ()
        self._written = 0
        self._name = file.name
        if run:
            self._end = _run(self._name, {"run": run})
            self._stream.write((json.dumps({"run": run}) + "\n").encode())

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, token: int, target: Any, draft: Any = None, **fields: Any) -> None:
        """Write one record; `fields` are cycle, position, request, prompt, seed and stop."""
        record = {"token": token if isinstance(token, bool) else int(token), "target": _listed(target)} | fields
        if draft is not None:
            record["draft"] = _listed(draft)
        _check(_record(f"{self._name}: record {self._written}", record, TOLERANCE, set()), self._end)
        self._written += 1
        self._stream.write((json.dumps(record) + "\n").encode())


def _listed(row: Any) -> dict[str, Any]:
    if isinstance(row, tuple) and len(row) == 3:
        row = dict(zip(("ids", "probs", "rest"), row, strict=True))
    named = row if isinstance(row, Mapping) else {"probs": row}
    return {key: value if value is None else np.asarray(value).tolist() for key, value in named.items()}
