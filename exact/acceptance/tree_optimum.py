"""The most that any lossless verification rule can accept from given draft trees, with a proof in rationals.

A verification rule is a joint distribution of the drafted tree T and of what is emitted. Let a(T, n) be the probability
that T is drafted and its node n is accepted, and A(w) the sum over the nodes whose path spells w. The output has the
target's distribution exactly when behind every w that is accepted the next token is the target's, so a rule is lossless
if and only if

    a(T, root) = P(T),   sum over the children c of n of a(T, c) <= a(T, n),   A(w v) <= p(v | w) A(w),

the last because the bonus token fills up what accepted tokens leave of p(v | w). The expected number of accepted tokens
is the sum of all a(T, n): a linear program.

Two programs: the rule knows the whole pruned tree (`layered=False`), or it decides at depth d from the nodes of depth
at most d + 1, with their slots and kinds, and its own past, as layer-by-layer rules do (`layered=True`). Slots and
kinds tell nothing more to a rule that knows the tree, and much to one that does not: they say what may come below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.acceptance.linear_program import Program
from exact.enumeration.rationals import ONE, ZERO, exact, exact_law, fraction, rational_models
from exact.enumeration.tree_classes import TreeClass, classes
from rheo_core import InvalidInput, ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix
from rheo_core.tree import Tree

Path = tuple[int, ...]
"""Drafted tokens from the root; () is the root."""

View = frozenset[tuple[Path, int, int]]
"""Drafted nodes that a rule sees: path, slot and kind of each, the root left out."""

TreeLaw = Mapping[View, Any]
"""The distribution of the drafted tree."""

MOST_VARIABLES = 20_000
"""Nodes of all trees together for which `best_rules` sets the program up: minutes, and hundreds of MB, beyond."""


@dataclass(frozen=True)
class TreeOptimum:
    """The largest expected number of accepted tokens, and how large the program was.

    `value` is what an exact primal solution attains and exact multipliers bound. `reached[w]` is A(w), the probability
    that the best rule accepts the tokens w.
    """

    value: Fraction
    reached: dict[Path, Fraction]
    variables: int
    constraints: int


def best_rules(
    method: TreeMethod, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()
) -> tuple[Fraction, Fraction] | None:
    """The largest tau on the method's own drafts: of rules that know the tree, and of rules that go layer by layer.

    None where the program would have more than `MOST_VARIABLES` variables.
    """
    models = rational_models(pair)
    trees = tree_law(classes(method.drafter(models, shape), prefix, shape))
    if sum(map(len, trees)) > MOST_VARIABLES:
        return None
    whole, layered = (tree_optimum(models.p, trees, prefix, layered=each).value + 1 for each in (False, True))
    return whole, layered


def tree_law(found: Iterable[TreeClass]) -> dict[View, Any]:
    """Give the distribution of the drafted tree, from its classes."""
    return merged((_view(each.tree), exact(each.probability)) for each in found)


def _view(tree: Tree) -> View:
    slots, kinds = tree.slot.tolist(), tree.kind.tolist()
    return frozenset((tree.tokens_to(node), slots[node], kinds[node]) for node in range(len(tree)))


def program(p: Callable[[Prefix], Any], trees: TreeLaw, prefix: Prefix = (), *, layered: bool = False) -> Program:
    """The linear program of the best lossless rule for the target `p` and the trees; variables are (view, path)."""
    task = Program()
    spelled: dict[Path, list[int]] = {}
    trees = trees if layered else merged((_bare(tree), mass) for tree, mass in trees.items())
    seen: TreeLaw = {View(): ONE}
    for level in range(1, 1 + max((len(path) for tree in trees for path, _, _ in tree), default=0)):
        now: TreeLaw = merged((down_to(level, tree), mass) for tree, mass in trees.items()) if layered else trees
        for view, mass in now.items():
            above = down_to(level - 1, view) if layered else view
            below: dict[Path, list[int]] = {}
            for path in sorted(path for path, _, _ in view if len(path) == level):
                below.setdefault(path[:-1], []).append(task.variable((view, path), ONE))
                spelled.setdefault(path, []).append(task.variables[view, path])
            for parent, children in below.items():
                row: dict[int, Any] = dict.fromkeys(children, ONE)
                if parent:
                    row[task.variables[above, parent]] = -mass / seen[above]
                task.at_most(row, ZERO if parent else mass)
        seen = now
    bound_by_target(task, p, spelled, prefix)
    return task


def bound_by_target(
    task: Program, p: Callable[[Prefix], Any], spelled: Mapping[Path, list[int]], prefix: Prefix = ()
) -> None:
    """Add A(w v) <= p(v | w) A(w) for each path; `spelled` holds the variables whose sum A(w) is."""
    laws: dict[Path, list[Any]] = {}
    for path, here in sorted(spelled.items()):
        context = path[:-1]
        if context not in laws:
            laws[context] = exact_law(p((*prefix, *context))).tolist()
        share = laws[context][path[-1]]
        row = dict.fromkeys(here, ONE)
        if context:
            row |= dict.fromkeys(spelled[context], -share)
        task.at_most(row, ZERO if context else share)


def merged(views: Iterable[tuple[View, Any]]) -> dict[View, Any]:
    """Add up the masses of equal views."""
    law: dict[View, Any] = {}
    for view, mass in views:
        law[view] = law.get(view, ZERO) + mass
    return law


def _bare(tree: View) -> View:
    return frozenset((path, 0, 0) for path, _, _ in tree)


def down_to(depth: int, view: View) -> View:
    """Give the nodes of a view down to a depth."""
    return frozenset(node for node in view if len(node[0]) <= depth)


def tree_optimum(
    p: Callable[[Prefix], Any], trees: TreeLaw, prefix: Prefix = (), *, layered: bool = False
) -> TreeOptimum:
    """Give the optimum for target rows `p(prefix)` [V] and the distribution of drafted trees, in rationals.

    Raises `InvalidInput` unless the trees are closed under prefixes and their masses sum to 1, and `ArithmeticError`
    where no exact proof of optimality was found.

    >>> half = [Fraction(1, 2), Fraction(1, 2)]
    >>> tree_optimum(lambda prefix: half, {frozenset([((0,), 0, 0), ((0, 1), 0, 0)]): 1}).value
    Fraction(3, 4)
    """
    law = {tree: exact(mass) for tree, mass in trees.items() if mass}
    if sum(law.values()) != 1 or not all(mass > 0 for mass in law.values()):
        raise InvalidInput("trees", len(law), "a distribution of trees, which sums to 1")
    if not all(path[:-1] in {(), *(path for path, _, _ in tree)} for tree in law for path, _, _ in tree):
        raise InvalidInput("trees", len(law), "trees that hold the parent of every node")
    task = program(p, law, prefix, layered=layered)
    if not task.variables:
        return TreeOptimum(Fraction(0), {}, 0, len(task.rows))
    values = task.solved()
    reached: dict[Path, Any] = {}
    for (_, path), column in task.variables.items():
        reached[path] = reached.get(path, ZERO) + values[column]
    return TreeOptimum(
        fraction(sum(values, ZERO)),
        {path: fraction(mass) for path, mass in reached.items()},
        len(task.variables),
        len(task.rows),
    )
