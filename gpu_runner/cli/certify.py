"""`gpu_runner certify`: the whole engine on tiny random models, every draw and coin walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from exact.cli import options as shared
from exact.cli.tables import blank_table, show
from gpu_runner.cli import options
from rheo_core import InvalidInput, TreeMethod, TreeShape

if TYPE_CHECKING:
    from gpu_runner.certify.certify import Verdict

METHODS = ("top-k", "rheo:0", "rheo:1", "rheo:2", "rheo-rrsw", "chain")
SCOPE = "the first three tokens after one prompt, on these tiny models; ideal coins; exact up to float64 rounding"


@options.bundled
def command(
    *,
    named: options.MethodOptions,
    draft: options.Kinds = None,
    device: options.Device = "auto",
    fault: options.FaultName = None,
    output: options.OutputOptions,
) -> int:
    """Certify the engine itself: drafting, pruning, verification, cache and several cycles, on this device.

    Exit code: 0 lossless, 1 lossy (as a planted --fault must be).
    """
    options.need_torch()
    from gpu_runner.certify.certify import DRAFTS, certify_engine
    from gpu_runner.certify.faults import find_fault
    from gpu_runner.decode.methods import find_method
    from gpu_runner.model.load import find_device

    planted, place = find_fault(fault), find_device(device)
    jobs: list[tuple[str, str, TreeMethod, TreeShape]] = []
    for name in named.given or METHODS:
        method = find_method(name, TreeShape(2, 2, 3))
        if method.tree_method is None:
            raise InvalidInput("method", name, "a method that drafts")
        shape = TreeShape(3, 2, 4) if method.tree_method.lead == 2 else method.shape
        jobs += [(kind, find_method(name, shape).label, method.tree_method, shape) for kind in draft or DRAFTS]
    verdicts: list[Verdict] = []
    with shared.progress(not output.as_json) as progress:
        task = progress.add_task("certifying", total=len(jobs))
        for kind, label, tree_method, its_shape in jobs:
            verdicts.append(certify_engine(kind, label, tree_method, its_shape, place, planted))
            progress.update(task, advance=1, description=f"{label}, {kind}")
    lossless = all(verdict.lossless for verdict in verdicts)
    if not output.as_json:
        report(verdicts, fault)
    results = [{**vars(verdict), "lossless": verdict.lossless} for verdict in verdicts]
    output.deliver({"command": "certify", "device": str(place), "fault": fault, "results": results})
    return shared.LOSSLESS if lossless else shared.LOSSY


def report(verdicts: list[Verdict], fault: str | None) -> None:
    """The table of verdicts and its scope."""
    if fault is not None:
        shared.out.print(f"planted fault: {fault}", style="bold red", highlight=False)
    table = blank_table()
    for heading in ("method", "draft", "verdict", "TV"):
        table.add_column(heading, justify="right" if heading == "TV" else "left")
    for each in verdicts:
        word = "[green]lossless[/]" if each.lossless else "[red]lossy[/]"
        distance = "-" if each.total_variation is None else f"{each.total_variation:.2g}"
        table.add_row(each.method, each.draft, word if each.refusal is None else "[red]refused[/]", distance)
    show(table)
    for said in dict.fromkeys(each.refusal for each in verdicts if each.refusal is not None):
        shared.out.print(f"the engine refused: {said}", highlight=False, markup=False)
    shared.out.print(SCOPE, style="dim", highlight=False)
