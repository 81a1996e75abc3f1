"""`gpu_runner bench`: every method on the same questions, counted and timed alike."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from gpu_runner.cli.progress import Progress
from rheo_core import InvalidInput
from rheo_core.checks import check_count

if TYPE_CHECKING:
    from gpu_runner.measure.bench import Answer
    from gpu_runner.measure.statistics import Interval
    from gpu_runner.measure.summary import Figures

ACCEPTANCE = ("method", "tau", "std", "to top-k", "given trees", "to top-k", "accepted")
SPEED = ("method", "tokens/s", "speed-up", "95 %", "drafting", "verification")
NOTES = (
    "tau: emitted / cycles, the target's token included; std over seeds; differences paired within questions, 95 %",
    "given trees: expected emitted tokens of a cycle given its tree; accepted: P(>= 1), P(>= 2), ...",
    "tokens/s with the prefill; speed-up: mean of paired ratios to autoregressive; latencies: median of a cycle",
)
GAP = 1e-3
"""Below this gap between the two best logits rounding decides a greedy token."""


@options.bundled
def command(
    *,
    named: options.MethodOptions,
    models: options.ModelOptions,
    tree: options.ShapeOptions,
    sampling: options.SamplingOptions,
    length: Annotated[int, typer.Option("--length", help="Tokens an answer.")] = 24,
    questions: Annotated[int, typer.Option("--questions", help="How many of the built-in questions; 0: all.")] = 0,
    prompts: options.Prompts = None,
    runs: options.SeedOptions,
    backend: options.Backend = None,
    fault: options.FaultName = None,
    plain: options.Plain = False,
    output: options.OutputOptions,
) -> int:
    """Compare methods on a real pair: tau, acceptance by depth, tokens a second, speed-up, latencies.

    Without arguments: SmolLM2-135M-Instruct, drafted for by itself without layers 17 and 18, in some minutes on a CPU
    (one thread unless told otherwise: steadier on small models).
    """
    options.need_torch()
    from gpu_runner.certify.faults import find_fault
    from gpu_runner.decode.compiled import graphs_made
    from gpu_runner.decode.methods import find_methods
    from gpu_runner.measure.bench import Setting, answers, warm_up
    from gpu_runner.measure.prompts import QUESTIONS
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.measure.summary import figures

    check_count("length", length, 1)
    check_count("seeds", runs.seeds, 1)
    if not 0 <= questions <= len(QUESTIONS):
        raise InvalidInput("questions", questions, f"1 to {len(QUESTIONS)}, or 0 for all")
    asked = [(prompt,) for prompt in prompts] if prompts else list(QUESTIONS[: questions or None])
    methods = find_methods(named.given, tree.shape, tree.lead, sampling.kept)
    processing, planted = sampling.processing, find_fault(fault)
    target, draft = models.load()
    setting = Setting(target, draft, processing, length, plain, planted, backend)
    total = len(asked) * runs.seeds * len(methods)
    done: list[Answer] = []
    finished = False
    try:
        seconds = total * statistics.fmean(warm_up(setting, methods, QUESTIONS[0]).values())
        if not output.as_json:
            size = f"{total} answers of {length} tokens: about {seconds / 60:.1f} min"
            shared.err.print(size, highlight=False)
        with Progress(total, quiet=output.as_json) as progress:
            for answer in answers(setting, methods, asked, runs.all):
                done.append(answer)
                progress.advance(answer.rule)
        finished = True
    finally:
        if len(done) >= len(methods):
            found = figures(done, methods)
            source = provenance(
                target, draft, shape=vars(tree.shape), **vars(sampling), length=length, **vars(runs),
                questions=[list(each) for each in asked], compile=backend, graphs=graphs_made(backend),
                fault=fault, finished=finished,
            )  # fmt: skip
            greedy = greedy_agreement(done) if sampling.temperature == 0 else None
            if not output.as_json:
                report(found, source, greedy)
            results = [each.document() for each in found]
            output.deliver({"command": "bench", "provenance": source, "results": results, "greedy": greedy})
    return 0


def greedy_agreement(done: list[Answer]) -> dict[str, Any]:
    """At temperature 0: answers equal to the baseline's, and those that part from it after a small logit gap."""
    baselines = {a.unit: a for a in done if a.gaps}
    counts = {"equal": 0, "different_after_small_gap": 0, "different": 0}
    for answer in done:
        baseline = baselines.get(answer.unit)
        if answer.gaps or baseline is None:
            continue
        pairs = zip(answer.tokens, baseline.tokens, strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if first is None:
            counts["equal"] += 1
        else:
            counts["different_after_small_gap" if min(baseline.gaps[: first + 1]) < GAP else "different"] += 1
    return counts


def report(found: list[Figures], source: dict[str, Any], greedy: dict[str, Any] | None) -> None:
    """The two tables, acceptance and speed, and what their columns mean."""
    width, depth, budget = (source["shape"][name] for name in ("width", "depth", "budget"))
    shared.out.print(
        f"{source['target']}, {source['dtype']}, {source['device']}, {source['threads']} threads; "
        f"draft {source['draft']}\nwidth {width}, depth {depth}, budget {budget}, T = {source['temperature']:g}, "
        f"support {source['support'] or 'full'}, {found[0].answers} answers a method",
        highlight=False,
    )
    if source["fault"]:
        shared.out.print(f"planted fault: {source['fault']}", style="bold red", highlight=False)
    acceptance, speed = _table(ACCEPTANCE), _table(SPEED)
    for each in found:
        acceptance.add_row(
            each.method,
            f"{each.tau:.3f}",
            _number(each.tau_std),
            _interval(each.difference),
            _number(each.expected_tau),
            _interval(each.expected_difference),
            " ".join(f"{p:.2f}" for p in each.by_depth) or "-",
        )
        speed.add_row(
            each.method,
            f"{each.tokens_per_second:.1f}",
            "-" if each.speed_up is None else f"{each.speed_up.mean:.2f}x",
            "-" if each.speed_up is None else f"[{each.speed_up.low:.2f}, {each.speed_up.high:.2f}]",
            _milliseconds(each.drafting),
            _milliseconds(each.verifying),
        )
    show(acceptance, "accepted")
    show(speed)
    for note in NOTES:
        shared.out.print(note, style="dim", highlight=False)
    if greedy is not None:
        shared.out.print(
            f"T = 0: {greedy['equal']} answers equal the baseline's, {greedy['different_after_small_gap']} part "
            f"from it after a top-2 logit gap below {GAP:g}, {greedy['different']} without one",
            highlight=False,
        )
    if not source["finished"]:
        shared.out.print("interrupted: only questions that every method has answered are counted", highlight=False)


def _interval(value: Interval | None) -> str:
    if value is None:
        return "-"
    bounds = "" if math.isnan(value.low) else f" [{value.low:+.2f}, {value.high:+.2f}]"
    return f"{value.mean:+.3f}{bounds}"


def _table(headings: tuple[str, ...]) -> Table:
    table = blank_table()
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("method", "accepted") else "right")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{1000 * value:.0f} ms"
