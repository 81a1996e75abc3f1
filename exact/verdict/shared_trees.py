"""Draft trees and their checks, made once for all methods that draft alike on the same models.

What is remembered lives as long as the models. It stands outside of the reference code, which holds no state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

from exact.enumeration.tree_classes import TreeClass, classes
from exact.verdict.every_target import TreeChecks, check_drafting
from exact.verdict.wide_drafting import listed
from rheo_core import ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix

KEPT = 5_000
"""Classes that are kept as trees; more stand in a table."""

T = TypeVar("T")
OfTrees = Callable[[TreeMethod, ModelPair, Prefix, TreeShape], T]


def once_per_drafting(function: OfTrees[T]) -> OfTrees[T]:
    """Remember what `function` gives for methods with the same leads, proxy and construction."""
    known: WeakKeyDictionary[ModelPair, dict[Hashable, tuple[TreeMethod, T]]] = WeakKeyDictionary()

    @wraps(function)
    def remembered(method: TreeMethod, models: ModelPair, prefix: Prefix, shape: TreeShape) -> T:
        found = known.setdefault(models, {})
        key = prefix, shape, method.leads(shape), id(method.proxy), method.construction
        if key not in found:  # the method is kept too: an id is its proxy's own only while that lives
            found[key] = method, function(method, models, prefix, shape)
        return found[key][1]

    return remembered


@once_per_drafting
def enumerate_trees(method: TreeMethod, models: ModelPair, prefix: Prefix, shape: TreeShape) -> Sequence[TreeClass]:
    """Give the classes of a method's draft trees: as a table where the method is the paper's and the rows are exact."""
    table = listed(method, models, prefix, shape)
    if table is None:
        return classes(method.drafter(models, shape), prefix, shape)
    return table if len(table) > KEPT else list(table)


@once_per_drafting
def checked_trees(method: TreeMethod, models: ModelPair, prefix: Prefix, shape: TreeShape) -> TreeChecks:
    """Give the checks of a method's draft trees that need no target."""
    return check_drafting(method, models, prefix, shape, enumerate_trees(method, models, prefix, shape))
