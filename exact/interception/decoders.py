"""A decoder with a state of its own, certified as it stands: what it emits, step by step, and where its text ends.

A rule is a function of one node; an engine is an object with a cache, counts, a grammar. It is run from a copy of its
first state on every branch, until its text ends: by an end token, by the decoder itself (a step without tokens), or at
the length that is compared. The end is part of what is compared: a text that stops where the target goes on is another
text. Nothing is continued.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Protocol

from exact.enumeration.rationals import exact_law
from exact.interception.function_certificate import FunctionCertificate
from exact.interception.session import current_chooser
from exact.interception.verdict import certify_function
from rheo_core import InvalidInput
from rheo_core.checks import check_count

STOPPED = "stops"
"""What stands behind the tokens of a text that the decoder ended by itself."""

Text = tuple[Any, ...]


class Decoder(Protocol):
    """Any object with these two methods; `step` may draw through torch, NumPy, `random`, or take a chooser."""

    def start(self, prompt: Sequence[int]) -> Any:
        """Begin a request: from here on the state is that of a fresh text behind the prompt."""
        ...

    def step(self) -> Sequence[int] | None:
        """Run one cycle; the tokens that it emits, none when the text has ended."""
        ...


def is_decoder(found: Any) -> bool:
    """Whether an object is a decoder: it has `start` and `step`."""
    return all(callable(getattr(found, name, None)) for name in ("start", "step"))


def certify_decoder(
    decoder: Any,
    target: Callable[[tuple[int, ...]], Any],
    prompt: Sequence[Any] = (),
    *,
    length: int,
    end: Iterable[int] = (),
    batch: bool = False,
    **options: Any,
) -> FunctionCertificate:
    """Certify what a decoder emits behind a prompt, up to `length` tokens (its own limit, where it has one).

    `target(prefix) -> row` [V] is asked with the prompt before the text; a text ends behind a token of `end`, and where
    `step` returns no tokens. Tokens that a step emits behind an end token count: they are what a user would see. With
    `batch` the prompts are several, `start` gets them all and `step` returns a list of tokens for each request; the
    joint distribution is held against the product of the targets', in the order given and reversed.

    The decoder is certified as it is given, and started again in the middle of a request (after one step), so that what
    `start` forgets to clear shows.

    Each branch runs on a deep copy of the decoder, which shares torch parameters; `step(chooser)` gets a chooser where
    it has an argument. `options` are those of `certify_function`. Raises `InvalidInput` on what cannot be copied and on
    a step whose result is not of token ids.
    """
    check_count("length", length, 1)
    if not is_decoder(decoder):
        raise InvalidInput("decoder", decoder, "an object with start(prompt) and step()")
    prompts: list[tuple[int, ...]] = [tuple(each) for each in prompt] if batch else [tuple(prompt)]
    ends = frozenset(end)
    served = f"{len(prompts)} requests, in both orders" if batch else "one request"
    for used, order in product((False, True), (prompts, prompts[::-1]) if batch else (prompts,)):
        right = partial(_sampled, target, order, length, ends, batch)
        found = certify_function(_run(decoder, order, length, ends, batch, used), target=right, **options)
        if not found.lossless:
            break
    again = "started again after one step of a request"
    state = f"as it was given, and {again}" if found.lossless else again if used else "as it was given"
    return replace(found, about=f"texts of at most {length} tokens and where they end, {served}; the decoder {state}")


def _sampled(
    target: Callable[[tuple[int, ...]], Any],
    prompts: Sequence[tuple[int, ...]],
    length: int,
    ends: frozenset[int],
    batch: bool,
) -> Text:
    """The target's own texts, each request by itself: one ends behind an end token, or has `length` tokens."""
    chooser, texts = current_chooser(), []
    for prompt in prompts:
        text: Text = ()
        while len(text) < length and not ends & set(text):
            text = (*text, chooser.index(exact_law(target((*prompt, *text)))))
        texts.append(text)
    return tuple(texts) if batch else texts[0]


def _run(
    decoder: Any, prompts: Sequence[tuple[int, ...]], length: int, ends: frozenset[int], batch: bool, used: bool
) -> Callable[[], Text]:
    """One whole request, or a batch of them, as a function without arguments: its texts.

    `used`: the decoder has begun a request before, and made one step of it.
    """
    chooses = bool(inspect.signature(decoder.step).parameters)

    def run() -> Text:
        own = _copied(decoder)
        own.start([list(each) for each in prompts] if batch else list(prompts[0]))
        if used:
            own.step(current_chooser()) if chooses else own.step()
            own.start([list(each) for each in prompts] if batch else list(prompts[0]))
        texts: list[list[Any]] = [[] for _ in prompts]
        going = set(range(len(prompts)))
        while going:
            emitted = own.step(current_chooser()) if chooses else own.step()
            rows = emitted if batch else [emitted]
            if rows is None or len(rows) != len(prompts):
                raise InvalidInput("step", emitted, f"a list of tokens for each of {len(prompts)} requests")
            for number in sorted(going):
                tokens = _tokens(rows[number])
                text = texts[number]
                text += tokens or [STOPPED]
                if not tokens or len(text) >= length or ends & set(text):
                    going.remove(number)
                    del text[length + (not tokens) :]
        return tuple(map(tuple, texts)) if batch else tuple(texts[0])

    return run


def _tokens(emitted: Any) -> list[int]:
    """The tokens of one step as ids."""
    if emitted is None:
        return []
    listed = emitted.tolist() if hasattr(emitted, "tolist") else list(emitted)
    tokens = [each.item() if hasattr(each, "item") else each for each in listed]
    if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in tokens):
        raise InvalidInput("step", emitted, "token ids, or nothing when the text has ended")
    return tokens


def _copied(decoder: Any) -> Any:
    """A deep copy that shares what is large and does not change: torch parameters."""
    memo: dict[int, Any] = {}
    torch = sys.modules.get("torch")
    if torch is not None:
        for module in _modules(decoder, torch.nn.Module):
            memo |= {id(parameter): parameter for parameter in module.parameters()}
    try:
        return copy.deepcopy(decoder, memo)
    except Exception as error:
        expected = "a decoder whose state can be copied (give it __deepcopy__, or make that part anew in start)"
        raise InvalidInput("decoder", f"{type(error).__name__}: {error}", expected) from error


def _modules(decoder: Any, kind: type) -> Iterable[Any]:
    """The torch modules that a decoder holds directly, or in a list or dictionary."""
    held = [decoder, *vars(decoder).values()] if hasattr(decoder, "__dict__") else [decoder]
    for each in held:
        inside = each if isinstance(each, list | tuple) else each.values() if isinstance(each, dict) else [each]
        yield from (module for module in inside if isinstance(module, kind))
