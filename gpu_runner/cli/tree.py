"""`gpu_runner tree`: a real draft tree, sampled nodes and the accepted path marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree as Drawing

from exact.cli import options as shared
from exact.report import Names, Picture, draw_trees, save_figure
from exact.report.layout import KINDS
from gpu_runner.cli import options
from rheo_core import FILL, LEAD, SAMPLED, InvalidInput
from rheo_core.checks import check_count

if TYPE_CHECKING:
    from gpu_runner.decode.engine import EngineCycle

STYLES = {LEAD: "", SAMPLED: "magenta", FILL: "dim"}


@options.bundled
def command(
    *,
    prompt: options.Prompt = "Name a colour.",
    name: Annotated[str, typer.Option("--method", help="NAME or NAME:LEAD, as in rheo:0.")] = "rheo",
    models: options.ModelOptions = options.ModelOptions(threads=0),
    tree: options.ShapeOptions = options.ShapeOptions(width=3),
    sampling: options.SamplingOptions,
    cycles: Annotated[int, typer.Option("--cycles", help="Cycles to draw, one tree each.")] = 1,
    seed: shared.Seed = 0,
    fault: options.FaultName = None,
    plain: options.Plain = False,
    check: Annotated[
        bool, typer.Option("--check", help="Run each cycle again by rheo_core on the same rows and draws.")
    ] = False,
    output: options.OutputOptions,
    plot: shared.Plot = None,
) -> int:
    """Draw the draft trees of a real pair: slots, path scores, sampled nodes, what was accepted and emitted.

    With --check the exit code is 1 where a tree or a token differs from rheo_core's.
    """
    options.need_torch()
    from gpu_runner.certify.faults import find_fault
    from gpu_runner.certify.reference_diff import compare_cycle
    from gpu_runner.decode.draws import Seeded
    from gpu_runner.decode.engine import Engine
    from gpu_runner.decode.methods import find_method
    from gpu_runner.measure.provenance import provenance
    from gpu_runner.model.chat import prompt_ids

    check_count("cycles", cycles, 1)
    method = find_method(name, tree.shape, tree.lead)
    if method.tree_method is None:
        raise InvalidInput("method", name, "a method that drafts a tree")
    processing, planted, kept = sampling.processing, find_fault(fault), sampling.kept
    draws = Seeded(seed)
    target, draft = models.load()
    engine = Engine(target, draft, method.tree_method, method.shape, processing, kept, planted)
    session = engine.start(prompt_ids(target, [{"role": "user", "content": prompt}], plain))
    done, differences = [], []
    for _ in range(cycles):
        if check:
            differences.append(compare_cycle(engine, session.copy(), seed).difference)
        done.append(engine.cycle(session, draws))
    tokenizer = target.tokenizer
    if not output.as_json:
        for number, cycle in enumerate(done, 1):
            shared.out.print(drawing(cycle, tokenizer, f"{method.label}, cycle {number}"))
        shared.out.print(
            "sampled nodes magenta, fills dim; (path score, slot); accepted nodes green; -> the target's own token",
            style="dim",
            highlight=False,
        )
    if plot is not None:
        pictures = [picture(cycle, number) for number, cycle in enumerate(done, 1)]
        save_figure(draw_trees(pictures, names(tokenizer), title=method.label), plot)
    if check and not output.as_json:
        told = next((each for each in differences if each), "every tree and token equal to rheo_core's")
        shared.out.print(told, highlight=False, markup=False)
    source = provenance(
        target, draft, prompt=prompt, method=method.label, shape=vars(method.shape), seed=seed, fault=fault
    )
    drawn = [
        document(cycle, tokenizer) | ({"difference": differences[number]} if check else {})
        for number, cycle in enumerate(done)
    ]
    output.deliver({"command": "tree", "provenance": source, "cycles": drawn})
    return shared.LOSSY if any(differences) else shared.LOSSLESS


def drawing(cycle: EngineCycle, tokenizer: Any, title: str) -> Drawing:
    """One cycle's tree, in rich."""
    emitted = " ".join(word(tokenizer, token) for token in cycle.tokens)
    heading = f"{title}: {len(cycle.tree)} nodes, {len(cycle.tokens)} tokens emitted: {emitted}"
    top = Drawing(Text(heading, style="bold"))
    path = accepted_path(cycle)
    places = {-1: top}
    for node in range(len(cycle.tree)):  # parents stand before their children; siblings are added in slot order below
        places[node] = Drawing(_label(cycle, node, tokenizer, node in path))
    for node in [-1, *range(len(cycle.tree))]:
        for child in cycle.tree.children(node):
            places[node].children.append(places[child])
        if node == (path[-1] if path else -1):
            places[node].add(Text(f"-> {word(tokenizer, cycle.tokens[-1])}", style="bold yellow"))
    return top


def _label(cycle: EngineCycle, node: int, tokenizer: Any, accepted: bool) -> Text:
    tree = cycle.tree
    kind = int(tree.kind[node])
    mark = "~" if kind == SAMPLED else ""
    label = f"{mark}{word(tokenizer, int(tree.token[node]))} ({float(tree.score[node]):.3g}, {int(tree.slot[node])})"
    return Text(label, style="bold green" if accepted else STYLES[kind])


def picture(cycle: EngineCycle, number: int) -> Picture:
    """One cycle's tree, as a picture."""
    own = cycle.tokens[cycle.accepted] if cycle.accepted < len(cycle.tokens) else None
    title = f"cycle {number}: {len(cycle.tree)} nodes, {cycle.accepted} accepted"
    return Picture(cycle.tree, title, accepted=accepted_path(cycle), emitted=own)


def accepted_path(cycle: EngineCycle) -> list[int]:
    """Rows of the accepted nodes."""
    node, path = -1, []
    for token in cycle.tokens[: cycle.accepted]:
        node = next(child for child in cycle.tree.children(node) if int(cycle.tree.token[child]) == token)
        path.append(node)
    return path


def word(tokenizer: Any, token: int) -> str:
    """A token as it reads, quoted; its id where there is no tokenizer."""
    return repr(tokenizer.decode([token])) if tokenizer is not None else str(token)


def names(tokenizer: Any) -> Names:
    """What a picture calls a token: its text, or its id where there is no tokenizer."""
    return None if tokenizer is None else lambda token: tokenizer.decode([token])


def document(cycle: EngineCycle, tokenizer: Any) -> dict[str, Any]:
    """JSON-ready arrays of one cycle."""
    tree, path = cycle.tree, set(accepted_path(cycle))
    return {
        "emitted": list(cycle.tokens),
        "accepted": cycle.accepted,
        "nodes": [
            {
                "token": int(tree.token[node]),
                "text": tokenizer.decode([int(tree.token[node])]) if tokenizer is not None else None,
                "parent": int(tree.parent[node]),
                "depth": int(tree.depth[node]),
                "slot": int(tree.slot[node]),
                "kind": KINDS[int(tree.kind[node])],
                "score": float(tree.score[node]),
                "accepted": node in path,
            }
            for node in range(len(tree))
        ],
    }
