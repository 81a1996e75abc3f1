"""Training text: one JSON object a line, checked before anything is run.

A line that cannot be used is an error that names the file and the line: a set that is half read trains a worse head,
and nobody would know why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_runner.model.chat import Message
from rheo_core import InvalidInput

FORMS = "messages, conversations, question (and answer), turns, or text"
ROLES = {"system": "system", "user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant"}


@dataclass(frozen=True)
class Line:
    """One line of a training file: a conversation, or running text (then there are no messages)."""

    number: int
    messages: tuple[Message, ...] = ()
    text: str = ""

    @property
    def turns(self) -> int:
        """What the user says, counted."""
        return sum(message["role"] == "user" for message in self.messages)

    @property
    def answered(self) -> bool:
        """Whether there is something to learn from the line itself."""
        return bool(self.text) or any(message["role"] == "assistant" for message in self.messages)


def read_text(path: Path, answers: bool) -> list[Line]:
    """The lines of a JSONL file. `answers`: every line must bring its answers; else what a user says in it.

    The first of these fields that a line has is used: `messages` (role, content) or `conversations` (from, value, or as
    `messages`), `question` with `answer`, `turns` (what the user says, without answers), `text`.
    """
    try:
        content = path.read_bytes().decode()
    except OSError as error:
        raise InvalidInput(str(path), (error.strerror or str(error)).lower(), "a readable file of JSON lines") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"bytes that are not UTF-8 ({error.reason})", "JSON lines in UTF-8") from None
    lines = [
        parse_line(line, number, path.name, answers)
        for number, line in enumerate(content.split("\n"), start=1)
        if line.strip()
    ]
    if not lines:
        raise InvalidInput(str(path), "no lines", "JSON lines, each with " + FORMS)
    return lines


def parse_line(line: str, number: int, name: str, answers: bool) -> Line:
    """One line, or an error that names it."""
    where = f"{name}, line {number}"
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise InvalidInput(where, str(error), "a JSON object") from None
    if not isinstance(fields, dict):
        raise InvalidInput(where, type(fields).__name__, "a JSON object")
    found = _parsed(fields, number, where)
    if answers and not found.answered:
        raise InvalidInput(where, "no answer", "an answer to learn from (or let the target answer: --generate)")
    if not answers and not found.turns:
        raise InvalidInput(where, "nothing that a user says", "messages, conversations, question or turns to answer")
    return found


def _parsed(fields: Mapping[str, Any], number: int, where: str) -> Line:
    for name in ("messages", "conversations"):
        if name in fields:
            return Line(number, _messages(fields[name], f"{where}: {name}"))
    if "question" in fields:
        messages = [{"role": "user", "content": _words(fields["question"], f"{where}: question")}]
        if fields.get("answer") is not None:
            messages.append({"role": "assistant", "content": _words(fields["answer"], f"{where}: answer")})
        return Line(number, tuple(messages))
    if "turns" in fields:
        turns = _list(fields["turns"], f"{where}: turns")
        said = (_words(turn, f"{where}: turns[{i}]") for i, turn in enumerate(turns))
        return Line(number, tuple({"role": "user", "content": words} for words in said))
    if "text" in fields:
        return Line(number, text=_words(fields["text"], f"{where}: text"))
    raise InvalidInput(where, f"fields {', '.join(fields) or 'none'}", FORMS)


def _messages(given: Any, where: str) -> tuple[Message, ...]:
    """Messages under the template's names; after an optional system message users and assistants take turns."""
    messages: list[Message] = []
    for i, each in enumerate(_list(given, where)):
        place = f"{where}[{i}]"
        if not isinstance(each, dict):
            raise InvalidInput(place, type(each).__name__, "an object with role and content (or from and value)")
        role = each.get("role", each.get("from"))
        if role not in ROLES:
            raise InvalidInput(f"{place}: role", role, ", ".join(ROLES))
        messages.append(
            {"role": ROLES[role], "content": _words(each.get("content", each.get("value")), f"{place}: content")}
        )
    first = 1 if messages[0]["role"] == "system" else 0
    _check_turns((message["role"] for message in messages[first:]), where)
    return tuple(messages)


def _check_turns(roles: Iterable[str], where: str) -> None:
    for i, role in enumerate(roles):
        due = "user" if i % 2 == 0 else "assistant"
        if role != due:
            raise InvalidInput(f"{where}: role", role, f"{due}: users and assistants take turns, the user first")


def _list(given: Any, where: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise InvalidInput(where, given, "a list of at least one")
    return given


def _words(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(where, given, "a text that is not empty")
    return given
