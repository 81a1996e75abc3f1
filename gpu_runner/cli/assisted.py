"""`gpu_runner assisted`: transformers' assisted generation beside this engine, same pair, same run."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from gpu_runner.cli.progress import Progress
from rheo_core.checks import check_count

if TYPE_CHECKING:
    from gpu_runner.measure.assisted import Compared
    from gpu_runner.measure.bench import Answer
    from gpu_runner.measure.statistics import Interval

METHODS = ("autoregressive", "chain", "top-k", "rheo")
HEADINGS = ("decoder", "tau", "to assisted", "tokens/s", "to assisted", "drafting", "verification")
NOTES = (
    "assisted: transformers' defaults (up to 20 drafted tokens, fewer where the draft is unsure); chain of D: always D",
    "support: tokens that our methods sample a draft from; transformers' assistant samples from all of q",
    "tau: emitted / cycles, a cycle being one forward of the target; compared within questions, 95 % intervals",
    "tokens/s with the prefill; transformers prefills every turn's whole conversation; latencies: median of a cycle",
)


@options.bundled
def command(
    *,
    named: options.MethodOptions,
    models: options.PairOptions,
    tree: options.ShapeOptions,
    sampling: options.SamplingOptions,
    length: Annotated[int, typer.Option("--length", help="Tokens an answer and turn.")] = 32,
    own: options.QuestionOptions,
    questions: Annotated[int, typer.Option("--questions", help="The first so many questions; 0: all.")] = 0,
    runs: options.SeedOptions = options.SeedOptions(seeds=2),
    plain: options.Plain = False,
    output: options.OutputOptions,
) -> int:
    """Compare with transformers' generate(assistant_model=...): the same pair, questions, counting and clock.

    The draft must be one that transformers can run: skip:LAYERS or a causal LM. Without --data the built-in questions.
    """
    options.need_torch()
    from dataclasses import replace

    from gpu_runner.decode.methods import find_methods
    from gpu_runner.measure.assisted import assistant_of, compared, comparison, modes
    from gpu_runner.measure.bench import Setting
    from gpu_runner.measure.provenance import provenance

    check_count("length", length, 1)
    check_count("seeds", runs.seeds, 1)
    asked = own.read(questions)
    methods = find_methods(named.given or METHODS, tree.shape, tree.lead, sampling.kept)
    processing = sampling.processing
    target, draft = models.load()
    setting = Setting(target, draft, processing, length, plain)
    assistant_of(draft)
    ways = modes(tree.depth)
    total = len(asked) * runs.seeds * (len(methods) + len(ways))
    done: list[Answer] = []
    finished = False
    try:
        for _ in compared(replace(setting, length=min(8, length)), methods, ways, asked[:1], [runs.seed]):
            pass  # warm-up
        with Progress(total, quiet=output.as_json) as progress:
            for answer in compared(setting, methods, ways, asked, runs.all):
                done.append(answer)
                progress.advance(answer.rule)
        finished = True
    finally:
        if len(done) >= len(methods) + len(ways):
            found = comparison(done)
            source = provenance(
                target, draft, shape=vars(tree.shape), **vars(sampling), length=length, **vars(runs),
                questions=[list(each) for each in asked], finished=finished, sklearn=_has_sklearn(),
            )  # fmt: skip
            if not output.as_json:
                report(found, source)
            results = [each.document() for each in found]
            output.deliver({"command": "assisted", "provenance": source, "results": results})
    return 0


def _has_sklearn() -> bool:
    """Whether transformers tunes its confidence threshold as it goes: it needs scikit-learn for that."""
    return find_spec("sklearn") is not None


def report(found: list[Compared], source: dict[str, Any]) -> None:
    """The table and what its columns mean."""
    width, depth, budget = (source["shape"][name] for name in ("width", "depth", "budget"))
    shared.out.print(
        f"{source['target']}, {source['dtype']}, {source['device']}, {source['threads']} threads; draft "
        f"{source['draft']}\ntransformers {source['versions']['transformers']}; width {width}, depth {depth}, budget "
        f"{budget}, T = {source['temperature']:g}, support {source['support'] or 'full'}, "
        f"{found[0].answers} answers each",
        highlight=False,
    )
    table = blank_table()
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "decoder" else "right")
    for each in found:
        table.add_row(
            each.method,
            f"{each.tau:.3f}",
            _interval(each.difference, "+.2f"),
            f"{each.tokens_per_second:.1f}",
            _interval(each.ratio, ".2f", "x"),
            *("-" if value is None else f"{1000 * value:.1f} ms" for value in (each.drafting, each.verifying)),
        )
    show(table)
    for note in NOTES:
        shared.out.print(note, style="dim", highlight=False)
    if not source["finished"]:
        shared.out.print("interrupted: only questions that every decoder has answered are counted", highlight=False)


def _interval(value: Interval | None, number: str, unit: str = "") -> str:
    if value is None:
        return "-"
    bounds = "" if math.isnan(value.low) else f" [{value.low:{number}}, {value.high:{number}}]"
    return f"{value.mean:{number}}{unit}{bounds}"
