"""Tokenised training documents: read from text, or sampled from the target itself; split into those that are held out.

A document is what the engine sees of one answer: the prompt as the chat template makes it, then the answer. Only
predictions inside the answer are learnt from, since a draft is asked for no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.draws import Seeded
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.chat import Message, end_ids, prompt_ids, text_of, tokenizer_of
from gpu_runner.training.text import Line
from montecarlo.keyed_random import derived
from rheo_core import InvalidInput


@dataclass(frozen=True)
class Document:
    """Token ids; the first one that belongs to the answer (0: running text); the line that it comes from."""

    tokens: tuple[int, ...]
    start: int
    source: int

    def roots(self, step: int) -> range:
        """Roots whose prediction at `step` counts: the token behind lies in the answer, the step's in the text."""
        return range(max(self.start - 2, 0), max(self.start - 2, len(self.tokens) - 2 - step, 0))


def read_documents(line: Line, target: CausalModel, plain: bool) -> list[Document]:
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


def sample_documents(line: Line, target: CausalModel, plain: bool, length: int, seed: int) -> list[Document]:
    """The target's own answers (T = 1, at most `length` tokens) to the users' turns of a line, a document each."""
    history: list[Message] = [message for message in line.messages[:1] if message["role"] == "system"]
    found = []
    for turn, message in enumerate(line.spoken_by("user")):
        history.append(message)
        prompt = prompt_ids(target, history, plain)
        answer = autoregressive(target, prompt, length, Seeded(derived(seed, turn)), end=end_ids(target)).tokens
        found.append(Document((*prompt, *answer), len(prompt), line.number))
        history.append({"role": "assistant", "content": text_of(target, answer)})
    return found


@dataclass(frozen=True)
class Corpus:
    """Documents to learn from, documents held out; how many were cut to the length, and how many had no use."""

    training: tuple[Document, ...]
    held_out: tuple[Document, ...]
    cut: int = 0
    dropped: int = 0


def split_corpus(documents: Sequence[Document], length: int, held_out: float, seed: int) -> Corpus:
    """Cut documents to `length` tokens, drop those without a countable prediction, hold out a share of the sources.

    All documents of one source go to one side: a question answered twice must not be in both.
    """
    cut = [Document(each.tokens[:length], each.start, each.source) for each in documents]
    used = [each for each in cut if each.roots(0)]
    sources = sorted({each.source for each in used}, key=lambda source: derived(seed, source))
    aside = max(1, round(held_out * len(sources)))
    if not 0 < held_out < 1 or aside >= len(sources):
        expected = f"a share in (0, 1) that leaves some of the {len(sources)} usable lines for training"
        raise InvalidInput("held-out", held_out, expected)
    return Corpus(
        tuple(each for each in used if each.source not in sources[:aside]),
        tuple(each for each in used if each.source in sources[:aside]),
        sum(len(each.tokens) > length for each in documents),
        len(cut) - len(used),
    )


def frequent(documents: Iterable[Document], vocabulary: int, size: int) -> Tensor:
    """The `size` most frequent target ids of the answers, rising [size]; equal counts by lower id."""
    counts = torch.zeros(vocabulary, dtype=torch.long)
    for each in documents:
        counts += torch.bincount(torch.tensor(each.tokens[each.start :], dtype=torch.long), minlength=vocabulary)
    return counts.argsort(descending=True, stable=True)[:size].sort().values
