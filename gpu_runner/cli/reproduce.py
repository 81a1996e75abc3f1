"""`gpu_runner reproduce`: the paper's tables and figures on any pair, as a run that can be killed and gone on with."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exact.cli import options as shared
from exact.cli.tables import show
from gpu_runner.cli import options
from gpu_runner.cli.progress import Progress, terminated_as_interrupted
from gpu_runner.reproduce.run_folder import WHOLE, RunFolder, Shard
from rheo_core import DEFAULT_SUPPORT, InvalidInput

if TYPE_CHECKING:
    from gpu_runner.reproduce.experiments import Arguments
    from gpu_runner.reproduce.run import Questions, Report

WIDTH, DEPTH, BUDGET = 10, 8, 59
FIXED = {"table4": ("width", "depth", "budget"), "table5": ("support",), "figure4": ("temperature",)}
"""Options that an experiment sets itself."""

NameArgument = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="table2 to table5, figure3 or figure4.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the results.")]


@dataclass(frozen=True)
class BaseOptions:
    """What may be changed of an experiment; None is the paper's own."""

    width: Annotated[int | None, typer.Option("--width", help=f"K; {WIDTH} without.", show_default=False)] = None
    depth: Annotated[int | None, typer.Option("--depth", help=f"D; {DEPTH} without.", show_default=False)] = None
    budget: Annotated[int | None, typer.Option("--budget", help=f"R; {BUDGET} without.", show_default=False)] = None
    temperature: Annotated[float | None, typer.Option("--temperature", help="T; 1 without.", show_default=False)] = None
    support: Annotated[
        int | None,
        typer.Option(
            "--support", help=f"Support of the sampling law, 0: all; {DEFAULT_SUPPORT} without.", show_default=False
        ),
    ] = None

    def filled(self) -> dict[str, Any]:
        """All of them, the paper's own where none is given."""
        usual = {"width": WIDTH, "depth": DEPTH, "budget": BUDGET, "temperature": 1.0, "support": DEFAULT_SUPPORT}
        return {name: default if (given := getattr(self, name)) is None else given for name, default in usual.items()}


@options.bundled
def command(
    *,
    name: NameArgument,
    out: Out,
    models: options.ModelOptions,
    data: options.Data = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--sets", help="A question set; repeatable; the paper's without.", show_default=False),
    ] = None,
    questions: Annotated[int, typer.Option("--questions", help="The first so many of each set.")] = 80,
    length: Annotated[int, typer.Option("--length", help="Tokens an answer and turn.")] = 512,
    runs: options.SeedOptions,
    base: BaseOptions,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="own: every method's own texts; same: all on the same contexts; both without.",
            show_default=False,
        ),
    ] = None,
    backend: options.Backend = None,
    fault: options.FaultName = None,
    plain: options.Plain = False,
    shard: Annotated[
        str | None,
        typer.Option("--shard", help="I/N: only this part of the questions (torchrun sets it).", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the results in --out.")] = False,
    report_only: Annotated[bool, typer.Option("--report-only", help="Only report what --out holds.")] = False,
    output: options.OutputOptions,
    plot: shared.Plot = None,
) -> int:
    """Measure a table or figure of the paper on any pair: counted on own texts, and expected on the same contexts.

    Every answer is appended to --out as it ends; --resume goes on after a kill. Started by torchrun, the questions are
    split over its processes. Defaults are the paper's (80 questions, 512 tokens, 3 seeds, tree 60, depth 8): hours.
    """
    options.need_torch()
    from gpu_runner.reproduce.experiments import Arguments, find_experiment
    from gpu_runner.reproduce.run import digest, load_questions, read_report

    if plot is not None and not name.startswith("figure"):
        raise InvalidInput("plot", name, "figure3 or figure4: tables are printed")
    for option in FIXED.get(name, ()):
        if getattr(base, option) is not None:
            raise InvalidInput(option, getattr(base, option), f"nothing: {name} sets it itself")
    if report_only:
        deliver(read_report(out, name), output, plot)
        return 0
    part, place = part_of(shard, models.device)
    usual = find_experiment(name).sets
    if data is None:
        raise InvalidInput("data", "nothing", "--data DIR; `gpu_runner data` says where the six sets come from")
    asked = load_questions(data, sets or usual, questions)
    arguments = Arguments(
        experiment=name, **vars(models), **base.filled(), **vars(runs), plain=plain, fault=fault, backend=backend,
        length=length, on=on or ("own" if fault else "both"), digest=digest(asked),
        asked={each: [question.id for question in found] for each, found in asked.items()},
    )  # fmt: skip
    main = part.index == 0 or shard is not None
    with RunFolder(out, arguments.document(), resume, part) as folder, terminated_as_interrupted():
        try:
            _measure(arguments, asked, folder, replace(models, device=place), quiet=output.as_json or not main)
            if main and shard is None:
                _wait(folder, len(arguments.tasks()))
        except KeyboardInterrupt:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, which follows Ctrl-C
            if main and folder.has_started:
                deliver(read_report(out, name), output, plot)
            raise
    if main:
        deliver(read_report(out, name), output, plot)
    return 0


def part_of(shard: str | None, device: str) -> tuple[Shard, str]:
    """The part of the questions that this process has, and its device: as told, or as torchrun has set it."""
    rank, ranks = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank is None or ranks is None:
        return (WHOLE if shard is None else Shard.read(shard)), device
    if shard is not None:
        raise InvalidInput("shard", shard, "nothing under torchrun, which splits the questions itself")
    part = Shard.read(f"{rank}/{ranks}")
    if device == "auto":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    return part, f"cuda:{os.environ.get('LOCAL_RANK', rank)}" if device == "cuda" else device


def _measure(
    arguments: Arguments, asked: Questions, folder: RunFolder, models: options.ModelOptions, quiet: bool
) -> None:
    """Do what this process has to do and the folder does not hold yet."""
    from gpu_runner.certify.faults import find_fault
    from gpu_runner.decode.processing import Processing
    from gpu_runner.measure.bench import Setting, warm_up
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.reproduce.run import TaskRunner, expected_seconds, read_records, remaining

    mine = arguments.tasks(folder.shard)
    todo = remaining(mine, read_records(arguments, folder.lines, folder.places))
    if not todo:
        return
    experiment, fault = arguments.made(), find_fault(arguments.fault)
    target, draft = models.load()
    setting = Setting(
        target, draft, Processing(arguments.temperature), arguments.length, arguments.plain, fault, arguments.backend
    )
    run_task = TaskRunner(setting, experiment, asked)
    part = [folder.shard.index, folder.shard.count]
    folder.started(provenance(target, draft, part=part, shape=vars(experiment.shape)))
    first = next(iter(asked.values()))[0].turns
    cell = experiment.cells[-1]
    seconds = expected_seconds(warm_up(run_task.setting_of(cell), cell.methods, first), todo, asked)
    if not quiet:
        size = to_do(len(todo), arguments.length)
        shared.err.print(f"{size}: about {seconds / 60:.0f} min if none ends early", highlight=False)
    with Progress(len(mine), len(mine) - len(todo), quiet) as progress:
        for task in todo:
            folder.append(run_task(task))
            progress.advance(f"{task.question_set} {task.question}, {task.what}")


def to_do(texts: int, length: int) -> str:
    """What is to be done, in words.

    >>> to_do(1, 8), to_do(2, 1)
    ('1 text of up to 8 tokens a turn', '2 texts of up to 1 token a turn')
    """
    text, token = ("" if count == 1 else "s" for count in (texts, length))
    return f"{texts} text{text} of up to {length} token{token} a turn"


def _wait(folder: RunFolder, total: int) -> None:
    """Until the other processes of the run have done their parts."""
    while folder.count_lines() < total:
        time.sleep(0.5)


def deliver(report: Report, output: options.OutputOptions, plot: Path | None) -> None:
    """The report of what a folder holds: tables, notes, and a line where it is not all that was asked for."""
    from gpu_runner.reproduce.tables import heading, notes, tables

    if not output.as_json:
        for line in heading(report.arguments, report.sources):
            shared.out.print(line, highlight=False, markup=False)
        if report.arguments.fault:
            shared.out.print(f"planted fault: {report.arguments.fault}", style="bold red", highlight=False)
        for table in tables(report.experiment, report.rows, report.paper):
            show(table)
        for note in notes(report.experiment, report.rows):
            shared.out.print(note, style="dim", highlight=False)
        if not report.rows:
            shared.out.print("no question yet that every method has answered")
        if report.done < report.total:
            said = f"partial: {report.done} of {report.total} texts; only questions that every method answered count"
            shared.out.print(said, highlight=False)
    output.deliver(report.document())
    if plot is not None and report.rows:
        from gpu_runner.reproduce.plots import sweep_figure

        sweep_figure(report, plot)
