"""What `certify` says: the two verdicts, the figures, their scope, and everything they were derived from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from operator import attrgetter
from typing import Any, Generic, TypeVar

from exact.enumeration.cycle_law import Tokens, joint_law
from exact.enumeration.rationals import long_numbers
from exact.verdict.counterexample import Counterexample
from exact.verdict.document import key, number, rows, signed, wrong
from exact.verdict.transcript import Table, Transcript
from rheo_core import InvalidInput, TreeShape
from rheo_core.checks import check_count
from rheo_core.laws import RowLike
from rheo_core.methods import Claim
from rheo_core.models import Prefix, TargetModel

T = TypeVar("T")


@dataclass(frozen=True)
class Inputs:
    """What was certified: the method with the parts that it is made of, the shape and text, and the rows read.

    `lead` is None where the method has no lead to set; `arithmetic` is "rational" or a float type; `ids[draft id]` are
    target ids. `target` is the model itself, which is a function and stays behind in a pickle.
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
    parts: dict[str, Any] = field(repr=False)
    rows: Transcript = field(repr=False)
    target: TargetModel | None = field(repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the target, which is a function."""
        return vars(self) | {"target": None}


@dataclass(frozen=True)
class OnTheseRows:
    """The first verdict: whether the emitted text has the target's distribution on the rows given.

    For float rows `rounding_bound` is the expected sum of the distances of all draws from the same draws in rationals,
    and `rounding_most` the largest that means something (both None for rational rows). `note` says in which arithmetics
    a user's own rule was run besides, or why it is undecided.
    """

    lossless: bool | None
    total_variation: Fraction
    rounding_bound: Fraction | None
    counterexample: Counterexample | None
    note: str = ""
    rounding_most: Fraction | None = None


@dataclass(frozen=True)
class ForEveryTarget:
    """The second verdict, at this q: True proved, False refuted by another target, None undecided; with its reason.

    `lemmas` maps the lemmas of appendix C to whether they hold on every class.
    """

    verdict: bool | None
    reason: str
    counterexample: Counterexample | None = None
    lemmas: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class CycleFigures:
    """What the cycles emit: the distribution of one cycle's tokens and of the whole text, and what they accept.

    `classes` counts the classes of draft trees (None: the method has no draft tree of its own), `classes_digest` is
    their SHA-256. `by_depth[d]` is P(at least d drafted tokens accepted).
    """

    emitted: Mapping[Tokens, Fraction] = field(repr=False)
    text: Mapping[Tokens, Fraction] = field(repr=False)
    classes: int | None
    classes_digest: str | None = field(repr=False)
    by_depth: tuple[Fraction, ...]


class Of(Generic[T]):
    """A public attribute of a certificate that one of its four parts holds."""

    def __init__(self, path: str) -> None:
        self._get = attrgetter(path)

    def __get__(self, owner: Any, kind: Any = None) -> T:
        found: T = self._get(owner)
        return found


@dataclass(frozen=True)
class Certificate:
    """What was certified, the two verdicts, and the figures of the cycle; every figure is an attribute as well."""

    inputs: Inputs
    on_these_rows: OnTheseRows
    for_every_target: ForEveryTarget
    figures: CycleFigures

    method = Of[str]("inputs.method")
    claim = Of[Claim]("inputs.claim")
    shape = Of[TreeShape]("inputs.shape")
    lead = Of["int | None"]("inputs.lead")
    prefix = Of[Prefix]("inputs.prefix")
    length = Of[int]("inputs.length")
    cycles = Of[int]("inputs.cycles")
    vocabulary = Of[int]("inputs.vocabulary")
    arithmetic = Of[str]("inputs.arithmetic")
    parts = Of["dict[str, Any]"]("inputs.parts")
    ids = Of["tuple[int, ...] | None"]("inputs.rows.ids")
    target = Of["TargetModel | None"]("inputs.target")
    target_rows = Of[Table]("inputs.rows.target")
    draft_rows = Of[Table]("inputs.rows.draft")
    lossless = Of["bool | None"]("on_these_rows.lossless")
    total_variation = Of[Fraction]("on_these_rows.total_variation")
    rounding_bound = Of["Fraction | None"]("on_these_rows.rounding_bound")
    rounding_most = Of["Fraction | None"]("on_these_rows.rounding_most")
    counterexample = Of["Counterexample | None"]("on_these_rows.counterexample")
    note = Of[str]("on_these_rows.note")
    every_target = Of["bool | None"]("for_every_target.verdict")
    every_target_reason = Of[str]("for_every_target.reason")
    every_target_counterexample = Of["Counterexample | None"]("for_every_target.counterexample")
    lemmas = Of["dict[str, bool]"]("for_every_target.lemmas")
    classes = Of["int | None"]("figures.classes")
    classes_digest = Of["str | None"]("figures.classes_digest")
    emitted = Of["Mapping[Tokens, Fraction]"]("figures.emitted")
    text = Of["Mapping[Tokens, Fraction]"]("figures.text")
    acceptance_by_depth = Of["tuple[Fraction, ...]"]("figures.by_depth")

    @property
    def acceptance_length(self) -> Fraction:
        """tau: the expected tokens of a cycle, the target's own included."""
        return sum(self.figures.by_depth, Fraction(0))

    @property
    def verdict(self) -> str:
        """The first verdict in words."""
        if self.lossless is None:
            return "undecided"
        if not self.lossless:
            return "lossy"
        return "lossless" if self.rounding_bound is None else "lossless up to rounding"

    @property
    def as_claimed(self) -> bool:
        """Tell whether the first verdict is the method's own claim."""
        return self.lossless is not None and self.lossless == (self.claim == "lossless")

    @property
    def scope(self) -> str:
        """One line on what the verdict covers."""
        return f"{self.checked_scope}; {self.note}" if self.note else self.checked_scope

    @property
    def checked_scope(self) -> str:
        """The scope without the note, which a checker cannot recompute."""
        targets = "every target at this q" if self.every_target else "these rows"
        exactness = "exact" if self.rounding_bound is None else f"up to {self.arithmetic} rounding"
        cycles = "one cycle" if self.cycles == 1 else f"{self.cycles} cycles"
        return (
            f"scope: {targets}; first {self.length} tokens after prefix {self.prefix}, {cycles} continued from the "
            f"target, ends not compared; ideal coins; {exactness}"
        )

    def listed_figures(self) -> dict[str, object]:
        """What the cycles emit and accept, as plain JSON values."""
        return {
            "total_variation": number(self.total_variation),
            "acceptance_length": number(self.acceptance_length),
            "acceptance_by_depth": [number(mass) for mass in self.acceptance_by_depth],
        }

    def summary(self) -> dict[str, object]:
        """Verdicts and figures as plain JSON values, without rows and distributions."""
        return {
            "verdict": self.verdict,
            "lossless": self.lossless,
            "every_target": self.every_target,
            "every_target_reason": self.every_target_reason,
            "claim": self.claim,
            "classes": self.classes,
            **self.listed_figures(),
            "counterexample": wrong(self.counterexample),
            "lemmas": self.lemmas,
            "scope": self.checked_scope,
            "note": self.note,
        }

    @long_numbers()
    def document(self) -> dict[str, Any]:
        """Give the signed document that `rheo-exact check` re-checks."""
        losing = self.every_target_counterexample if self.lossless else None
        return signed(
            inputs={
                "method": self.parts,
                "shape": {"width": self.shape.width, "depth": self.shape.depth, "budget": self.shape.budget},
                "prefix": list(self.prefix),
                "length": self.length,
                "cycles": self.cycles,
                "arithmetic": self.arithmetic,
                "rounding_bound": None if self.rounding_bound is None else str(self.rounding_bound),
                "rounding_most": None if self.rounding_most is None else str(self.rounding_most),
                "second": bool(self.every_target_reason),
                "losing_target": None if losing is None else rows(losing.target),
                "rows": {
                    "target": rows(self.target_rows),
                    "draft": rows(self.draft_rows),
                    "ids": None if self.ids is None else list(self.ids),
                },
            },
            derived={
                "classes": None if self.classes is None else {"count": self.classes, "digest": self.classes_digest},
                "emitted": {key(tokens): str(mass) for tokens, mass in sorted(self.emitted.items())},
                "lossless": self.lossless,
                "verdict": self.verdict,
                "every_target": self.every_target,
                "total_variation": number(self.total_variation),
                "counterexample": wrong(self.counterexample),
                "every_target_counterexample": wrong(losing),
                "acceptance_length": number(self.acceptance_length),
                "acceptance_by_depth": [number(mass) for mass in self.acceptance_by_depth],
            },
        )

    def to_json(self) -> str:
        """Give the document as JSON."""
        return json.dumps(self.document(), indent=2)

    def law(self, length: int | None = None) -> dict[Tokens, Fraction]:
        """The joint law of the first `length` tokens (None: all compared): `text`, what the cycles emit, continued.

        A certificate that came through a pickle has only the rows that were read; where more are needed, it raises.
        """
        return joint_law(self.text, self._row, self._compared(length), self.prefix)

    def right(self, length: int | None = None) -> dict[Tokens, Fraction]:
        """Give the target's own joint distribution of as many tokens, under the same condition."""
        return joint_law({(): Fraction(1)}, self._row, self._compared(length), self.prefix)

    def _compared(self, length: int | None) -> int:
        if length is None:
            return self.length
        if check_count("length", length, 1) > self.length:
            raise InvalidInput("length", length, f"at most the {self.length} tokens that were compared")
        return length

    def _row(self, prefix: Prefix) -> RowLike:
        if prefix in self.target_rows:
            return self.target_rows[prefix]
        if self.target is None:
            raise InvalidInput("prefix", prefix, "one whose target row was read: the target itself is not pickled")
        return self.target(prefix)


CERTIFICATE_KINDS = (Certificate, Inputs, OnTheseRows, ForEveryTarget, CycleFigures, Counterexample, Transcript)
"""What a journal of certificates holds."""
