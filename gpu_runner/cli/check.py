"""`gpu_runner check`: a preflight of a pair, in seconds."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from rheo_core import InvalidInput


@options.bundled
def command(
    *,
    models: options.ModelOptions,
    tree: options.ShapeOptions = options.ShapeOptions(width=10, depth=8, budget=59),
    length: Annotated[int, typer.Option("--length", help="Tokens an answer, for memory and time.")] = 512,
    plain: options.Plain = False,
    output: options.OutputOptions,
) -> int:
    """Look at a pair before long runs: weights, template, RoPE, layers read, vocabularies, memory, time of a table.

    Exit code: 0 ready, 2 something stands in the way (the last line says what, and what to do).
    """
    options.need_torch()
    from gpu_runner.measure.preflight import preflight
    from gpu_runner.measure.provenance import provenance

    target, draft = models.load()
    found = list(preflight(target, draft, tree.shape, length, plain))
    if not output.as_json:
        table = blank_table()
        for heading in ("subject", "found"):
            table.add_column(heading)
        for each in found:
            table.add_row(each.subject, Text(each.found, style="" if each.remedy is None else "red"))
        show(table, "found")
    source = provenance(target, draft, shape=vars(tree.shape), length=length, plain=plain)
    output.deliver({"command": "check", "provenance": source, "results": [asdict(each) for each in found]})
    for each in found:
        if each.remedy is not None:
            raise InvalidInput(each.subject, each.found, each.remedy)
    if not output.as_json:
        shared.out.print("ready", style="green")
    return 0
