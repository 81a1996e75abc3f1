"""What a proof leaves behind: the statement, where it holds, how it was decided, and what guards it.

A verdict alone is not believed here. Beside it stand a point at which the assumptions hold, so that nothing is true of
nothing, and the verdict on the control, the same statement with one term changed, which must come out refuted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

Verdict = Literal["proved", "refuted", "unknown"]


@dataclass(frozen=True)
class CounterModel:
    """A case, as named exact values, and one line on what happens there."""

    case: Mapping[str, Any]
    what: str

    def to_json(self) -> dict[str, Any]:
        """Numbers as "a/b" strings."""
        return {"case": {name: to_json_value(each) for name, each in self.case.items()}, "what": self.what}

    def __str__(self) -> str:
        return "; ".join([f"{name} = {format_value(each)}" for name, each in self.case.items()] + [self.what])


@dataclass(frozen=True)
class Control:
    """The statement with one term changed, and what became of it."""

    statement: str
    verdict: Verdict
    witness: CounterModel | None


@dataclass(frozen=True)
class Proof:
    """One line of the report.

    `cases` counts what was decided (cells, lists, branches or solver queries, as `method` says); `assumptions` is a
    point at which they hold, None where none was found; `expected` is the label that the verdict is held against.
    """

    name: str
    source: str
    statement: str
    latex: str
    domain: str
    method: str
    verdict: Verdict
    cases: int
    seconds: float
    assumptions: CounterModel | None
    control: Control
    expected: Verdict = "proved"
    witness: CounterModel | None = None

    @property
    def as_expected(self) -> bool:
        """Tell whether verdict, control and assumptions are all as they must be."""
        return self.verdict == self.expected and self.control.verdict == "refuted" and self.assumptions is not None

    def to_json(self) -> dict[str, Any]:
        """Give the line as plain values."""
        return {
            "name": self.name,
            "source": self.source,
            "statement": self.statement,
            "latex": self.latex,
            "domain": self.domain,
            "method": self.method,
            "verdict": self.verdict,
            "expected": self.expected,
            "as_expected": self.as_expected,
            "cases": self.cases,
            "seconds": round(self.seconds, 3),
            "witness": self.witness.to_json() if self.witness else None,
            "assumptions_hold_at": self.assumptions.to_json() if self.assumptions else None,
            "control": {
                "statement": self.control.statement,
                "verdict": self.control.verdict,
                "witness": self.control.witness.to_json() if self.control.witness else None,
            },
        }


def to_json_value(value: Any) -> Any:
    """Give a value for JSON: exact numbers become strings, rows lists."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): to_json_value(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(each) for each in value]
    return value


def format_value(value: Any) -> str:
    """Give a value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {format_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(format_value(each) for each in value) + "]"
    return str(value)
