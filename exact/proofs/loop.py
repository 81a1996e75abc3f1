"""The loop lemma: sequential rejection emits r and accepts each candidate c with r(c), whatever the candidates.

`sequential_rejection` of rheo_core is run on a row of unknowns for every list of distinct tokens at small V. For lists
of any length over any V the step of an induction is run: a list of one candidate, the other tokens poured into two. By
hand is the induction: after its first candidate the loop is the loop on the shorter list under norm(r without it).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

from sympy.core.relational import Relational

from exact.enumeration.walk import law as exact_law
from exact.proofs.claims import LOOP_ACCEPTS, LOOP_EMITS, Claim
from exact.proofs.compiled import LetterValues, holds
from exact.proofs.engines.rings import Engine, generators
from exact.proofs.layer import total
from exact.proofs.proof import Control, CounterModel, Proof, Verdict
from exact.proofs.symbolic import Reduced, law, row_of
from rheo_core.laws import Row
from rheo_core.verification import sequential_rejection

MAX_VOCABULARY = 4


def loop_rows(r: Row, candidates: Sequence[int], of_program: Any) -> LetterValues:
    """The letters of the claims: P_w emitted, A(k) accepted; the candidates are tokens 1..k, the rest come after."""
    masses = of_program(lambda chooser: sequential_rejection(r, candidates, range(len(candidates)), chooser, (0, ())))
    order = [*candidates, *(v for v in range(len(r)) if v not in candidates)]
    emitted = [total([mass for (token, _), mass in masses.items() if token == v]) for v in order]
    accepted = total([mass for (_, child), mass in masses.items() if child != -1])
    return LetterValues(
        {"r": [r[v] for v in order], "P": emitted},
        {"V": len(r), "k": len(candidates)},
        {"A": lambda count: accepted},
    )


def unknown_laws(size: int, engine: Engine = "flint") -> Iterator[Row]:
    """r on V tokens for every set of tokens on which it is positive."""
    names = generators([f"r{v}" for v in range(1, size + 1)], engine)
    for count in range(1, size + 1):
        for support in combinations(range(size), count):
            mass = total([names[v] for v in support])
            yield row_of([Reduced(names[v], mass) if v in support else 0 for v in range(size)])


def lists(size: int) -> Iterator[tuple[int, ...]]:
    """Yield every list of distinct tokens."""
    for count in range(size + 1):
        yield from permutations(range(size), count)


def holds_for(statement: Relational, claim: Claim, rows: LetterValues) -> bool:
    """Tell whether a statement is true of one list, for every token where it is about tokens."""
    if claim.over != "w":
        return rows.integers["k"] == 0 or holds(statement, rows)
    return all(holds(statement, rows.at("w", w)) for w in range(1, rows.integers["V"] + 1))


def prove_loop(limit: int = MAX_VOCABULARY, engine: Engine = "flint") -> list[Proof]:
    """Both claims for every list at V up to `limit`, and the step that carries them to every V and every length."""
    found = []
    for claim in (LOOP_EMITS, LOOP_ACCEPTS):
        sizes = range(1, limit + 1)
        small = [(row, each) for size in sizes for row in unknown_laws(size, engine) for each in lists(size)]
        step = [(row, (0,)) for row in unknown_laws(3, engine)]
        found.append(_prove(claim, small, f"V <= {limit}, every list of distinct candidates; every r", engine))
        found.append(_prove(claim, step, "every V, lists of every length; every r (the step of the induction)", engine))
    return found


def _prove(claim: Claim, cases: Sequence[tuple[Row, Sequence[int]]], domain: str, engine: Engine) -> Proof:
    started = time.perf_counter()
    failed = [each for each in cases if not holds_for(claim.statement, claim, loop_rows(*each, law))]
    witness = _numbers(claim, claim.statement, failed[0]) if failed else None
    refuted = next((each for each in cases if not holds_for(claim.control, claim, loop_rows(*each, law))), None)
    against = _numbers(claim, claim.control, refuted) if refuted else None
    return Proof(
        name=claim.name,
        source=claim.source,
        statement=claim.text(),
        latex=claim.latex(),
        domain=domain,
        method=f"sequential_rejection run on unknowns ({engine})",
        verdict=_verdict(bool(failed), witness),
        cases=len(cases),
        seconds=time.perf_counter() - started,
        assumptions=_plain(*cases[-1], "r is a law"),
        control=Control(claim.control_text(), _verdict(refuted is not None, against), against),
        witness=witness,
    )


def _verdict(failed: bool, witness: CounterModel | None) -> Verdict:
    """Give a failure counts as a refutation once numbers bear it out."""
    return "refuted" if witness else "unknown" if failed else "proved"


def _values(row: Row) -> list[Fraction]:
    weights = [0 if isinstance(entry, int) else v + 1 for v, entry in enumerate(row.tolist())]
    return [Fraction(weight, sum(weights)) for weight in weights]


def _plain(row: Row, candidates: Sequence[int], what: str) -> CounterModel:
    return CounterModel({"V": len(row), "candidates": list(candidates), "r": _values(row)}, what)


def _numbers(claim: Claim, statement: Relational, case: tuple[Row, Sequence[int]]) -> CounterModel | None:
    """Give a failure restated on numbers, if full enumeration agrees."""
    row, candidates = case
    rows = loop_rows(row_of(_values(row)), candidates, exact_law)
    if holds_for(statement, claim, rows):
        return None
    return _plain(row, candidates, "fails under full enumeration")
