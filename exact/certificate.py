"""`certify`: is this method lossless on these rows, exactly?

The exact joint law of the first L emitted tokens is held against the target's. Rational rows give a verdict that is
exact; float rows are run in their own type with exact branch weights, and count as lossless up to rounding when the
same rows taken as rationals are lossless and the total variation of the float run stays within the bound.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from exact.arithmetic import fraction
from exact.counterexample import Counterexample, Table
from exact.cycle_law import (
    Comparison,
    Emitted,
    Tokens,
    acceptance_by_depth,
    compare,
    cycle_law,
    exact_pair,
    joint_law,
    text_law,
)
from rheo_core import Method, Pair, TreeMethod, TreeShape, find_method
from rheo_core.errors import check_count
from rheo_core.registry import Claim
from rheo_core.rows import DraftModel, Prefix, TargetModel, check_prefix


@dataclass(frozen=True)
class Certificate:
    """What was certified, and the two verdicts.

    `lossless`: on these rows. `every_target`: at this q, whatever the target (True proved, False refuted with a target,
    None undecided). `classes` is None where the method has no draft tree of its own. `acceptance_length` is tau, the
    target's own token included; `acceptance_by_depth[d]` is P(at least d drafted tokens accepted). `rounding_bound` is
    None for rational rows.
    """

    method: str
    claim: Claim
    shape: TreeShape
    lead: int | None
    prefix: Prefix
    length: int
    cycles: int
    vocabulary: int
    arithmetic: str
    lossless: bool | None
    every_target: bool | None
    total_variation: Fraction
    rounding_bound: Fraction | None
    classes: int | None
    counterexample: Counterexample | None
    acceptance_length: Fraction
    acceptance_by_depth: tuple[Fraction, ...]
    emitted: dict[Tokens, Fraction] = field(repr=False)
    target_rows: Table = field(repr=False)
    draft_rows: Table = field(repr=False)

    @property
    def verdict(self) -> str:
        """The first verdict in words."""
        if self.lossless is None:
            return "undecided"
        if not self.lossless:
            return "lossy"
        return "lossless" if self.rounding_bound is None else "lossless up to rounding"

    @property
    def scope(self) -> str:
        """One line on what the verdict covers."""
        targets = "every target at this q" if self.every_target else "these rows"
        exactness = "exact" if self.rounding_bound is None else f"up to {self.arithmetic} rounding"
        cycles = "one cycle" if self.cycles == 1 else f"{self.cycles} cycles"
        return (
            f"scope: {targets}; first {self.length} tokens after prefix {self.prefix}, {cycles} continued from the "
            f"target; ideal coins; {exactness}"
        )

    def summary(self) -> dict[str, object]:
        """Verdicts and figures as plain JSON values, exact numbers as "a/b" strings beside a float."""
        found = self.counterexample
        return {
            "verdict": self.verdict,
            "lossless": self.lossless,
            "every_target": self.every_target,
            "claim": self.claim,
            "shape": {"width": self.shape.width, "depth": self.shape.depth, "budget": self.shape.budget},
            "lead": self.lead,
            "prefix": list(self.prefix),
            "length": self.length,
            "cycles": self.cycles,
            "vocabulary": self.vocabulary,
            "arithmetic": self.arithmetic,
            "classes": self.classes,
            "total_variation": _number(self.total_variation),
            "rounding_bound": None if self.rounding_bound is None else _number(self.rounding_bound),
            "acceptance_length": _number(self.acceptance_length),
            "acceptance_by_depth": [_number(mass) for mass in self.acceptance_by_depth],
            "counterexample": None
            if found is None
            else {"sequence": list(found.sequence), "got": _number(found.got), "right": _number(found.right)},
            "scope": self.scope,
        }

    def to_json(self) -> str:
        """The summary as one JSON document."""
        return json.dumps(self.summary(), indent=2)

    def law(self) -> dict[Tokens, Fraction]:
        """The joint law of the first `length` tokens."""
        return joint_law(self.emitted, lambda prefix: self.target_rows[prefix], self.length, self.prefix)


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
) -> Certificate:
    """Certify or refute `method` on the rows that `target` and `draft` give at and below `prefix`.

    The law of the first `length` tokens (None: depth + 1) of `cycles` cycles continued from the target is computed
    exactly. Raises `InvalidInput` on rows, ids or shapes that the definitions do not allow.

    >>> from fractions import Fraction as F
    >>> draft, target = [F(1, 2), F(3, 10), F(1, 5)], [F(1, 2), F(1, 5), F(3, 10)]  # Table 1
    >>> certify("rheo", lambda prefix: target, lambda prefix: draft, TreeShape(3, 1, 2)).lossless
    True
    >>> str(certify("rheo-adhoc", lambda prefix: target, lambda prefix: draft, TreeShape(3, 1, 2)).counterexample)
    '(0,): got 3/5, right 1/2'
    """
    rule = find_method(method)
    given = Pair(target, draft, ids)
    prefix = check_prefix(prefix, given)
    length = shape.depth + 1 if length is None else check_count("length", length, 1)
    cycles = check_count("cycles", cycles, 1)
    floats = given.p(prefix).dtype
    pair = exact_pair(given)
    emitted, found, compared = _run(rule, pair, prefix, shape, length, cycles)
    lossless = compared.wrong is None
    bound = None
    if floats.kind != "O":
        emitted, found, rounded = _run(rule, given, prefix, shape, length, cycles)
        bound = 64 * length * len(given.p(prefix)) * Fraction(float(np.finfo(floats).eps))
        lossless = lossless and rounded.total_variation <= bound
        compared = rounded if compared.wrong is None else Comparison(rounded.total_variation, compared.wrong)
    by_depth = acceptance_by_depth(emitted, shape.depth)
    lead = rule.leads(shape) if isinstance(rule, TreeMethod) and rule.lead is not None else None
    targets, drafts = given.target_rows(), given.draft_rows(lead or 0)
    counterexample = None
    if not lossless and compared.wrong is not None:
        sequence, got, right = compared.wrong
        counterexample = Counterexample(
            targets, drafts, shape, lead, sequence, fraction(got), fraction(right), rule.name
        )
    return Certificate(
        method=rule.name,
        claim=rule.claim,
        shape=shape,
        lead=lead,
        prefix=prefix,
        length=length,
        cycles=cycles,
        vocabulary=len(given.p(prefix)),
        arithmetic="rational" if floats.kind == "O" else str(floats),
        lossless=lossless,
        every_target=None,
        total_variation=fraction(compared.total_variation),
        rounding_bound=bound,
        classes=found,
        counterexample=counterexample,
        acceptance_length=sum(by_depth, Fraction(0)),
        acceptance_by_depth=by_depth,
        emitted={tokens: fraction(weight) for tokens, weight in emitted.items()},
        target_rows=targets,
        draft_rows=drafts,
    )


def _run(
    rule: Method, pair: Pair, prefix: Prefix, shape: TreeShape, length: int, cycles: int
) -> tuple[Emitted, int | None, Comparison]:
    """The law of one cycle, the number of its classes, and the comparison of `cycles` cycles with the target."""
    emitted, found = cycle_law(rule, pair, prefix, shape)
    text = text_law(rule, pair, prefix, shape, length, cycles, emitted)
    return emitted, None if found is None else len(found), compare(text, pair, prefix, length)


def _number(value: Fraction) -> dict[str, object]:
    return {"exact": str(value), "float": float(value)}
