"""The best draft trees that do not know the target, with the best lossless rule on them: an upper bound in rationals.

The distribution P of the drafted tree becomes a variable too. It is one for a whole family of targets (a tree that knew
p would draft from p and lose nothing); each target has its own best rule on it. What the draft model says enters
through the family alone: which targets are likely, where the draft's rows are q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, islice, product
from typing import Any

from exact.acceptance.linear_program import Program
from exact.acceptance.tree_optimum import Path, bound_by_target
from exact.enumeration.rationals import ONE, ZERO, exact, fraction
from rheo_core import InvalidInput, TreeShape
from rheo_core.models import Prefix

MOST_TREES = 3_000
"""Trees that a program takes: each has a variable for every node and target."""

Paths = frozenset[Path]


@dataclass(frozen=True)
class DraftOptimum:
    """The best distribution over trees, its value, and the expected number of accepted tokens for each target."""

    value: Fraction
    trees: dict[Paths, Fraction]
    accepted: tuple[Fraction, ...]


def all_trees(size: int, shape: TreeShape) -> Iterator[Paths]:
    """Yield every tree of at most R nodes over `size` tokens: at most K children a node, K parents a level, depth D."""

    def below(parents: Sequence[Path], left: int, depth: int) -> Iterator[tuple[Path, ...]]:
        yield ()
        if depth == 0 or left == 0:
            return
        choices = [
            [chosen for n in range(min(shape.width, left) + 1) for chosen in combinations(range(size), n)]
            for _ in parents
        ]
        for families in product(*choices):
            level = [(*parent, token) for parent, chosen in zip(parents, families, strict=True) for token in chosen]
            if 0 < len(level) <= left and sum(map(bool, families)) <= shape.width:
                for deeper in below(level, left - len(level), depth - 1):
                    yield (*level, *deeper)

    yield from map(frozenset, below([()], shape.budget, shape.depth))


def draft_optimum(
    targets: Sequence[Callable[[Prefix], Any]],
    size: int,
    shape: TreeShape,
    weights: Sequence[Any] | None = None,
    prefix: Prefix = (),
) -> DraftOptimum:
    """Give the largest weighted mean over the targets of accepted tokens; without weights, the largest worst case.

    `targets` give rows [V = size]. Raises `InvalidInput` for more than `MOST_TREES` trees.

    >>> always = [lambda prefix, token=token: [Fraction(token == v) for v in range(3)] for token in range(3)]
    >>> draft_optimum(always, 3, TreeShape(2, 1, 2)).value
    Fraction(2, 3)
    """
    trees = list(islice(all_trees(size, shape), MOST_TREES + 1))
    if len(trees) > MOST_TREES:
        raise InvalidInput("shape", f"more than {MOST_TREES} trees over {size} tokens", f"at most {MOST_TREES}")
    largest = [tree for tree in trees if not any(tree < other for other in trees)]  # a rule may ignore nodes
    task = Program()
    chances = [task.variable(("tree", tree)) for tree in largest]
    task.at_most(dict.fromkeys(chances, ONE), ONE)
    worst = None if weights is not None else task.variable("worst", ONE)
    nodes: list[list[int]] = []
    for number, target in enumerate(targets):
        worth = ZERO if weights is None else exact(weights[number])
        spelled: dict[Path, list[int]] = {}
        for tree, chance in zip(largest, chances, strict=True):
            children: dict[Path, list[int]] = {}
            for path in sorted(tree, key=len):
                here = task.variable((number, tree, path), worth)
                spelled.setdefault(path, []).append(here)
                children.setdefault(path[:-1], []).append(here)
            for parent, below in children.items():
                above = task.variables[number, tree, parent] if parent else chance
                task.at_most(dict.fromkeys(below, ONE) | {above: -ONE}, ZERO)
        bound_by_target(task, target, spelled, prefix)
        nodes.append(list(chain.from_iterable(spelled.values())))
        if worst is not None:
            task.at_most({worst: ONE} | dict.fromkeys(nodes[-1], -ONE), ZERO)
    values = task.solved()
    accepted = tuple(fraction(sum((values[node] for node in each), ZERO)) for each in nodes)
    value = sum((x * y for x, y in zip(task.objective, values, strict=True)), ZERO)
    masses = {tree: fraction(values[chance]) for tree, chance in zip(largest, chances, strict=True) if values[chance]}
    return DraftOptimum(fraction(value), masses, accepted)
