"""`gpu_runner rows`: the rows file of a user's own pair and prompt, for `rheo-exact certify --rows`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from exact.cli import options as shared
from gpu_runner.cli import options


def command(
    prompt: options.Prompt = "Name a colour.",
    tokens: Annotated[int, typer.Option("--tokens", help="Size of the tiny vocabulary: the target's best tokens.")] = 5,
    levels: Annotated[int, typer.Option("--levels", help="Longest prefix; certify needs its --depth.")] = 3,
    target: options.Target = options.DEFAULT_TARGET,
    draft: options.DraftName = options.DEFAULT_DRAFT,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    rope_base: options.RopeBase = None,
    threads: options.Threads = 0,
    plain: options.Plain = False,
    as_json: shared.AsJson = False,
    save: shared.Save = Path("rows.json"),
) -> int:
    """Write next-token logits of your own pair of models, for rheo-exact to certify methods on."""
    options.need_torch()
    from gpu_runner.audit.export_rows import check_size, rows_document
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.model.chat import prompt_ids

    check_size(tokens, levels)
    models = options.load(target, draft, device, dtype, rope_base, threads)
    ids = prompt_ids(models.target, [{"role": "user", "content": prompt}], plain)
    document = rows_document(models.target, models.draft, ids, tokens, levels)
    source = provenance(models.target, models.draft, prompt=prompt, prompt_tokens=len(ids), plain=plain)
    shared.deliver({"source": source, **document}, as_json, save)
    if not as_json and save is not None:
        words = " ".join(repr(each["text"]) for each in document["vocabulary"])
        shared.out.print(f"{len(document['contexts'])} prefixes of {words} -> {save}", highlight=False, markup=False)
        shared.out.print(f"rheo-exact certify --rows {save} --depth {levels}", style="dim", highlight=False)
    return 0
