"""Polynomials over the integers, from python-flint for speed or from sympy as the oracle.

The two libraries share no code, so a normal form that vanishes in both is hardly an accident. Only what both offer in
the same words is used (`terms`, `coeffs`, `gcd`), which keeps the provers free of any knowledge of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

Engine = Literal["flint", "sympy"]


def generators(names: Sequence[str], engine: Engine = "flint") -> list[Any]:
    """Give the generators of Z[names], one for each name."""
    if not names:
        return []
    if engine == "sympy":
        from sympy import ZZ
        from sympy.polys.rings import ring

        return list(ring(list(names), ZZ)[1:])
    from flint import Ordering, fmpz_mpoly_ctx

    return list(fmpz_mpoly_ctx.get(tuple(names), Ordering.lex).gens())


def sign(polynomial: Any) -> int | None:
    """The sign at every point of the open positive orthant: 1, -1 or 0; None where the coefficients are of both signs.

    >>> a, b = generators(["a", "b"], "sympy")
    >>> sign(a + b), sign(-a * b), sign(a - a), sign(a - b)
    (1, -1, 0, None)
    """
    if isinstance(polynomial, int):
        return (polynomial > 0) - (polynomial < 0)
    coefficients = polynomial.coeffs()
    if not coefficients:
        return 0
    if min(coefficients) > 0:
        return 1
    return -1 if max(coefficients) < 0 else None


def cancelled(numerator: Any, denominator: Any) -> tuple[Any, Any]:
    """Give the fraction without its common factor."""
    if isinstance(numerator, int) or isinstance(denominator, int):
        return numerator, denominator
    common = numerator.gcd(denominator)
    if common == 1:
        return numerator, denominator
    if hasattr(numerator, "quo"):
        return numerator.quo(common), denominator.quo(common)
    return numerator / common, denominator / common


def value(polynomial: Any, point: Sequence[Fraction]) -> Fraction:
    """Give the polynomial at a point, one number for each generator."""
    if isinstance(polynomial, int):
        return Fraction(polynomial)
    total = Fraction(0)
    for exponents, coefficient in polynomial.terms():
        term = Fraction(int(coefficient))
        for number, exponent in zip(point, exponents, strict=True):
            if exponent:
                term *= number ** int(exponent)
        total += term
    return total
