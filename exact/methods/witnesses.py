"""For each method that is labelled lossy: small rows that show it.

On many rows a lossy method does no harm, real ones among them, so a label can only be checked where it must show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction as F
from types import MappingProxyType
from typing import Any

from exact.methods.optimal_rule import RHEO_OPTIMAL
from exact.methods.traversal import TRAVERSAL_TOP_K
from exact.methods.typical import TYPICAL
from rheo_core import Method, TreeMethod, TreeShape, methods
from rheo_core.models import Prefix

Model = Callable[[Prefix], Any]


@dataclass(frozen=True)
class ExampleRows:
    """A lossy method, with the lead that shows it, and rows and a shape on which its distribution is wrong."""

    method: Method
    target: Model
    draft: Model
    shape: TreeShape


def _alike(*row: F) -> Model:
    return lambda prefix: row


def _core(name: str, lead: int = 1) -> TreeMethod:
    method = methods[name]
    assert isinstance(method, TreeMethod)
    return replace(method, lead=lead)


def _by_last(prefix: Prefix) -> tuple[F, ...]:
    """Where the extended RRSw proxy shows: after token 2 the draft is sure."""
    rows = {(): (F(1, 5), F(2, 5), F(2, 5)), (2,): (F(1), F(0), F(0))}
    return rows.get(prefix, (F(1, 3), F(1, 3), F(1, 3)))


_TABLE_1 = _alike(F(1, 2), F(1, 5), F(3, 10)), _alike(F(1, 2), F(3, 10), F(1, 5))
_PAIR_W = _alike(F(1, 2), F(3, 10), F(1, 5)), _alike(F(7, 10), F(1, 5), F(1, 10))
_THIRDS = _alike(F(1, 3), F(2, 3))
_TWO = TreeShape(2, 2, 2)

witnesses: Mapping[str, ExampleRows] = MappingProxyType(
    {
        each.method.name: each
        for each in (
            ExampleRows(_core("rheo-adhoc"), *_TABLE_1, TreeShape(3, 1, 2)),
            ExampleRows(_core("rheo-raw"), *_TABLE_1, TreeShape(3, 1, 2)),
            ExampleRows(_core("rheo-half", lead=0), _alike(F(1, 2), F(1, 2)), _THIRDS, _TWO),
            ExampleRows(_core("rheo-rrsw-z"), _alike(F(0), F(1, 2), F(1, 2)), _by_last, _TWO),
            ExampleRows(TRAVERSAL_TOP_K, *_PAIR_W, TreeShape(2, 2, 4)),
            ExampleRows(TYPICAL, *_PAIR_W, TreeShape(2, 2, 4)),
            ExampleRows(replace(RHEO_OPTIMAL, lead=0), _THIRDS, _THIRDS, _TWO),
        )
    }
)
"""By the method's name."""
