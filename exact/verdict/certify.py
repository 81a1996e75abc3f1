"""`certify`: is this method lossless on these rows, exactly, and is it for every target?

The exact joint law of the first L emitted tokens is held against the target's. Rational rows give a verdict that is
exact; float rows are run in their own type with exact branch weights, and count as lossless up to rounding when the
same rows taken as rationals are lossless and the total variation of the float run stays within the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from exact.verdict.certificate import Certificate, CycleFigures, ForEveryTarget, Inputs, OnTheseRows
from exact.verdict.counterexample import Counterexample, table
from exact.verdict.document import classes_digest, parts
from exact.verdict.every_target import Drafting, EveryTarget, check_drafting, every_target
from exact.verdict.identity import as_it_runs
from exact.verdict.replay_check import Steady, ask_again, one_census, watched
from rheo_core import InvalidInput, Method, Pair, TreeMethod, TreeShape, find_method
from rheo_core.checks import check_count
from rheo_core.laws import Row
from rheo_core.models import DraftModel, Prefix, TargetModel, check_prefix

SLACK = 64
"""Times eps: the probability up to which a branch on floats may break."""

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
"""Arithmetics in which a user's own rule is run beside rationals."""

MOST_CALLS = 20_000
"""Calls of a rule on rationals up to which it is run on floats too."""


@dataclass(frozen=True)
class Question:
    """What is asked of a method: the first `length` tokens of `cycles` cycles of this shape after `prefix`."""

    shape: TreeShape
    prefix: Prefix
    length: int
    cycles: int

    @classmethod
    def checked(cls, models: Pair, shape: TreeShape, prefix: Prefix, length: int | None, cycles: int) -> Question:
        """The question with its numbers checked; a length of None is depth + 1."""
        if not isinstance(shape, TreeShape):
            raise InvalidInput("shape", shape, "a TreeShape(width, depth, budget)")
        length = shape.depth + 1 if length is None else check_count("length", length, 1)
        return cls(shape, check_prefix(prefix, models), length, check_count("cycles", cycles, 1))


@dataclass(frozen=True)
class Run:
    """The distribution of one cycle, its classes, that of the whole text, and the text held against the target's."""

    emitted: Emitted
    classes: list[TreeClass] | None
    text: Emitted
    compared: Comparison

    @classmethod
    def of(cls, rule: Method, models: Pair, asked: Question, known: list[TreeClass] | None = None) -> Run:
        """Enumerate a rule on one pair of models; `known` are its classes."""
        emitted, found = cycle_law(rule, models, asked.prefix, asked.shape, known)
        text = text_law(rule, models, asked.prefix, asked.shape, asked.length, asked.cycles, emitted)
        return cls(emitted, found, text, compare(text, models, asked.prefix, asked.length))


class Study:
    """Two models behind one door, in their own arithmetic and in rationals, and their draft trees.

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
        asked = Question.checked(self.given, shape, prefix, length, cycles)
        rule = as_it_runs(find_method(method, methods))
        with watched(rule) as (own, watch):
            trees = self.classes(own, asked.prefix, shape) if isinstance(own, TreeMethod) else None
            exact = Run.of(own, self.exact, asked, trees)
            calls = 0 if watch is None else watch.calls
            floats = None if self.is_exact(asked.prefix) else Run.of(own, self.given, asked)
        verdict, wrong = on_these_rows(self.given, exact.compared, floats, rule, asked)
        second_verdict = self.for_every_target(rule, asked, wrong, verdict) if second else ForEveryTarget(None, "")
        if watch is not None:
            ask_again(self.given, rule.name)
            if verdict.lossless:
                watch.check_cycles(cycles)
            if verdict.lossless and floats is None:
                losing, note = self._on_floats(rule, asked, calls, float_calls)
                if losing is not None:
                    lossy = losing.certify(rule, shape, length, prefix=prefix, cycles=cycles, second=second)
                    return replace(lossy, on_these_rows=replace(lossy.on_these_rows, note=note))
                verdict = replace(verdict, note=note)
        return Certificate(
            inputs_of(rule, self.given, asked), verdict, second_verdict, figures_of(floats or exact, shape)
        )

    def is_exact(self, prefix: Prefix) -> bool:
        """Tell whether the rows are rationals."""
        return self.given.p(prefix).dtype.kind == "O"

    def for_every_target(self, rule: Method, asked: Question, wrong: Comparison, first: OnTheseRows) -> ForEveryTarget:
        """The second verdict; a method that loses on the given rows needs no search."""
        lemmas: dict[str, bool] = {}
        if isinstance(rule, TreeMethod):
            drafting = self.drafting(rule, asked.prefix, asked.shape)
            lemmas = drafting.lemmas
        if not first.lossless:
            found = EveryTarget(False, "refuted by the given target", (self.given, wrong))
        elif not isinstance(rule, TreeMethod):
            found = EveryTarget(None, "undecided: the method has no draft tree of its own to enumerate without p")
        else:
            found = every_target(rule, self.exact, asked.prefix, asked.shape, asked.length, drafting)
        shown = None if found.loss is None else _counterexample(*found.loss, rule, asked.shape)
        return ForEveryTarget(found.verdict, found.reason, shown, lemmas)

    def _on_floats(self, rule: Method, asked: Question, calls: int, most: int) -> tuple[Study | None, str]:
        """Run a rule that is lossless on rationals on the same rows in floats: the rows where it loses, and a note."""
        if calls > most:
            return None, f"rationals alone: {calls:,} calls are too many to run on floats too"
        for dtype in FLOATS:
            pair = float_pair(self.given, dtype)
            bound = rounding_bound(asked.length, len(self.given.p(asked.prefix)), np.finfo(dtype).eps)
            try:
                with np.errstate(all="ignore"), watched(rule, SLACK * fraction(np.finfo(dtype).eps)) as (own, watch):
                    compared = Run.of(own, pair, asked).compared
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


def on_these_rows(
    models: Pair, exact: Comparison, floats: Run | None, rule: Method, asked: Question
) -> tuple[OnTheseRows, Comparison]:
    """The first verdict from the run on rationals and, where the rows are floats, the run on those.

    A float run is lossless where the rational one is and its total variation is within rounding. The comparison beside
    the verdict is the one that shows a loss.
    """
    lossless, compared, bound = exact.wrong is None, exact, None
    if floats is not None:
        first = models.p(asked.prefix)
        bound = rounding_bound(asked.length, len(first), np.finfo(first.dtype).eps)
        rounded = floats.compared
        if rounded.total_variation > bound:  # shown by a sequence that is off by more than rounding
            clear = compare(floats.text, models, asked.prefix, asked.length, bound / len(first))
            rounded = rounded if clear.wrong is None else clear
        lossless = lossless and rounded.total_variation <= bound
        compared = rounded if exact.wrong is None else Comparison(rounded.total_variation, exact.wrong)
    shown = None if lossless else _counterexample(models, compared, rule, asked.shape, asked.cycles)
    return OnTheseRows(lossless, fraction(compared.total_variation), bound, shown), compared


def inputs_of(rule: Method, models: Pair, asked: Question) -> Inputs:
    """What was certified, with every row that was read."""
    lead = _lead(rule, asked.shape)
    first = models.p(asked.prefix)
    return Inputs(
        method=rule.name,
        claim=rule.claim,
        shape=asked.shape,
        lead=lead,
        prefix=asked.prefix,
        length=asked.length,
        cycles=asked.cycles,
        vocabulary=len(first),
        arithmetic="rational" if first.dtype.kind == "O" else str(first.dtype),
        parts=parts(rule, rule.leads(asked.shape) if isinstance(rule, TreeMethod) else None),
        ids=None if models.ids is None else tuple(int(each) for each in models.ids),
        target=models.p,
        target_rows=table(models.target_rows()),
        draft_rows=table(models.draft_rows(lead or 0)),
    )


def figures_of(run: Run, shape: TreeShape) -> CycleFigures:
    """What a run emits and accepts, as fractions."""
    return CycleFigures(
        emitted={tokens: fraction(weight) for tokens, weight in run.emitted.items()},
        text={tokens: fraction(weight) for tokens, weight in run.text.items()},
        classes=None if run.classes is None else len(run.classes),
        classes_digest=None if run.classes is None else classes_digest(run.classes),
        by_depth=acceptance_by_depth(run.emitted, shape.depth),
    )


def _lead(rule: Method, shape: TreeShape) -> int | None:
    return rule.leads(shape) if isinstance(rule, TreeMethod) and rule.lead is not None else None


def float_pair(pair: Pair, dtype: np.dtype[Any]) -> Pair:
    """The same models in floats, every entry rounded once."""

    def rounded(row: Row) -> Row:
        return np.array([float(fraction(mass)) for mass in row]).astype(dtype)

    return Pair(lambda prefix: rounded(pair.p(prefix)), lambda prefix: pair.q(prefix).converted(rounded), pair.ids)


def _trees_of(method: TreeMethod, prefix: Prefix, shape: TreeShape) -> tuple[Any, ...]:
    return prefix, shape, method.leads(shape), id(method.proxy)


def _counterexample(
    models: Pair, compared: Comparison, rule: Method, shape: TreeShape, cycles: int = 1
) -> Counterexample | None:
    if compared.wrong is None:
        return None
    sequence, got, right = compared.wrong
    lead = _lead(rule, shape)
    targets, drafts = table(models.target_rows()), table(models.draft_rows(lead or 0))
    ids = None if models.ids is None else tuple(int(each) for each in models.ids)
    return Counterexample(
        targets, drafts, shape, lead, sequence, fraction(got), fraction(right), rule.name, ids, cycles
    )
