"""What `certify` says: the two verdicts, the figures, their scope, and everything they were derived from."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction

from exact.counterexample import Counterexample, Table
from exact.cycle_law import Tokens, joint_law
from rheo_core import TreeShape
from rheo_core.registry import Claim
from rheo_core.rows import Prefix


@dataclass(frozen=True)
class Certificate:
    """What was certified, and the two verdicts.

    `lossless`: on these rows. `every_target`: at this q, whatever the target (True proved, False refuted with a target,
    None undecided), with its reason and the rows that refute it. `lemmas` maps the lemmas of appendix C to whether they
    hold on every class (empty where there are no classes or they were not asked for). `classes` is None where the
    method has no draft tree of its own. `acceptance_length` is tau, the target's own token included;
    `acceptance_by_depth[d]` is P(at least d drafted tokens accepted). `rounding_bound` is None for rational rows.
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


def _number(value: Fraction) -> dict[str, object]:
    return {"exact": str(value), "float": float(value)}
