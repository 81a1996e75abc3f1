"""Question sets as files: fetched from where they are public, and checked whole before hours are spent on them.

Reading a set stops at its first bad line; a check names all of them, and what no single line shows: a question asked
twice, a turn or a question that is missing. What is fetched must have the pinned checksum.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from exact.runtime.atomic_files import save_bytes
from gpu_runner.reproduce.question_sets import COMMIT, FILE, QUESTIONS, SETS, SetQuestion, lines, parse
from rheo_core import InvalidInput

PUBLIC = f"https://raw.githubusercontent.com/SafeAILab/EAGLE/{COMMIT}/eagle/data"
TIMEOUT = 30.0
LARGEST = 16 * 2**20


@dataclass(frozen=True)
class Checked:
    """What a set's file holds: questions that could be read, their turns in all, every problem by line.

    `pinned` says whether it is, byte for byte, the file whose checksum is pinned (None: a set that is not one of six).
    """

    name: str
    questions: int
    turns: int
    problems: tuple[str, ...]
    pinned: bool | None


def check_folder(folder: Path) -> list[Checked]:
    """Every set that a folder holds, the six first; raises where it holds none."""
    names = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
    if not names:
        raise InvalidInput("check", str(folder), f"a folder with NAME/{FILE} in it")
    known = [name for name in SETS if name in names]
    return [check_set(folder, name) for name in [*known, *(name for name in names if name not in SETS)]]


def check_set(folder: Path, name: str) -> Checked:
    """One set: the lines that cannot be read, repeated ids and texts, turns and counts other than the set's own."""
    path = folder / name / FILE
    info = SETS.get(name)
    problems: list[str] = []
    found: list[SetQuestion] = []
    ids: dict[int | str, int] = {}
    texts: dict[tuple[str, ...], int] = {}
    for number, line in lines(path):
        where = f"{path}:{number}"
        try:
            question = parse(line, where)
        except InvalidInput as error:
            problems.append(str(error))
            continue
        found.append(question)
        if question.id in ids:
            problems.append(f"{where}: question_id {question.id} is that of line {ids[question.id]}")
        elif question.turns in texts:
            problems.append(f"{where}: the same turns as on line {texts[question.turns]}")
        if info is not None and len(question.turns) != info.turns:
            problems.append(f"{where}: {_count(len(question.turns), 'turn')}, where {info.title} has {info.turns}")
        ids.setdefault(question.id, number)
        texts.setdefault(question.turns, number)
    if info is not None and len(found) != QUESTIONS:
        problems.append(
            f"{path}: {_count(len(found), 'question')} that can be read, where {info.title} has {QUESTIONS}"
        )
    if not found and info is None:
        problems.append(f"{path}: no question that can be read")
    pinned = None if info is None else hashlib.sha256(path.read_bytes()).hexdigest() == info.sha256
    return Checked(name, len(found), sum(len(question.turns) for question in found), tuple(problems), pinned)


def fetch_all(folder: Path, names: list[str], base: str = PUBLIC) -> Iterator[tuple[str, str]]:
    """(name, what was done) for each set, as it is done; a set that is there with the right bytes is left alone."""
    for name in names:
        if name not in SETS:
            raise InvalidInput("set", name, f"one of {', '.join(SETS)}")
    for name in names:
        path = folder / name / FILE
        if path.is_file():
            _check_sum(path.read_bytes(), name, str(path))
            yield name, "already there"
            continue
        content = _download(f"{base.rstrip('/')}/{name}/{FILE}")
        _check_sum(content, name, f"{base.rstrip('/')}/{name}/{FILE}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput("fetch", str(folder), f"a folder that can be written ({error.strerror})") from None
        save_bytes(path, content, "fetch")
        yield name, f"{len(content):,} bytes"


def _download(url: str) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise InvalidInput("from", url, "an http or https address")
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            content: bytes = answer.read(LARGEST + 1)
    except (OSError, HTTPException, ValueError) as error:
        reason = error if isinstance(error, urllib.error.HTTPError) else getattr(error, "reason", error)
        raise InvalidInput("fetch", url, f"an address that can be read here ({reason})") from None
    if len(content) > LARGEST:
        raise InvalidInput("fetch", url, f"a file of at most {LARGEST:,} bytes")
    return content


def _check_sum(content: bytes, name: str, where: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != SETS[name].sha256:
        expected = f"{SETS[name].sha256}, the set at commit {COMMIT}"
        raise InvalidInput(f"{where}: sha256", found, expected)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
