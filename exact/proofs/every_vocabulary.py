"""The claims about one pool for every V at once, by lumping tokens of one role and one sign, decided by z3.

A claim whose sums run over whole roles (leads, middle, x_n, rest) and whose terms are additive where no min or max
changes sides is worth the same on a pool in which all tokens of one role and one sign are poured together. One pool of
at most eight such tokens then stands for every V, m and n. The sign of each lump is an assumption; every mass may be 0.
By hand: that lumping changes no side of a claim (the loop lemma for several leads or candidates), tested on numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial, reduce
from itertools import product
from typing import Any

import z3
from sympy import Add, Eq, Expr, Indexed, IndexedBase, Integer, Max, Min, Mul, Sum
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

from exact.proofs import claims, enumerated
from exact.proofs.claims import Claim
from exact.proofs.compiled import LetterValues, compiled, degree, holds
from exact.proofs.engines.cells import Part, RowCell, coordinates
from exact.proofs.engines.rings import generators, value
from exact.proofs.layer import candidates, layer, total
from exact.proofs.pools import Cases, Place, StatementTally, non_negative
from exact.proofs.proof import Control, CounterModel, Proof, Verdict
from exact.proofs.symbolic import Reduced, Symbolic, law, row_of
from rheo_core.chooser import Chooser
from rheo_core.laws import Row, excess
from rheo_core.verification import rrsw

TIMEOUT_MS = 20_000
ABOVE, BETWEEN, BELOW = 1, 0, -1
"""Where p stands: above q~, between (1 - A) q~ and q~, below (1 - A) q~."""


class NotLumpable(TypeError):
    """A claim that says something else once tokens are poured together."""


@dataclass(frozen=True)
class Lumps:
    """Roles and sides of the lumps in pool order: L leads, M middle, X the token x_n, R rest, W the token w."""

    roles: str
    sides: tuple[int, ...]

    @property
    def integers(self) -> dict[str, int]:
        """V, m and, where there is one, n or w of the pool of lumps."""
        fixed = {"V": len(self.roles), "m": self.roles.count("L")}
        special = {"X": "n", "W": "w"}
        return fixed | {special[role]: i + 1 for i, role in enumerate(self.roles) if role in special}


def lumpings(claim: Claim) -> list[Lumps]:
    """Give the pools of lumps that stand for every pool the claim is about."""
    check_lumpable(claim.statement)
    check_lumpable(claim.control)
    sides = (ABOVE, BETWEEN, BELOW) if about_rrsw(claim) else (ABOVE, BELOW)
    if claim.over == "w":
        return [Lumps("W" + "R" * len(sides), (side, *sides)) for side in sides]
    lead = "" if fixed(claim, claims.m, Integer(0)) else "L"
    middle = () if fixed(claim, claims.n, claims.m + 1) else sides
    rest = () if fixed(claim, claims.n, claims.V) else sides
    roles = lead + "M" * len(middle) + "X" + "R" * len(rest)
    return [Lumps(roles, (*(ABOVE for _ in lead), *middle, side, *rest)) for side in sides]


def about_rrsw(claim: Claim) -> bool:
    """Tell whether the claim speaks of RRSw, so that sides are also taken of p - (1 - A) q~."""
    return claims.r_rrsw in claim.statement.atoms(IndexedBase)


def fixed(claim: Claim, letter: Expr, value: Expr) -> bool:
    """Tell whether the claim is only about pools in which a number has a given value: such roles are left out."""
    return any(isinstance(each, Eq) and each.args == (letter, value) for each in claim.given)


def check_lumpable(statement: Relational) -> None:
    """Raise `NotLumpable` unless each sum runs over whole roles with terms that are additive side by side."""
    borders = {Integer(1), claims.m, claims.m + 1, claims.n - 1, claims.n, claims.n + 1, claims.V}
    for each in statement.atoms(Sum):
        index, low, high = each.limits[0]
        if not {low, high} <= borders or not _additive(each.function, index):
            raise NotLumpable(f"{each} in {statement}")


def _additive(term: Expr, index: Expr) -> bool:
    """Tell whether a term is additive over tokens on one side: p_v, q~_v, 0 under +, -, min, max, factors without v."""
    if isinstance(term, Indexed):
        return bool(term.indices == (index,) and term.base in (claims.p, claims.q))
    if isinstance(term, Mul):
        varying = [factor for factor in term.args if index in factor.free_symbols]
        return len(varying) == 1 and _additive(varying[0], index)
    if isinstance(term, (Add, Min, Max)):
        return all(part == 0 or _additive(part, index) for part in term.args)
    return False


@dataclass
class Problem:
    """One pool of lumps in coordinates that are all >= 0: the letters, and what is assumed of the coordinates.

    `forms` are the same letters with Z, and Z~, written in one way or in another; `relation` is a polynomial that is 0;
    `positive` are polynomials that are > 0.
    """

    lumps: Lumps
    forms: list[LetterValues]
    cases: Cases
    coordinates: list[Any]
    relation: Any
    positive: list[Any]


def pool_problems(lumps: Lumps) -> list[Problem]:
    """Algorithm 1 run on the lumps: where something is rejected (Z > 0), and where p = q~."""
    m = lumps.integers["m"]
    apart: list[Part] = [(int(role != "L"), side) for role, side in zip(lumps.roles, lumps.sides, strict=True)]
    alike: list[Part] = [(int(role != "L"), 0) for role in lumps.roles]
    found = []
    for parts in (apart, alike):
        place = Place.of(RowCell(tuple(parts), m), "flint")
        for rows in (place.below, place.above):
            rows.integers.update(lumps.integers)
        mass = total(place.layer.p)
        positive = [mass] if isinstance(place.layer.below, int) else [mass, place.layer.below]
        a, e = coordinates(len(parts), "flint")
        relation = place.layer.above - place.layer.below
        found.append(Problem(lumps, [place.below, place.above], place.cases, a + e, relation, positive))
    return found


def thinned_problems(lumps: Lumps) -> list[Problem]:
    """The letters of Eq. (18) besides: where something is rejected, where p~ = q~, and where the lead has all of p.

    With B = 1 - A and p~ = p / B off the lead the coordinates are A, B and (g, h) for each token: p~ = g + h, q~ = B g
    above; p~ = g + h, q~ = g + B h between; p~ = g, q~ = g + h below. Everything is made homogeneous by A + B = 1.
    """
    names = ["A", "B", *(f"{letter}{v}" for letter in "gh" for v in range(1, len(lumps.roles) + 1))]
    a, b, *rest = generators(names)
    g, h = rest[: len(lumps.roles)], rest[len(lumps.roles) :]
    everything, m = [a, b, *rest], lumps.integers["m"]
    a = a if m else 0
    one = a + b
    tail = range(m, len(lumps.roles))
    above, below = ([v for v in tail if lumps.sides[v] == side] for side in (ABOVE, BELOW))
    target = [g[v] if v in below else g[v] + h[v] for v in tail]
    draft = [b * g[v] if v in above else one * (g[v] + h[v]) if v in below else one * g[v] + b * h[v] for v in tail]
    alike, whole = [g[v] for v in tail], total([g[v] for v in tail])
    rejected = total([h[v] for v in below])
    relation = one * total(target) - total(draft)
    return [
        Problem(lumps, *_thinned(lumps, a, b, target, draft), everything, relation, [b, rejected]),
        Problem(lumps, *_thinned(lumps, a, b, alike, [one * x for x in alike]), everything, 0, [b, whole]),
        *([Problem(lumps, *_thinned(lumps, 1, 0, [0 for _ in tail], alike), everything, 0, [whole])] if m else []),
    ]


def _thinned(lumps: Lumps, a: Any, b: Any, target: list[Any], draft: list[Any]) -> tuple[list[LetterValues], Cases]:
    """LetterValues of p = B p~ off the lead and q~, as laws, with both residuals, over each form of Z and of Z~."""
    m, one = lumps.integers["m"], a + b
    mass = one * total(target) if b else total(draft)  # in this form the sum of p off the lead is B, term by term
    p = row_of([Reduced(a, one)] * m + [Reduced(b * one * x, one * mass) if b else 0 for x in target])
    q = row_of([0] * m + [Reduced(y, mass) for y in draft])
    late = row_of([0] * m + p[m:].tolist())
    thinned = row_of([Reduced(b, one) * y if b and isinstance(y, Symbolic) else 0 for y in q])
    accepted = cache(partial(_rrsw_accepts, p, q, m))
    cases, forms = Cases(), []
    for r, r_rrsw in product(_residuals(p, q), _residuals(late, thinned)):
        letters = {"p": p.tolist(), r"\tilde{q}": q.tolist(), "r": r, r"r^{\mathrm{RRSw}}": r_rrsw}
        forms.append(LetterValues(letters, dict(lumps.integers), {r"A^{\mathrm{RRSw}}": accepted}, order=cases))
    return forms, cases


def _rrsw_accepts(p: Row, q: Row, m: int, count: int) -> Any:
    """What rheo_core's `rrsw` accepts on the lumps as tokens: every run of it, on symbols, all masses positive."""
    found: Any = 0
    for y in range(m, len(p)):
        pool = candidates(len(p), m, count, y)
        masses: dict[Any, Any] = law(partial(_run_rrsw, p, q, pool, m)) if isinstance(q[y], Symbolic) else {}
        found = found + total([q[y] * mass for (_, child), mass in masses.items() if child != -1])
    return found


def _run_rrsw(p: Row, q: Row, pool: Sequence[int], m: int, chooser: Chooser) -> tuple[int, int]:
    return rrsw(p, q, pool, m, m, chooser, (0, ()))


def _residuals(p: Row, q: Row) -> Iterator[list[Any]]:
    """norm(max(0, p - q)), its mass written as the sum of the gaps above, then as that of the gaps below; 0 without."""
    for z in (sum(excess(p, q).tolist()), sum(excess(q, p).tolist())):
        yield [gap / z if z else 0 for gap in excess(p, q).tolist()]


def faces(lumps: Lumps) -> Iterator[RowCell]:
    """Yield every cell, faces included, of the pools of lumps: run by `layer` to see that one form fits all."""
    lead: list[Part] = [(0, 1), (0, 0)]
    options: dict[int, list[Part]] = {side: [(1, side), (0, side), (1, 0), (0, 0)] for side in (ABOVE, BELOW)}
    pairs = zip(lumps.roles, lumps.sides, strict=True)
    for parts in product(*(lead if role == "L" else options[side] for role, side in pairs)):
        cell = RowCell(parts, lumps.integers["m"])
        if cell.satisfiable:
            yield cell


@cache
def check_faces(lumps: Lumps) -> int:
    """Run rheo_core on every face: q~ P(met) is min(p, q~), q~ P(missed) is max(0, q~ - p). Raises where it is not."""
    count = 0
    for count, cell in enumerate(faces(lumps), 1):  # noqa: B007
        found = layer(cell)
        for v, (has, side) in enumerate(cell.parts):
            overlap = found.p[v] if side <= 0 else found.q[v]
            if found.met[v] != (overlap if has else 0) or found.missed[v] != (found.gap[v] if side < 0 else 0):
                raise AssertionError(f"on {cell} token {v} is met with {found.met[v]}, missed with {found.missed[v]}")
    return count


@dataclass(frozen=True)
class Decision:
    """The verdict of z3 on one statement over several problems."""

    verdict: Verdict
    queries: int
    assumptions: CounterModel | None
    witness: CounterModel | None


def decide(claim: Claim, statement: Relational, problems: Sequence[Problem]) -> Decision:
    """Proved iff no coordinates satisfy the assumptions and the statement's negation, in any problem and case."""
    tally = StatementTally(claim, statement)
    verdict: Verdict = "proved"
    queries, held = 0, None
    for each in problems:
        if not tally.applies(each.forms[0]):
            continue
        context = z3.Context()  # one of its own, so that the time taken does not hang on what was asked before
        unknowns = [z3.Real(f"x{i}", context) for i in range(len(each.coordinates))]
        solver = z3.Solver(ctx=context)
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*(x >= 0 for x in unknowns), _term(each.relation, unknowns) == 0)
        solver.add(*(_term(polynomial, unknowns) > 0 for polynomial in each.positive))
        if held is None and solver.check() == z3.sat:
            held = _witness(each, _point(_plain_model(solver, unknowns), unknowns), "all assumptions hold")
        for gaps in each.cases.each(*(partial(tally.difference, rows) for rows in each.forms)):
            number = _term(plainest([_numerator(gap) for gap in gaps], each.relation, tally.equality), unknowns)
            solver.push()
            solver.add(*(_term(_numerator(order), unknowns) >= 0 for order in each.cases.taken))
            solver.add(number != 0 if tally.equality else number < 0)
            queries, answer = queries + 1, solver.check()
            if answer == z3.sat:
                found = _checked(claim, statement, each, _point(_plain_model(solver, unknowns), unknowns))
                if found is not None:
                    return Decision("refuted", queries, held, found)
            verdict = verdict if answer == z3.unsat else "unknown"
            solver.pop()
    return Decision(verdict, queries, held, None)


def plainest(forms: Sequence[Any], relation: Any, equality: bool) -> Any:
    """One number in several forms, as z3 will see it: its remainder by the relation, or a form without a minus sign."""
    if not equality:
        return next((form for form in forms if non_negative(form)), forms[0])
    if isinstance(forms[0], int) or isinstance(relation, int) or relation == 0:
        return forms[0]
    return divmod(forms[0], relation)[1]


def _numerator(number: Any) -> Any:
    """Of one sign with the number: denominators are positive."""
    return number.num if isinstance(number, Symbolic) else number


def _plain_model(solver: Any, unknowns: Sequence[Any]) -> Any:
    """Give a model of the solver, in small integers where there is one."""
    model = solver.model()
    solver.push()
    solver.add(*(z3.Or(*(x == small for small in range(3))) for x in unknowns))
    if solver.check() == z3.sat:
        model = solver.model()
    solver.pop()
    return model


def _term(polynomial: Any, unknowns: Sequence[Any]) -> Any:
    """Give a polynomial as a z3 term."""
    if isinstance(polynomial, int):
        return z3.RealVal(polynomial, unknowns[0].ctx)
    terms = []
    for exponents, coefficient in polynomial.terms():
        factors = [x for x, power in zip(unknowns, exponents, strict=True) for _ in range(int(power))]
        terms.append(reduce(lambda one, other: one * other, factors, z3.RealVal(int(coefficient), unknowns[0].ctx)))
    return z3.Sum(terms) if terms else z3.RealVal(0, unknowns[0].ctx)


def _point(model: Any, unknowns: Sequence[Any]) -> list[Fraction] | None:
    """Give the coordinates of a model; None where they are not rational."""
    values = [model.eval(x, model_completion=True) for x in unknowns]
    if not all(z3.is_rational_value(value) for value in values):
        return None
    return [Fraction(value.numerator_as_long(), value.denominator_as_long()) for value in values]


def _laws(each: Problem, point: list[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    rows = ([_at(x, point) for x in each.forms[0].rows[name]] for name in ("p", r"\tilde{q}"))
    p, q = ([x / sum(row) for x in row] for row in rows)
    return p, q


def _at(number: Any, point: list[Fraction]) -> Fraction:
    return value(number.num, point) / value(number.den, point) if isinstance(number, Symbolic) else value(number, point)


def _witness(each: Problem, point: list[Fraction] | None, what: str) -> CounterModel | None:
    if point is None:
        return None
    p, q = _laws(each, point)
    return CounterModel({**each.lumps.integers, "p": p, "q~": q}, what)


def _checked(claim: Claim, statement: Relational, each: Problem, point: list[Fraction] | None) -> CounterModel | None:
    """z3's counterexample as a pool of its own, if enumeration agrees that it is one."""
    if point is None:
        return None
    rows = enumerated.rows(*_laws(each, point), each.lumps.integers["m"])
    rows.integers.update(each.lumps.integers)
    if not all(holds(one, rows) for one in claim.given) or holds(statement, rows):
        return None
    both = " and ".join(str(rows.value(compiled(side))) for side in statement.args)
    return _witness(each, point, f"the two sides are {both} (lumps as tokens)")


def prove_every(claim: Claim) -> Proof:
    """Give the claim for every V, m and n and every p and q."""
    started = time.perf_counter()
    pools = lumpings(claim)
    if not about_rrsw(claim):  # there the rows are laws, else they are known up to a factor
        degree(claim.statement)
        degree(claim.control)
    runs = 0 if about_rrsw(claim) else sum(check_faces(each) for each in pools)
    problems = [each for lumps in pools for each in (thinned_problems if about_rrsw(claim) else pool_problems)(lumps)]
    decision = decide(claim, claim.statement, problems)
    control = decide(claim, claim.control, problems)
    enumerated_rrsw = claims.accepted_rrsw in {each.func for each in claim.statement.atoms(AppliedUndef)}
    ran = f"rheo_core run on {runs} faces" if runs else "rrsw run on the lumps" if enumerated_rrsw else "from Eq. (18)"
    return Proof(
        name=claim.name,
        source=claim.source,
        statement=claim.text(),
        latex=claim.latex(),
        domain="every V, m < V" + (", every token" if claim.over == "w" else ", m < n <= V") + "; every p, q",
        method=f"lumps of one role and sign, normal form and z3; {ran}",
        verdict=decision.verdict,
        cases=decision.queries,
        seconds=time.perf_counter() - started,
        assumptions=decision.assumptions,
        control=Control(claim.control_text(), control.verdict, control.witness),
        witness=decision.witness,
    )
