"""Recorded runs: one record a token, as JSON lines or npz, plain or gzipped (docs/recording.md has the format).

A record is read as a row of cells: the listed tokens, and one more cell for all the others where the row is given by
its best tokens. Everything that the audit computes is a function of the cell, so a shortened row costs power but
never validity. Files are read in chunks; a bad record is refused by file and line.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.pairs import Ints
from rheo_core import InvalidInput

Floats = NDArray[np.float64]

TOLERANCE = 1e-4

FIELDS = ("token", "target", "draft", "cycle", "position", "request")
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

    def best(self, count: int) -> Ints:
        """The `count` most probable listed tokens, equal ones by place."""
        order = np.argsort(-self.probs, kind="stable")[:count]
        return order if self.ids is None else self.ids[order]


@dataclass(frozen=True)
class Record:
    """One emitted token and the rows it is held against; `where` names its file and line."""

    where: str
    token: int
    target: Row
    draft: Row | None
    cycle: int | None
    position: int | None
    request: str | None


def read(path: Path | str, tolerance: float = TOLERANCE, unused: set[str] | None = None) -> Iterator[Record]:
    """The records of one file ("-": standard input), in order. Names of fields not used are added to `unused`."""
    file = Path(path)
    count = 0
    with _opened(file) as (stream, is_npz):
        records = _read_npz(stream, file.name) if is_npz else _read_lines(stream, file.name)
        for where, fields in records:
            count += 1
            yield _record(where, fields, tolerance, unused if unused is not None else set())
    if not count:
        raise InvalidInput(str(path), "no records", "JSON lines or npz, one record a token")


@contextmanager
def _opened(file: Path) -> Iterator[tuple[IO[bytes], bool]]:
    """(the file, whether it is npz), through gzip where its first bytes say so; else refused in one line."""
    try:
        with ExitStack() as stack:
            stream: Any = sys.stdin.buffer if str(file) == "-" else stack.enter_context(file.open("rb"))
            zipped = stream.peek(2)[:2] == b"\x1f\x8b"
            if zipped:
                stream = stack.enter_context(gzip.open(stream))
            is_npz = stream.peek(2)[:2] == b"PK"
            if is_npz and (zipped or not stream.seekable()):  # its members are read side by side
                unpacked = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(stream, unpacked)
                unpacked.seek(0)
                stream = unpacked
            yield stream, is_npz
    except InvalidInput:
        raise
    except (OSError, EOFError) as error:
        got = f"{file} ({str(getattr(error, 'strerror', None) or error).lower()})"
        raise InvalidInput("FILE", got, "a readable file (JSON lines or npz, gzipped or not)") from None


def _read_lines(stream: IO[bytes], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            fields = json.loads(line)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(where, line[:60].decode(errors="replace"), f"one JSON object ({error})") from None
        if not isinstance(fields, dict):
            raise InvalidInput(where, fields, "one JSON object a line")
        yield where, fields


def _read_npz(stream: IO[bytes], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from montecarlo.npz import columns

    with columns(stream, name) as (count, arrays):
        for number in range(count):
            yield f"{name}: record {number}", {key: next(values) for key, values in arrays.items()}


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
    return Record(
        where=where,
        token=token,
        target=target,
        draft=None if draft is None else _draft_row(f"{where}: draft", draft, target, tolerance),
        cycle=_optional_count(where, "cycle", fields),
        position=_optional_count(where, "position", fields),
        request=request,
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
    if abs(mass - 1) > tolerance:
        raise InvalidInput(where, f"a sum of {mass:.9g}", f"1 within {tolerance:g}")
    return Row(ids, probs, rest)


def _numbers(where: str, given: Any) -> Floats:
    try:
        row = np.asarray(given)
    except ValueError:
        row = np.empty(0)
    if row.ndim != 1 or not len(row) or row.dtype.kind not in "iuf":
        raise InvalidInput(where, given, "a non-empty list of numbers")
    bad = np.flatnonzero(~((row >= 0) & (row <= 1 + TOLERANCE)))
    if len(bad):
        raise InvalidInput(f"{where}[{bad[0]}]", row[bad[0]].item(), "a probability")
    return row.astype(np.float64)


def _ids(where: str, given: Any, count: int) -> Ints:
    ids = np.asarray(given)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(ids) != count:
        raise InvalidInput(where, given, f"a list of {count} token ids, one for each of probs")
    if (ids < 0).any() or len(np.unique(ids)) != count:
        raise InvalidInput(where, given, "distinct ids of at least 0")
    return ids.astype(np.int64)


def _count(where: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InvalidInput(where, value, "an int of at least 0")
    return int(value)


def _optional_count(where: str, name: str, fields: Mapping[str, Any]) -> int | None:
    value = fields.get(name)
    return None if value is None else _count(f"{where}: {name}", value)


class Writer:
    """Writes records as JSON lines, gzipped where the name ends in .gz; a context manager.

    `target` and `draft` are whole rows [V], or (ids, probs, rest).
    """

    def __init__(self, path: Path | str) -> None:
        file = Path(path)
        opened: IO[Any] = gzip.open(file, "wb") if file.suffix == ".gz" else file.open("wb")  # type: ignore[assignment]  # noqa: SIM115
        self._stream = opened

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, token: int, target: Any, draft: Any = None, **fields: Any) -> None:
        """Write one record; `fields` are cycle, position and request."""
        record = {"token": int(token), "target": _listed(target)}
        if draft is not None:
            record["draft"] = _listed(draft)
        self._stream.write((json.dumps(record | fields) + "\n").encode())


def _listed(row: Any) -> dict[str, Any]:
    if isinstance(row, tuple):
        ids, probs, rest = row
        return {"ids": np.asarray(ids).tolist(), "probs": np.asarray(probs).tolist(), "rest": float(rest)}
    return {"probs": np.asarray(row).tolist()}
