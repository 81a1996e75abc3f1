"""A counterexample that a person can read, keep and run.

It holds every row that was used, the shape, and one sequence whose probability is wrong. `to_pytest` writes it as a
test that fails on the rule that was refuted and passes on a repaired one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from exact.enumeration.rationals import exact_law, fraction
from exact.verdict.transcript import Table
from rheo_core import TreeShape


@dataclass(frozen=True)
class Counterexample:
    """Rows and a shape on which a method is lossy, and the shortest sequence that shows it.

    `target` and `draft` map each prefix that was read to its row; `lead` is m (None: the method has no such number);
    `got` is the probability that the method gives `sequence`, `right` the target's. `ids` is the vocabulary map that
    was used, `cycles` the number of cycles that were continued, `source` where the rule is found: a name of the
    catalogue, `path.py:name`, or `module:name`.
    """

    target: Table
    draft: Table
    shape: TreeShape
    lead: int | None
    sequence: tuple[int, ...]
    got: Fraction
    right: Fraction
    method: str = field(default="", compare=False)
    ids: tuple[int, ...] | None = field(default=None, compare=False)
    cycles: int = field(default=1, compare=False)
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.sequence}: got {self.got}, right {self.right}"

    def to_pytest(self, rule: str | None = None) -> str:
        """This counterexample as a test file: it fails on the rule that was refuted and passes on a repaired one.

        `rule` says where the rule is found (None: `source`, or the method's name if the catalogue has it); where
        nothing says so, the test takes it from a fixture called `rule`. Float rows are written as the rationals that
        they are worth.

        >>> half = (Fraction(1, 2), Fraction(1, 2))
        >>> found = Counterexample({(): half}, {(): half}, TreeShape(1, 1, 1), 0, (0,), Fraction(1), Fraction(1, 2))
        >>> print(found.to_pytest("rheo-raw").splitlines()[-1].strip())
        assert certificate.lossless, str(certificate.counterexample)
        """
        found_at = self._found_at() if rule is None else rule
        start = min(self.target, key=len)
        arguments = ["rule", "model(TARGET)", "model(DRAFT)", _shape(self.shape)]
        if self.cycles > 1:
            arguments.append(f"{len(self.sequence)}, cycles={self.cycles}")
        if start:
            arguments.append(f"prefix={start}")
        if self.ids is not None:
            arguments.append(f"ids={self.ids}")
        name = self.method or found_at or "the rule"
        lines = [
            f'"""{name} is lossy here: {_probability(self.sequence)} is {self.got}, not {self.right}."""',
            "",
            *_imports(found_at, self.lead is not None, _holds_pairs(self.draft)),
            "",
            *_table("TARGET", self.target),
            *_table("DRAFT", self.draft or {start: _any_law(self.target[start])}),
            "",
            "",
            "def model(rows):",
            "    first = next(iter(rows.values()))",
            "    return lambda prefix: rows.get(tuple(prefix), first)",
            "",
            "",
            f"def test_{_identifier(name)}_is_lossless_here({'' if found_at else 'rule'}):",
            *_rule(found_at, self.lead),
            f"    certificate = certify({', '.join(arguments)})",
            "    assert certificate.lossless, str(certificate.counterexample)",
        ]
        return "\n".join(lines) + "\n"

    def _found_at(self) -> str:
        from exact.methods import methods  # which itself needs counterexamples

        return self.source or (self.method if self.method in methods else "")


def is_file(source: str) -> bool:
    """Tell whether `source` is a `path.py:name`."""
    return source.rpartition(":")[0].endswith(".py")


def _imports(source: str, has_lead: bool, pairs: bool) -> Iterable[str]:
    if has_lead:
        yield "from dataclasses import replace"
    yield "from fractions import Fraction as F"
    if is_file(source):
        yield "from pathlib import Path"
    yield ""
    yield "from exact import certify"
    if not source:
        yield "# The rule is not importable by name: give it as a pytest fixture called `rule`."
    elif ":" not in source:
        yield "from exact.methods import methods"
    elif is_file(source):
        yield "from exact.methods.load import load_method"
    else:
        yield "from exact.methods.load import as_method"
    yield f"from rheo_core import {'DraftRow, ' if pairs else ''}TreeShape"
    if ":" in source and not is_file(source):
        module, _, name = source.partition(":")
        yield f"from {module} import {name}"


def _rule(source: str, lead: int | None) -> Iterable[str]:
    """Statements that make `rule`; a file is looked for beside the test first."""
    path, _, name = source.rpartition(":")
    if source and ":" not in source:
        yield f'    rule = methods["{source}"]'
    elif is_file(source):
        yield f'    beside, known = Path(__file__).with_name("{Path(path).name}"), r"{Path(path).resolve()}"'
        yield f'    rule = load_method(f"{{beside if beside.exists() else known}}:{name}")'
    elif source:
        yield f'    rule = as_method({name}, "{source}", "{name}")'
    if lead is not None:
        yield f"    rule = replace(rule, lead={lead})"


def _table(name: str, rows: Table) -> Iterable[str]:
    yield f"{name} = {{"
    yield from (f"    {prefix}: {_written(row)}," for prefix, row in rows.items())
    yield "}"


def _written(row: tuple[Any, ...]) -> str:
    """Give a row as source text: a list of rationals, or a pair of them."""
    if row and isinstance(row[0], tuple):
        return f"DraftRow.pair({_written(row[0])}, {_written(row[1])})"
    exact = exact_law(row) if any(isinstance(mass, float) for mass in row) else row
    return "[" + ", ".join(_number(fraction(mass)) for mass in exact) + "]"


def _number(mass: Fraction) -> str:
    return f"F({mass.numerator}, {mass.denominator})" if mass.denominator != 1 else f"F({mass.numerator})"


def _holds_pairs(rows: Table) -> bool:
    return any(row and isinstance(row[0], tuple) for row in rows.values())


def _any_law(like: tuple[Any, ...]) -> tuple[Fraction, ...]:
    """Give a distribution of the same size, for a draft that was never read."""
    return (*(Fraction(0),) * (len(like) - 1), Fraction(1))


def _shape(shape: TreeShape) -> str:
    return f"TreeShape(width={shape.width}, depth={shape.depth}, budget={shape.budget})"


def _probability(sequence: tuple[int, ...]) -> str:
    return f"P({', '.join(str(token) for token in sequence)})"


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "rule"
