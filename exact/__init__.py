"""Exhaustive and symbolic certification of losslessness.

`certify` decides on given rows, `law` enumerates any program that draws through a Chooser; what is heavy (torch, sympy,
matplotlib) is imported only when it is asked for.
"""

from exact.certificate import Certificate
from exact.certifying import Study, certify
from exact.counterexample import Counterexample
from exact.cycle_law import target_law
from exact.drawing import draw_classes, draw_tree
from exact.hunting import hunt
from exact.interception import torch_law
from exact.outcomes import EnumerationError, NotReproducible, TooManyOutcomes, UnhashableResult, law
from exact.testing import assert_lossless

__all__ = [
    "Certificate",
    "Counterexample",
    "EnumerationError",
    "NotReproducible",
    "Study",
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
