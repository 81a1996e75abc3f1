"""Columns of an npz file read row by row, so that a recording of any length needs constant memory.

`numpy.load` reads each array of an archive whole; here the header of every member is read and its rows follow in
blocks, all members side by side.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any

import numpy as np

from rheo_core import InvalidInput

BLOCK_BYTES = 2**22
PARTS = ("ids", "probs", "rest")


@contextmanager
def columns(stream: IO[bytes], name: str) -> Iterator[tuple[str | None, int, dict[str, Iterator[Any]]]]:
    """(the text `run`, number of records, field -> its values one by one); `target_probs` and the like become rows."""
    try:
        with zipfile.ZipFile(stream) as archive, ExitStack() as stack:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            run = _text(archive, members.pop("run"), name) if "run" in members else None
            arrays = {key: _Column(stack.enter_context(archive.open(info)), key, name) for key, info in members.items()}
            counts = {key: column.count for key, column in arrays.items()}
            if len(set(counts.values())) > 1:
                raise InvalidInput(name, counts, "arrays of one length, the number of records")
            yield run, max(counts.values(), default=0), _fields(arrays)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:  # or encrypted
        raise InvalidInput(name, str(error), "a whole npz file") from None


def _text(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> str:
    """The one string of a member."""
    if info.file_size > BLOCK_BYTES:
        raise InvalidInput(f"{name}: run", f"{info.file_size} bytes", f"a text of at most {BLOCK_BYTES}")
    try:
        array = np.load(io.BytesIO(archive.read(info)), allow_pickle=False)
    except ValueError as error:
        raise InvalidInput(f"{name}: run", str(error), "one string") from None
    if array.ndim or array.dtype.kind != "U":
        raise InvalidInput(f"{name}: run", f"{array.dtype} of shape {array.shape}", "one string")
    return str(array)


def _fields(arrays: dict[str, _Column]) -> dict[str, Iterator[Any]]:
    fields: dict[str, Iterator[Any]] = {}
    for side in ("target", "draft"):
        parts = {part: arrays[f"{side}_{part}"].values() for part in PARTS if f"{side}_{part}" in arrays}
        if parts:
            fields[side] = _rows(parts)
    used = {f"{side}_{part}" for side in ("target", "draft") for part in PARTS}
    return fields | {key: column.values() for key, column in arrays.items() if key not in used}


def _rows(parts: dict[str, Iterator[Any]]) -> Iterator[dict[str, Any]]:
    while True:
        try:
            yield {part: next(values) for part, values in parts.items()}
        except StopIteration:
            return


class _Column:
    """One member: its header, then its rows."""

    def __init__(self, member: IO[bytes], key: str, name: str) -> None:
        self.member = member
        self.where = f"{name}: {key}"
        try:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, self.fortran, self.dtype = read(member)
        except ValueError as error:
            raise InvalidInput(self.where, str(error), "an array in npy format") from None
        if not self.shape or self.dtype.hasobject or (self.fortran and len(self.shape) > 1):
            raise InvalidInput(self.where, f"{self.dtype} of shape {self.shape}", "a row-major array, one row a record")
        self.count = self.shape[0]

    def values(self) -> Iterator[Any]:
        """The rows one by one; scalars as Python numbers or strings."""
        inner = self.shape[1:]
        size = self.dtype.itemsize * math.prod(inner)
        block = max(1, BLOCK_BYTES // max(size, 1))
        for first in range(0, self.count, block):
            rows = min(block, self.count - first)
            data = self.member.read(rows * size)
            if len(data) != rows * size:
                raise InvalidInput(self.where, f"{first} whole rows", f"{self.count}, as its header says")
            part = np.frombuffer(data, dtype=self.dtype).reshape((rows, *inner))
            yield from part if inner else part.tolist()
