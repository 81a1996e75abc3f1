"""`rheo-exact classes`: the equivalence classes [U]_R, drawn as trees with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer
from rich.tree import Tree as Drawing

from exact.cli import options
from exact.enumeration.class_table import likeliest_classes
from exact.enumeration.growth_graph import TooManyStates
from exact.enumeration.rationals import fraction, rational_models
from exact.enumeration.tree_classes import BRUTE_FORCE_LIMIT, TreeClass, classes
from exact.methods.load import label, load_method, own_errors, with_lead
from exact.methods.rows_file import Rows
from exact.report import class_section, draw_sections, save_figure
from exact.runtime.executors import in_order
from exact.verdict.document import number
from exact.verdict.wide_drafting import FEW, WideDrafting, expected_classes, states_of
from rheo_core import DEFAULT_SUPPORT, InvalidInput, Method, ModelPair, Tree, TreeMethod, TreeShape
from rheo_core.checks import check_count
from rheo_core.tree import ROOT

KINDS = ("", " Y", " fill")
Limit = Annotated[int, typer.Option("--limit", help="Classes that are listed; more are counted in a graph.")]


def command(
    names: options.MethodArguments = None,
    method: options.Methods = None,
    rows: options.RowsPath = None,
    width: options.Width = 3,
    depth: options.Depth = 3,
    budget: options.Budget = 8,
    lead: options.Lead = None,
    temperature: options.Temperature = 1,
    support: options.Support = DEFAULT_SUPPORT,
    workers: options.Workers = None,
    dask: options.Dask = None,
    as_json: options.AsJson = False,
    save: options.Save = None,
    plot: options.Plot = None,
    limit: Limit = BRUTE_FORCE_LIMIT,
) -> int:
    """Print the classes of pruned trees with their probabilities, the most probable first (method: rheo).

    Beyond --limit classes they are counted in a graph, exactly, and the most probable are listed. --plot draws the most
    probable as trees: 24 of one method on one file of rows, 6 of each where there are more.
    """
    check_count("limit", limit, 1)
    shape = options.shape_of(width, depth, budget)
    rules = [with_lead(load_method(name), lead) for name in [*(names or []), *(method or [])] or ["rheo"]]
    files = options.rows_of(rows, temperature, support)
    jobs = [(tree_method(rule), each) for each in files for rule in rules]
    most = 24 if len(jobs) == 1 else 6
    entries, sections = [], []
    with options.opened(workers, dask) as executor:
        listed = in_order(partial(sorted_classes, jobs, shape, limit, most), range(len(jobs)), executor)
        for (rule, each), (count, found) in zip(jobs, listed, strict=True):
            entries.append({**_entry(label(rule), each.name, found), "count": count})
            if not as_json:
                said = f"{count:,} classes" if count == len(found) else f"{count:,} classes; the most probable found"
                _print(f"{label(rule)} on {each.name}: {said}", found)
            if plot is not None:
                sections.append(class_section(found, each.names, most=most, title=f"{label(rule)} on {each.name}"))
    if plot is not None:
        save_figure(draw_sections(sections), plot)
    options.deliver({"command": "classes", "results": entries}, as_json, save)
    return 0


def tree_method(rule: Method) -> TreeMethod:
    """Give the rule itself; raises where it is none that drafts trees."""
    if not isinstance(rule, TreeMethod):
        raise InvalidInput("method", rule.name, "a tree method: only those have classes of trees")
    return rule


def sorted_classes(
    jobs: Sequence[tuple[TreeMethod, Rows]], shape: TreeShape, limit: int, most: int, which: int
) -> tuple[int, list[TreeClass]]:
    """Give the number of classes of one job, by its own number, and the classes that are shown."""
    rule, rows = jobs[which]
    with own_errors(rule):
        models = rational_models(ModelPair(rows.target, rows.draft, rows.ids))
        if expected_classes(rule, models, (), shape, min(FEW, limit)) > limit:
            return counted(rule, models, rows, shape, most)
        found = classes(rule.drafter(models, shape), (), shape, limit)
        return len(found), sorted(found, key=lambda each: each.probability, reverse=True)


def counted(
    rule: TreeMethod, models: ModelPair, rows: Rows, shape: TreeShape, most: int
) -> tuple[int, list[TreeClass]]:
    """Give the number of all classes and the `most` probable, where they are too many to list."""
    states = states_of(rows.draft, (), shape, (), rule.leads(shape))
    wide = WideDrafting(rule, models, (), shape, states)
    options.err.print(f"{label(rule)} on {rows.name}: classes counted in a graph; Ctrl-C stops", highlight=False)
    try:
        with options.progress(True) as progress:
            task = progress.add_task("counting", total=shape.budget)
            graph = wide.count(lambda what, done, of: progress.update(task, completed=done, description=what))
            return graph.classes, list(likeliest_classes(rule.drafter(models, shape), shape, states, most))
    except TooManyStates as error:
        raise InvalidInput("shape", str(error), "a smaller budget or depth") from None
    except KeyboardInterrupt:
        options.err.print(f"known so far: {wide.known()}", highlight=False)
        raise


def _print(title: str, found: Sequence[TreeClass]) -> None:
    options.out.print(title, style="bold", highlight=False)
    for place, each in enumerate(found, 1):
        drawing = Drawing(f"class {place}: probability {float(each.probability):.6g}", highlight=False)
        _hang(drawing, each.tree, ROOT)
        options.out.print(drawing)


def _hang(drawing: Drawing, tree: Tree, node: int) -> None:
    for child in tree.children(node):
        kind = KINDS[tree.kind[child]]
        line = f"{tree.token[child]}{kind}  score {float(tree.score[child]):.4g}, rank {child + 1}"
        _hang(drawing.add(line), tree, child)


def _entry(method: str, rows: str, found: Sequence[TreeClass]) -> dict[str, object]:
    return {
        "method": method,
        "rows": rows,
        "classes": [
            {
                "probability": number(fraction(each.probability)),
                "token": each.tree.token.tolist(),
                "parent": each.tree.parent.tolist(),
                "slot": each.tree.slot.tolist(),
                "kind": each.tree.kind.tolist(),
                "score": [str(fraction(score)) for score in each.tree.score],
            }
            for each in found
        ],
    }
