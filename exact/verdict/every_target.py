"""Losslessness for every target at a given q: the p-free certificate.

If each class of draft trees has probability equal to the product of q~ over its sampled nodes, each class is the whole
cylinder of its drawn tokens (Lemma 7 in one line), and no p appears in that. With a verifier that meets V1 and V2 below
the method is lossless whatever the target. The condition is sufficient, not necessary: where it fails, a target that
shows the loss is looked for, and without one the answer is "undecided".

V1: without the sampled node the verifier emits p and accepts a candidate c with p(c). V2: with sampled token y it emits
g_y and accepts a present c with a_c(y), both whatever other candidates are present, with sum q~ g_y = p, and
sum q~ a_c(y) = p(c) for every lead c.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from gmpy2 import mpq
from numpy.typing import ArrayLike

from exact.enumeration.class_table import ClassTable
from exact.enumeration.cycle_law import Comparison, compare
from exact.enumeration.node_laws import VerifierCache, emitted_law
from exact.enumeration.rationals import ONE, ZERO, exact_row
from exact.enumeration.size_estimate import unpruned_outcomes
from exact.enumeration.tree_classes import BRUTE_FORCE_LIMIT, TreeClass, brute_force_classes
from exact.enumeration.walk import TooManyOutcomes
from exact.verdict.identity import unknown_parts
from exact.verdict.verifier_condition import verifier_condition
from exact.verdict.wide_drafting import check_table
from rheo_core import SAMPLED, TreeMethod, TreeShape
from rheo_core.construction import layered
from rheo_core.growth import Growth, NotGrowable
from rheo_core.laws import Row
from rheo_core.models import ModelPair, Prefix
from rheo_core.pool import Drafter
from rheo_core.tree import ROOT, Tree

TRIALS = 12
DENOMINATOR = 6

Target = Callable[[Prefix], Row]


def losing_target(
    method: TreeMethod, pair: ModelPair, prefix: Prefix, shape: TreeShape, found: Sequence[TreeClass], length: int
) -> tuple[ModelPair, Comparison] | None:
    """A pair with the same draft on which the method is lossy, and the comparison that shows it; None without one."""
    for target in targets(pair, prefix):
        trial = ModelPair(target, pair.q, pair.ids)
        laws = VerifierCache(method.drafter(trial, shape), method.verify)
        compared = compare(emitted_law(found, laws, prefix), trial, prefix, length)
        if compared.wrong is not None:
            return trial, compared
    return None


def targets(pair: ModelPair, prefix: Prefix) -> Iterator[Target]:
    """Yield the targets that are tried, in order."""
    size = len(pair.p(prefix))
    yield pair.p
    yield lambda context: pair.in_target_ids(pair.q(context).score, size)
    yield _alike([mpq(1, size)] * size)
    for token in range(size):
        yield _alike([mpq(v == token) for v in range(size)])
    for two in combinations(range(size), 2):
        yield _alike([mpq(v in two) / 2 for v in range(size)])
    for seed in range(TRIALS):
        yield _random_rows(seed, size)


def _alike(row: list[object]) -> Target:
    law = exact_row(row)
    return lambda context: law


def _random_rows(seed: int, size: int) -> Target:
    def row(context: Prefix) -> Row:
        rng = random.Random(f"{seed}:{context}")
        counts = [0] * size
        for _ in range(DENOMINATOR):
            counts[rng.randrange(size)] += 1
        return exact_row([mpq(count, DENOMINATOR) for count in counts])

    return row


Filling = Callable[[list[int], ArrayLike], int]


@dataclass(frozen=True)
class TreeChecks:
    """What holds of a method's draft trees at a given q, whatever the target and the verifier.

    `classes` are those that were checked; `product` tells whether each has the product probability, `how` the way it
    was checked, `failing` the first class that has not. `lemmas` maps each lemma of appendix C to whether it holds on
    every class.
    """

    classes: Sequence[TreeClass]
    product: bool
    how: str
    failing: TreeClass | None
    lemmas: dict[str, bool]


@dataclass(frozen=True)
class EveryTarget:
    """The second verdict: True proved, False refuted (then `loss` is a target that shows it), None undecided."""

    verdict: bool | None
    reason: str
    loss: tuple[ModelPair, Comparison] | None = None


def decide_every_target(
    method: TreeMethod, pair: ModelPair, prefix: Prefix, shape: TreeShape, length: int, drafting: TreeChecks
) -> EveryTarget:
    """Put the drafting, the verifier's condition and, where either fails, the search for a losing target together."""
    drafter = method.drafter(pair, shape)
    verifier, why = verifier_condition(method.verify, drafter, prefix, drafting.classes)
    holds = drafting.product and verifier
    unknown = unknown_parts(method)
    why = f"every class has probability prod q~ ({drafting.how}); {why}" if holds else why
    if holds and not unknown:
        return EveryTarget(True, why)
    broken = "" if drafting.product else "a class has not probability prod q~; "
    loss = losing_target(method, pair, prefix, shape, drafting.classes, length)
    if loss is None:
        said = [f"holds on these rows: {why}" if holds else f"{broken}{why}", *filter(None, [unknown])]
        return EveryTarget(None, f"undecided: {'; '.join(said)}; no losing target found")
    given = "at the given one " if drafting.product and verifier is None else ""
    return EveryTarget(False, f"refuted with another target; {given}{broken}{why}", loss)


def check_drafting(
    method: TreeMethod, pair: ModelPair, prefix: Prefix, shape: TreeShape, known: Sequence[TreeClass]
) -> TreeChecks:
    """Check the product form on the method's own construction, and the lemmas on every class.

    `known` are the method's classes. Layered code is walked by brute force up to 20,000 unpruned outcomes; beyond that
    each class is handed to it with the slots that the class leaves undrawn filled adversarially.
    """
    drafter = method.drafter(pair, shape)
    brute = None if method.construction == "grown" else _brute_force(drafter, prefix, shape)
    if brute is None and isinstance(known, ClassTable):
        checks = check_table(known, method, pair, prefix, shape, first_moved, _bounded)
        return TreeChecks(known, checks.failing is None, checks.how, checks.failing, checks.lemmas)
    found, how = known, "by growth, whose classes are cylinders by construction"
    moved: TreeClass | None = None
    if brute is not None:
        found, how = brute, "every unpruned tree of the layered code"
    elif method.construction != "grown":
        try:
            moved = first_moved(known, drafter, prefix, shape)
            how = "each class handed to the layered code with adversarial fillings"
        except NotGrowable:  # then the classes were known by brute force alone
            how = "every unpruned tree of the layered code"
    failing = first_failing(found, drafter, prefix) or moved
    return TreeChecks(found, failing is None, how, failing, check_lemmas(found, drafter, prefix))


def _brute_force(drafter: Drafter, prefix: Prefix, shape: TreeShape) -> list[TreeClass] | None:
    if unpruned_outcomes(drafter, prefix, shape) > BRUTE_FORCE_LIMIT:
        return None
    try:
        return brute_force_classes(drafter, prefix, shape, BRUTE_FORCE_LIMIT)
    except TooManyOutcomes:
        return None


def first_failing(found: Iterable[TreeClass], drafter: Drafter, prefix: Prefix) -> TreeClass | None:
    """Give the first class whose probability is not the product of q~ over its sampled nodes."""
    return next((each for each in found if each.probability != product_of(each.tree, drafter, prefix)), None)


def product_of(tree: Tree, drafter: Drafter, prefix: Prefix) -> Any:
    """Give the product of q~(token) over the sampled nodes of a tree."""
    product = ONE
    for node in np.flatnonzero(tree.kind == SAMPLED).tolist():
        tail = drafter.tail(prefix + tree.tokens_to(int(tree.parent[node])))
        product *= 0 if tail is None else tail[tree.token[node]]
    return product


def most_probable(kept: list[int], weights: ArrayLike) -> int:
    """Give the position of the largest weight among `kept`."""
    return max(kept, key=np.asarray(weights).tolist().__getitem__)


def least_probable(kept: list[int], weights: ArrayLike) -> int:
    """Give the position of the smallest weight among `kept`."""
    return min(kept, key=np.asarray(weights).tolist().__getitem__)


FILLINGS: tuple[Filling, ...] = (most_probable, least_probable)


@dataclass
class ClassChooser:
    """Gives the draws of one class by their address, and fills every other draw by a rule."""

    drawn: dict[Hashable, int]
    filling: Filling

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """No coin belongs to drafting."""
        raise NotImplementedError("drafting tosses no coins")

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """Give the class's own draw, or a filling."""
        if at in self.drawn:
            return self.drawn[at]
        row = np.asarray(weights)
        return self.filling(np.flatnonzero(row).tolist(), row)


def first_moved(
    found: Iterable[TreeClass],
    drafter: Drafter,
    prefix: Prefix,
    shape: TreeShape,
    fillings: tuple[Filling, ...] = FILLINGS,
) -> TreeClass | None:
    """Give the first class that the layered code does not reproduce under one of the fillings of its undrawn slots.

    Only for classes from growth: raises `NotGrowable` for a proxy that growth cannot follow.
    """
    Growth(drafter, prefix, shape)
    draft_id = _draft_ids(drafter.pair)
    for each in found:
        tree = each.tree
        drawn: dict[Hashable, int] = {}
        for node in np.flatnonzero(tree.kind == SAMPLED).tolist():
            token = int(tree.token[node])
            drawn["tail", 0, tree.path(int(tree.parent[node])), 0] = draft_id.get(token, token)
        for filling in fillings:
            if layered(drafter, prefix, shape, ClassChooser(drawn, filling)) != tree:
                return each
    return None


def _draft_ids(pair: ModelPair) -> dict[int, int]:
    return {} if pair.ids is None else {int(target): draft for draft, target in enumerate(pair.ids)}


@dataclass
class _State:
    """The classes that share their first k nodes: their mass, how they go on, and where the next draw is made."""

    mass: Any = ZERO
    next: dict[tuple[int, int, int, int], _State] = field(default_factory=dict)
    draw: Prefix | None = None


def check_lemmas(found: Iterable[TreeClass], drafter: Drafter, prefix: Prefix) -> dict[str, bool]:
    """Lemmas 4, 5 and 7 of appendix C on every class and, for Lemma 7, on every k below R.

    Lemma 4: the proxy is at least q(x_{m+1}) at every parent. Lemma 5: no child outranks its parent. Lemma 7: classes
    that share k nodes have the same next slot (1); the same token there if it is deterministic (2); tokens in
    proportion q~ if it is sampled (3).
    """
    root = _State()
    states = [root]
    contexts: set[Prefix] = set()
    ordered = True
    for each in found:
        tree = each.tree
        contexts |= _parents(tree, prefix)
        ordered = ordered and _children_below(tree)
        state = root
        state.mass += each.probability
        for row in zip(*(a.tolist() for a in (tree.parent, tree.slot, tree.kind, tree.token)), strict=True):
            if row not in state.next:
                states.append(state.next.setdefault(row, _State()))
                state.draw = prefix + tree.tokens_to(row[0]) if row[2] == SAMPLED else state.draw
            state = state.next[row]
            state.mass += each.probability
    going_on = [state for state in states if state.next]
    return {
        "Lemma 4": all(_bounded(drafter, context) for context in contexts),
        "Lemma 5": ordered,
        "Lemma 7.1": all(len({row[:3] for row in state.next}) == 1 for state in going_on),
        "Lemma 7.2": all(sum(row[2] != SAMPLED for row in state.next) <= 1 for state in going_on),
        "Lemma 7.3": all(_in_proportion(state, drafter) for state in going_on if state.draw is not None),
    }


def _children_below(tree: Tree) -> bool:
    return all(
        parent < node and (parent == ROOT or tree.score[node] <= tree.score[parent])
        for node, parent in enumerate(tree.parent.tolist())
    )


def _in_proportion(state: _State, drafter: Drafter) -> bool:
    tail = drafter.tail(state.draw or ())
    shares = {row[3]: below.mass / state.mass for row, below in state.next.items() if row[2] == SAMPLED}
    return tail is not None and shares == {token: q for token, q in enumerate(tail) if q}


def _parents(tree: Tree, prefix: Prefix) -> set[Prefix]:
    return {prefix + tree.tokens_to(parent) for parent in set(tree.parent.tolist())}


def _bounded(drafter: Drafter, context: Prefix) -> bool:
    pool = drafter.pool(context)
    if pool.tail is None:
        return True
    least = pool.row.score[pool.row.order[pool.m]]
    drawn = [token for token, weight in enumerate(pool.tail) if weight]
    return all(pool.sampled_slot(token)[3] >= least for token in drawn)
