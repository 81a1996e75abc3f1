"""Prompts as token ids: chat templates, plain text, end tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_runner.model.causal_lm import CausalModel
from rheo_core import InvalidInput

Message = dict[str, str]


def tokenizer_of(target: CausalModel) -> Any:
    """The target's tokenizer; raises where it has none."""
    if target.tokenizer is None:
        raise InvalidInput(target.name, "no tokenizer", "a model with a tokenizer, or a prompt given as ids")
    return target.tokenizer


def prompt_ids(target: CausalModel, messages: Sequence[Message], plain: bool = False) -> list[int]:
    """Token ids of a conversation, ending where the model is to answer.

    The model's own chat template is used; `plain` takes the contents one after another as text, which a model without
    a template must be told: an instructed model measured on bare text is another model.
    """
    tokenizer = tokenizer_of(target)
    if not plain and not getattr(tokenizer, "chat_template", None):
        raise InvalidInput(target.name, "no chat template", "a model that has one, or --plain for prompts as bare text")
    if plain:
        ids = tokenizer("\n".join(message["content"] for message in messages))["input_ids"]
    else:
        text = tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if not ids:
        raise InvalidInput("prompt", [message["content"] for message in messages], "a text of at least one token")
    return list(ids)


def text_of(target: CausalModel, tokens: Sequence[int]) -> str:
    """Text of emitted tokens, special ones left out."""
    return str(tokenizer_of(target).decode(list(tokens), skip_special_tokens=True))


def end_ids(target: CausalModel) -> frozenset[int]:
    """The ids that end an answer: those of the generation configuration and of the tokenizer."""
    ids: set[int] = set()
    for source in (getattr(target.model, "generation_config", None), target.model.config, target.tokenizer):
        found = getattr(source, "eos_token_id", None)
        ids |= set(found) if isinstance(found, (list, tuple)) else set() if found is None else {found}
    return frozenset(int(token) for token in ids if 0 <= token < target.vocabulary)
