"""How large a certification is, said before it begins; what bounds it, how far it is, and what is known at a Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.progress import Progress, TaskID

from exact.cli import options
from exact.enumeration.rationals import rational_models
from exact.enumeration.size_estimate import ANNOUNCED, Work, work
from exact.methods.load import label, own_errors
from exact.methods.rows_file import Rows
from exact.verdict.graph_certificate import GraphLimits, within
from exact.verdict.identity import known_tree_method
from exact.verdict.wide_drafting import BY_TWIN, MOST_LISTED, REPLAYED, STATES
from rheo_core import InvalidInput, Method, ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix

Sized = tuple[Method, Rows | None, TreeShape, Prefix]


def announce(jobs: Sequence[Sized], limit: int | None = None) -> None:
    """Say on stderr how large the largest enumeration is, where it takes a while; refuse what `limit` does not allow.

    Classes of the paper's own parts that are too many to list are merged into a graph, which has no such number.
    """
    sizes: list[tuple[Work, Method, str]] = []
    for method, rows, shape, prefix in jobs:
        if rows is not None and isinstance(method, TreeMethod):
            pair = rational_models(ModelPair(rows.target, rows.draft, rows.ids))
            with own_errors(method):
                size = work(method.drafter(pair, shape), prefix, shape)
                merged = size.kind == "classes" and size.count > (limit or MOST_LISTED) and known_tree_method(method)
            if merged:
                options.err.print(
                    f"{label(method)} on {rows.name}: about {size.count:,} classes, too many to list: they are merged "
                    f"into a graph of at most {STATES:,} states, {REPLAYED:,} of them replayed by the layered code and "
                    f"{BY_TWIN:,} by its twin; about a minute at most; Ctrl-C stops and tells what is known",
                    highlight=False,
                )
                continue
            if limit and size.count > limit:
                raise InvalidInput("limit", limit, f"at least the {size.kind} of {label(method)}, about {size.count:,}")
            sizes.append((size, method, rows.name))
    if sizes:
        largest, method, where = max(sizes, key=lambda size: size[0].seconds)
        if largest.seconds > ANNOUNCED:
            options.err.print(f"{label(method)} on {where}: {largest}; Ctrl-C stops", highlight=False)


@contextmanager
def followed(progress: Progress, task: TaskID, limit: int | None = None) -> Iterator[None]:
    """Within, a graph keeps to `limit`, says how far it is in the bar, and at a Ctrl-C what is known by then."""

    def tick(what: str, done: int, of: int) -> None:
        progress.update(task, description=f"{what}, {done:,} of {of:,}" if of else what)

    try:
        with within(GraphLimits(limit or MOST_LISTED, STATES, tick)):
            yield
    except KeyboardInterrupt as error:
        for note in getattr(error, "__notes__", []):
            options.err.print(note, highlight=False, markup=False)
        raise
