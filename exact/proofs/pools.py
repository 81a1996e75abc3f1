"""The claims about one pool, for every p and q, cell by cell for each V up to a limit.

In a cell an equality is a polynomial that vanishes modulo the one relation between its coordinates, and an inequality a
polynomial without negative coefficients once Z is written as the sum of the gaps above, or as that of those below.
Cells are taken open: on a face (zeros, p = q~) the code does the same with zeros put in, which
`every_vocabulary.check_faces` and the tests, where faces are cells of their own, establish by running it there. Only
counterexamples are sampled.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

from sympy import Eq, Ge
from sympy.core.relational import Relational

from exact.proofs import enumerated
from exact.proofs.claims import POOL_CLAIMS, Claim
from exact.proofs.compiled import LetterValues, Order, Value, compiled, degree, holds
from exact.proofs.engines.cells import OPEN_PARTS, Part, RowCell, cells
from exact.proofs.engines.rings import Engine, sign
from exact.proofs.layer import SymbolicLayer, layer, ordered
from exact.proofs.proof import Control, CounterModel, Proof, Verdict
from exact.proofs.symbolic import Symbolic
from exact.runtime.journal import Journal, resumed

MAX_VOCABULARY = 12
CONTROL_VOCABULARY = 4
CELLS_A_SHARE = 64
TRIES = 60
"""Points of a cell at which a statement that is not proved is tried."""


class Cases(Order):
    """min and max on a cell; where it does not order the two, both ways are taken, one after the other."""

    def __init__(self) -> None:
        self.script: list[bool] = []
        self.taken: list[Any] = []  # for each split of the case at hand, a number that is >= 0 there
        self.used = 0
        self.splits = 0

    def smaller(self, one: Any, other: Any) -> Any:
        """min, in the case at hand."""
        return one if self._first_is_less(one, other) else other

    def larger(self, one: Any, other: Any) -> Any:
        """max, in the case at hand."""
        return other if self._first_is_less(one, other) else one

    def _first_is_less(self, one: Any, other: Any) -> bool:
        way = ordered(one, other)
        if way is not None:
            return way <= 0
        self.splits += 1
        if self.used == len(self.script):
            self.script.append(True)
        less = self.script[self.used]
        self.used += 1
        self.taken[self.used - 1 :] = [other - one if less else one - other]
        return less

    def each(self, *values: Callable[[], Any]) -> Iterator[list[Any]]:
        """Yield the values in every case, all of them in one case at a time."""
        self.script.clear()
        while True:
            self.taken.clear()
            found = []
            for value in values:
                self.used = 0
                found.append(value())
            yield found
            while self.script and not self.script[-1]:
                self.script.pop()
            if not self.script:
                return
            self.script[-1] = False


@dataclass(frozen=True)
class StatementOutcome:
    """What has become of a statement: cases decided, verdict, a point where it is meant to hold, a witness."""

    cases: int = 0
    verdict: Verdict = "proved"
    assumptions: CounterModel | None = None
    witness: CounterModel | None = None

    def __add__(self, other: StatementOutcome) -> StatementOutcome:
        worst = max(self.verdict, other.verdict, key=("proved", "unknown", "refuted").index)
        return StatementOutcome(
            self.cases + other.cases, worst, self.assumptions or other.assumptions, self.witness or other.witness
        )


@dataclass
class StatementTally:
    """One statement under way."""

    claim: Claim
    statement: Relational
    cases: int = 0
    held: CounterModel | None = None
    failed: StatementOutcome = StatementOutcome()
    equality: bool = field(init=False)
    less: Value = field(init=False)
    more: Value = field(init=False)
    given: list[tuple[bool, Value, Value]] = field(init=False)

    def __post_init__(self) -> None:
        self.equality = isinstance(self.statement, Eq)
        self.less, self.more = ends(self.statement)
        self.given = [(isinstance(each, Eq), *ends(each)) for each in self.claim.given]

    def applies(self, rows: LetterValues) -> bool:
        """Tell whether the assumptions hold on the whole cell (in a cell they hold everywhere or nowhere inside)."""
        for equality, less, more in self.given:
            way = ordered(more(rows), less(rows))
            if way is None or (way != 0 if equality else way < 0):
                return False
        return True

    def difference(self, rows: LetterValues) -> Any:
        """What must vanish, or be non-negative."""
        return rows.value(self.more) - rows.value(self.less)

    def refute(self, cell: RowCell, letter: str, value: int) -> None:
        """Look for a point of the cell where the statement fails, enumerating what rheo_core does there."""
        self.failed += StatementOutcome(verdict="unknown")
        for p, q in points(cell):
            if any(q[v] < q[v + 1] for v in range(cell.m, len(q) - 1)):
                continue  # the proofs need no order of the tokens, but a witness is a pool, whose tokens fall in q
            rows = enumerated.rows(p, q, cell.m).at(letter, value)
            if all(holds(each, rows) for each in self.claim.given) and not holds(self.statement, rows):
                both = " and ".join(str(rows.value(compiled(side))) for side in self.statement.args)
                found = witness(cell, letter, value, p, q, f"the two sides are {both}")
                self.failed += StatementOutcome(verdict="refuted", witness=found)
                return


def ends(statement: Relational) -> tuple[Value, Value]:
    """Give the side that is not to be larger, and the other one."""
    less, more = (statement.rhs, statement.lhs) if isinstance(statement, Ge) else (statement.lhs, statement.rhs)
    return compiled(less), compiled(more)


@dataclass
class Place:
    """One cell with what Algorithm 1 does on it, the letters over both forms of Z, and the cases of min and max."""

    layer: SymbolicLayer
    below: LetterValues
    above: LetterValues
    cases: Cases

    @classmethod
    def of(cls, cell: RowCell, engine: Engine) -> Place:
        """Run Algorithm 1 on a cell."""
        found, cases = layer(cell, engine), Cases()
        below, above = found.rows(found.below), found.rows(found.above)
        below.order = above.order = cases
        return cls(found, below, above, cases)


def decide(tallies: Sequence[StatementTally], place: Place, letter: str, value: int) -> None:
    """Decide statements on one cell for one value of their index."""
    cell = place.layer.cell
    place.below.at(letter, value)
    place.above.at(letter, value)
    for tally in tallies:
        if tally.failed.verdict == "refuted" or not tally.applies(place.below):
            continue
        tally.cases += 1
        if tally.held is None:
            tally.held = witness(cell, letter, value, *next(points(cell)), "all assumptions hold")
        if not _proved(tally, place):
            tally.refute(cell, letter, value)


def _proved(tally: StatementTally, place: Place) -> bool:
    if tally.equality:
        relation = place.layer.above - place.layer.below
        return all(vanishes(each, relation) for (each,) in place.cases.each(lambda: tally.difference(place.below)))
    # Written over the one form of Z or over the other, case by case: in each case the polynomial is the same number.
    below = [non_negative(each) for (each,) in place.cases.each(lambda: tally.difference(place.below))]
    if all(below):
        return True
    above = [non_negative(each) for (each,) in place.cases.each(lambda: tally.difference(place.above))]
    return all(one or other for one, other in zip(below, above, strict=True))


def vanishes(number: Any, relation: Any) -> bool:
    """Tell whether a number is 0 wherever the relation is."""
    top = number.num if isinstance(number, Symbolic) else number
    if top == 0:
        return True
    if isinstance(relation, int) or isinstance(top, int):
        return False
    return bool(divmod(top, relation)[1] == 0)


def non_negative(number: Any) -> bool:
    """Tell whether no coefficient of the number's numerator is negative."""
    return sign(number.num if isinstance(number, Symbolic) else number) in (0, 1)


def points(cell: RowCell) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """Points of a cell: the plainest first, then small integers in every proportion."""
    size = len(cell.parts)
    draw = random.Random(size)
    yield cell.point([1] * size, [1] * size)
    for most in range(2, TRIES):
        yield cell.point(*([draw.randint(1, most) for _ in range(size)] for _ in range(2)))


def witness(
    cell: RowCell, letter: str, value: int, p: Sequence[Fraction], q: Sequence[Fraction], what: str
) -> CounterModel:
    """Give a point of a cell as a case that a person can follow."""
    return CounterModel({"V": len(p), "m": cell.m, letter: value, "p": list(p), "q~": list(q)}, what)


def sweep(claims: Sequence[Claim], control: bool, where: Iterable[RowCell], engine: Engine) -> list[StatementOutcome]:
    """Give the claims, or their controls, in some cells."""
    tallies = [StatementTally(claim, claim.control if control else claim.statement) for claim in claims]
    for tally in tallies:
        degree(tally.statement)
    for cell in where:
        place = Place.of(cell, engine)
        for letter, first in (("w", 1), ("n", cell.m + 1)):  # every token, or every pool that has the sampled slot
            chosen = [tally for tally in tallies if tally.claim.over == letter]
            for value in range(first, len(cell.parts) + 1):
                decide(chosen, place, letter, value)
    return [StatementOutcome(tally.cases, assumptions=tally.held) + tally.failed for tally in tallies]


def prove_pools(
    claims: Sequence[Claim] = POOL_CLAIMS,
    limit: int = MAX_VOCABULARY,
    parts: Sequence[Part] = OPEN_PARTS,
    engine: Engine = "flint",
    executor: Executor | None = None,
    tick: Callable[[], None] = lambda: None,
    journal: Journal | None = None,
) -> list[Proof]:
    """Give each claim for all V up to `limit`, all m < V and n > m, all p and q; `tick` is called after each job."""
    started = time.perf_counter()
    controls = [StatementOutcome()] * len(claims)
    for size in range(1, min(limit, CONTROL_VOCABULARY) + 1):
        for m in range(size):
            found = sweep(claims, True, cells(size, m), engine)
            controls = [
                one if one.verdict == "refuted" else one + other for one, other in zip(controls, found, strict=True)
            ]
    shares = jobs(claims, limit, parts, engine)
    swept = []
    for found in resumed(CellShare.run, {str(share): share for share in shares}, executor, journal):
        swept.append(found)
        tick()
    outcomes = [sum(each, StatementOutcome()) for each in zip(*reversed(swept), strict=True)]
    seconds = (time.perf_counter() - started) / len(claims)
    return [_line(*each, limit, engine, seconds) for each in zip(claims, outcomes, controls, strict=True)]


@dataclass(frozen=True)
class CellShare:
    """A share of the work: every `of`-th cell of one V and m."""

    claims: tuple[Claim, ...]
    size: int
    m: int
    parts: tuple[Part, ...]
    engine: Engine
    share: int
    of: int

    def __str__(self) -> str:
        return f"V = {self.size}, m = {self.m}, share {self.share} of {self.of}"

    def run(self) -> list[StatementOutcome]:
        """Decide the claims there."""
        return sweep(self.claims, False, self.cells(), self.engine)

    def cells(self) -> Iterator[RowCell]:
        """Yield the cells of this share."""
        return islice(cells(self.size, self.m, self.parts), self.share, None, self.of)


def jobs(
    claims: Sequence[Claim] = POOL_CLAIMS,
    limit: int = MAX_VOCABULARY,
    parts: Sequence[Part] = OPEN_PARTS,
    engine: Engine = "flint",
) -> list[CellShare]:
    """Give the shares for all V up to `limit` and all m, the largest V first; each takes about a second."""
    found = []
    both = [(size, m) for size in range(limit, 0, -1) for m in range(size)]
    for size, m in both:
        of = max(1, len(parts) ** (size - m) // CELLS_A_SHARE)
        found += [CellShare(tuple(claims), size, m, tuple(parts), engine, share, of) for share in range(of)]
    return found


def _line(
    claim: Claim, outcome: StatementOutcome, control: StatementOutcome, limit: int, engine: Engine, seconds: float
) -> Proof:
    pools = "every token" if claim.over == "w" else "m < n <= V"
    return Proof(
        name=claim.name,
        source=claim.source,
        statement=claim.text(),
        latex=claim.latex(),
        domain=f"V <= {limit}, 0 <= m < V, {pools}; every p, q",
        method=f"polynomial normal form in each cell ({engine})",
        verdict=outcome.verdict,
        cases=outcome.cases,
        seconds=seconds,
        assumptions=outcome.assumptions,
        control=Control(claim.control_text(), control.verdict, control.witness),
        witness=outcome.witness,
    )
