"""Training text: one JSON object a line, checked before anything is run.

A line that cannot be used is an error that names the file and the line: a set that is half read trains a worse head,
and nobody would know why.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_runner.model.chat import Message
from rheo_core import InvalidInput

FORMS = "messages (role, content), turns (what the user says) or text"
ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Line:
    """One line of a training file: a conversation, or running text (then there are no messages)."""

    number: int
    messages: tuple[Message, ...] = ()
    text: str = ""

    def spoken_by(self, role: str) -> list[Message]:
        """The messages of one role."""
        return [message for message in self.messages if message["role"] == role]


def read_text(path: Path, answers: bool) -> list[Line]:
    """The lines of a JSONL file; `answers`: each must hold an answer or text to learn from, else prompts to answer."""
    try:
        content = path.read_bytes().decode()
    except OSError as error:
        raise InvalidInput(str(path), (error.strerror or str(error)).lower(), "a readable file of JSON lines") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"bytes that are not UTF-8 ({error.reason})", "JSON lines in UTF-8") from None
    numbered = [(number, line) for number, line in enumerate(content.split("\n"), start=1) if line.strip()]
    if not numbered:
        raise InvalidInput(str(path), "no lines", "JSON lines, each with " + FORMS)
    return [parse_line(line, number, f"{path.name}, line {number}", answers) for number, line in numbered]


def parse_line(line: str, number: int, where: str, answers: bool) -> Line:
    """Read one line by the first of the fields `messages`, `turns`, `text` that it has; `where` names it in errors."""
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise InvalidInput(where, str(error), "a JSON object") from None
    if not isinstance(fields, dict):
        raise InvalidInput(where, type(fields).__name__, "a JSON object")
    if "messages" in fields:
        found = Line(number, _messages(fields["messages"], f"{where}: messages"))
    elif "turns" in fields:
        said = [
            _words(turn, f"{where}: turns[{i}]") for i, turn in enumerate(_list(fields["turns"], f"{where}: turns"))
        ]
        found = Line(number, tuple({"role": "user", "content": words} for words in said))
    elif "text" in fields:
        found = Line(number, text=_words(fields["text"], f"{where}: text"))
    else:
        raise InvalidInput(where, f"fields {', '.join(fields) or 'none'}", FORMS)
    if answers and not found.text and not found.spoken_by("assistant"):
        raise InvalidInput(where, "no answer", "an answer to learn from (or let the target answer: --generate)")
    if not answers and not found.spoken_by("user"):
        raise InvalidInput(where, "nothing that a user says", "messages or turns to answer")
    return found


def _messages(given: Any, where: str) -> tuple[Message, ...]:
    """Messages in which, after an optional system message, users and assistants take turns."""
    messages = [_message(each, f"{where}[{i}]") for i, each in enumerate(_list(given, where))]
    first = 1 if messages[0]["role"] == "system" else 0
    for i, message in enumerate(messages[first:]):
        expected = ROLES[1 + i % 2]
        if message["role"] != expected:
            raise InvalidInput(f"{where}: role", message["role"], f"{expected}: users and assistants take turns")
    return tuple(messages)


def _message(given: Any, where: str) -> Message:
    if not isinstance(given, dict):
        raise InvalidInput(where, type(given).__name__, "an object with role and content")
    if given.get("role") not in ROLES:
        raise InvalidInput(f"{where}: role", given.get("role"), ", ".join(ROLES))
    return {"role": given["role"], "content": _words(given.get("content"), f"{where}: content")}


def _list(given: Any, where: str) -> list[Any]:
    if not isinstance(given, list) or not given:
        raise InvalidInput(where, given, "a list of at least one")
    return given


def _words(given: Any, where: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(where, given, "a text that is not empty")
    return given
