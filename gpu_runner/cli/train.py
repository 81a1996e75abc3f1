"""`gpu_runner train`: an EAGLE-3 head for any supported target, from text or from the target's own answers."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from gpu_runner.cli.progress import Course
from rheo_core import InvalidInput

if TYPE_CHECKING:
    from gpu_runner.model.causal_lm import CausalModel
    from gpu_runner.model.drafts.checkpoint import Checkpoint
    from gpu_runner.training.documents import Corpus, Document
    from gpu_runner.training.loop import Training
    from gpu_runner.training.objective import Judged
    from gpu_runner.training.text import Line

DRAFT_VOCABULARY = 32_000
PEAK = 0.5
"""Peak of the learning rate times the hidden size: wide models take smaller steps."""


def command(
    text: Annotated[
        Path,
        typer.Option(
            "--text",
            help="JSON lines, each with messages, conversations, question and answer, turns (prompts alone) or text.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the head; a new one, or see --resume.", show_default=False)
    ] = None,
    target: options.Target = options.DEFAULT_TARGET,
    generate: Annotated[
        int, typer.Option("--generate", help="Learn from so many answers of the target itself (T = 1) to the prompts.")
    ] = 0,
    answer_length: Annotated[int, typer.Option("--answer-length", help="Tokens of a sampled answer at most.")] = 256,
    at_once: Annotated[int, typer.Option("--at-once", help="Answers sampled side by side.")] = 8,
    documents: Annotated[
        Path | None,
        typer.Option(
            "--documents", help="Where tokens are kept to be used again; documents.jsonl in --out.", show_default=False
        ),
    ] = None,
    init: Annotated[
        Path | None, typer.Option("--init", help="Start from this head, not from a new one.", show_default=False)
    ] = None,
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Train nothing: judge the head of --init on the text.")
    ] = False,
    draft_vocabulary: Annotated[
        int | None,
        typer.Option(
            "--draft-vocabulary",
            help=f"The N most frequent tokens of the answers; 0: all; {DRAFT_VOCABULARY} at most without it.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Steps of training-time test.")] = 4,
    decay: Annotated[float, typer.Option("--decay", help="Step s weighs decay^s in the loss.")] = 0.8,
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", help="Its peak; 0.5 / hidden size without it.", show_default=False),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the text.")] = 1,
    length: Annotated[int, typer.Option("--length", help="Tokens a row; longer documents are cut.")] = 1024,
    batch: Annotated[int, typer.Option("--batch", help="Rows an update.")] = 4,
    held_out: Annotated[float, typer.Option("--held-out", help="Share of the lines kept aside for judging.")] = 0.05,
    every: Annotated[int, typer.Option("--every", help="Updates between checkpoints, each with a judgement.")] = 100,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the same command in the same folder.")] = False,
    bf16: Annotated[bool, typer.Option("--bf16", help="The head's matrix products in bfloat16.")] = False,
    seed: shared.Seed = 0,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    rope_base: options.RopeBase = None,
    threads: options.Threads = 0,
    plain: options.Plain = False,
    as_json: shared.AsJson = False,
    save: shared.Save = None,
) -> int:
    """Train an EAGLE-3 head: one layer, training-time test, soft targets; official layout, loaded by --draft FOLDER.

    The best text is the target's own (--generate). A stopped run goes on with --resume. Judged by the expected
    acceptance sum min(p, q) of each step on lines held out.
    """
    options.need_torch()
    import torch

    from gpu_runner.measure.provenance import provenance
    from gpu_runner.model.load import find_device, find_dtype, load_target
    from gpu_runner.training import folder
    from gpu_runner.training.documents import corpus_of, fingerprint, sha256
    from gpu_runner.training.loop import Settings, Training
    from gpu_runner.training.text import read_text

    peak = Settings.learning_rate if learning_rate is None else learning_rate
    settings = Settings(steps, decay, peak, epochs, length, batch, bf16, seed)
    check(out, init, evaluate, resume, generate, answer_length, at_once, every, threads)
    find_dtype(dtype)
    lines = read_text(text, answers=not generate)
    if out is not None:
        folder.open_folder(out, resume)
    if threads:
        torch.set_num_threads(threads)
    model = load_target(target, find_device(device), dtype)
    if learning_rate is None:
        settings = replace(settings, learning_rate=PEAK / model.embedding.shape[-1])
    kept = out / folder.DOCUMENTS if out is not None and documents is None else documents
    used = prepare(model, text, lines, kept, generate, answer_length, at_once, seed, plain, as_json)
    corpus = corpus_of(used, length, 1.0 if evaluate else held_out, seed)
    checkpoint = start(model, corpus, init, draft_vocabulary, rope_base, seed)
    training = Training(model, checkpoint, corpus, settings, str(init if evaluate else out))
    made_from = {
        **asdict(settings), "target": model.name, "dtype": dtype, "init": None if init is None else str(init),
        "draft_vocabulary": checkpoint.config.draft_vocabulary, "rope_base": checkpoint.config.rope_base,
        "documents": fingerprint(used), "held_out": held_out,
    }  # fmt: skip
    arguments = {"text": str(text), "text_sha256": sha256(text), "generate": generate, "answer_length": answer_length}
    source = provenance(model, training.draft, training=made_from, **arguments)
    document: dict[str, Any] = {"command": "train", "provenance": source}
    if out is None:
        tell(describe(corpus, None), as_json)
        judged = training.judged()
    else:
        if resume and folder.resume(out, training, made_from):
            tell(f"resumed after {training.done} of {len(training.plan)} updates", as_json)
        folder.cut_log(out, training.done)
        tell(describe(corpus, training), as_json)
        judged = run(out, training, every, lambda: folder.save(out, training, made_from, source), as_json)
        document["updates"] = training.done
    if not as_json:
        show(table(judged))
        shared.out.print(
            "acceptance: mean of sum min(p, q), the expected acceptance of one sampled token at T = 1, each step of a "
            f"draft along {'the text' if evaluate else 'text held out'}",
            style="dim",
            highlight=False,
        )
        if out is not None:
            shared.out.print(f"head written to {out}", highlight=False, soft_wrap=True)
    document["held_out"] = {"acceptance": judged.acceptance, "loss": judged.loss, "predictions": judged.counts}
    shared.deliver(document, as_json, save)
    return 0


def check(out: Path | None, init: Path | None, evaluate: bool, resume: bool, *counts: int) -> None:
    """Refuse options that do not go together, and counts out of range."""
    names = ("generate", "answer-length", "at-once", "every", "threads")
    for name, value, least in zip(names, counts, (0, 1, 1, 1, 0), strict=True):
        if value < least:
            raise InvalidInput(name, value, f"an int of at least {least}")
    if evaluate and init is None:
        raise InvalidInput("evaluate", "no head", "--init FOLDER, the head to judge")
    if evaluate and (out is not None or resume):
        raise InvalidInput("evaluate", "--out or --resume beside it", "none of them: nothing is trained")
    if not evaluate and out is None:
        raise InvalidInput("out", None, "--out FOLDER for the head, or --evaluate")


def prepare(
    target: CausalModel, text: Path, lines: Sequence[Line], kept: Path | None,
    generate: int, answer_length: int, at_once: int, seed: int, plain: bool, quiet: bool,
) -> list[Document]:  # fmt: skip
    """The documents, from the file where they are kept as far as they are there."""
    from gpu_runner.training.documents import DocumentFile, documents_of, sha256
    from gpu_runner.training.sampling import sampled

    made_from: dict[str, Any] = {"target": target.name, "text": sha256(text), "plain": plain}
    if generate:
        made_from |= {"sampled with seed": seed, "answer length": answer_length, "dtype": str(target.dtype)}
    file = DocumentFile(kept, made_from)
    count = generate or len(lines)
    held = min(len(file.groups), count)
    if generate:
        tell(f"{count} answers of at most {answer_length} tokens, {held} there already", quiet)
        made = sampled(target, lines, held, count, answer_length, seed, at_once, plain)
    else:
        at_once, made = 1, ([documents_of(line, target, plain)] for line in lines[held:])
    with Course(math.ceil((count - held) / at_once), quiet=quiet) as course:
        for groups in made:
            for group in groups:
                file.add(group)
            course.advance("sampling" if generate else "reading")
    return file.documents(count)


def start(
    target: CausalModel, corpus: Corpus, init: Path | None, size: int | None, rope_base: float | None, seed: int
) -> Checkpoint:
    """The head to begin with."""
    from gpu_runner.model.drafts.checkpoint import read_checkpoint
    from gpu_runner.training.documents import frequent
    from gpu_runner.training.head import new_head

    if init is not None:
        checkpoint = read_checkpoint(init, rope_base)
        if size is not None and (size or target.vocabulary) != checkpoint.config.draft_vocabulary:
            raise InvalidInput("draft-vocabulary", size, f"{checkpoint.config.draft_vocabulary}, as --init has")
        return checkpoint
    if size is not None and not 0 <= size <= target.vocabulary:
        raise InvalidInput("draft-vocabulary", size, f"1 to {target.vocabulary}, or 0 for all of {target.name}'s")
    size = min(DRAFT_VOCABULARY, target.vocabulary) if size is None else size or target.vocabulary
    whole = size == target.vocabulary
    return new_head(target, None if whole else frequent(corpus.training, target.vocabulary, size), seed, rope_base)


def run(out: Path, training: Training, every: int, keep: Any, quiet: bool) -> Judged:
    """All updates that are left, with checkpoints; Ctrl-C ends after the one under way, a second Ctrl-C at once."""
    from gpu_runner.training.folder import log

    def judge() -> Judged:
        found = training.judged()
        log(out, {"update": training.done, "held_out": {"acceptance": found.acceptance, "loss": found.loss}})
        tell(f"{training.done}/{len(training.plan)} updates: held out {_acceptance(found)}", quiet)
        return found

    with _asked_to_stop() as stop:
        judged = training.judged() if training.done else judge()
        with Course(len(training.plan), training.done, quiet) as course:
            while training.done < len(training.plan):
                update = training.update()
                due = update.number % every == 0 or update.number == len(training.plan)
                log(out, {"update": update.number, **{k: v for k, v in asdict(update).items() if k != "number"}})
                if due and not stop.is_set():
                    judged = judge()
                if due or stop.is_set():
                    keep()
                if stop.is_set():
                    tell(f"stopped after {training.done} of {len(training.plan)} updates; --resume goes on", quiet)
                    raise KeyboardInterrupt
                course.advance(f"loss {update.first:.3f}, held out {_acceptance(judged)}")
    return judged


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event set by the first Ctrl-C or SIGTERM (of batch systems); a second one is not held up."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def give_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, frame: Any) -> None:
        event.set()
        give_back()

    for number in before:
        signal.signal(number, ask)
    try:
        yield event
    finally:
        give_back()


def describe(corpus: Corpus, training: Training | None) -> str:
    """How much there is to do; with a training, its first rows are timed to say how long it will take."""
    tokens = sum(len(each.tokens) for each in corpus.all)
    said = f"{len(corpus.training)} documents to learn from, {len(corpus.held_out)} held out, {tokens} tokens"
    if corpus.cut:
        said += f"; {corpus.cut} cut to the length of a row"
    if corpus.dropped:
        said += f"; {corpus.dropped} without a prediction to learn from left out"
    if training is None or training.done == len(training.plan):
        return said
    rows = training.plan[training.done][:1]
    training.gradient(rows)  # once for the allocations, once for the clock; changes no weights
    began = time.perf_counter()
    training.gradient(rows)
    left = sum(len(update) for update in training.plan[training.done :])
    minutes = (time.perf_counter() - began) * left / 60
    return (
        f"{said}\nhead of {training.size / 1e6:.1f} M parameters, draft vocabulary {training.draft.vocabulary}, "
        f"{len(training.plan) - training.done} updates of {training.settings.batch} rows: about {minutes:.1f} min"
    )


def table(judged: Judged) -> Table:
    """One line a step."""
    made = blank_table()
    for heading in ("step", "acceptance", "loss", "predictions"):
        made.add_column(heading, justify="right")
    for step, (acceptance, loss, count) in enumerate(
        zip(judged.acceptance, judged.loss, judged.counts, strict=True), start=1
    ):
        numbers = ("-" if each is None else f"{each:.3f}" for each in (acceptance, loss))
        made.add_row(str(step), *numbers, str(count))
    return made


def tell(words: str, quiet: bool) -> None:
    """Say something on stderr."""
    if not quiet:
        shared.err.print(words, highlight=False, soft_wrap=True)


def _acceptance(judged: Judged) -> str:
    return " ".join("-" if each is None else f"{each:.3f}" for each in judged.acceptance)
