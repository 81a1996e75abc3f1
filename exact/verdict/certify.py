"""`certify`: is this method lossless on these rows, exactly, and is it for every target?

The exact joint law of the first L emitted tokens is held against the target's. Rational rows give a verdict that is
exact; float rows are run in their own type with exact branch weights, and count as lossless up to rounding when the
same rows taken as rationals are lossless and the total variation of the float run stays within the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from exact.enumeration.cycle_law import (
    Comparison,
    Emitted,
    acceptance_by_depth,
    compare,
    cycle_law,
    exact_pair,
    text_law,
)
from exact.enumeration.rationals import fraction
from exact.enumeration.rounding import rounding_bound
from exact.enumeration.tree_classes import TreeClass, classes
from exact.methods import methods
from exact.verdict.certificate import Certificate
from exact.verdict.counterexample import Counterexample, table
from exact.verdict.document import classes_digest, parts
from exact.verdict.every_target import Drafting, EveryTarget, check_drafting, every_target
from exact.verdict.identity import as_it_runs
from exact.verdict.replay_check import Steady, ask_again, one_census, watched
from rheo_core import InvalidInput, Method, Pair, TreeMethod, TreeShape, find_method
from rheo_core.checks import check_count
from rheo_core.laws import Row
from rheo_core.models import DraftModel, Prefix, TargetModel, check_prefix

NOT_ASKED = EveryTarget(None, "")
SLACK = 64
"""Times eps: the probability up to which a branch on floats may break."""

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
"""Arithmetics in which a user's own rule is run beside rationals."""

MOST_CALLS = 20_000
"""Calls of a rule on rationals up to which it is run on floats too."""


class Study:
    """Two models, and what has been enumerated about their draft trees.

    Methods that differ only in how they verify share their trees; certifying several of them through one study
    enumerates those once.
    """

    def __init__(self, target: TargetModel, draft: DraftModel, ids: Sequence[int] | None = None) -> None:
        for name, model in (("target", target), ("draft", draft)):
            if not callable(model):
                raise InvalidInput(name, model, "a model: a function from a prefix to a row")
        self.given = Pair(Steady(target, "target"), Steady(draft, "draft"), ids)
        self.exact = exact_pair(self.given)
        self._classes: dict[Any, tuple[list[TreeClass], TreeMethod]] = {}
        self._drafting: dict[Any, Drafting] = {}

    def classes(self, method: TreeMethod, prefix: Prefix, shape: TreeShape) -> list[TreeClass]:
        """The method's classes in rational arithmetic."""
        key = _trees_of(method, prefix, shape)
        if key not in self._classes:  # the method is kept too, so that its proxy's id stays its own
            self._classes[key] = classes(method.drafter(self.exact, shape), prefix, shape), method
        return self._classes[key][0]

    def drafting(self, method: TreeMethod, prefix: Prefix, shape: TreeShape) -> Drafting:
        """The checks of the method's draft trees that need no target."""
        key = (*_trees_of(method, prefix, shape), method.construction)
        if key not in self._drafting:
            self._drafting[key] = check_drafting(method, self.exact, prefix, shape, self.classes(method, prefix, shape))
        return self._drafting[key]

    @one_census()
    def certify(
        self,
        method: Method | str,
        shape: TreeShape,
        length: int | None = None,
        *,
        prefix: Prefix = (),
        cycles: int = 1,
        second: bool = True,
        float_calls: int = MOST_CALLS,
    ) -> Certificate:
        """Both verdicts on one method (`second` False: only the first); see `certify`.

        A user's own rule that made up to `float_calls` calls on rationals is run on floats as well.
        """
        if not isinstance(shape, TreeShape):
            raise InvalidInput("shape", shape, "a TreeShape(width, depth, budget)")
        rule = as_it_runs(find_method(method, methods))
        prefix = check_prefix(prefix, self.given)
        length = shape.depth + 1 if length is None else check_count("length", length, 1)
        cycles = check_count("cycles", cycles, 1)
        arithmetic = self.given.p(prefix).dtype
        bound = None
        with watched(rule) as (own, watch):
            known = self.classes(own, prefix, shape) if isinstance(own, TreeMethod) else None
            emitted, found, text, compared = _run(own, self.exact, prefix, shape, length, cycles, known)
            lossless = compared.wrong is None
            calls = 0 if watch is None else watch.calls
            if arithmetic.kind != "O":
                emitted, found, text, rounded = _run(own, self.given, prefix, shape, length, cycles, None)
                size = len(self.given.p(prefix))
                bound = rounding_bound(length, size, np.finfo(arithmetic).eps)
                if rounded.total_variation > bound:  # shown by a sequence that is off by more than rounding
                    clear = compare(text, self.given, prefix, length, bound / size)
                    rounded = rounded if clear.wrong is None else clear
                lossless = lossless and rounded.total_variation <= bound
                compared = rounded if compared.wrong is None else Comparison(rounded.total_variation, compared.wrong)
        verdict = self._every_target(rule, prefix, shape, length, compared, lossless) if second else NOT_ASKED
        lemmas = self.drafting(rule, prefix, shape).lemmas if second and isinstance(rule, TreeMethod) else {}
        note = ""
        if watch is not None:
            ask_again(self.given, rule.name)
            if lossless:
                watch.check_cycles(cycles)
            if lossless and bound is None:
                losing, note = self._on_floats(rule, prefix, shape, length, cycles, calls, float_calls)
                if losing is not None:
                    lossy = losing.certify(rule, shape, length, prefix=prefix, cycles=cycles, second=second)
                    return replace(lossy, note=note)
        by_depth = acceptance_by_depth(emitted, shape.depth)
        lead = rule.leads(shape) if isinstance(rule, TreeMethod) and rule.lead is not None else None
        return Certificate(
            method=rule.name,
            claim=rule.claim,
            shape=shape,
            lead=lead,
            prefix=prefix,
            length=length,
            cycles=cycles,
            vocabulary=len(self.given.p(prefix)),
            arithmetic="rational" if arithmetic.kind == "O" else str(arithmetic),
            lossless=lossless,
            every_target=verdict.verdict,
            total_variation=fraction(compared.total_variation),
            rounding_bound=bound,
            classes=None if found is None else len(found),
            counterexample=None if lossless else _counterexample(self.given, rule.name, lead, shape, compared, cycles),
            every_target_reason=verdict.reason,
            every_target_counterexample=None
            if verdict.loss is None
            else _counterexample(verdict.loss[0], rule.name, lead, shape, verdict.loss[1]),
            lemmas=lemmas,
            acceptance_length=sum(by_depth, Fraction(0)),
            acceptance_by_depth=by_depth,
            parts=parts(rule, rule.leads(shape) if isinstance(rule, TreeMethod) else None),
            ids=None if self.given.ids is None else tuple(int(each) for each in self.given.ids),
            classes_digest=None if found is None else classes_digest(found),
            emitted={tokens: fraction(weight) for tokens, weight in emitted.items()},
            text={tokens: fraction(weight) for tokens, weight in text.items()},
            target=self.given.p,
            target_rows=table(self.given.target_rows()),
            draft_rows=table(self.given.draft_rows(lead or 0)),
            note=note,
        )

    def _on_floats(
        self, rule: Method, prefix: Prefix, shape: TreeShape, length: int, cycles: int, calls: int, most: int
    ) -> tuple[Study | None, str]:
        """Run a rule that is lossless on rationals on the same rows in floats: the rows where it loses, and a note."""
        if calls > most:
            return None, f"rationals alone: {calls:,} calls are too many to run on floats too"
        for dtype in FLOATS:
            pair = float_pair(self.given, dtype)
            bound = rounding_bound(length, len(self.given.p(prefix)), np.finfo(dtype).eps)
            try:
                with np.errstate(all="ignore"), watched(rule, SLACK * fraction(np.finfo(dtype).eps)) as (own, watch):
                    *_, compared = _run(own, pair, prefix, shape, length, cycles, None)
            except Exception as error:
                if isinstance(error, InvalidInput) and not error.by_rule:
                    raise
                said = " ".join(str(error).split())[:200]
                return None, f"rationals alone: in {dtype} it breaks ({type(error).__name__}: {said})"
            if compared.total_variation > bound:
                return Study(pair.p, pair.q, self.given.ids), f"lossless on the same rows as rationals, not in {dtype}"
            if watch is not None and watch.broken > bound:
                return None, f"rationals alone: in {dtype} it breaks with probability {float(watch.broken):.3g}"
        return None, f"{' and '.join(map(str, FLOATS))} up to rounding"

    def _every_target(
        self, rule: Method, prefix: Prefix, shape: TreeShape, length: int, compared: Comparison, lossless: bool
    ) -> EveryTarget:
        """The second verdict; a method that loses on the given rows needs no search."""
        if not lossless:
            return EveryTarget(False, "refuted by the given target", (self.given, compared))
        if not isinstance(rule, TreeMethod):
            return EveryTarget(None, "undecided: the method has no draft tree of its own to enumerate without p")
        return every_target(rule, self.exact, prefix, shape, length, self.drafting(rule, prefix, shape))


def certify(
    method: Method | str,
    target: TargetModel,
    draft: DraftModel,
    shape: TreeShape,
    length: int | None = None,
    *,
    prefix: Prefix = (),
    ids: Sequence[int] | None = None,
    cycles: int = 1,
    second: bool = True,
) -> Certificate:
    """Certify or refute `method` on the rows that `target` and `draft` give at and below `prefix`.

    The law of the first `length` tokens (None: depth + 1) of `cycles` cycles continued from the target is computed
    exactly: the first verdict, on these rows. The `second`, for every target at this q, is the p-free certificate.
    Raises `InvalidInput` on rows, ids or shapes that the definitions do not allow, on a model that answers differently
    when asked twice, and on a rule whose law depends on the cycle number in `at`.

    >>> from fractions import Fraction as F
    >>> draft, target = [F(1, 2), F(3, 10), F(1, 5)], [F(1, 2), F(1, 5), F(3, 10)]  # Table 1
    >>> certified = certify("rheo", lambda prefix: target, lambda prefix: draft, TreeShape(3, 1, 2))
    >>> certified.lossless, certified.every_target
    (True, True)
    >>> str(certify("rheo-adhoc", lambda prefix: target, lambda prefix: draft, TreeShape(3, 1, 2)).counterexample)
    '(0,): got 3/5, right 1/2'
    """
    study = Study(target, draft, ids)
    return study.certify(method, shape, length, prefix=prefix, cycles=cycles, second=second)


def float_pair(pair: Pair, dtype: np.dtype[Any]) -> Pair:
    """The same models in floats, every entry rounded once."""

    def rounded(row: Row) -> Row:
        return np.array([float(fraction(mass)) for mass in row]).astype(dtype)

    return Pair(lambda prefix: rounded(pair.p(prefix)), lambda prefix: pair.q(prefix).converted(rounded), pair.ids)


def _trees_of(method: TreeMethod, prefix: Prefix, shape: TreeShape) -> tuple[Any, ...]:
    return prefix, shape, method.leads(shape), id(method.proxy)


def _run(
    rule: Method,
    pair: Pair,
    prefix: Prefix,
    shape: TreeShape,
    length: int,
    cycles: int,
    known: list[TreeClass] | None,
) -> tuple[Emitted, list[TreeClass] | None, Emitted, Comparison]:
    """The law of one cycle, its classes, the law of what `cycles` cycles emit, and that law held against the target."""
    emitted, found = cycle_law(rule, pair, prefix, shape, known)
    text = text_law(rule, pair, prefix, shape, length, cycles, emitted)
    return emitted, found, text, compare(text, pair, prefix, length)


def _counterexample(
    pair: Pair, name: str, lead: int | None, shape: TreeShape, compared: Comparison, cycles: int = 1
) -> Counterexample | None:
    if compared.wrong is None:
        return None
    sequence, got, right = compared.wrong
    targets, drafts = table(pair.target_rows()), table(pair.draft_rows(lead or 0))
    ids = None if pair.ids is None else tuple(int(each) for each in pair.ids)
    return Counterexample(targets, drafts, shape, lead, sequence, fraction(got), fraction(right), name, ids, cycles)
