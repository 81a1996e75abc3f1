"""What `rheo-exact rates` shows of one pool: lines of closed forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.acceptance.one_pool import WholeRows, in_rationals
from exact.enumeration.rationals import fraction, parse_number
from exact.methods.rows_file import Rows
from exact.verdict.document import number
from rheo_core import InvalidInput, ModelPair, rates
from rheo_core.checks import check_count
from rheo_core.models import Prefix


@dataclass(frozen=True)
class PoolRates:
    """Closed forms of one pool."""

    rows: str
    m: int
    n: int
    rheo: Fraction
    bound: Fraction
    rrsw: Fraction
    top_k: Fraction
    optimum: Fraction
    gain: Fraction

    def cells(self) -> list[str]:
        """Give the line of the table."""
        values = (self.rheo, self.bound, self.rrsw, self.top_k, self.optimum)
        gaps = (self.optimum - self.rheo, self.optimum - self.rrsw, self.gain)
        return [str(self.m), str(self.n), *(format_fraction(value) for value in (*values, *gaps))]

    def document(self) -> dict[str, Any]:
        """Give the line with exact numbers."""
        return {
            "rows": self.rows,
            "m": self.m,
            "n": self.n,
            "rheo": number(self.rheo),
            "rheo_bound": number(self.bound),
            "rrsw": number(self.rrsw),
            "top_k": number(self.top_k),
            "optimum": number(self.optimum),
            "gap_rheo": number(self.optimum - self.rheo),
            "gap_rrsw": number(self.optimum - self.rrsw),
            "approximate_gain": number(self.gain),
        }


def format_fraction(value: Fraction) -> str:
    """Give a short exact number as it is, a long one to four digits."""
    text = str(value)
    return text if len(text) <= 6 else f"{float(value):.4f}"


def pool_line(name: str, p: Any, q: Any, m: int, n: int, ids: Sequence[int] | None = None) -> PoolRates:
    """Give every closed form for one p, q, m, n."""
    functions = (
        rates.rheo_rate,
        rates.rheo_bound,
        rates.rrsw_rate,
        rates.topk_rate,
        rates.optimal_rate,
        rates.approximate_gain,
    )
    return PoolRates(name, m, n, *(fraction(function(p, q, m, n, ids=ids)) for function in functions))


def pools_of(file: Rows, prefix: Prefix, width: int, lead: int | None, n: int | None) -> Iterator[PoolRates]:
    """Closed forms at one prefix of a file: every m up to K (or the given one), n = K (or the given one).

    On whole numbers, so that a real vocabulary takes a second for each m; `pool_line` is the same by the paper's code.
    """
    pair = in_rationals(ModelPair(file.target, file.draft, file.ids), prefix)
    p, q = pair.p(prefix), pair.q(prefix)
    if lead is not None and lead > width:
        raise InvalidInput("lead", lead, f"0 to the width K = {width}")
    size = min(width, len(q.score)) if n is None else n
    if check_count("n", size, 1) > len(q.score):
        raise InvalidInput("n", size, f"at most the {len(q.score)} tokens of the draft")
    rows = WholeRows(p, q, file.ids)
    for m in range(width + 1) if lead is None else [lead]:
        pool = rows.pool(m)
        bound = pool.bound(size)
        figures = (pool.rate("algorithm_1", size), bound, pool.rate("rrsw", size), pool.top_k(size))
        yield PoolRates(file.name, m, size, *figures, pool.optimum(size), bound - pool.bound(size, thinned=True))


def rationals(text: str, name: str) -> list[Fraction]:
    """Numbers or a/b, joined by commas, as exact rationals."""
    try:
        return [parse_number(part.strip()) for part in text.split(",")]
    except (ValueError, ZeroDivisionError):
        raise InvalidInput(name, text, "numbers or a/b joined by commas") from None
