"""Transport at each node: a lossless rule for dynamic trees that accepts more than Algorithm 1 where pools have fills.

At a node w that was accepted, the set S of kept children has a distribution Q(S | w accepted), over everything that the
rule has not looked at. Any flow f from sets to tokens with f(S, v) > 0 only for v in S, sum over v of f(S, v) <= Q(S)
and sum over S of f(S, v) <= p(v | w) is a lossless step: accept v from S with probability f(S, v) / Q(S), and emit a
bonus token from what the flow leaves of p. The largest such flow is the optimum of one layer for this Q. Unlike
Algorithm 1 the rule needs Q, which depends on all other draws through pruning; here it is enumerated.

Largest at each node is not largest for the tree: with m = 0 the flow may prefer fills, which have no children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.acceptance.tree_optimum import Path, TreeLaw, View, down_to, merged
from exact.enumeration.rationals import ONE, ZERO, exact, fraction
from exact.methods.optimum import Flow, optimum
from rheo_core.models import Prefix


@dataclass(frozen=True)
class TransportStep:
    """What the rule does at an accepted node: Q over the sets of kept children, and the flow from sets to tokens."""

    chance: Any
    sets: dict[frozenset[int], Any]
    flow: Flow


def node_transport(p: Callable[[Prefix], Any], trees: TreeLaw, prefix: Prefix = ()) -> Fraction:
    """The expected number of tokens that the rule accepts, for target rows `p(prefix)` [V] and a law of trees."""
    accepted = (step.chance * sum(map(exact, step.flow.values()), ZERO) for _, step in steps(p, trees, prefix))
    return fraction(sum(accepted, ZERO))


def steps(p: Callable[[Prefix], Any], trees: TreeLaw, prefix: Prefix = ()) -> Iterator[tuple[Path, TransportStep]]:
    """Yield the rule, node by node from the root: each path that it can accept, with what it does there."""
    depth = max((len(path) for tree in trees for path, _, _ in tree), default=0)
    reached: dict[Path, dict[View, Any]] = {(): {View(): ONE}}  # at each accepted path, what may have been seen
    seen: TreeLaw = {View(): ONE}
    for level in range(1, depth + 1):
        now = merged((down_to(level, tree), mass) for tree, mass in trees.items())
        longer: dict[Path, dict[View, Any]] = {}
        for path, views in reached.items():
            here: dict[View, Any] = {}
            for view, mass in now.items():
                above = down_to(level - 1, view)
                if above in views:
                    here[view] = views[above] * mass / seen[above]
            chance = sum(here.values(), ZERO)
            kept = {view: children(view, path) for view in here}
            sets: dict[frozenset[int], Any] = {}
            for view, mass in here.items():
                sets[kept[view]] = sets.get(kept[view], ZERO) + mass / chance
            flow = optimum(p((*prefix, *path)), sets).flow
            yield path, TransportStep(chance, sets, flow)
            for (drafted, token), share in flow.items():
                below = longer.setdefault((*path, token), {})
                for view, mass in here.items():
                    if kept[view] == drafted:
                        below[view] = below.get(view, ZERO) + mass * exact(share) / sets[drafted]
        reached, seen = longer, now


def children(view: View, path: Path) -> frozenset[int]:
    """Give the tokens of the nodes that hang below a path."""
    return frozenset(each[-1] for each, _, _ in view if each[:-1] == path and each)
