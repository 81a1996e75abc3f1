"""transformers' own assisted generation with the same pair, counted and timed as the engine's methods are.

`generate(assistant_model=...)` drafts a chain with the draft model and verifies it by speculative sampling. It is the
decoder that a user already has, so it is what an engine has to be compared with; the numbers only mean something on
the same pair, questions and machine, and with the same counting.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

from gpu_runner.decode.engine import now, until
from gpu_runner.decode.methods import BenchMethod
from gpu_runner.measure import statistics as stats
from gpu_runner.measure.bench import Answer, Setting, answer, engine_of
from gpu_runner.measure.prompts import Question
from gpu_runner.model.causal_lm import memory, shallow
from gpu_runner.model.chat import Message, end_ids, prompt_ids, text_of
from gpu_runner.model.drafts.base import Draft
from gpu_runner.model.drafts.causal import CausalDraft
from montecarlo.keyed_random import derived
from rheo_core import InvalidInput

PLAIN = "transformers, alone"
DEFAULT = "transformers, assisted"
DRAFTED = 20
"""Tokens that transformers drafts a cycle unless told otherwise, fewer where the draft is not confident."""


@dataclass(frozen=True)
class Mode:
    """A way to run transformers: alone (`drafted` 0), with its own defaults (None), or a chain of so many tokens."""

    label: str
    drafted: int | None


def modes(depth: int) -> list[Mode]:
    """The three: alone, assisted with the defaults, and assisted with a chain as long as the engine's tree is deep."""
    return [Mode(PLAIN, 0), Mode(DEFAULT, None), Mode(f"{DEFAULT}, chain of {depth}", depth)]


def compared(
    setting: Setting,
    methods: Sequence[BenchMethod],
    ways: Sequence[Mode],
    questions: Sequence[Question],
    seeds: Sequence[int],
) -> Iterator[Answer]:
    """Every method and every mode on every question with every seed, taking turns."""
    engines = {method.label: engine_of(setting, method) for method in methods}
    assistant = assistant_of(setting.draft)
    for seed in seeds:
        for number, question in enumerate(questions):
            for method in methods:
                yield answer(setting, method, engines[method.label], number, question, seed)
            for mode in ways:
                yield assisted_answer(setting, assistant, mode, number, question, seed)


def assisted_answer(setting: Setting, assistant: Any, mode: Mode, number: int, question: Question, seed: int) -> Answer:
    """All turns of one question by transformers; each turn's prefill is the whole conversation.

    Cycles go on until the length is reached or an end token is emitted, the last one not cut at the length, as in the
    engine; an emitted token after an end token does not count.
    """
    done = Answer(mode.label, number, seed)
    target, stops = setting.target, end_ids(setting.target)
    messages: list[Message] = []
    for turn, content in enumerate(question):
        messages.append({"role": "user", "content": content})
        prompt = prompt_ids(target, messages, setting.plain)
        began = now(target.device)
        watch = _generate(setting, assistant, mode, prompt, derived(seed, number, turn))
        done.seconds += now(target.device) - began
        cycles = [until(tokens, stops) for tokens in watch.emitted]
        tokens = [token for cycle in cycles for token in cycle]
        done.emitted += [len(cycle) for cycle in cycles]
        done.accepted += [len(cycle) - 1 for cycle in cycles]
        done.drafting += watch.drafting[1:] if mode.drafted != 0 else []
        done.verifying += watch.verifying[1:]
        done.tokens += tokens
        if turn + 1 < len(question):
            messages.append({"role": "assistant", "content": text_of(target, tokens)})
    return done


def _generate(setting: Setting, assistant: Any, mode: Mode, prompt: Sequence[int], seed: int) -> _Watch:
    """One run of `generate`, watched cycle by cycle."""
    target = setting.target
    ids = torch.tensor([list(prompt)], device=target.device)
    drafted = DRAFTED if mode.drafted is None else mode.drafted
    asked = _asked(setting, len(prompt) + setting.length + drafted + 1)
    helper: dict[str, Any] = {}
    own = _config()
    if mode.drafted != 0:
        helper = {"assistant_model": assistant}
    if mode.drafted:
        own = _config(
            num_assistant_tokens=mode.drafted,
            num_assistant_tokens_schedule="constant",
            assistant_confidence_threshold=0.0,
        )
    enough = StoppingCriteriaList([_Enough(len(prompt) + setting.length)])
    devices = [target.device] if target.device.type == "cuda" else []
    with (
        _Watch(target.model, target.device) as watch,
        _configured(target.model, _config()),
        _configured(assistant, own),
        torch.random.fork_rng(devices=devices),
        memory(f"{target.name} in transformers' generate"),
    ):
        torch.manual_seed(seed)
        target.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=asked,
            stopping_criteria=enough,
            streamer=watch,
            **helper,
        )
    if len(watch.emitted) != watch.forwards:
        raise InvalidInput(
            "transformers", f"{watch.forwards} forwards of the target for {len(watch.emitted)} cycles", "one a cycle"
        )
    return watch


def _config(**given: Any) -> GenerationConfig:
    return GenerationConfig(**given)  # type: ignore[no-untyped-call]


def _asked(setting: Setting, longest: int) -> GenerationConfig:
    """The target's law as transformers is told it; nothing is left to the model's own generation settings."""
    processing, stops = setting.processing, sorted(end_ids(setting.target))
    sampling: dict[str, Any] = {"do_sample": False}
    if processing.temperature > 0:
        sampling = {
            "do_sample": True,
            "temperature": float(processing.temperature),
            "top_k": processing.top_k or 0,
            "top_p": 1.0 if processing.top_p is None else processing.top_p,
        }
    ends = {"eos_token_id": stops, "pad_token_id": stops[0]} if stops else {"pad_token_id": 0}
    return _config(max_length=longest, **sampling, **ends)


class _Enough(StoppingCriteria):
    """Stop once a text is so long; asked after each cycle."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Any:
        return torch.full((len(input_ids),), input_ids.shape[1] >= self.length, device=input_ids.device)


@dataclass
class _Watch(BaseStreamer):
    """Sees every forward of the target and the tokens of every cycle; seconds are those of the device."""

    model: Any
    device: torch.device
    emitted: list[list[int]] = field(default_factory=list)
    drafting: list[float] = field(default_factory=list)
    verifying: list[float] = field(default_factory=list)
    forwards: int = 0

    def __enter__(self) -> _Watch:
        self._prompt = True
        self._before = now(self.device)
        self._handles = [
            self.model.register_forward_pre_hook(self._begun),
            self.model.register_forward_hook(self._ended),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _begun(self, module: nn.Module, given: Any) -> None:
        if module is self.model:  # a draft made of the target shares its hooks
            moment = now(self.device)
            self.drafting.append(moment - self._before)
            self._before = moment

    def _ended(self, module: nn.Module, given: Any, output: Any) -> None:
        if module is self.model:
            self.forwards += 1

    def put(self, value: Tensor) -> None:
        """The prompt first, then the tokens of each cycle."""
        if not self._prompt:
            self.emitted.append(value.flatten().tolist())
            moment = now(self.device)
            self.verifying.append(moment - self._before)
            self._before = moment
        self._prompt = False

    def end(self) -> None:
        """The text is finished."""


@contextmanager
def _configured(model: Any, own: GenerationConfig) -> Iterator[None]:
    """A model with other generation settings for a while: a checkpoint's own ones are not the law under test."""
    kept = model.generation_config
    model.generation_config = own
    try:
        yield
    finally:
        model.generation_config = kept


def assistant_of(draft: Draft) -> Any:
    """The draft as a transformers model: itself, or a shorter copy of the target that shares its weights.

    transformers numbers a model's cache by layer, so layers that are left out are closed up in the copy.
    """
    if not isinstance(draft, CausalDraft):
        raise InvalidInput(
            "draft", draft.name, "skip:LAYERS or a causal LM: transformers cannot draft with an EAGLE head"
        )
    model, layers = draft.model.model, draft.model.layers
    if len(layers) == model.config.num_hidden_layers:
        return model
    closed = shallow(model)
    decoder = shallow(model.base_model)
    decoder.layers = nn.ModuleList(_numbered(layer, number) for number, layer in enumerate(layers))
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = len(layers)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[: len(layers)]  # all are full attention
    closed.config = decoder.config = config
    setattr(closed, model.base_model_prefix, decoder)
    return closed.eval()


def _numbered(module: Any, number: int) -> Any:
    """A copy of a layer, weights shared, in which every part that knows its number has this one."""
    twin = shallow(module)
    if hasattr(twin, "layer_idx"):
        twin.layer_idx = number
    for name, child in module._modules.items():
        twin._modules[name] = None if child is None else _numbered(child, number)
    return twin


@dataclass(frozen=True)
class Compared:
    """One decoder's figures beside those of transformers' assisted generation with its defaults.

    `tau` pools all cycles; `difference` of tau and `ratio` of tokens a second are paired within questions, seeds
    pooled. Latencies are medians over cycles, in seconds.
    """

    method: str
    answers: int
    cycles: int
    tokens: int
    tau: float
    difference: stats.Interval | None
    tokens_per_second: float
    ratio: stats.Interval | None
    drafting: float | None
    verifying: float | None

    def document(self) -> dict[str, Any]:
        """JSON-ready; what is not a number is null."""
        return stats.finite(asdict(self))


def comparison(found: Sequence[Answer], reference: str = DEFAULT) -> list[Compared]:
    """Every decoder over the questions and seeds that all of them have answered."""
    by_label = stats.answered_by_all(found, list(dict.fromkeys(each.rule for each in found)))
    base = by_label[reference]
    return [_compared(label, own, None if label == reference else base) for label, own in by_label.items() if own]


def _compared(label: str, own: Sequence[Answer], base: Sequence[Answer] | None) -> Compared:
    emitted = stats.pooled(own, "emitted")
    difference = ratio = None
    if base is not None:
        difference = stats.interval(stats.differences(own, base, "emitted"))
        rates, slower = (
            {question: stats.tokens_per_second(mine) for question, mine in stats.by_question(each).items()}
            for each in (own, base)
        )
        ratio = stats.interval([rate / slower[question] for question, rate in rates.items()])
    return Compared(
        method=label,
        answers=len(own),
        cycles=len(emitted),
        tokens=sum(len(each.tokens) for each in own),
        tau=statistics.fmean(emitted),
        difference=difference,
        tokens_per_second=stats.tokens_per_second(own),
        ratio=ratio,
        drafting=stats.median(stats.pooled(own, "drafting")),
        verifying=stats.median(stats.pooled(own, "verifying")),
    )
