"""`gpu_runner rows`: the rows file of a user's own pair and prompt, for `rheo-exact certify --rows`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exact.cli import options as shared
from gpu_runner.cli import options


@options.bundled
def command(
    *,
    prompt: options.Prompt = "Name a colour.",
    tokens: Annotated[int, typer.Option("--tokens", help="Size of the tiny vocabulary: the target's best tokens.")] = 5,
    levels: Annotated[int, typer.Option("--levels", help="Longest prefix; certify needs its --depth.")] = 3,
    models: options.ModelOptions = options.ModelOptions(threads=0),
    plain: options.Plain = False,
    output: options.OutputOptions = options.OutputOptions(save=Path("rows.json")),
) -> int:
    """Write next-token logits of your own pair of models, for rheo-exact to certify methods on."""
    options.need_torch()
    from gpu_runner.audit.export_rows import check_size, rows_document
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.model.chat import prompt_ids

    check_size(tokens, levels)
    target, draft = models.load()
    ids = prompt_ids(target, [{"role": "user", "content": prompt}], plain)
    document = rows_document(target, draft, ids, tokens, levels)
    source = provenance(target, draft, prompt=prompt, prompt_tokens=len(ids), plain=plain)
    output.deliver({"source": source, **document})
    if not output.as_json and output.save is not None:
        words = " ".join(repr(each["text"]) for each in document["vocabulary"])
        counted = f"{len(document['contexts'])} prefixes of {words}"
        shared.out.print(f"{counted} -> {output.save}", highlight=False, markup=False)
        shared.out.print(f"rheo-exact certify --rows {output.save} --depth {levels}", style="dim", highlight=False)
    return 0
