"""`certify`: is this method lossless on these rows, exactly, and is it for every target?

The exact joint law of the first L emitted tokens is held against the target's. Rational rows give a verdict that is
exact; float rows are run in their own type with exact branch weights. They count as lossless up to rounding when the
same rows taken as rationals are lossless, the distance of every draw from the same draw in rationals accounts for the
total variation of the float run, and that bound is small (`exact.enumeration.rounding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from exact.enumeration import whole_rows
from exact.enumeration.cycle_law import (
    Comparison,
    Emitted,
    Tokens,
    acceptance_by_depth,
    compare,
    cycle_law,
    text_law,
)
from exact.enumeration.cycle_steps import Steps
from exact.enumeration.rationals import converted, fraction, rational_models
from exact.enumeration.rounding import judged, most_rounding
from exact.enumeration.tree_classes import TreeClass
from exact.enumeration.whole_rows import Spread, plain_numbers
from exact.methods import methods
from exact.verdict.certificate import Certificate, CycleFigures, ForEveryTarget, Inputs, OnTheseRows
from exact.verdict.counterexample import Counterexample
from exact.verdict.document import classes_digest, parts
from exact.verdict.every_target import EveryTarget, decide_every_target
from exact.verdict.graph_certificate import graph_certificate
from exact.verdict.identity import as_it_runs
from exact.verdict.replay_check import DeterministicModel, check_models_again, one_census, tells_types, watched
from exact.verdict.shared_trees import checked_trees, enumerate_trees
from exact.verdict.transcript import Transcript
from rheo_core import InvalidInput, Method, ModelPair, TreeMethod, TreeShape, find_method
from rheo_core.checks import check_count
from rheo_core.laws import Row
from rheo_core.models import DraftModel, Prefix, TargetModel, check_prefix

SLACK = 64
"""Times eps: the probability up to which a branch on floats may break."""

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
"""Arithmetics in which a user's own rule is run beside rationals."""

MEASURED = "its draws differ from those of the same floats in rationals by {:.3g} in expectation"

MOST_CALLS = 20_000
"""Calls of a rule on rationals up to which it is run on floats too."""


@dataclass(frozen=True)
class Question:
    """What is to be decided of a method: the first `length` tokens of `cycles` cycles of this shape after `prefix`."""

    shape: TreeShape
    prefix: Prefix
    length: int
    cycles: int

    @classmethod
    def checked(cls, models: ModelPair, shape: TreeShape, prefix: Prefix, length: int | None, cycles: int) -> Question:
        """Give the question with its numbers checked; a length of None is depth + 1."""
        if not isinstance(shape, TreeShape):
            raise InvalidInput("shape", shape, "a TreeShape(width, depth, budget)")
        length = shape.depth + 1 if length is None else check_count("length", length, 1)
        return cls(shape, check_prefix(prefix, models), length, check_count("cycles", cycles, 1))


@dataclass(frozen=True)
class Run:
    """The distribution of one cycle, its classes, that of the whole text, and the text held against the target's.

    `steps` are the draws.
    """

    emitted: Emitted
    classes: Sequence[TreeClass] | None
    text: Emitted
    compared: Comparison
    steps: Steps

    @classmethod
    def of(cls, rule: Method, models: ModelPair, question: Question) -> Run:
        """Enumerate a rule on one pair of models."""
        known = enumerate_trees(rule, models, question.prefix, question.shape) if isinstance(rule, TreeMethod) else None
        steps, at = Steps(), (rule, models, question.prefix, question.shape)
        emitted, found = cycle_law(*at, known, steps=steps)
        text = text_law(*at, question.length, question.cycles, emitted, steps=steps)
        return cls(emitted, found, text, compare(text, models, question.prefix, question.length), steps)


@dataclass(frozen=True)
class CheckedModels:
    """A target and a draft, every row checked and read twice: in their own arithmetic and in rationals."""

    given: ModelPair
    exact: ModelPair
    draft: DraftModel | None = None

    @classmethod
    def read(cls, target: TargetModel, draft: DraftModel, ids: Sequence[int] | None = None) -> CheckedModels:
        """Put both models behind one door. Raises `InvalidInput` where one is no function."""
        for name, model in (("target", target), ("draft", draft)):
            if not callable(model):
                raise InvalidInput(name, model, "a model: a function from a prefix to a row")
        given = ModelPair(DeterministicModel(target, "target"), DeterministicModel(draft, "draft"), ids)
        return cls(given, rational_models(given), draft)


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
    every_target: bool = True,
) -> Certificate:
    """Certify or refute `method` on the rows that `target` and `draft` give at and below `prefix`.

    The distribution of the first `length` tokens (None: depth + 1) of `cycles` cycles continued from the target is
    computed exactly: the first verdict, on these rows. The second, for `every_target` at this q, is the p-free
    certificate. Raises `InvalidInput` on rows, ids or shapes that the definitions do not allow, on a model that gives
    two different rows at one prefix, and on a rule whose distribution depends on the cycle number in `at`.

    >>> from fractions import Fraction as F
    >>> draft, target = [F(1, 2), F(3, 10), F(1, 5)], [F(1, 2), F(1, 5), F(3, 10)]  # Table 1
    >>> certified = certify("rheo", lambda prefix: target, lambda prefix: draft, TreeShape(3, 1, 2))
    >>> certified.lossless, certified.every_target
    (True, True)
    >>> str(certify("rheo-adhoc", lambda prefix: target, lambda prefix: draft, TreeShape(3, 1, 2)).counterexample)
    '(0,): got 3/5, right 1/2'
    """
    models = CheckedModels.read(target, draft, ids)
    return certify_on(models, method, shape, length, prefix=prefix, cycles=cycles, every_target=every_target)


@one_census()
def certify_on(
    models: CheckedModels,
    method: Method | str,
    shape: TreeShape,
    length: int | None = None,
    *,
    prefix: Prefix = (),
    cycles: int = 1,
    every_target: bool = True,
    float_calls: int = MOST_CALLS,
) -> Certificate:
    """Certify a method on models that are read already: methods that draft alike share their trees there.

    A user's own rule that made up to `float_calls` calls on rationals is run on floats as well.
    """
    question = Question.checked(models.given, shape, prefix, length, cycles)
    rule = as_it_runs(find_method(method, methods))
    inputs = partial(inputs_of, rule, models.given, question)
    if every_target and models.draft is not None:
        many = graph_certificate(rule, models.exact, models.draft, inputs, question.prefix, shape)
        if many is not None:
            return many
    with plain_numbers(len(models.given.p(question.prefix)) >= whole_rows.LEAST and tells_types(rule)):
        return _certified(models, rule, question, every_target, float_calls)


def _certified(
    models: CheckedModels, rule: Method, question: Question, every_target: bool, float_calls: int
) -> Certificate:
    with watched(rule) as (own, watch):
        exact = Run.of(own, models.exact, question)
        calls = 0 if watch is None else watch.calls
        floats = None if is_rational(models.given, question.prefix) else Run.of(own, models.given, question)
        bound = None if floats is None else floats.steps.expected_distance(exact.steps)
    first, wrong = on_these_rows(models.given, exact.compared, floats, bound, rule, question)
    every = for_every_target(rule, models, question, wrong, first) if every_target else ForEveryTarget(None, "")
    if watch is not None:
        check_models_again(models.given, rule.name)
        if first.lossless:
            watch.check_cycle_independence(question.cycles)
        if first.lossless and floats is None:
            losing, note = run_on_floats(rule, models.given, question, calls, float_calls)
            if losing is not None:  # the rows in floats are the ones to show
                lossy = _certified(losing, rule, question, every_target, float_calls)
                return replace(lossy, on_these_rows=replace(lossy.on_these_rows, note=note))
            first = replace(first, note=note)
    return Certificate(
        inputs_of(rule, models.given, question), first, every, figures_of(floats or exact, question.shape)
    )


def is_rational(models: ModelPair, prefix: Prefix) -> bool:
    """Tell whether the rows are rationals."""
    return models.p(prefix).dtype.kind == "O"


def for_every_target(
    rule: Method, models: CheckedModels, question: Question, wrong: Comparison, first: OnTheseRows
) -> ForEveryTarget:
    """Give the second verdict; a method that loses on the given rows needs no search."""
    if not isinstance(rule, TreeMethod):
        reason = "undecided: the method has no draft tree of its own to enumerate without p"
        found, lemmas = EveryTarget(None, reason), {}
    else:
        drafting = checked_trees(rule, models.exact, question.prefix, question.shape)
        lemmas = drafting.lemmas
        if first.lossless is not False:
            found = decide_every_target(rule, models.exact, question.prefix, question.shape, question.length, drafting)
    if first.lossless is False:
        found = EveryTarget(False, "refuted by the given target", (models.given, wrong))
    shown = None if found.loss is None else _counterexample(*found.loss, rule, question.shape)
    return ForEveryTarget(found.verdict, found.reason, shown, lemmas)


def run_on_floats(
    rule: Method, models: ModelPair, question: Question, calls: int, most_calls: int
) -> tuple[CheckedModels | None, str]:
    """Run a rule that is lossless on rationals on the same rows in floats: the rows where it loses, and a note."""
    if calls > most_calls:
        return None, f"rationals alone: {calls:,} calls are too many to run on floats too"
    for dtype in FLOATS:
        narrow = converted(models, partial(rounded, dtype=dtype))
        most = most_rounding(question.length, len(models.p(question.prefix)), np.finfo(dtype).eps)
        try:
            with np.errstate(all="ignore"), watched(rule, SLACK * fraction(np.finfo(dtype).eps)) as (own, watch):
                floats, exact = Run.of(own, narrow, question), Run.of(own, rational_models(narrow), question)
                bound = floats.steps.expected_distance(exact.steps)
        except Exception as error:
            if isinstance(error, InvalidInput) and not error.by_rule:
                raise
            said = " ".join(str(error).split())[:200]
            return None, f"rationals alone: in {dtype} it breaks ({type(error).__name__}: {said})"
        lossless, why = judged(fraction(floats.compared.total_variation), bound, most)
        if lossless is False:
            losing = CheckedModels.read(narrow.p, narrow.q, models.ids)
            return losing, f"lossless on the same rows as rationals, not in {dtype}"
        if watch is not None and watch.broken > most:
            why = f"it breaks with probability {float(watch.broken):.3g}"
        if why:
            return None, f"rationals alone: in {dtype} {why}"
    return None, f"{' and '.join(map(str, FLOATS))} up to rounding"


def rounded(row: Row, dtype: np.dtype[Any]) -> Row:
    """Round every entry once."""
    return np.array([float(fraction(mass)) for mass in row]).astype(dtype)


def on_these_rows(
    models: ModelPair, exact: Comparison, floats: Run | None, bound: Fraction | None, rule: Method, question: Question
) -> tuple[OnTheseRows, Comparison]:
    """Give the first verdict from the run on rationals and, where the rows are floats, the run on those and its bound.

    The comparison beside the verdict is the one that shows a loss.
    """
    if floats is None or bound is None:
        lossless = exact.wrong is None
        shown = None if lossless else _counterexample(models, exact, rule, question.shape, question.cycles)
        return OnTheseRows(lossless, fraction(exact.total_variation), None, shown), exact
    first, off = models.p(question.prefix), floats.compared
    most = most_rounding(question.length, len(first), np.finfo(first.dtype).eps)
    variation = fraction(off.total_variation)
    decided, why = (False, "") if exact.wrong is not None else judged(variation, bound, most)
    note = f"undecided: {why}" if why else MEASURED.format(float(bound))
    if variation > most:  # shown by a sequence that is off by more than rounding
        clear = compare(floats.text, models, question.prefix, question.length, most / len(first))
        off = off if clear.wrong is None else clear
    compared = off if exact.wrong is None else Comparison(off.total_variation, exact.wrong)
    shown = None if decided is not False else _counterexample(models, compared, rule, question.shape, question.cycles)
    return OnTheseRows(decided, variation, bound, shown, note, most), compared


def inputs_of(rule: Method, models: ModelPair, question: Question) -> Inputs:
    """What was certified, with every row that was read."""
    lead = _lead(rule, question.shape)
    first = models.p(question.prefix)
    return Inputs(
        method=rule.name,
        claim=rule.claim,
        shape=question.shape,
        lead=lead,
        prefix=question.prefix,
        length=question.length,
        cycles=question.cycles,
        vocabulary=len(first),
        arithmetic="rational" if first.dtype.kind == "O" else str(first.dtype),
        parts=parts(rule, rule.leads(question.shape) if isinstance(rule, TreeMethod) else None),
        rows=Transcript.of(models, lead),
        target=models.p,
    )


def figures_of(run: Run, shape: TreeShape) -> CycleFigures:
    """What a run emits and accepts, as fractions."""
    return CycleFigures(
        emitted=as_fractions(run.emitted),
        text=as_fractions(run.text),
        classes=None if run.classes is None else len(run.classes),
        classes_digest=None if run.classes is None else classes_digest(run.classes),
        by_depth=acceptance_by_depth(run.emitted, shape.depth),
    )


def as_fractions(law: Emitted) -> Mapping[Tokens, Fraction]:
    """Give a distribution in fractions; one that is kept in rows stays so."""
    return law if isinstance(law, Spread) else {tokens: fraction(weight) for tokens, weight in law.items()}


def _lead(rule: Method, shape: TreeShape) -> int | None:
    return rule.leads(shape) if isinstance(rule, TreeMethod) and rule.lead is not None else None


def _counterexample(
    models: ModelPair, compared: Comparison, rule: Method, shape: TreeShape, cycles: int = 1
) -> Counterexample | None:
    if compared.wrong is None:
        return None
    sequence, actual, expected = compared.wrong[0], *map(fraction, compared.wrong[1:])
    lead = _lead(rule, shape)
    rows = Transcript.of(models, lead)
    name, ids = rule.name, rows.ids
    return Counterexample(rows.target, rows.draft, shape, lead, sequence, actual, expected, name, ids, cycles)
