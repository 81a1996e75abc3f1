"""The drafting checks where classes are many: by columns, by a graph, and by replays of the layered code.

Up to `MOST_LISTED` classes all are listed and each is replayed by the batched twin of the layered code. Beyond, growths
are merged into a graph, which counts the classes; then only a sample can be replayed, and what is said of the rest
rests on the theorem and on the parts being the theorem's. The replays of a sample are made by the reference itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.enumeration.batched_layered import LayeredBatch, TooManyScores
from exact.enumeration.class_checks import ClassChecks
from exact.enumeration.class_table import ClassTable, class_sample, class_table
from exact.enumeration.context_states import States, read_states
from exact.enumeration.growth_graph import GrowthGraph, PoolTables, growth_graph
from exact.enumeration.rationals import fraction
from exact.enumeration.size_estimate import work
from exact.enumeration.tree_classes import TreeClass
from exact.methods.rows_file import Rows
from exact.verdict.identity import known_tree_method
from rheo_core import Method, TreeMethod, TreeShape
from rheo_core.growth import NotGrowable
from rheo_core.models import ModelPair, Prefix
from rheo_core.pool import Drafter, Pool

MOST_LISTED = 150_000
"""Classes that are listed and replayed each."""

FEW = 10_000
"""Growths that cannot be more than so many are not estimated."""

REPLAYED, BY_TWIN = 2_000, 8_000
"""Classes of a sample that the reference replays, and those that its twin does, the same among them."""

CHECKED_BY_REFERENCE = 100
"""Where all classes are replayed by the twin, those that the reference replays as well."""

SEED = 0
STATES = 3_000_000
"""States of a graph at most: about a minute and a gigabyte."""

Tick = Callable[[str, int, int], None]
"""Called with (what is being done, done, of how many; 0: not known)."""


def silent(what: str, done: int, of: int) -> None:
    """Show no progress."""


class PoolsByState(Drafter):
    """The same pools, each made once for all the prefixes that draft alike."""

    def __init__(self, drafter: Drafter, states: States) -> None:
        super().__init__(drafter.pair, drafter.width, drafter.m, drafter.proxy)
        self._states = states

    def pool(self, prefix: Prefix) -> Pool:
        """Give the pool at `prefix`."""
        return super().pool(self._states.standing(prefix))


def states_of(draft: Any, prefix: Prefix, shape: TreeShape, tokens: Sequence[int], m: int) -> States:
    """Which prefixes draft alike: a table of rows says it, of any other model every row is read, if they are few."""
    owner = getattr(draft, "__self__", None)
    if type(owner) is Rows and getattr(draft, "__func__", None) is Rows.draft:
        return States(prefix, owner.state, "a table of rows")
    try:
        return read_states(draft, prefix, shape.depth, tokens, m)
    except Exception:  # a prefix that growth never reads may have no row
        return States(prefix)


def expected_classes(method: Method, pair: ModelPair, prefix: Prefix, shape: TreeShape, few: int = FEW) -> int:
    """About how many classes there are; exactly 0 where listing them is no question or the parts are a user's."""
    if not known_tree_method(method) or not isinstance(method, TreeMethod):
        return 0
    drafter = method.drafter(pair, shape)
    tail = drafter.pool(prefix).tail
    draws = 0 if tail is None else sum(1 for mass in tail.tolist() if mass)
    if draws ** min(shape.budget, 64) <= few:
        return 0
    size = work(drafter, prefix, shape)
    return size.count if size.kind == "classes" else 0


def listed(method: TreeMethod, pair: ModelPair, prefix: Prefix, shape: TreeShape) -> ClassTable | None:
    """All classes as a table; None where a part is a user's, rows are floats, or growth cannot follow the proxy."""
    if pair.p(prefix).dtype.kind != "O" or not known_tree_method(method):
        return None
    try:
        return class_table(method.drafter(pair, shape), shape, States(prefix))
    except NotGrowable:
        return None


@dataclass(frozen=True)
class TableChecks:
    """The first failing class of a table, how its classes were replayed, and whether the lemmas hold."""

    failing: TreeClass | None
    how: str
    lemmas: dict[str, bool]


def check_table(
    found: ClassTable,
    method: TreeMethod,
    pair: ModelPair,
    prefix: Prefix,
    shape: TreeShape,
    first_moved: Callable[..., TreeClass | None],
    bounded: Callable[[Drafter, Prefix], bool],
) -> TableChecks:
    """Product form, replays and lemmas for all classes; `first_moved` replays classes by the reference."""
    drafter = method.drafter(pair, shape)
    tables = PoolTables(drafter, States(prefix))
    checks = ClassChecks(found, tables)
    failing = checks.first_failing()
    wrong = None if failing is None else found[failing]
    how = "by growth, whose classes are cylinders by construction"
    if method.construction != "grown":
        step = max(1, len(found) // CHECKED_BY_REFERENCE)
        sample = found[::step]
        wrong = wrong or first_moved(sample, drafter, prefix, shape)
        try:
            moved = LayeredBatch(tables, shape, found).first_moved()
            wrong = wrong or (None if moved is None else found[moved])
            how = f"each class handed to the layered code's batched twin with adversarial fillings, {len(sample)} of "
            how += "them to the code itself"
        except TooManyScores:
            wrong = wrong or first_moved(found, drafter, prefix, shape)
            how = "each class handed to the layered code with adversarial fillings"
    lemmas = {
        "Lemma 4": all(bounded(drafter, tables.states.prefix(state)) for state in checks.states),
        "Lemma 5": checks.children_below(),
        **checks.lemma_7(),
    }
    return TableChecks(wrong, how, lemmas)


@dataclass(frozen=True)
class Replays:
    """Distinct classes of a seeded sample that were replayed, and the probability that they hold together."""

    by_reference: int
    reference_mass: Fraction
    by_twin: int
    twin_mass: Fraction
    moved: TreeClass | None

    def __str__(self) -> str:
        code = f"{self.by_reference:,} classes replayed by the layered code (mass {float(self.reference_mass):.3g})"
        twin = f"{self.by_twin:,} by its batched twin (mass {float(self.twin_mass):.3g})"
        return (
            f"{code} and {twin}, undrawn slots filled in turn with the most and the least probable token, by the twin "
            f"with both, seed {SEED}"
        )


@dataclass
class WideDrafting:
    """The drafting of one tree by a graph, as far as it has come."""

    method: TreeMethod
    pair: ModelPair
    prefix: Prefix
    shape: TreeShape
    states: States
    graph: GrowthGraph | None = None
    replays: Replays | None = None
    counted: tuple[int, int] = (0, 0)

    def count(self, tick: Tick = silent, most: int = STATES) -> GrowthGraph:
        """Merge all growths; raises `NotGrowable` and `TooManyStates`."""

        def done(nodes: int, states: int) -> None:
            self.counted = nodes, states
            tick(f"{states:,} states", nodes, self.shape.budget)

        self.graph = growth_graph(self._drafter(), self.shape, self.states, most, done)
        return self.graph

    def replay(
        self, first_moved: Callable[..., TreeClass | None], fillings: Sequence[Any], tick: Tick = silent
    ) -> Replays:
        """Replay a seeded sample of distinct classes, drawn by their probability."""
        drafter = self._drafter()
        tick("drawing classes", 0, 0)
        sample = class_sample(drafter, self.shape, self.states, BY_TWIN, SEED)
        masses = [fraction(each) for each in sample.probabilities]
        moved, done = None, 0
        by_state = PoolsByState(drafter, self.states)
        for start in range(0, min(REPLAYED, len(sample)), 100):
            part = sample[start : start + 100]
            for which, filling in enumerate(fillings):
                share = part[which :: len(fillings)]
                moved = moved or first_moved(share, by_state, self.prefix, self.shape, (filling,))
            done = start + len(part)
            self.replays = Replays(done, sum(masses[:done], Fraction(0)), 0, Fraction(0), moved)
            tick("replaying classes", done, min(REPLAYED, len(sample)))
        try:
            batch, twins = LayeredBatch(PoolTables(drafter, self.states), self.shape, sample), len(sample)
            place = batch.first_moved(lambda at: tick("replaying classes by the twin", at, len(sample)))
            moved = moved or (None if place is None else sample[place])
        except TooManyScores:
            twins = 0
        self.replays = Replays(done, sum(masses[:done], Fraction(0)), twins, sum(masses[:twins], Fraction(0)), moved)
        return self.replays

    def _drafter(self) -> Drafter:
        return self.method.drafter(self.pair, self.shape)

    def known(self) -> str:
        """What is known so far, in one line."""
        if self.graph is None:
            nodes, states = self.counted
            return f"{states:,} states after {nodes} of {self.shape.budget} nodes; classes not counted yet"
        said = f"{self.graph.classes:,} classes in {self.graph.states:,} states"
        return said if self.replays is None else f"{said}; {self.replays}"
