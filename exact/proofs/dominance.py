"""Where RRSw accepts more than Algorithm 1: the smallest pool, searched among all, with both rules enumerated there.

Appendix D.3 argues A_Rheo >= A_RRSw under an approximation. Read as an exact statement it is false, and the least
vocabulary where it fails follows from what is proved for every V (`claims.RRSW_CLAIMS`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

from exact.proofs import enumerated
from exact.proofs.claims import EQUATION_18, RHEO_OVER_RRSW, RRSW_CLAIMS
from exact.proofs.compiled import holds
from exact.proofs.every_vocabulary import prove_every
from exact.proofs.proof import Control, CounterModel, Proof
from exact.proofs.symbolic import row_of
from rheo_core.laws import tail_law
from rheo_core.rates import rheo_rate, rrsw_rate

MAX_DENOMINATOR = 6


def laws(size: int, denominator: int) -> Iterator[list[Fraction]]:
    """Every law on V tokens whose entries are multiples of 1/denominator, in lexicographic order, falling first."""
    for bars in combinations(range(denominator + size - 1), size - 1):
        edges = (-1, *bars, denominator + size - 1)
        yield [Fraction(right - left - 1, denominator) for left, right in pairwise(edges)]


def failures(size: int, denominator: int) -> Iterator[tuple[Fraction, dict[str, Any]]]:
    """(A_RRSw - A_Rheo, pool) for every pool of V tokens with entries in 1/denominator where it is positive."""
    for q in laws(size, denominator):
        if any(q[v] < q[v + 1] for v in range(size - 1)):
            continue  # tokens stand by falling q
        for p in laws(size, denominator):
            for m in range(1, size):
                for n in range(m + 1, size + 1):
                    gap = rrsw_rate(p, q, m, n) - rheo_rate(p, q, m, n)
                    if gap > 0:
                        yield gap, {"V": size, "m": m, "n": n, "p": p, "q": q}


def smallest(size: int = 4, most: int = MAX_DENOMINATOR) -> tuple[dict[str, Any] | None, int]:
    """Give the failure on V tokens of least common denominator of p and q, then of widest gap; and that denominator."""
    for denominator in range(1, most + 1):
        found = sorted(failures(size, denominator), key=lambda each: each[0], reverse=True)
        if found:
            return found[0][1], denominator
    return None, most


def enumerated_witness(case: dict[str, Any]) -> CounterModel | None:
    """Give the pool with both rules' acceptance, every run of both enumerated; None if it is no failure."""
    tail = tail_law(row_of(case["q"]), range(case["m"])).tolist()
    rows = enumerated.rows(case["p"], tail, case["m"]).at("n", case["n"])
    rheo, rrsw = (rows.functions[name](case["n"]) for name in ("A", r"A^{\mathrm{RRSw}}"))
    if holds(RHEO_OVER_RRSW.statement, rows) or rheo >= rrsw:
        return None
    return CounterModel(case, f"A_Rheo = {rheo} < A_RRSw = {rrsw}, every run of both enumerated")


def prove_dominance() -> list[Proof]:
    """Eq. (18), what is true of A_Rheo >= A_RRSw for every V, and the smallest pool on which it fails."""
    return [*(prove_every(claim) for claim in (EQUATION_18, *RRSW_CLAIMS)), refute_dominance()]


def refute_dominance() -> Proof:
    """`RHEO_OVER_RRSW` is refuted; its control, the same with Theorem 3's bound for A_Rheo, is refuted on its own."""
    started = time.perf_counter()
    case, denominator = smallest()
    witness = enumerated_witness(case) if case else None
    p, q = [Fraction(1), Fraction(0)], [Fraction(2, 3), Fraction(1, 3)]
    plain = {"V": 2, "m": 0, "n": 1, "p": p, "q": q}
    rows = enumerated.rows(p, q, 0).at("n", 1)
    control = None if holds(RHEO_OVER_RRSW.control, rows) else CounterModel(plain, "the added term counts here")
    return Proof(
        name=RHEO_OVER_RRSW.name,
        source=RHEO_OVER_RRSW.source,
        statement=RHEO_OVER_RRSW.text(),
        latex=RHEO_OVER_RRSW.latex(),
        domain="every V, m < n <= V",
        method=f"V <= 3 from the lines above; V = 4: every p, q with common denominator up to {denominator}",
        verdict="refuted" if witness else "unknown",
        cases=sum(1 for size in range(1, denominator + 1) for _ in laws(4, size)),
        seconds=time.perf_counter() - started,
        assumptions=CounterModel(plain, "a pool"),
        control=Control(RHEO_OVER_RRSW.control_text(), "refuted" if control else "unknown", control),
        expected="refuted",
        witness=witness,
    )
