"""`gpu_runner audit`: does a method on this very pair write what the target would have written?"""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exact.cli import options as shared
from gpu_runner.cli import options
from gpu_runner.cli.progress import Progress
from montecarlo.auditing import ALARM
from rheo_core import InvalidInput
from rheo_core.checks import check_count

if TYPE_CHECKING:
    from gpu_runner.audit.audit import Audited
    from montecarlo.auditing import Audit
    from montecarlo.recording import Record, Row

SCOPE = "the target rows come from plain forwards over the finished text, apart from the engine"


@options.bundled
def command(
    *,
    name: Annotated[str, typer.Option("--method", help="NAME or NAME:LEAD, as in rheo:0; or path.py:name.")] = "rheo",
    models: options.ModelOptions,
    tree: options.ShapeOptions,
    sampling: options.SamplingOptions,
    tokens: Annotated[int, typer.Option("--tokens", help="Tokens at most; the run ends at an alarm.")] = 1000,
    length: Annotated[int, typer.Option("--length", help="Tokens an answer.")] = 64,
    questions: Annotated[int, typer.Option("--questions", help="Questions used (of each set); 0: all.")] = 0,
    own: options.QuestionOptions,
    best: Annotated[int, typer.Option("--best", help="Entries listed of each row; the others by their mass.")] = 64,
    draft_rows: Annotated[
        bool, typer.Option("--draft-rows/--no-draft-rows", help="Read the draft's rows too: most faults show sooner.")
    ] = True,
    alarm: Annotated[
        float, typer.Option("--false-alarm", "--alarm", help="Probability of a false alarm, whenever looked at.")
    ] = ALARM,
    seed: shared.Seed = 0,
    fault: options.FaultName = None,
    plain: options.Plain = False,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            help="Keep the records (JSON lines, .gz packed) for rheo-montecarlo audit.",
            metavar="FILE",
            callback=shared.writable("record"),
        ),
    ] = None,
    output: options.OutputOptions,
) -> int:
    """Audit a method on a real pair: every emitted token against the target's own law. 1: evidence of loss, 0: none.

    The rows come from plain forwards over the finished text; the evidence is valid at any time, so the run ends at the
    alarm. A planted --fault ends in 1 once there are tokens enough; 0 says no more than that none was seen.
    """
    options.need_torch()
    from gpu_runner.audit.audit import audited, records
    from gpu_runner.audit.reference_rows import check_auditable
    from gpu_runner.certify.faults import find_fault
    from gpu_runner.decode.methods import find_methods
    from gpu_runner.measure.bench import Setting
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.model.load import find_device, find_dtype
    from montecarlo.auditing import Audit
    from montecarlo.recording import Writer

    for counted, value in (("tokens", tokens), ("length", length), ("best", best)):
        check_count(counted, value, 1)
    (method,) = find_methods([name], tree.shape, tree.lead, sampling.kept)
    processing, planted = sampling.processing, find_fault(fault)
    check_auditable(processing, find_dtype(models.dtype, find_device(models.device)))
    if method.tree_method is None and planted is not None:
        raise InvalidInput("fault", fault, f"a method that drafts, not {method.label}")
    running = Audit(alarm, seed, patterns=False)
    asked = own.read(questions)
    target, draft = models.load()
    setting = Setting(target, draft, processing, length, plain, planted)
    refusal, finished = None, False
    done = None
    try:
        with (
            Progress(tokens, quiet=output.as_json) as progress,
            nullcontext() if record is None else Writer(record) as writer,
        ):
            done = audited(
                records(setting, method, asked, seed, best, draft_rows),
                tokens,
                running,
                seen=lambda each: None if writer is None else write(writer, each),
                progress=lambda audit: progress.reach(audit.tokens, "auditing, tokens"),
            )
        finished = True
    except InvalidInput as error:
        if planted is None:
            raise
        refusal, finished = str(error), True
    finally:
        if finished or running.tokens:
            source = provenance(
                target, draft, method=method.label, shape=vars(method.shape), **vars(sampling), length=length,
                seed=seed, fault=fault, questions=len(asked), best=best, draft_rows=draft_rows, finished=finished,
            )  # fmt: skip
            deliver(running, done, refusal, source, record, output)
    return shared.LOSSY if running.alarmed_at is not None or refusal is not None else shared.LOSSLESS


def write(writer: Any, record: Record) -> None:
    """Keep one record."""
    draft = None if record.draft is None else _row(record.draft)
    named = {"cycle": record.cycle, "position": record.position, "request": record.request}
    writer.write(record.token, _row(record.target), draft, **named)


def _row(row: Row) -> Any:
    return row.probs if row.ids is None else (row.ids, row.probs, row.rest)


def deliver(
    running: Audit,
    done: Audited | None,
    refusal: str | None,
    source: dict[str, Any],
    record: Path | None,
    output: options.OutputOptions,
) -> None:
    """Print the report or hand over the document."""
    from gpu_runner.audit.audit import tokens_for
    from montecarlo.cli import audit as montecarlo

    found = running.report()
    alarm_after = None if done is None else done.alarm_after
    needed = tokens_for(found) if found.evidence_of_loss else None
    if not output.as_json:
        out = shared.out
        out.print(
            f"{source['target']}, {source['dtype']}, {source['device']}; draft {source['draft']}\n{source['method']}, "
            f"T = {source['temperature']:g}",
            highlight=False,
        )
        if source["fault"]:
            out.print(f"planted fault: {source['fault']}", style="bold red", highlight=False)
        if refusal is not None:
            out.print(f"the engine refused: {refusal}", highlight=False, markup=False)
        if found.tokens:
            montecarlo.report(found)
        if alarm_after is not None:
            about = "" if needed is None else f"; biases like these raise it within about {needed:.0f} (99 %)"
            out.print(f"alarm after {alarm_after} tokens{about}", highlight=False)
        if source["dtype"] in ("float16", "bfloat16"):
            out.print(
                f"{source['dtype']}: tree and plain forwards differ by rounding; evidence just over the bar on a long "
                "run may be no more than that",
                style="yellow",
                highlight=False,
            )
        if not source["finished"]:
            out.print("interrupted: the evidence holds for the tokens seen", highlight=False)
        out.print(f"{SCOPE}.", style="dim", highlight=False)
    document = montecarlo.document(found, [] if record is None else [record])
    verdict = {"verdict": "evidence of loss"} if refusal is not None else {}
    extra = {
        "alarm_after": alarm_after,
        "tokens_for_these_biases": None if needed is None or math.isinf(needed) else needed,
        "refusal": refusal,
        "rows": SCOPE,
    }
    output.deliver({**document, **verdict, **extra, "provenance": source})
