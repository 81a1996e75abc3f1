"""How much a method accepts, exactly: one layer against the optimum of its own draft law, and the whole dynamic tree.

Theorem 3 is about a pool of fixed size; in a tree the number of survivors depends on what was drawn. The acceptance
length here is therefore enumerated, class by class or branch by branch, on the rows that are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from exact.acceptance.layer_verdict import WIDE
from exact.acceptance.one_pool import CLOSED, ENUMERATED, OneLayerTree
from exact.acceptance.tree_sums import BY_NODE, TreeSums
from exact.enumeration.cycle_law import acceptance_by_depth, cycle_law
from exact.enumeration.fixed_trees import FixedTreeMethod, node_at
from exact.enumeration.rationals import ZERO, fraction, rational_models
from exact.methods.load import label, own_errors
from exact.methods.optimum import optimum, pool_law
from exact.runtime.journal import Journal, resumed
from rheo_core import Chooser, InvalidInput, Method, ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix
from rheo_core.tree import ROOT, SAMPLED


def acceptance_length(method: Method, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()) -> Fraction:
    """tau: expected tokens of one cycle at `prefix`, the target's own included; float rows count as rationals.

    >>> from rheo_core import methods
    >>> row = [Fraction(1, 2), Fraction(1, 2)]
    >>> acceptance_length(methods["top-k"], ModelPair(lambda prefix: row, lambda prefix: row), TreeShape(1, 2, 2))
    Fraction(7, 4)
    """
    return length_and_survival(method, pair, shape, prefix)[0]


def length_and_survival(
    method: Method, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()
) -> tuple[Fraction, Fraction | None]:
    """tau, and the expected number of sampled slots that survive pruning (section 5.3); None without draft trees.

    The second is counted over the classes: a sampled token that is pruned away cannot be accepted, whatever the target.
    """
    length, kept, _ = measured(method, pair, shape, prefix)
    return length, kept


def measured(
    method: Method, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()
) -> tuple[Fraction, Fraction | None, str]:
    """What `length_and_survival` gives, and the way to it: closed forms where the method's parts are known."""
    layer = OneLayerTree.of(method, pair, shape, prefix)
    if layer is not None:
        return 1 + layer.acceptance, layer.sampled_kept, CLOSED
    sums = TreeSums.of(method, pair, shape, prefix) if len(pair.p(prefix)) >= WIDE else None
    if sums is not None:
        return sums.acceptance_length, sums.sampled_kept, BY_NODE
    emitted, found = cycle_law(method, rational_models(pair), prefix, shape)
    length = sum(acceptance_by_depth(emitted, shape.depth), Fraction(0))
    if found is None:
        return length, None, ENUMERATED
    kept = (each.probability * np.count_nonzero(each.tree.kind == SAMPLED) for each in found)
    return length, fraction(sum(kept, ZERO)), ENUMERATED


def drafted_sets(method: Method, pair: ModelPair, width: int, prefix: Prefix = ()) -> dict[frozenset[int], Any]:
    """The law over the sets of candidates that the method drafts at one parent, all `width` slots kept."""
    if isinstance(method, FixedTreeMethod):
        node = node_at(pair, prefix, (), method.topology(TreeShape(width, 1, width)).get((), 0))
        return pool_law(lambda chooser: [token for token, _ in method.draft(node, chooser)])
    shape = TreeShape(width, 1, width)

    def drafted(chooser: Chooser) -> list[int]:
        tree = method.cycle(pair.p, pair.given_draft, prefix, shape, chooser, pair.ids).tree
        return [int(token) for token in tree.token[tree.parent == ROOT]]

    return pool_law(drafted)


@dataclass(frozen=True)
class OneLayer:
    """Acceptance at one parent, and the most that any lossless rule could accept from the same drafts."""

    acceptance: Fraction
    optimum: Fraction | None

    @property
    def gap(self) -> Fraction | None:
        """What is left to gain without drafting differently; None where the drafts are not known."""
        return None if self.optimum is None else self.optimum - self.acceptance


def one_layer(method: Method, pair: ModelPair, width: int, prefix: Prefix = ()) -> OneLayer:
    """Give one layer with all `width` slots kept; no optimum for a cycle function that returns tokens but no tree.

    By closed forms where the method's parts are known, else by enumeration.
    """
    layer = OneLayerTree.of(method, pair, TreeShape(width, 1, width), prefix)
    if layer is not None:
        return OneLayer(layer.acceptance, layer.optimum)
    rational = rational_models(pair)
    accepted = acceptance_length(method, pair, TreeShape(width, 1, width), prefix) - 1
    drafts = drafted_sets(method, rational, width, prefix)
    if accepted and not any(drafts):
        return OneLayer(accepted, None)
    return OneLayer(accepted, optimum(rational.p(prefix), drafts).value)


def over_leads(method: Method, shape: TreeShape, leads: Iterable[int] | None = None) -> Iterator[TreeMethod]:
    """Yield the method at every m (the rheostat), 0..K unless given. At m = K the pool is the plain top-K."""
    if not isinstance(method, TreeMethod) or method.lead is None:
        raise InvalidInput("method", method.name, "a tree method that has a lead m to sweep")
    for lead in range(shape.width + 1) if leads is None else leads:
        yield replace(method, lead=lead)


@dataclass(frozen=True)
class Costs:
    """What a cycle takes, in any one unit of time: a draft step (one a level), a verify step, and each drafted node."""

    draft: float
    verify: float
    node: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("draft", self.draft), ("verify", self.verify), ("node", self.node)):
            if not 0 <= value < float("inf"):
                raise InvalidInput(f"{name} cost", value, "a finite number of at least 0")
        if not self.draft + self.verify > 0:
            raise InvalidInput("costs", (self.draft, self.verify), "a positive cost of a cycle")

    def cycle(self, shape: TreeShape) -> float:
        """Cost of one cycle: D draft steps, one verify step, R nodes."""
        return shape.depth * self.draft + self.verify + shape.budget * self.node


@dataclass(frozen=True)
class Choice:
    """One way to run, with the tokens that it brings a cycle and a unit of time."""

    method: Method
    shape: TreeShape
    acceptance_length: Fraction
    speed: float


def choices(
    methods: Sequence[Method],
    pairs: Sequence[ModelPair],
    shapes: Sequence[TreeShape],
    costs: Costs,
    prefix: Prefix = (),
    *,
    executor: Executor | None = None,
    journal: Journal | None = None,
) -> Iterator[Choice]:
    """Yield every method at every shape, tau at `prefix` averaged over the pairs; jobs for any executor."""
    ways = [(method, shape) for method in methods for shape in shapes]
    jobs = {
        f"{number}: mean tau of {label(method)}, D = {shape.depth}, R = {shape.budget}, K = {shape.width}": number
        for number, (method, shape) in enumerate(ways)
    }
    means = resumed(partial(_mean_length, ways, pairs, prefix), jobs, executor, journal)
    for (method, shape), mean in zip(ways, means, strict=True):
        yield Choice(method, shape, mean, float(mean) / costs.cycle(shape))


def _mean_length(
    ways: Sequence[tuple[Method, TreeShape]], pairs: Sequence[ModelPair], prefix: Prefix, which: int
) -> Fraction:
    method, shape = ways[which]
    with own_errors(method):
        lengths = [acceptance_length(method, pair, shape, prefix) for pair in pairs]
    return fraction(sum(lengths, Fraction(0)) / len(lengths))


def shapes_within(shape: TreeShape) -> list[TreeShape]:
    """Give every depth and budget up to the given ones, at the given width, that differ in their trees.

    More nodes than a full tree of the depth are the full tree.
    """
    width = shape.width
    return [
        TreeShape(width, depth, budget)
        for depth in range(1, shape.depth + 1)
        for budget in range(depth, min(shape.budget, width + width * width * (depth - 1)) + 1)
    ]
