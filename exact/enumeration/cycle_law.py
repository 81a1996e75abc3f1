"""The exact law of what one cycle emits, and of text continued from it.

For a tree method the cycle's law is summed class by class, with the verifier's law at each node enumerated once and
remembered; a method on a fixed topology is followed parent by parent; any other is replayed whole. Comparing with the
target needs no V^L table: outside the sequences that a cycle can emit both laws continue from the same rows, so their
difference is settled where the trie ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.fixed_trees import NodeMethod, nodewise_law
from exact.enumeration.rationals import ONE, ZERO, exact_law, fraction
from exact.enumeration.tree_classes import TreeClass, classes
from exact.enumeration.walk import outcomes
from rheo_core import InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.checks import check_count
from rheo_core.chooser import Chooser
from rheo_core.laws import Row
from rheo_core.methods import run_cycle
from rheo_core.models import ModelPair, Prefix, TargetModel
from rheo_core.pool import Drafter
from rheo_core.tree import ROOT, SAMPLED, SlotPath, Tree
from rheo_core.verification import Verify, verify_node

Tokens = tuple[int, ...]
Emitted = dict[Tokens, Any]


class NodeLaws:
    """The law of (token, child) of a verification rule at each parent, enumerated once for each set of candidates.

    A rule is handed the slot path of the parent as well, so that belongs to what is remembered.
    """

    def __init__(self, drafter: Drafter, verify: Verify, cycle: int = 0) -> None:
        self.drafter = drafter
        self.verify = verify
        self.cycle = cycle
        self._known: dict[Any, list[tuple[int, int, Any]]] = {}

    def at(
        self, tree: Tree, node: int, path: SlotPath, children: list[int], context: Prefix
    ) -> list[tuple[int, int, Any]]:
        """(token, index of the accepted candidate or -1, probability) at one node of a tree."""
        candidates = tuple(int(tree.token[child]) for child in children)
        sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
        key = (context, path, candidates, sampled)
        if key not in self._known:
            masses: dict[tuple[int, int], Any] = {}

            def program(chooser: Chooser) -> tuple[int, int]:
                return verify_node(tree, node, children, self.drafter, context, self.verify, chooser, self.cycle)

            for verdict, weight in outcomes(program):
                masses[verdict] = masses.get(verdict, ZERO) + weight
            self._known[key] = [(token, child, weight) for (token, child), weight in masses.items()]
        return self._known[key]


def tree_law(tree: Tree, laws: NodeLaws, prefix: Prefix) -> Iterator[tuple[Tokens, Any]]:
    """(emitted tokens, probability) of verifying one tree; equal sequences are not merged."""
    slots = tree.slot.tolist()
    children: dict[int, list[int]] = {}
    for node in sorted(range(len(tree)), key=slots.__getitem__):
        children.setdefault(int(tree.parent[node]), []).append(node)
    waiting: list[tuple[int, SlotPath, Tokens, Any]] = [(ROOT, (), (), ONE)]
    while waiting:
        node, path, tokens, mass = waiting.pop()
        below = children.get(node, [])
        for token, child, weight in laws.at(tree, node, path, below, prefix + tokens):
            if child == ROOT:
                yield (*tokens, token), mass * weight
            else:
                chosen = below[child]
                waiting.append((chosen, (*path, slots[chosen]), (*tokens, token), mass * weight))


def emitted_law(classes_: Sequence[TreeClass], laws: NodeLaws, prefix: Prefix) -> Emitted:
    """The law of the emitted tokens over all classes."""
    law: Emitted = {}
    for each in classes_:
        for tokens, weight in tree_law(each.tree, laws, prefix):
            law[tokens] = law.get(tokens, ZERO) + each.probability * weight
    return law


def cycle_law(
    method: Method,
    pair: ModelPair,
    prefix: Prefix,
    shape: TreeShape,
    known: Sequence[TreeClass] | None = None,
    cycle: int = 0,
) -> tuple[Emitted, Sequence[TreeClass] | None]:
    """The exact law of the tokens of cycle number `cycle`.

    For a tree method its classes too (`known`: those enumerated before).
    """
    if isinstance(method, TreeMethod):
        drafter = method.drafter(pair, shape)
        found = classes(drafter, prefix, shape) if known is None else known
        return emitted_law(found, NodeLaws(drafter, method.verify, cycle), prefix), found
    if isinstance(method, NodeMethod):
        return nodewise_law(method, pair, prefix, shape, cycle), None

    law: Emitted = {}
    for tokens, weight in outcomes(lambda chooser: run_cycle(method, pair, prefix, shape, chooser).tokens):
        law[tokens] = law.get(tokens, ZERO) + weight
    return law, None


def text_law(
    method: Method,
    pair: ModelPair,
    prefix: Prefix,
    shape: TreeShape,
    length: int,
    cycles: int,
    first: Emitted,
    number: int = 0,
) -> Emitted:
    """The law of the first `length` tokens at most that `cycles` cycles emit; the first, `number`, is known already."""
    if cycles == 1:
        return first
    law: Emitted = {}
    for tokens, weight in first.items():
        if len(tokens) >= length:
            law[tokens] = law.get(tokens, ZERO) + weight
            continue
        behind = prefix + tokens
        following, _ = cycle_law(method, pair, behind, shape, cycle=number + 1)
        rest = text_law(method, pair, behind, shape, length - len(tokens), cycles - 1, following, number + 1)
        for more, share in rest.items():
            law[tokens + more] = law.get(tokens + more, ZERO) + weight * share
    return law


@dataclass
class Comparison:
    """Total variation from the target over sequences of one length, and the shortest sequence that is wrong."""

    total_variation: Any = ZERO
    wrong: tuple[Tokens, Any, Any] | None = None


def compare(emitted: Emitted, pair: ModelPair, prefix: Prefix, length: int, above: Any = 0) -> Comparison:
    """Hold emitted text, continued from the target, against the target's joint law of `length` tokens.

    The sequence that is shown is the first whose probability is off by more than `above`.
    """
    alive: Emitted = {}
    for tokens, weight in emitted.items():
        for end in range(min(len(tokens), length + 1)):
            alive[tokens[:end]] = alive.get(tokens[:end], ZERO) + weight
    result = Comparison()
    level: dict[Tokens, tuple[Any, Any]] = {(): (ZERO, ONE)}
    for depth in range(1, length + 1):
        longer: dict[Tokens, tuple[Any, Any]] = {}
        for tokens, (continued, right) in level.items():
            for token, p in enumerate(exact_law(pair.p(prefix + tokens))):
                sequence = (*tokens, token)
                ended = continued * p + emitted.get(sequence, ZERO)
                still = alive.get(sequence, ZERO)
                got, due = ended + still, right * p
                if abs(got - due) > above and result.wrong is None:
                    result.wrong = (sequence, got, due)
                if still and depth < length:
                    longer[sequence] = (ended, due)
                else:
                    result.total_variation += abs(got - due) / 2
        level = longer
    return result


def joint_law(emitted: Emitted, target: TargetModel, length: int, prefix: Prefix = ()) -> dict[Tokens, Fraction]:
    """The joint law of exactly `length` tokens: emitted text cut there or continued from the target."""
    rows: dict[Prefix, Row] = {}
    law: Emitted = {}
    waiting = list(emitted.items())
    while waiting:
        tokens, weight = waiting.pop()
        if len(tokens) >= length:
            law[tokens[:length]] = law.get(tokens[:length], ZERO) + weight
            continue
        context = prefix + tokens
        if context not in rows:
            rows[context] = exact_law(target(context))  # type: ignore[arg-type]
        waiting += [((*tokens, token), weight * p) for token, p in enumerate(rows[context]) if p]
    return {tokens: fraction(law[tokens]) for tokens in sorted(law)}


def early_end(emitted: Mapping[Tokens, Any], target: TargetModel, length: int, prefix: Prefix = ()) -> Tokens | None:
    """The shortest emitted text below `length` tokens that ends where the target goes on; None without one.

    `joint_law` continues such a text from the target, which is right for one cycle of a decoder and hides where a whole
    text ends. The target does not go on where its row is one token with certainty, as after an end token. Raises
    `InvalidInput` on a text of no tokens, which is no cycle and no text.
    """
    if () in emitted and length:
        raise InvalidInput("result", (), "at least one token in every outcome: without any, all would be the target's")
    for tokens in sorted((each for each in emitted if len(each) < length), key=lambda each: (len(each), each)):
        if np.count_nonzero(np.asarray(target(prefix + tokens))) > 1:
            return tokens
    return None


def target_law(target: TargetModel, length: int, prefix: Prefix = ()) -> dict[Tokens, Fraction]:
    """The target's own joint law of `length` tokens after `prefix`; a float row counts as its row over its exact sum.

    >>> target_law(lambda prefix: [Fraction(1, 3), Fraction(2, 3)], 2)[1, 1]
    Fraction(4, 9)
    """
    return joint_law({(): ONE}, ModelPair(target, target).p, check_count("length", length, 0), tuple(prefix))


def acceptance_by_depth(emitted: Mapping[Tokens, Any], depth: int) -> tuple[Fraction, ...]:
    """Entry d is the probability that at least d drafted tokens are accepted, d = 0..depth."""
    reached = [ZERO] * (depth + 1)
    for tokens, weight in emitted.items():
        for accepted in range(len(tokens)):
            reached[accepted] += weight
    return tuple(fraction(mass) for mass in reached)
