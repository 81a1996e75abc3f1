"""What `certify` says: the two verdicts, the figures, their scope, and everything they were derived from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from exact.enumeration.cycle_law import Tokens, joint_law
from exact.enumeration.rationals import long_numbers
from exact.verdict.counterexample import Counterexample, Table
from exact.verdict.document import key, number, rows, signed, wrong
from rheo_core import InvalidInput, TreeShape
from rheo_core.checks import check_count
from rheo_core.laws import RowLike
from rheo_core.methods import Claim
from rheo_core.models import Prefix, TargetModel


@dataclass(frozen=True)
class Certificate:
    """What was certified, and the two verdicts.

    `lossless`: on these rows. `every_target`: at this q, whatever the target (True proved, False refuted with a target,
    None undecided), with its reason and the rows that refute it. `lemmas` maps the lemmas of appendix C to whether they
    hold on every class (empty where there are no classes or they were not asked for). `classes` is None where the
    method has no draft tree of its own. `acceptance_length` is tau, the target's own token included;
    `acceptance_by_depth[d]` is P(at least d drafted tokens accepted). `rounding_bound` is None for rational rows.
    `note`: for a rule of the user's own, in which arithmetics it was run besides.
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
    every_target_reason: str
    every_target_counterexample: Counterexample | None
    lemmas: dict[str, bool]
    acceptance_length: Fraction
    acceptance_by_depth: tuple[Fraction, ...]
    parts: dict[str, Any] = field(repr=False)
    ids: tuple[int, ...] | None = field(repr=False)
    classes_digest: str | None = field(repr=False)
    emitted: dict[Tokens, Fraction] = field(repr=False)
    text: dict[Tokens, Fraction] = field(repr=False)
    target: TargetModel | None = field(repr=False, compare=False)
    target_rows: Table = field(repr=False)
    draft_rows: Table = field(repr=False)
    note: str = ""

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
        """Whether the first verdict is the method's own claim."""
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

    def summary(self) -> dict[str, object]:
        """Verdicts and figures as plain JSON values, without rows and laws."""
        return {
            "verdict": self.verdict,
            "lossless": self.lossless,
            "every_target": self.every_target,
            "every_target_reason": self.every_target_reason,
            "claim": self.claim,
            "classes": self.classes,
            "total_variation": number(self.total_variation),
            "acceptance_length": number(self.acceptance_length),
            "acceptance_by_depth": [number(mass) for mass in self.acceptance_by_depth],
            "counterexample": wrong(self.counterexample),
            "lemmas": self.lemmas,
            "scope": self.checked_scope,
            "note": self.note,
        }

    @long_numbers()
    def document(self) -> dict[str, Any]:
        """The signed document that `rheo-exact check` re-checks."""
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
        """The document as JSON."""
        return json.dumps(self.document(), indent=2)

    def law(self, length: int | None = None) -> dict[Tokens, Fraction]:
        """The joint law of the first `length` tokens (None: all compared): `text`, what the cycles emit, continued.

        A certificate that came through a pickle has only the rows that were read; where more are needed, it raises.
        """
        return joint_law(self.text, self._row, self._compared(length), self.prefix)

    def right(self, length: int | None = None) -> dict[Tokens, Fraction]:
        """The target's own joint law of as many tokens, under the same condition."""
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

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the target, which is a function."""
        return vars(self) | {"target": None}
