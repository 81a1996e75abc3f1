"""One line in a test suite: `assert_lossless(my_rule)`.

Without models the rule is certified on small cases and on examples that Hypothesis draws and shrinks; with models on
those; a function that draws through torch, NumPy or `random` is certified as it stands against its `target` law.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods.load import as_method, load_method, with_lead
from exact.verdict.certificate import Certificate
from exact.verdict.certify import CheckedModels, certify, certify_on
from exact.verdict.replay_check import one_census
from exact.verdict.strategies import DrawnModels, model_pairs, shapes, small_pairs
from rheo_core import InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.checks import check_count
from rheo_core.models import DraftModel

DEFAULT_SHAPE = TreeShape(width=3, depth=2, budget=6)
SHAPE_ARGUMENTS = ("width", "depth", "budget")
SMALL_SHAPES = (
    *(TreeShape(k, d, r) for k, d in ((2, 1), (2, 2), (3, 1), (3, 2)) for r in range(1, 5)),
    *(TreeShape(1, 4, 4), TreeShape(1, 6, 6), TreeShape(2, 3, 5), TreeShape(2, 3, 7), TreeShape(2, 4, 6)),
)
MOST_TOKENS = 4
FLOAT_CALLS = 60
"""Calls of a rule on rationals up to which an example is run on floats as well."""

SMALL_PAIRS = tuple(small_pairs())


def assert_lossless(
    rule: Method | str | Callable[..., Any],
    *args: Any,
    target: Any = None,
    draft: DraftModel | None = None,
    shape: TreeShape | None = None,
    lead: int | None = None,
    ids: Sequence[int] | None = None,
    examples: int = 50,
    **options: Any,
) -> None:
    """Raise `AssertionError` with a counterexample unless `rule` is lossless.

    `rule` is a Method, a registered name, `path.py:name`, a verify function (it gets one lead, or `lead`, and the
    paper's proxy), or, where `target` is given without `draft`, a function that draws through torch, NumPy or `random`:
    it is called with `args` and `options` and held against the law `target` (`exact.interception.certify_function`).

    With `target` and `draft` (models, prefix -> row) the rule is certified on them at `shape` (width 3, depth 2,
    budget 6 if None). With neither it is certified, for every target where that can be decided, on a grid of small
    cases and on `examples` models and shapes drawn by `exact.verdict.strategies`; the first or smallest that fails is
    shown. A whole cycle of the user's own is certified for two cycles, since it sees the prefix that it continues. A
    warning says where a verify function is seen to lose nowhere, but has no reason to be lossless elsewhere.

    >>> assert_lossless("rheo", examples=5)
    >>> assert_lossless("rheo-raw")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: rheo-raw m=1 is lossy at ...
    """
    if target is not None and draft is None:
        if isinstance(rule, str) or not callable(rule):
            raise InvalidInput("draft", draft, "a draft model beside the target, for a method")
        _assert_function(rule, args, options, target)
        return
    if args or options:
        raise InvalidInput("arguments", [*args, *options], "none, unless a function is held against a target law")
    method = with_lead(_method(rule), lead)
    if target is not None and draft is not None:
        at = shape or DEFAULT_SHAPE
        certificate = certify(method, target, draft, at, ids=ids, every_target=False, cycles=_cycles(method))
        if not certificate.lossless:
            raise AssertionError(message(certificate, method))
        return
    if draft is not None:
        raise InvalidInput("target", None, "a target model beside the draft")
    _assert_examples(method, shape, check_count("examples", examples, 1))


def _cycles(method: Method) -> int:
    """Two for a method that sees the prefix it continues; one where a rule sees the prefix through its rows alone."""
    return 1 if isinstance(method, TreeMethod | FixedTreeMethod) else 2


def _method(rule: Method | str | Callable[..., Any]) -> Method:
    if isinstance(rule, str):
        return load_method(rule)
    name = getattr(rule, "__name__", type(rule).__name__)
    return as_method(rule, "rule", name)


def _assert_function(rule: Any, args: tuple[Any, ...], options: dict[str, Any], target: Any) -> None:
    from exact.interception import certify_function

    found = certify_function(rule, *args, target=target, **options)
    if not found.lossless:
        raise AssertionError(f"{getattr(rule, '__name__', rule)} is not lossless\n{found}")


@one_census()
def _assert_examples(method: Method, shape: TreeShape | None, examples: int) -> None:
    """Certify on small cases where faults of trees show, then on drawn models; Hypothesis shrinks what it finds."""
    least = method.lead or 0 if isinstance(method, TreeMethod) else 0
    if least >= MOST_TOKENS:
        expected = f"below {MOST_TOKENS}, the largest vocabulary tried (else give target and draft)"
        raise InvalidInput("lead", least, expected)
    unsure: set[str] = set()
    certified: list[TreeShape] = []

    def check(models: DrawnModels, drawn: TreeShape) -> None:
        at = shape or TreeShape(max(drawn.width, least), drawn.depth, drawn.budget)
        try:
            read = CheckedModels.read(models.target, models.draft)
            certificate = certify_on(read, method, at, cycles=_cycles(method), float_calls=FLOAT_CALLS)
        except InvalidInput as refusal:  # a method may have no tree of this shape, but not none at all
            if refusal.by_rule or refusal.argument not in SHAPE_ARGUMENTS:
                raise
            return
        certified.append(at)
        if "fails at" in certificate.every_target_reason:
            unsure.add(certificate.every_target_reason)
        if not certificate.lossless or certificate.every_target is False:
            raise AssertionError(message(certificate, method))

    for models in SMALL_PAIRS:
        for at in SMALL_SHAPES if shape is None else (shape,):
            check(models, at)
    draw = given(models=model_pairs(most=3), drawn=shapes(width=3, depth=2, budget=6))
    settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )(draw(check))()
    if not certified:
        raise InvalidInput("shape", shape, f"a shape that {method.name} can draft")
    if unsure:  # lossless wherever it was tried, but by no reason that would hold elsewhere
        warnings.warn(f"{method.name}: no loss seen, but {min(unsure, key=len)}", stacklevel=3)


def message(certificate: Certificate, method: Method) -> str:
    """What a failing assertion says: the rows, the shape, and the probability that is wrong."""
    found = certificate.counterexample or certificate.every_target_counterexample
    lead = "" if certificate.lead is None else f" m={certificate.lead}"
    floats = "" if certificate.arithmetic == "rational" else f" in {certificate.arithmetic}"
    lines = [f"{method.name}{lead} is lossy at {certificate.shape}{floats}"]
    if found is not None:
        lines.append(f"P{found.sequence} is {found.got}, right is {found.right}")
        lines += [f"  target{prefix} = {_shown(row)}" for prefix, row in found.target.items()]
        lines += [f"  draft{prefix} = {_shown(row)}" for prefix, row in found.draft.items()]
    return "\n".join(lines)


def _shown(row: Sequence[Any]) -> str:
    return "[" + ", ".join(_shown(x) if isinstance(x, tuple) else str(x) for x in row) + "]"
