"""tau and the first token's distribution of a small tree over a whole vocabulary, class by class.

A class is a tree of a few drafted tokens; what a rule of `rheo_core` accepts at one of its nodes depends on p and q~ at
these tokens alone, since sum max(0, p - q~) = 1 - sum over the support of q~ of min(p, q~). So no node law over the
vocabulary is formed but the root's, once. Any other part than `rheo_core`'s own takes the enumeration.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np

from exact.acceptance.one_pool import Emitted, in_rationals, scaled
from exact.enumeration.rationals import ONE, ZERO, fraction
from exact.verdict.identity import known_tree_method, verifier_name
from exact.verdict.wide_drafting import listed
from rheo_core import SAMPLED, Method, ModelPair, Tree, TreeMethod, TreeShape
from rheo_core.models import Prefix
from rheo_core.pool import Drafter
from rheo_core.tree import LEAD, ROOT

BY_NODE = "closed forms at each node of each class"
"""The way to these figures, as the commands name it."""

Key = tuple[int, int]
"""What a node's law depends on: Y (-1: pruned or none) and the number of leads that are tried before it."""


@dataclass(frozen=True)
class TreeSums:
    """tau, the expected number of sampled nodes that are kept, the first token's distribution, and the classes."""

    acceptance_length: Fraction
    sampled_kept: Fraction
    first: Emitted
    classes: int

    @classmethod
    def of(cls, method: Method, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()) -> TreeSums | None:
        """The sums at `prefix`; None where a part of the method is not known or its proxy cannot be grown."""
        if not known_tree_method(method):
            return None
        known, exact = cast(TreeMethod, method), in_rationals(pair, prefix)
        found = listed(known, exact, prefix, shape)
        if found is None:
            return None
        nodes = _NodeRates(verifier_name(known.verify) or "", known.drafter(exact, shape))
        accepted, kept = ZERO, ZERO
        roots: dict[Key, Any] = defaultdict(lambda: ZERO)
        for each in found:
            total, key = nodes.expected(each.tree, prefix)
            accepted += each.probability * total
            kept += each.probability * int(np.count_nonzero(each.tree.kind == SAMPLED))
            roots[key] += each.probability
        first = nodes.emitted(prefix, roots)
        return cls(1 + fraction(accepted), fraction(kept), first, len(found))


class _NodeRates:
    """The acceptance of candidates at the nodes of trees, each computed once."""

    def __init__(self, rule: str, drafter: Drafter) -> None:
        self.rule, self.drafter = rule, drafter
        self._mass: dict[tuple[Prefix, int], Any] = {}
        self._known: dict[tuple[Prefix, int, int, int, int], Any] = {}

    def expected(self, tree: Tree, prefix: Prefix) -> tuple[Any, Key]:
        """The expected number of accepted nodes of one tree, and what the root's law depends on."""
        kinds, parents, tokens = tree.kind.tolist(), tree.parent.tolist(), tree.token.tolist()
        sampled, leads = dict[int, int](), defaultdict[int, int](int)
        for kind, parent, token in zip(kinds, parents, tokens, strict=True):
            if kind == SAMPLED:
                sampled[parent] = token
            leads[parent] += kind == LEAD
        reached: list[Any] = []
        contexts: list[Prefix] = []
        for kind, parent, token in zip(kinds, parents, tokens, strict=True):
            context, above = (prefix, ONE) if parent == ROOT else (contexts[parent], reached[parent])
            contexts.append((*context, token))
            y = sampled.get(parent, -1)
            reached.append(above * self.rate(context, token, kind, y, leads[parent]) if above else ZERO)
        return sum(reached), (sampled.get(ROOT, -1), leads[ROOT])

    def rate(self, context: Prefix, token: int, kind: int, y: int, leads: int) -> Any:
        """The probability that a candidate is accepted at one node, whatever other candidates are there."""
        key = context, token, kind, y, leads if self.rule == "rrsw" else 0
        if key not in self._known:
            self._known[key] = self._rate(context, token, kind, y, leads)
        return self._known[key]

    def _rate(self, context: Prefix, token: int, kind: int, y: int, leads: int) -> Any:
        p = self.drafter.pair.p(context)
        tail = self.drafter.tail(context)
        if y == -1 or tail is None or self.rule == "vanilla" or (self.rule == "rrsw" and kind == LEAD):
            return p[token]
        left = self.left(context, leads)  # r = p / left is tested against q~
        tested = min(ONE, p[y] / (left * tail[y])) if left else ONE
        if kind == SAMPLED:
            return left * tested
        over = max(ZERO, p[token] - left * tail[token])  # of r - q~, times left
        mass = self.mass(context, leads)
        return (1 - tested) * over / mass if mass else ZERO

    def left(self, context: Prefix, leads: int) -> Any:
        """p outside the leads that RRSw tries before Y; 1 for the other rules."""
        if self.rule != "rrsw":
            return ONE
        pool, pair = self.drafter.pool(context), self.drafter.pair
        return 1 - sum((pair.p(context)[pair.target_id(token)] for token in pool.leads[:leads]), ZERO)

    def mass(self, context: Prefix, leads: int) -> Any:
        """Sum of max(0, r - q~): 1 less what p and q~ share on the support of q~."""
        at = context, leads if self.rule == "rrsw" else 0
        if at not in self._mass:
            p, left = self.drafter.pair.p(context), self.left(context, leads)
            tail = self.drafter.tail(context)
            drawn = [] if tail is None else np.flatnonzero(tail != 0).tolist()
            shared = sum((min(p[v] / left, tail[v]) for v in drawn), ZERO) if left and tail is not None else ONE
            self._mass[at] = 1 - shared
        return self._mass[at]

    def emitted(self, prefix: Prefix, roots: dict[Key, Any]) -> Emitted:
        """The first token's distribution: the root's law for each Y, weighted by the classes that keep it."""
        p, tail = self.drafter.pair.p(prefix), self.drafter.tail(prefix)
        pool, pair = self.drafter.pool(prefix), self.drafter.pair
        plain, extra = ZERO, defaultdict[int, Any](lambda: ZERO)
        above: dict[int, Any] = defaultdict(lambda: ZERO)  # by leads tried: the weight of r = norm(max(0, p - left q~))
        for (y, leads), weight in roots.items():
            if y == -1 or tail is None or self.rule == "vanilla":
                plain += weight
                continue
            tried = leads if self.rule == "rrsw" else 0
            for token in pool.leads[:tried]:
                extra[pair.target_id(token)] += weight * p[pair.target_id(token)]
            left = self.left(prefix, leads)
            tested = min(ONE, p[y] / (left * tail[y])) if left else ONE
            extra[y] += weight * left * tested
            if self.mass(prefix, leads):
                above[tried] += weight * (1 - tested) / self.mass(prefix, leads)
        whole, scale = scaled(p.tolist())
        rows = [(plain, whole, scale)]
        for tried, factor in above.items():
            left, gone = self.left(prefix, tried), {pair.target_id(token) for token in pool.leads[:tried]}
            drawn = {} if tail is None else {v: tail[v] for v in np.flatnonzero(tail != 0).tolist()}
            over = list(whole)
            fine = scaled([left * share for share in drawn.values()] or [ZERO])
            over = [weight * fine[1] for weight in over]
            for v, take in zip(drawn, fine[0], strict=False):
                over[v] = max(0, over[v] - take * scale)
            for v in gone:
                over[v] = 0
            rows.append((factor, over, scale * fine[1]))
        return _mixed(whole, scale, rows, extra)


def _mixed(whole: list[int], scale: int, rows: list[tuple[Any, list[int], int]], extra: dict[int, Any]) -> Emitted:
    """The sum of rows of whole numbers over their scales, each times a factor, and of single entries."""
    factors = [(fraction(factor) / of, row) for factor, row, of in rows]
    singles = {v: fraction(value) for v, value in extra.items()}
    (_, common) = scaled([*(factor for factor, _ in factors), *singles.values(), Fraction(1, scale)])
    weights = [0] * len(whole)
    for factor, row in factors:
        times = int(factor * common)
        weights = [weight + times * entry for weight, entry in zip(weights, row, strict=True)]
    for v, value in singles.items():
        weights[v] += int(value * common)
    return Emitted(whole, scale, lambda: weights, common // scale)
