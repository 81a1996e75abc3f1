"""The verdict on a function: what `certify_function` says, its figures and its scope, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import format_distinct, long_numbers
from exact.enumeration.walk import MOST_REPLAYS
from exact.interception.session import Coins

Law = dict[Any, Fraction]


@dataclass(frozen=True)
class FunctionCertificate:
    """The verdict on a function.

    `total_variation` is exact, between `law` and `right`; `total_variation_float64` is that of the same code in
    float64 (None where the first is 0 already), to be compared with `bound`, what float64 is granted by rule. What its
    own type (`rounding_type`) does is measured: `rounding_bound` is the expected sum of the distances of its draws from
    those in float64, and what is off there; `rounding_most` is the largest that means something
    (`exact.enumeration.rounding`; all three None where it did not come to that). `sequence` is the shortest one (or the
    result) whose probability `got` is not the `due` one.
    `continued` counts the results shorter than the length, which were continued from the target.
    """

    lossless: bool | None
    verdict: str
    total_variation: Fraction
    total_variation_float64: Fraction | None
    bound: Fraction
    sequence: Any
    got: Fraction | None
    due: Fraction | None
    outcomes: int
    coins: Coins
    law: Law = field(repr=False)
    right: Law = field(repr=False)
    changed: tuple[str, ...] = ()
    """What the code wrote into that was not its own; it was put back before every run."""
    rounding_bound: Fraction | None = None
    rounding_type: str | None = None
    continued: int = 0
    rounding_most: Fraction | None = None
    about: str | None = None
    """Of a decoder: what was compared, and from which states."""

    @property
    def scope(self) -> str:
        """What the verdict is about."""
        coins = "ideal coins" if self.coins == "ideal" else "coins on the grid of their float type"
        how = "exact" if not self.total_variation else "exact law of the floats as they are"
        again = "replayed" if self.outcomes <= MOST_REPLAYS else "an even sample of the runs replayed"
        changed = f"; the code changed {', '.join(self.changed)}, put back before every run" if self.changed else ""
        short = f"; {self.continued} short results continued from the target, ends not compared"
        state = f"no state between calls ({again})" if self.about is None else self.about
        return f"these inputs; {coins}; {state}{changed}; {how}{short if self.continued else ''}"

    def __str__(self) -> str:
        lines = [f"{self.verdict}: TV {float(self.total_variation):.3g} over {self.outcomes} outcomes"]
        if self.total_variation_float64 is not None:
            tv, bound = float(self.total_variation_float64), float(self.bound)
            lines.append(f"the same code in float64: TV {tv:.3g}, {'within' if tv <= bound else 'above'} {bound:.3g}")
        if self.rounding_bound is not None:
            within = "within" if self.rounding_bound <= (self.rounding_most or 0) else "above"
            lines.append(
                f"rounding in {self.rounding_type}: its draws differ from float64 by {float(self.rounding_bound):.3g} "
                f"in expectation, {within} {float(self.rounding_most or 0):.3g}"
            )
        if self.got is not None and self.due is not None:
            sequence = ", ".join(map(str, self.sequence)) if isinstance(self.sequence, tuple) else self.sequence
            got, due = format_distinct(self.got, self.due)
            lines.append(f"P({sequence}) is {got}, right is {due}")
        return "\n".join([*lines, self.scope])

    @long_numbers()
    def document(self) -> dict[str, Any]:
        """The verdict as JSON values: exact numbers as "a/b" beside a float."""

        def number(value: Fraction | None) -> Any:
            return None if value is None else {"exact": str(value), "float": float(value)}

        return {
            "lossless": self.lossless,
            "verdict": self.verdict,
            "total_variation": number(self.total_variation),
            "total_variation_float64": number(self.total_variation_float64),
            "bound": number(self.bound),
            "rounding_bound": number(self.rounding_bound),
            "rounding_most": number(self.rounding_most),
            "rounding_type": self.rounding_type,
            "continued": self.continued,
            "sequence": to_json_value(self.sequence),
            "got": number(self.got),
            "due": number(self.due),
            "outcomes": self.outcomes,
            "scope": self.scope,
            "law": listed(self.law),
            "right": listed(self.right),
        }

    def to_json(self) -> str:
        """The verdict as one JSON document."""
        return json.dumps(self.document(), indent=2)


def listed(law: Any) -> Any:
    """A law as JSON values; None where it is kept in rows, too long to be listed."""
    if isinstance(law, dict):
        return [[to_json_value(key), str(mass), float(mass)] for key, mass in law.items()]
    return None


def to_json_value(key: Any) -> Any:
    """A result as a JSON value."""
    return json.loads(json.dumps(key, default=str))
