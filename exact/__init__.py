"""Exhaustive and symbolic certification of losslessness.

`certify` decides on given rows, `law` enumerates any program that draws through a Chooser; what is heavy (torch, sympy,
matplotlib) is imported only when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from exact.enumeration.cycle_law import target_law
from exact.enumeration.walk import EnumerationError, NotReproducible, TooManyOutcomes, UnhashableResult, law
from exact.interception import torch_law
from exact.report import draw_classes, draw_tree
from exact.search import hunt
from exact.verdict.certificate import Certificate
from exact.verdict.certify import certify
from exact.verdict.counterexample import Counterexample

if TYPE_CHECKING:
    from exact.verdict.assert_lossless import assert_lossless

__all__ = [
    "Certificate",
    "Counterexample",
    "EnumerationError",
    "NotReproducible",
    "TooManyOutcomes",
    "UnhashableResult",
    "assert_lossless",
    "certify",
    "draw_classes",
    "draw_tree",
    "hunt",
    "law",
    "target_law",
    "torch_law",
]


def __getattr__(name: str) -> Any:
    """`assert_lossless`, whose Hypothesis takes a quarter of a second to load."""
    if name == "assert_lossless":
        from exact.verdict.assert_lossless import assert_lossless

        return assert_lossless
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
