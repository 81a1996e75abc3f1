"""`gpu_runner train`: an EAGLE-3 head for any supported target, from text or from the target's own answers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from gpu_runner.cli.progress import Progress, terminated_as_interrupted
from rheo_core import InvalidInput
from rheo_core.checks import check_count

if TYPE_CHECKING:
    from gpu_runner.model.causal_lm import CausalModel
    from gpu_runner.training.folder import TrainingFolder
    from gpu_runner.training.loop import Training
    from gpu_runner.training.objective import Judged
    from gpu_runner.training.text import Line

DRAFT_VOCABULARY = 32_000
PEAK = 0.5
"""Peak of the learning rate times the hidden size: wide models take smaller steps."""
MEANING = (
    "acceptance: mean of sum min(p, q), the expected acceptance of one sampled token at T = 1, each step of a draft "
    "along text held out"
)


@options.bundled
def command(
    *,
    text: Annotated[
        Path, typer.Option("--text", help="JSON lines, each with messages, turns (prompts alone) or text.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the head; a new one, or see --resume.")],
    models: options.TargetOptions = options.TargetOptions(threads=0),
    generate: Annotated[
        int, typer.Option("--generate", help="Learn from so many answers of the target itself (T = 1) to the prompts.")
    ] = 0,
    answer_length: Annotated[int, typer.Option("--answer-length", help="Tokens of a sampled answer at most.")] = 256,
    draft_vocabulary: Annotated[
        int | None,
        typer.Option(
            "--draft-vocabulary",
            help=f"The N most frequent tokens of the answers; 0: all; {DRAFT_VOCABULARY} at most without it.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Steps of training-time test.")] = 4,
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", help="Its peak; 0.5 / hidden size without it.", show_default=False),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", help="Passes over the text.")] = 1,
    length: Annotated[int, typer.Option("--length", help="Tokens a document; longer ones are cut.")] = 1024,
    batch: Annotated[int, typer.Option("--batch", help="Documents an update.")] = 16,
    held_out: Annotated[float, typer.Option("--held-out", help="Share of the lines kept aside for judging.")] = 0.05,
    every: Annotated[int, typer.Option("--every", help="Updates between checkpoints, each with a judgement.")] = 100,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the same command in the same folder.")] = False,
    rope_base: options.RopeBase = None,
    seed: shared.Seed = 0,
    plain: options.Plain = False,
    output: options.OutputOptions,
) -> int:
    """Train an EAGLE-3 head: one layer, training-time test, soft targets; official layout, loaded by --draft FOLDER.

    The best text is the target's own (--generate). A stopped run goes on with --resume. Judged by the expected
    acceptance sum min(p, q) of each step on lines held out.
    """
    options.need_torch()
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.model.drafts.checkpoint import ROPE_BASE
    from gpu_runner.training.documents import frequent, split_corpus
    from gpu_runner.training.folder import TrainingFolder
    from gpu_runner.training.head import new_head
    from gpu_runner.training.loop import Settings, Training
    from gpu_runner.training.text import read_text

    for name, value, least in (("generate", generate, 0), ("answer-length", answer_length, 1), ("every", every, 1)):
        check_count(name, value, least)
    peak = Settings.learning_rate if learning_rate is None else learning_rate
    settings = Settings(steps, peak, epochs, length, batch, seed)
    lines = read_text(text, answers=not generate)
    made_from = {
        **asdict(settings), "learning_rate": learning_rate, "target": models.target, "dtype": models.dtype,
        "plain": plain, "text_sha256": hashlib.sha256(text.read_bytes()).hexdigest(), "generate": generate,
        "answer_length": answer_length, "draft_vocabulary": draft_vocabulary, "rope_base": rope_base,
        "held_out": held_out,
    }  # fmt: skip
    folder = TrainingFolder(out, made_from, resume)
    target = models.load_target()
    vocabulary = (
        target.vocabulary if draft_vocabulary == 0 else draft_vocabulary or min(DRAFT_VOCABULARY, target.vocabulary)
    )
    if not 0 < vocabulary <= target.vocabulary:
        expected = f"1 to {target.vocabulary}, or 0 for all of {target.name}'s"
        raise InvalidInput("draft-vocabulary", draft_vocabulary, expected)
    if learning_rate is None:
        settings = replace(settings, learning_rate=PEAK / target.embedding.shape[-1])
    quiet = output.as_json
    with terminated_as_interrupted():
        fill(folder, target, lines, generate, answer_length, seed, plain, quiet)
        corpus = split_corpus([each for group in folder.groups for each in group], length, held_out, seed)
        whole = vocabulary == target.vocabulary
        ids = None if whole else frequent(corpus.training, target.vocabulary, vocabulary)
        head = new_head(target, ids, seed, ROPE_BASE if rope_base is None else rope_base)
        training = Training(target, head, corpus, settings, str(out))
        source = provenance(target, training.draft, training=made_from | asdict(settings), text=str(text))
        if resume and folder.restore(training):
            tell(f"resumed after {training.done} of {len(training.plan)} updates", quiet)
        tell(
            f"{len(corpus.training)} documents to learn from, {len(corpus.held_out)} held out ({corpus.cut} cut to "
            f"{length} tokens, {corpus.dropped} without a prediction to learn from left out); draft vocabulary "
            f"{vocabulary}, {len(training.plan)} updates",
            quiet,
        )
        judged = run(folder, training, every, source, quiet)
    if not quiet:
        report(judged, out)
    found = {"acceptance": judged.acceptance, "loss": judged.loss, "predictions": judged.counts}
    output.deliver({"command": "train", "provenance": source, "updates": training.done, "held_out": found})
    return 0


def fill(
    folder: TrainingFolder, target: CausalModel, lines: Sequence[Line],
    generate: int, answer_length: int, seed: int, plain: bool, quiet: bool,
) -> None:  # fmt: skip
    """Add the documents that the folder does not hold yet: read from the lines, or `generate` sampled to them."""
    from gpu_runner.training.documents import read_documents, sample_documents
    from montecarlo.keyed_random import derived

    count, done = generate or len(lines), len(folder.groups)
    with Progress(count, done, quiet) as progress:
        for number in range(done, count):
            line = lines[number % len(lines)]
            if generate:
                folder.add(sample_documents(line, target, plain, answer_length, derived(seed, number)))
            else:
                folder.add(read_documents(line, target, plain))
            progress.advance("sampling" if generate else "reading")


def run(folder: TrainingFolder, training: Training, every: int, source: dict[str, Any], quiet: bool) -> Judged:
    """Make all updates that are left, with checkpoints and judgements."""
    judged = training.judge()
    with Progress(len(training.plan), training.done, quiet) as progress:
        while training.done < len(training.plan):
            loss = training.update()
            if training.done % every == 0 or training.done == len(training.plan):
                judged = training.judge()
                folder.save(training, source)
                said = f"{training.done}/{len(training.plan)} updates: held out {_numbers(judged.acceptance)}"
                tell(said, quiet)
            progress.advance(f"loss {_numbers(loss[:1])}, held out {_numbers(judged.acceptance)}")
    return judged


def report(judged: Judged, out: Path) -> None:
    """One line a step, and where the head is."""
    table = blank_table()
    for heading in ("step", "acceptance", "loss", "predictions"):
        table.add_column(heading, justify="right")
    for step, count in enumerate(judged.counts):
        numbers = (_numbers([each[step]]) for each in (judged.acceptance, judged.loss))
        table.add_row(str(step + 1), *numbers, str(count))
    show(table)
    shared.out.print(MEANING, style="dim", highlight=False)
    shared.out.print(f"head written to {out}", highlight=False, soft_wrap=True)


def tell(words: str, quiet: bool) -> None:
    """Say something on stderr."""
    if not quiet:
        shared.err.print(words, highlight=False, soft_wrap=True)


def _numbers(values: Sequence[float | None]) -> str:
    return " ".join("-" if each is None else f"{each:.3f}" for each in values)
