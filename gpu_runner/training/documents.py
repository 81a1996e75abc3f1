"""Tokenised training documents, kept on disk so that a stopped run need not tokenise or sample them again.

A document is what the engine sees of one answer: the prompt as the chat template makes it, then the answer. Only
predictions inside the answer are learnt from, since a draft is asked for no others.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gpu_runner.decode.draws import derived
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.chat import prompt_ids, tokenizer_of
from gpu_runner.training.text import Line
from rheo_core import InvalidInput

FORMAT = "rheo-lossless training documents 1"


@dataclass(frozen=True)
class Document:
    """Token ids; the first one that belongs to the answer (0: running text); the line that it comes from."""

    tokens: tuple[int, ...]
    start: int
    source: int

    def counted(self, step: int) -> int:
        """Predictions of step 0, 1, ... that count: the root's token lies in the answer, the step's in the text."""
        return max(0, len(self.tokens) - 2 - step - max(self.start - 2, 0))


def documents_of(line: Line, target: CausalModel, plain: bool) -> list[Document]:
    """One document for each answer of a line: the conversation before it, the answer, the end token; or the text."""
    tokenizer = tokenizer_of(target)
    if line.text:
        return [Document(tuple(tokenizer(line.text)["input_ids"]), 0, line.number)]
    end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
    found = []
    for i, message in enumerate(line.messages):
        if message["role"] == "assistant":
            prompt = prompt_ids(target, line.messages[:i], plain)
            answer = tokenizer(message["content"], add_special_tokens=False)["input_ids"]
            found.append(Document((*prompt, *answer, *end), len(prompt), line.number))
    return found


class DocumentFile:
    """Documents as JSON lines, one for each line of text or sampled answer, appended as they are made.

    The first line holds what they were made from; a file made from something else is refused. A last line that a kill
    cut short is dropped. Without a path they are kept in memory alone.
    """

    def __init__(self, path: Path | None, made_from: Mapping[str, Any]) -> None:
        self.path = path
        self.groups: list[list[Document]] = []
        header = {"format": FORMAT, **made_from}
        lines = [] if path is None or not path.exists() else _whole_lines(path)
        if not lines:
            self._append(header)
            return
        self._check(lines[0], header)
        self.groups = [self._group(line, number) for number, line in enumerate(lines[1:], start=2)]

    def add(self, group: Sequence[Document]) -> None:
        """Keep the documents of one line or sampled answer."""
        self._append([[each.source, each.start, *each.tokens] for each in group])
        self.groups.append(list(group))

    def documents(self, groups: int) -> list[Document]:
        """The documents of the first `groups` lines or sampled answers."""
        return [document for group in self.groups[:groups] for document in group]

    def _append(self, value: Any) -> None:
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(value) + "\n")
        except OSError as error:
            expected = f"a file that can be written ({error.strerror})"
            raise InvalidInput("documents", str(self.path), expected) from None

    def _check(self, line: str, header: Mapping[str, Any]) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        found = found if isinstance(found, dict) else {}
        for name, value in header.items():
            if found.get(name) != value:
                raise InvalidInput(
                    f"{self.path}: {name}", found.get(name), f"{value} (or keep them elsewhere: --documents)"
                )

    def _group(self, line: str, number: int) -> list[Document]:
        try:
            return [Document(tuple(tokens), start, source) for source, start, *tokens in json.loads(line)]
        except (ValueError, TypeError):
            raise InvalidInput(f"{self.path}, line {number}", line[:80], "documents written by this command") from None


def _whole_lines(path: Path) -> list[str]:
    """The lines of a file, from which a last one without its end is cut off."""
    try:
        whole, end, rest = path.read_bytes().rpartition(b"\n")
        if rest:
            path.write_bytes(whole + end)
    except OSError as error:
        raise InvalidInput("documents", str(path), f"a file that can be written ({error.strerror})") from None
    return whole.decode().split("\n") if end else []


def sha256(path: Path) -> str:
    """Of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(documents: Iterable[Document]) -> str:
    """One hash of all tokens, starts and sources."""
    digest = hashlib.sha256()
    for each in documents:
        digest.update(json.dumps([each.source, each.start, *each.tokens]).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Corpus:
    """Documents to learn from, documents held out; how many were cut to the length, and how many had no use."""

    training: tuple[Document, ...]
    held_out: tuple[Document, ...]
    cut: int
    dropped: int

    @property
    def all(self) -> Iterator[Document]:
        """Both kinds."""
        yield from self.training
        yield from self.held_out


def corpus_of(documents: Sequence[Document], length: int, held_out: float, seed: int) -> Corpus:
    """Documents cut to `length` tokens, those without a countable prediction dropped, a share of the sources held out.

    All documents of one source go to one side: a question answered twice must not be in both.
    """
    cut = [Document(each.tokens[:length], each.start, each.source) for each in documents]
    used = [each for each in cut if each.counted(0)]
    sources = sorted({each.source for each in used})
    if not sources:
        raise InvalidInput(
            "documents", f"none whose answer begins within {length} tokens", "some, or a larger --length"
        )
    shuffled = sorted(sources, key=lambda source: derived(seed, source))
    aside = set(shuffled[: _share(held_out, len(sources))])
    return Corpus(
        tuple(each for each in used if each.source not in aside),
        tuple(each for each in used if each.source in aside),
        sum(len(each.tokens) > length for each in documents),
        len(cut) - len(used),
    )


def _share(held_out: float, sources: int) -> int:
    if not 0 < held_out <= 1:
        raise InvalidInput("held-out", held_out, "a share in (0, 1]")
    wanted = max(1, round(held_out * sources))
    if held_out < 1 and wanted >= sources:
        raise InvalidInput("held-out", held_out, f"a share that leaves some of the {sources} lines for training")
    return wanted


def frequent(documents: Iterable[Document], vocabulary: int, size: int) -> Tensor:
    """The `size` most frequent target ids of the answers, rising [size]; equal counts by lower id."""
    counts = torch.zeros(vocabulary, dtype=torch.long)
    for each in documents:
        counts += torch.bincount(torch.tensor(each.tokens[each.start :], dtype=torch.long), minlength=vocabulary)
    return counts.argsort(descending=True, stable=True)[:size].sort().values
