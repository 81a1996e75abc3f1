"""Look at a pair before long runs: what was loaded, what it needs, how long a table of the paper would take.

A wrong template, RoPE base or layer to read costs acceptance and raises nothing, so each is shown; memory and time are
computed from the loaded pair and a few timed cycles, before hours are spent on finding out.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import tree_method
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.chat import end_ids, prompt_ids
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from rheo_core import InvalidInput, TreeShape

PROMPT = "Name three colours and say where each of them is seen in nature."
CYCLES = 4
ANSWERS = 6 * 80 * 6
"""Of one table of the paper: six sets of 80 questions, six methods."""
GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Finding:
    """One line: the subject, what was found, and what to do where it stands in the way (None: nothing)."""

    subject: str
    found: str
    remedy: str | None = None


def preflight(target: CausalModel, draft: Draft, shape: TreeShape, length: int, plain: bool) -> Iterator[Finding]:
    """Findings one by one; both models are loaded, so their weights are whole and masks are obeyed already.

    Raises `InvalidInput` for an answer without tokens.
    """
    if length < 1:
        raise InvalidInput("length", length, "an int of at least 1")
    size = sum(parameter.numel() for parameter in target.model.parameters())
    kind = str(target.dtype).removeprefix("torch.")
    yield Finding("target", f"{target.name}: {size / 1e6:,.1f} M weights, all from its files, {kind}, {target.device}")
    yield Finding("draft", f"{draft.name}: {type(draft).__name__}")
    yield _template(target, plain)
    yield Finding("end tokens", ", ".join(map(str, sorted(end_ids(target)))) or "none: answers end by length alone")
    yield Finding("RoPE", _rope(target, draft))
    layers = ", ".join(map(str, draft.features)) or "none"
    yield Finding("layers read", f"{layers} of {len(target.layers)} (the residual stream entering each)")
    yield _vocabulary(target, draft)
    yield _memory(target, draft, shape, length)
    yield _time(target, draft, shape, length)


def _template(target: CausalModel, plain: bool) -> Finding:
    if target.tokenizer is None:
        return Finding("template", "no tokenizer", "a folder with the model's tokenizer")
    if plain:
        return Finding("template", "--plain: bare text")
    template = getattr(target.tokenizer, "chat_template", None)
    if not template:
        return Finding("template", "none", "--plain, or a tokenizer with a chat template")
    text = target.tokenizer.apply_chat_template(
        [{"role": "user", "content": "X"}], add_generation_prompt=True, tokenize=False
    )
    return Finding("template", f"the model's own: {text!r}")


def _rope(target: CausalModel, draft: Draft) -> str:
    config: Any = target.model.config
    parameters = getattr(config, "rope_parameters", None) or {}
    base = parameters.get("rope_theta", getattr(config, "rope_theta", "unknown"))
    kind = parameters.get("rope_type", "default")
    own = f"; the head's {draft.config.rope_base:g}" if isinstance(draft, EagleDraft) else ""
    return f"target's base {base} ({kind}){own}"


def _vocabulary(target: CausalModel, draft: Draft) -> Finding:
    if draft.ids is None:
        return Finding("vocabulary", f"{target.vocabulary:,} tokens, one for both")
    return Finding(
        "vocabulary", f"{target.vocabulary:,} tokens; the draft knows {draft.vocabulary:,} of them, each mapped once"
    )


def _memory(target: CausalModel, draft: Draft, shape: TreeShape, length: int) -> Finding:
    """Weights, each tensor once; states of a prompt of 512 tokens, the answer and a tree; rows of one verification."""
    held = {each.data_ptr(): each.nbytes for each in target.model.parameters()}
    if isinstance(draft, CausalDraft):
        held |= {each.data_ptr(): each.nbytes for each in draft.model.model.parameters()}
    elif isinstance(draft, EagleDraft):
        held |= {each.data_ptr(): each.nbytes for each in [*draft.weights.values(), draft.embedding]}
    config = target.model.config
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    token = 2 * len(target.layers) * heads * head * target.dtype.itemsize
    states = 2 * (512 + length + shape.budget) * token  # the buffer is doubled when full
    rows = (1 + shape.budget) * target.vocabulary * 8 * 4
    need = sum(held.values()) + states + rows
    found = (
        f"{need / GIBIBYTE:.2f} GiB: weights {sum(held.values()) / GIBIBYTE:.2f}, states {states / GIBIBYTE:.2f}, rows "
        f"{rows / GIBIBYTE:.2f}"
    )
    if target.device.type != "cuda":
        return Finding("memory", found)
    free, total = torch.cuda.mem_get_info(target.device)
    found += f"; the device has {total / GIBIBYTE:.0f}, {free / GIBIBYTE:.1f} of them free now"
    return Finding("memory", found, "a larger device, or a smaller model" if need > total else None)


def _time(target: CausalModel, draft: Draft, shape: TreeShape, length: int) -> Finding:
    """A few cycles of rheo, the first as warm-up; an answer of the length takes so many of the rest's median."""
    messages = [{"role": "user", "content": PROMPT}]
    plain = not getattr(target.tokenizer, "chat_template", None)
    prompt = [1, 2, 3] if target.tokenizer is None else prompt_ids(target, messages, plain)
    engine = Engine(target, draft, tree_method("rheo"), shape)
    session = engine.start(prompt)
    cycles = [engine.cycle(session, Seeded(0)) for _ in range(1 + CYCLES)][1:]
    seconds = statistics.median(cycle.drafting + cycle.verifying for cycle in cycles)
    tau = statistics.fmean(len(cycle.tokens) for cycle in cycles)
    hours = ANSWERS * length / tau * seconds / 3600
    drafting = statistics.median(cycle.drafting for cycle in cycles)
    return Finding(
        "time",
        f"{1000 * seconds:.1f} ms a cycle ({1000 * drafting:.1f} drafting), {tau:.1f} tokens each: about {hours:.2g} h "
        f"for a table of {ANSWERS} answers of {length} tokens",
    )
