"""The exact law of what one cycle emits, and of text continued from it.

For a tree method the cycle's law is summed class by class, with the verifier's law at each node enumerated once and
remembered; a method on a fixed topology is followed parent by parent; any other is replayed whole. Comparing with the
target needs no V^L table: outside the sequences that a cycle can emit both laws continue from the same rows, so their
difference is settled where the trie ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.cycle_steps import NodeSteps, Steps, TreeSteps
from exact.enumeration.fixed_trees import FixedTreeMethod, fixed_tree_law
from exact.enumeration.node_laws import Emitted as Emitted
from exact.enumeration.node_laws import Ends, VerifierCache, emitted_law
from exact.enumeration.node_laws import Tokens as Tokens
from exact.enumeration.node_laws import tree_law as tree_law
from exact.enumeration.rationals import ONE, ZERO, exact_law, fraction
from exact.enumeration.step_laws import StepLaws
from exact.enumeration.tree_classes import TreeClass, classes
from exact.enumeration.whole_rows import Keep, Spread, WholeRow, add_row, row_outcomes, spread
from rheo_core import FunctionMethod, InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.checks import check_count
from rheo_core.chooser import Chooser
from rheo_core.laws import Row
from rheo_core.methods import Cycle, run_cycle
from rheo_core.models import ModelPair, Prefix, TargetModel


def _keeping_last(function: Any, keep: Keep) -> Any:
    """A cycle whose last token stands for a whole row where nobody has read it."""

    def cycle(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        tokens = found.tokens if isinstance(found, Cycle) else found
        if type(tokens) not in (list, tuple) or not tokens or any(each is tokens[-1] for each in tokens[:-1]):
            return found
        kept = (*tokens[:-1], keep(tokens[-1]))
        return replace(found, tokens=kept) if isinstance(found, Cycle) else kept

    return cycle


def cycle_law(
    method: Method,
    pair: ModelPair,
    prefix: Prefix,
    shape: TreeShape,
    known: Sequence[TreeClass] | None = None,
    cycle: int = 0,
    steps: Steps | None = None,
    reached: Any = ONE,
) -> tuple[Emitted, Sequence[TreeClass] | None]:
    """The exact law of the tokens of cycle number `cycle`.

    For a tree method its classes too (`known`: those enumerated before). `steps` takes the draws, of a cycle that is
    `reached` with this probability.
    """
    law: Emitted
    noted: TreeSteps | NodeSteps | StepLaws
    found = known
    if isinstance(method, TreeMethod):
        drafter = method.drafter(pair, shape)
        found = classes(drafter, prefix, shape) if known is None else known
        noted = TreeSteps(prefix, found, VerifierCache(drafter, method.verify, cycle))
        law = emitted_law(found, noted.laws, prefix)
    elif isinstance(method, FixedTreeMethod):
        noted = NodeSteps({})
        law = fixed_tree_law(method, pair, prefix, shape, cycle, noted.laws)
    else:
        noted = StepLaws()
        law = _replayed_law(method, pair, prefix, shape, None if steps is None else noted)
    if steps is not None:
        steps.of[prefix, cycle] = noted
        steps.mass[prefix, cycle] = steps.mass.get((prefix, cycle), ZERO) + reached
    return law, found


def _replayed_law(method: Method, pair: ModelPair, prefix: Prefix, shape: TreeShape, noted: StepLaws | None) -> Emitted:
    """The law of what a whole cycle emits, run once for each outcome."""

    def program(chooser: Chooser, keep: Keep) -> Tokens:
        rule: Method = method
        if isinstance(method, FunctionMethod):
            rule = replace(method, function=_keeping_last(method.function, keep))
        return run_cycle(rule, pair, prefix, shape, chooser).tokens

    law: dict[Tokens, Any] = {}
    rows: dict[Tokens, Ends] = {}
    for tokens, row, weight in row_outcomes(program, lambda tokens, token: (*tokens[:-1], token), noted):
        if row is None:
            law[tokens] = law.get(tokens, ZERO) + weight
        else:
            add_row(rows, tokens[:-1], weight, row)
    return spread(law, rows)


def text_law(
    method: Method,
    pair: ModelPair,
    prefix: Prefix,
    shape: TreeShape,
    length: int,
    cycles: int,
    first: Emitted,
    number: int = 0,
    steps: Steps | None = None,
    reached: Any = ONE,
) -> Emitted:
    """The law of the first `length` tokens at most that `cycles` cycles emit; the first, `number`, is known already."""
    if cycles == 1:
        return first
    law: dict[Tokens, Any] = {}
    for tokens, weight in first.items():
        if len(tokens) >= length:
            law[tokens] = law.get(tokens, ZERO) + weight
            continue
        behind, here = prefix + tokens, reached * weight
        following, _ = cycle_law(method, pair, behind, shape, cycle=number + 1, steps=steps, reached=here)
        left = length - len(tokens)
        rest = text_law(method, pair, behind, shape, left, cycles - 1, following, number + 1, steps, here)
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
    plain, rows = (emitted.plain, emitted.rows) if isinstance(emitted, Spread) else (emitted, {})
    alive: dict[Tokens, Any] = {}

    def lives(tokens: Tokens, weight: Any) -> None:
        for end in range(min(len(tokens), length + 1)):
            alive[tokens[:end]] = alive.get(tokens[:end], ZERO) + weight

    for tokens, weight in plain.items():
        lives(tokens, weight)
    for tokens, ends in rows.items():  # one more token stands behind these
        lives((*tokens, -1), sum(mass for mass, _ in ends))
    named: dict[Tokens, set[int]] = {}
    for tokens in (*plain, *alive):
        if tokens:
            named.setdefault(tokens[:-1], set()).add(tokens[-1])
    result = Comparison()
    level: dict[Tokens, tuple[Any, Any]] = {(): (ZERO, ONE)}
    for depth in range(1, length + 1):
        longer: dict[Tokens, tuple[Any, Any]] = {}
        for tokens, (continued, right) in level.items():
            law, ends, continued = _continued(pair.p(prefix + tokens), rows.get(tokens, []), continued)
            special = range(len(law.weights)) if ends else sorted(named.get(tokens, ()))
            rest, off = ONE, continued - right  # what is named nowhere goes on with the target's row
            for token in special:
                sequence, p = (*tokens, token), law.share(token)
                ended = continued * p + plain.get(sequence, ZERO) + sum(mass * row.share(token) for mass, row in ends)
                still = alive.get(sequence, ZERO)
                actual, expected = ended + still, right * p
                rest -= p
                if abs(actual - expected) > above and (result.wrong is None or result.wrong[0][:-1] == tokens):
                    result.wrong = min(result.wrong or (sequence, actual, expected), (sequence, actual, expected))
                if still and depth < length:
                    longer[sequence] = (ended, expected)
                else:
                    result.total_variation += abs(actual - expected) / 2
            result.total_variation += abs(off) * rest / 2
            if off and rest and (result.wrong is None or result.wrong[0][:-1] == tokens):
                found = next((i for i in _unnamed(law, special) if abs(off) * law.share(i) > above), None)
                if found is not None:
                    sequence = (*tokens, found)
                    wrong = sequence, continued * law.share(found), right * law.share(found)
                    result.wrong = min(result.wrong or wrong, wrong)
        level = longer
    return result


def _unnamed(law: WholeRow, named: Sequence[int]) -> Iterator[int]:
    known = set(named)
    return (token for token in law.support if token not in known)


def _continued(row: Row, ends: Ends, continued: Any) -> tuple[WholeRow, Ends, Any]:
    """The target's row, the rows that are not it, and what goes on with it."""
    law = WholeRow(row.tolist())
    law = next((each for _, each in ends if each == law), law)  # whose numbers are known already
    same = sum((mass for mass, each in ends if each is law), ZERO)
    return law, [each for each in ends if each[1] is not law], continued + same


def joint_law(emitted: Emitted, target: TargetModel, length: int, prefix: Prefix = ()) -> dict[Tokens, Fraction]:
    """The joint law of exactly `length` tokens: emitted text cut there or continued from the target."""
    rows: dict[Prefix, Row] = {}
    law: dict[Tokens, Any] = {}
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
    for tokens, weight in emitted.lengths() if isinstance(emitted, Spread) else _lengths(emitted):
        for accepted in range(tokens):
            reached[accepted] += weight
    return tuple(fraction(mass) for mass in reached)


def _lengths(emitted: Mapping[Tokens, Any]) -> Iterator[tuple[int, Any]]:
    return ((len(tokens), weight) for tokens, weight in emitted.items())
