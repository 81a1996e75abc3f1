"""Answers sampled from the target itself at T = 1: the text that a head is asked about when it drafts.

Several answers are sampled at once as one row of tokens whose attention mask keeps them apart, so nothing is padded and
the model is called as the engine calls it. Each draw has the address that the baseline would give it: an answer does
not depend on its neighbours, nor on where a stopped run went on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import torch

from gpu_runner.decode.draws import derived, uniform
from gpu_runner.decode.laws import position, softmax
from gpu_runner.model.cache import TreeCache
from gpu_runner.model.causal_lm import CausalModel, on_device
from gpu_runner.model.chat import Message, end_ids, prompt_ids, text_of
from gpu_runner.training.documents import Document
from gpu_runner.training.text import Line


def sample(
    target: CausalModel, prompts: Sequence[Sequence[int]], length: int, seeds: Sequence[int], end: Collection[int]
) -> list[list[int]]:
    """An answer to each prompt, of at most `length` tokens or until one of the `end` ids, which is then the last.

    Equal to `autoregressive` with `Seeded(seed)` for each prompt alone, up to the rounding of a larger forward. A row's
    tokens have an owner (the prompt's number) and a place in the owner's text; those that are asked about come last.
    """
    device = target.device
    answers: list[list[int]] = [[] for _ in prompts]
    active = list(range(len(prompts)))
    cache = TreeCache()
    keys = torch.zeros(2, 0, dtype=torch.long, device=device)
    while active and len(answers[active[0]]) < length:
        fed = [(i, place) for i in active if not answers[i] for place in range(len(prompts[i]) - 1)]
        fed += [(i, len(prompts[i]) + len(answers[i]) - 1) for i in active]
        tokens = on_device([answers[i][-1] if answers[i] else prompts[i][place] for i, place in fed], device)
        queries = on_device([each for pair in zip(*fed, strict=True) for each in pair], device).view(2, -1)
        keys = torch.cat([keys, queries], dim=-1)
        visible = (queries[0][:, None] == keys[0]) & (queries[1][:, None] >= keys[1])
        logits, _ = target(tokens, queries[1], visible, cache, last=len(active))
        u = [uniform(seeds[i], ("emit", len(answers[i]), (), 0)) for i in active]
        drawn = position(softmax(logits), torch.tensor(u, dtype=torch.float64, device=device)).tolist()
        for i, token in zip(active, drawn, strict=True):
            answers[i].append(token)
        active = [i for i in active if answers[i][-1] not in end]
    return answers


def sampled(
    target: CausalModel,
    lines: Sequence[Line],
    first: int,
    count: int,
    length: int,
    seed: int,
    at_once: int,
    plain: bool,
) -> Iterator[list[list[Document]]]:
    """Answers number `first` to `count` - 1, the lines taken in turn; the documents of each, one a turn of the user.

    They come `at_once` together, as they are sampled.
    """
    stops = end_ids(target)
    for begin in range(first, count, at_once):
        numbers = range(begin, min(begin + at_once, count))
        asked = [lines[number % len(lines)] for number in numbers]
        histories: list[list[Message]] = [[m for m in line.messages[:1] if m["role"] == "system"] for line in asked]
        said = [[m for m in line.messages if m["role"] == "user"] for line in asked]
        groups: list[list[Document]] = [[] for _ in asked]
        for turn in range(max(line.turns for line in asked)):
            going = [i for i in range(len(asked)) if turn < len(said[i])]
            for i in going:
                histories[i].append(said[i][turn])
            prompts = [prompt_ids(target, histories[i], plain) for i in going]
            seeds = [derived(seed, numbers[i], turn) for i in going]
            for i, prompt, answer in zip(going, prompts, sample(target, prompts, length, seeds, stops), strict=True):
                groups[i].append(Document((*prompt, *answer), len(prompt), asked[i].number))
                histories[i].append({"role": "assistant", "content": text_of(target, answer)})
        yield groups
