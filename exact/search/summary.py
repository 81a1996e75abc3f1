"""What a hunt says in words: the rows it found, and how far it looked."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

from exact.search.hunt import Search
from exact.verdict.transcript import Table


def rough(count: int) -> str:
    """Give a count in three digits, also where no float is as large.

    >>> rough(1_234_567), rough(3 * 10**400)
    ('1.23e+06', '3.00e+400')
    """
    return f"{count:.3g}" if count < 10**300 else f"{Decimal(count):.3g}"


def rows_line(table: Table) -> str:
    """Rows on one line: the one row where all are alike, else each with its prefix."""
    rows = {prefix: _row(row) for prefix, row in table.items()}
    if len(set(rows.values())) == 1:
        return f"{next(iter(rows.values()))} at every prefix"
    return ", ".join(f"{row} after {'(' + ', '.join(map(str, prefix)) + ')'}" for prefix, row in rows.items())


def _row(row: tuple[Any, ...]) -> str:
    return "[" + ", ".join(str(mass) for mass in row) + "]"


def coverage_lines(result: Search) -> list[str]:
    """How far the hunt went, in lines: what was covered, what was not, and what that means."""
    coverage = result.coverage
    lines = [
        f"tried: {rough(coverage.cases)} cases in {len(coverage.levels)} levels covered "
        f"({coverage.computed} laws computed), {result.random_cases} cases by chance, {result.seconds:.1f} s"
    ]
    reach: dict[tuple[int, int, bool], dict[tuple[Any, ...], int]] = defaultdict(dict)
    for level in coverage.levels:
        shapes = reach[level.vocabulary, level.shape.depth, level.dependent]
        shapes[level.shape, level.lead] = max(level.denominator, shapes.get((level.shape, level.lead), 0))
    for (vocabulary, depth, dependent), shapes in sorted(reach.items()):
        low, high = min(shapes.values()), max(shapes.values())
        most = max(shape.budget for shape, _ in shapes)
        widest = max(shape.width for shape, _ in shapes)
        rows = "prefix-dependent" if dependent else "alike"
        more = f" (some to {high})" if high > low else ""
        lines.append(
            f"  V = {vocabulary}, D = {depth}, rows {rows}: {len(shapes)} shapes and m, R up to {most}, "
            f"K up to {widest}: all denominators <= {low}{more}"
        )
    if coverage.too_large:
        lines.append(f"  {len(coverage.too_large)} levels hold cases too large to enumerate and are not counted")
    if coverage.refusals.refused:
        lines.append(
            f"  refused by the rule: {coverage.refusals.refused} times, first {coverage.refusals.first_refused}"
        )
    if coverage.refusals.broken:
        lines.append(f"  the rule broke {coverage.refusals.broken} times, first {coverage.refusals.first_broken}")
    if result.counterexample is None:
        lines.append(
            "scope: no counterexample among the cases tried, one cycle continued from the target; a bound, "
            "not a proof; ideal coins; exact"
        )
    else:
        within = (
            "nothing smaller within these bounds" if result.finished else "smaller ones may exist: not all was tried"
        )
        lines.append(f"scope: these rows; {within}; ideal coins; exact")
    return lines
