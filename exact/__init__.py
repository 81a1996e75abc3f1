"""Is a speculative decoder lossless? Exact answers, in Python.

Your code:
    certify_function(f, p, q, target=row)     a function that draws through torch, NumPy or random, as it stands
    certify_decoder(d, target, length=4)      an object with a state: start(prompt), step()
    assert_lossless(rule)                     a rule or a cycle, in one line of a test
    hunt(rule)                                its smallest counterexample

A method of the catalogue, or one put together from parts, on given rows:
    certify(method, target, draft, shape)     the verdict on these rows, and for every target

Underneath:
    law(program), torch_law(f)                the exact distribution of what a program returns
    target_law(target, length)                the target's own

What is heavy (torch, sympy, matplotlib) is imported only when it is asked for.
"""

from typing import TYPE_CHECKING

from exact.runtime.lazy import lazily

if TYPE_CHECKING:
    from exact.enumeration.cycle_law import target_law
    from exact.enumeration.walk import EnumerationError, NotReproducible, TooManyOutcomes, UnhashableResult, law
    from exact.interception.decoders import certify_decoder
    from exact.interception.torch_law import torch_law
    from exact.interception.verdict import certify_function
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
    "certify_decoder",
    "certify_function",
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
        "certify_decoder": "exact.interception.decoders",
        "certify_function": "exact.interception.verdict",
        "draw_classes": "exact.report",
        "draw_tree": "exact.report",
        "hunt": "exact.search.hunt",
        "law": "exact.enumeration.walk",
        "target_law": "exact.enumeration.cycle_law",
        "torch_law": "exact.interception.torch_law",
    },
)
