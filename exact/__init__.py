"""Exhaustive and symbolic certification of losslessness.

`certify` decides on given rows, `law` enumerates any program that draws through a Chooser; what is heavy (torch, sympy,
matplotlib) is imported only when it is asked for.
"""

from typing import TYPE_CHECKING

from exact.runtime.lazy import lazily

if TYPE_CHECKING:
    from exact.enumeration.cycle_law import target_law
    from exact.enumeration.walk import EnumerationError, NotReproducible, TooManyOutcomes, UnhashableResult, law
    from exact.interception.torch_law import torch_law
    from exact.report import draw_classes, draw_tree
    from exact.search.hunt import hunt
    from exact.verdict.assert_lossless import assert_lossless
    from exact.verdict.certificate import Certificate
    from exact.verdict.certify import certify
    from exact.verdict.counterexample import Counterexample

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

__getattr__ = lazily(
    __name__,
    {
        "Certificate": "exact.verdict.certificate",
        "Counterexample": "exact.verdict.counterexample",
        "EnumerationError": "exact.enumeration.walk",
        "NotReproducible": "exact.enumeration.walk",
        "TooManyOutcomes": "exact.enumeration.walk",
        "UnhashableResult": "exact.enumeration.walk",
        "assert_lossless": "exact.verdict.assert_lossless",
        "certify": "exact.verdict.certify",
        "draw_classes": "exact.report",
        "draw_tree": "exact.report",
        "hunt": "exact.search.hunt",
        "law": "exact.enumeration.walk",
        "target_law": "exact.enumeration.cycle_law",
        "torch_law": "exact.interception.torch_law",
    },
)
