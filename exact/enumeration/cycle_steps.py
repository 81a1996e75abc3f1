"""How far the draws of a whole text are from the same draws in another arithmetic: the bound that `certify` prints.

For a tree method the draws are those of the sampled tokens and of the verifier at each node that the text reaches; for
a method on a fixed topology its answer at each parent; for any other method each draw of its cycle (`step_laws`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.node_laws import Ends, Tokens, VerifierCache, children_of
from exact.enumeration.rationals import ONE, ZERO, fraction
from exact.enumeration.step_laws import distance
from exact.enumeration.tree_classes import TreeClass
from exact.enumeration.whole_rows import WholeRow
from rheo_core.models import Prefix
from rheo_core.tree import ROOT, SAMPLED, SlotPath, Tree


@dataclass
class TreeSteps:
    """The draws of a tree method in one arithmetic: its classes, and the distribution of its verifier at each node."""

    prefix: Prefix
    classes: Sequence[TreeClass]
    laws: VerifierCache

    def expected_distance(self, other: TreeSteps) -> Any:
        """The expected sum of distances to the same draws in another arithmetic, on the trees that this one grows.

        A ranking is a ranking in any arithmetic: that of this run is kept, and the rows and the verifier compared.
        """
        tails: dict[Prefix, Any] = {}
        return sum((each.probability * self._on(each.tree, other, tails) for each in self.classes), ZERO)

    def _on(self, tree: Tree, other: TreeSteps, tails: dict[Prefix, Any]) -> Any:
        found = ZERO
        for node in np.flatnonzero(tree.kind == SAMPLED).tolist():
            context = self.prefix + tree.tokens_to(int(tree.parent[node]))
            if context not in tails:
                tails[context] = self._tails_apart(other, context)
            found += tails[context]
        slots, children = tree.slot.tolist(), children_of(tree)
        waiting: list[tuple[int, SlotPath, Tokens, Any]] = [(ROOT, (), (), ONE)]
        while waiting:
            node, path, tokens, mass = waiting.pop()
            below = children.get(node, [])
            at = tree, node, path, below, self.prefix + tokens
            (mine, my_ends), (theirs, their_ends) = self.laws.at(*at), other.laws.at(*at)
            found += mass * verdicts_apart(mine, my_ends, theirs, their_ends)
            for (token, child), weight in mine.items():
                if child != ROOT and theirs.get((token, child)):
                    waiting.append((below[child], (*path, slots[below[child]]), (*tokens, token), mass * weight))
        return found

    def _tails_apart(self, other: TreeSteps, context: Prefix) -> Any:
        mine, theirs = self.laws.drafter.tail(context), other.laws.drafter.tail(context)
        if mine is None or theirs is None:
            return ZERO if mine is theirs else ONE
        return WholeRow(mine.tolist()).distance(WholeRow(theirs.tolist()))


@dataclass
class NodeSteps:
    """The draws of a method on a fixed topology in one arithmetic: the distribution of its answer at each parent."""

    laws: dict[tuple[Prefix, SlotPath], dict[tuple[int, int], Any]]

    def expected_distance(self, other: NodeSteps) -> Any:
        """The expected sum of distances to the same answers in another arithmetic."""
        found = ZERO
        waiting: list[tuple[Tokens, SlotPath, Any]] = [((), (), ONE)]
        while waiting:
            tokens, path, mass = waiting.pop()
            mine, theirs = self.laws[tokens, path], other.laws[tokens, path]
            found += mass * distance(mine, theirs)
            waiting += [
                ((*tokens, token), (*path, child), mass * weight)
                for (token, child), weight in mine.items()
                if child != ROOT and theirs.get((token, child))
            ]
        return found


def verdicts_apart(mine: dict[Any, Any], my_ends: Ends, theirs: dict[Any, Any], their_ends: Ends) -> Any:
    """Total variation between two distributions of (token, child), whole rows included."""
    if len(my_ends) == len(their_ends) == 1:
        (mass, row), (due, right) = my_ends[0], their_ends[0]
        # |a f - b g| <= min(a, b) |f - g| + |a - b|, summed over the row
        return distance(mine, theirs) + min(mass, due) * row.distance(right) + abs(mass - due) / 2
    return distance(_with(mine, my_ends), _with(theirs, their_ends))


def _with(plain: dict[Any, Any], ends: Ends) -> dict[Any, Any]:
    found = dict(plain)
    for mass, row in ends:
        for token in row.support:
            found[token, ROOT] = found.get((token, ROOT), ZERO) + mass * row.share(token)
    return found


@dataclass
class Steps:
    """The draws of every cycle of one run, by the prefix and number of the cycle, and how probable each cycle is."""

    of: dict[tuple[Prefix, int], Any] = field(default_factory=dict)
    mass: dict[tuple[Prefix, int], Any] = field(default_factory=dict)

    def expected_distance(self, other: Steps) -> Fraction:
        """The bound: what the two texts differ by at most."""
        found = ZERO
        for at, steps in self.of.items():
            if at in other.of:
                found += self.mass[at] * steps.expected_distance(other.of[at])
        return min(Fraction(1), fraction(found))
