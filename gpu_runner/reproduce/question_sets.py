"""The six question sets of the paper's tables, in the layout that the public EAGLE repository uses.

A set is a folder NAME with one file, question.jsonl, one question a line. None of them is shipped: their licences
differ and one does not allow it, so a user points at a folder of sets, and what is read from there is checked line by
line. A question left out in silence would move a mean without anyone noticing.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_runner.measure.prompts import QUESTIONS as BUILT_IN
from gpu_runner.measure.prompts import Question
from rheo_core import InvalidInput

REPOSITORY = "https://github.com/SafeAILab/EAGLE"
COMMIT = "cb7e084"
FILE = "question.jsonl"
QUESTIONS = 80
"""Questions in each of the six sets."""


@dataclass(frozen=True)
class SetInfo:
    """A question set: the paper's column titles, where its texts come from, their licence, turns, checksum.

    `columns` are the titles of the column in Table 2 and in Table 3; `sha256` that of the file at `COMMIT`.
    """

    title: str
    columns: tuple[str, str]
    source: str
    licence: str
    turns: int
    sha256: str


SETS: dict[str, SetInfo] = {
    "alpaca": SetInfo(
        "Alpaca",
        ("Alpaca", "Alpaca"),
        "Stanford Alpaca, instructions",
        "CC BY-NC 4.0",
        1,
        "8ad3e5a7fc61b88d8e25edb81a52a2ce00a04494d5694c122cb11a5cc26a00df",
    ),
    "gsm8k": SetInfo(
        "GSM8K",
        ("Math", "GSM8K"),
        "GSM8K, word problems of primary-school arithmetic",
        "MIT",
        1,
        "a55920b2f2aac724241124c59e5b8e8168dbbeb2ab0fdbee17d5b0ab6db5ff27",
    ),
    "humaneval": SetInfo(
        "HumanEval",
        ("Code", "HumanEval"),
        "HumanEval, Python functions to complete",
        "MIT",
        1,
        "ce0244e2b228339e9a11afc63a151719beede1e389fdaec7cd9751d33902180e",
    ),
    "mt_bench": SetInfo(
        "MT-bench",
        ("MT", "MT-bench"),
        "MT-bench, conversations of two turns",
        "Apache-2.0 / CC BY 4.0",
        2,
        "119565adbab82227089cefdb44c8d7e2cf04dc0a0ec233634c82e7d4e2a944f7",
    ),
    "qa": SetInfo(
        "Natural Questions",
        ("QA", "NaturalQ"),
        "Natural Questions, questions put to a search engine",
        "CC BY-SA 3.0",
        1,
        "04252e41ab00bcc03b11940b4a3766cf40ae0b76a09c4f56968ba952f0b029f3",
    ),
    "sum": SetInfo(
        "CNN/DailyMail",
        ("Sum", "CNN/DM"),
        "CNN/DailyMail, articles to summarise",
        "the articles are their publishers'",
        1,
        "916876f0c42f938a944de96eed16e51425f29f27438cca5c9ef4737c0fedf771",
    ),
}


@dataclass(frozen=True)
class SetQuestion:
    """One question: its id in the file, the user's turns, its category (empty where the file gives none)."""

    id: int | str
    turns: Question
    category: str


def set_path(folder: Path, name: str) -> Path:
    """The file of a set; raises where it is not there, naming the sets that are."""
    path = folder / name / FILE
    if not path.is_file():
        there = sorted(found.parent.name for found in folder.glob(f"*/{FILE}"))
        expected = f"{name}/{FILE} in it" + (f" (it has {', '.join(there)})" if there else "")
        raise InvalidInput("data", str(folder), f"{expected}; `gpu_runner data` says where the six sets come from")
    return path


def load_set(folder: Path | str, name: str) -> tuple[SetQuestion, ...]:
    """All questions of the set `folder`/`name`, in their order; the first bad line is refused by file and number.

    Any set in this layout will do, not only the six.
    """
    path = set_path(Path(folder), name)
    questions: dict[int | str, SetQuestion] = {}
    for number, line in lines(path):
        question = parse(line, f"{path}:{number}")
        if question.id in questions:
            raise InvalidInput(f"{path}:{number}: question_id", question.id, "an id of its own for each question")
        questions[question.id] = question
    if not questions:
        raise InvalidInput(str(path), "no questions", "one question a line")
    return tuple(questions.values())


def asked_for(
    prompts: Sequence[str] | None, data: Path | None, sets: Sequence[str] | None, count: int
) -> list[Question]:
    """The questions of a command line: one's own, those of sets, or the built-in ones; the first `count` (0: all).

    `count` is of each set; the sets take turns, so that a short run sees all of them.
    """
    if (data is None) != (not sets):
        raise InvalidInput(
            "data", "nothing" if data is None else str(data), "--data DIR and --sets NAME, both or neither"
        )
    if prompts and data is not None:
        raise InvalidInput("prompt", prompts[0], "--prompt or --data, one at a time")
    held: list[list[Question]]
    if prompts:
        held = [[(prompt,) for prompt in prompts]]
    elif data is None:
        held = [list(BUILT_IN)]
    else:
        held = [[question.turns for question in load_set(data, name)] for name in sets or ()]
    fewest = min(map(len, held))
    if not 0 <= count <= fewest:
        raise InvalidInput("questions", count, f"1 to {fewest}, or 0 for all")
    turns = itertools.chain.from_iterable(itertools.zip_longest(*(each[: count or None] for each in held)))
    return [each for each in turns if each is not None]


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(number, line) of a file, blank lines left out."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(str(path), error.strerror, "a file that can be read") from None
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            yield number, line


def parse(line: bytes, where: str) -> SetQuestion:
    """The question on one line; `where` names the line in messages.

    >>> parse(b'{"question_id": 7, "turns": ["Hello?"]}', "set:1")
    SetQuestion(id=7, turns=('Hello?',), category='')
    """
    try:
        given: Any = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # of the encoding or of the JSON, or nested too deeply
        raise InvalidInput(where, _shortened(line), f"a JSON object in UTF-8 ({error})") from None
    if not isinstance(given, dict):
        raise InvalidInput(where, _shortened(line), "a JSON object")
    number, turns, category = given.get("question_id"), given.get("turns"), given.get("category", "")
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise InvalidInput(f"{where}: question_id", number, "an int or a string")
    if not isinstance(turns, list) or not turns:
        raise InvalidInput(f"{where}: turns", turns, "a list of at least one text")
    for turn, text in enumerate(turns):
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"{where}: turns[{turn}]", repr(text), "a text that is not empty")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise InvalidInput(f"{where}: turns[{turn}]", repr(text), "Unicode text (half a surrogate pair is none)")
    if not isinstance(category, str):
        raise InvalidInput(f"{where}: category", category, "a string")
    return SetQuestion(number, tuple(turns), category)


def _shortened(line: bytes) -> str:
    text = line.decode("utf-8", errors="replace").strip()
    return text if len(text) <= 60 else f"{text[:57]}..."
