"""The letters of the claims on plain rationals, by enumerating every run of rheo_core's verifiers.

Witnesses are checked here: nothing of the symbolic side takes part, so that a refutation stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from exact.enumeration.walk import law
from exact.proofs.compiled import LetterValues
from exact.proofs.layer import candidates
from exact.proofs.symbolic import row_of
from rheo_core.chooser import Chooser
from rheo_core.laws import residual, without
from rheo_core.verification import Verdict, Verify, algorithm_1, rrsw


def rows(p: Sequence[Fraction], q: Sequence[Fraction], m: int) -> LetterValues:
    """The meaning of the letters for target law p [V] and tail law q~ [V], tokens by falling q, m leads."""
    target, tail = row_of(list(p)), row_of(list(q))
    after = without(target, range(m))
    r_rrsw = None if after is None else residual(after, tail)
    emitted = pool_law(algorithm_1, target, tail, m, m + 1)

    def accepted(rule: Verify, count: int) -> Fraction:
        found = pool_law(rule, target, tail, m, count)
        return sum((mass for (_, child), mass in found.items() if child != -1), Fraction(0))

    def emits(v: int) -> Fraction:
        return sum((mass for (token, _), mass in emitted.items() if token == v), Fraction(0))

    return LetterValues(
        {
            "p": list(p),
            r"\tilde{q}": list(q),
            "r": _or_zeros(residual(target, tail), len(p)),
            r"r^{\mathrm{RRSw}}": _or_zeros(r_rrsw, len(p)),
            "P": [emits(v) for v in range(len(p))],
        },
        {"V": len(p), "m": m},
        {
            "A": lambda count: accepted(algorithm_1, count),
            r"A^{\mathrm{RRSw}}": lambda count: accepted(rrsw, count),
        },
    )


def pool_law(rule: Verify, p: Any, tail: Any, m: int, count: int) -> dict[Any, Fraction]:
    """Give the exact distribution of (token, child) on a pool of `count` candidates, Y drawn from `tail`."""

    def program(chooser: Chooser) -> Verdict:
        y = chooser.index(tail)
        pool = candidates(len(p), m, count, y)
        return rule(p, tail, pool, m, m, chooser, (0, ()))

    return dict(law(program))


def _or_zeros(row: Any, size: int) -> list[Any]:
    return [Fraction(0)] * size if row is None else list(row)
