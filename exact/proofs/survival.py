"""Whether the sampled slot survives pruning must not depend on which token was sampled, for every draft law.

At depth 1 that is rheo_core's own tree code, run on unknown laws once for each outcome of the comparisons that some law
allows. Below, the rank of a slot is a formula (`ranking`) in which two sets of draws that differ at one parent are
compared; there the proxy is any number in [q(x_{m+1}), 1] that ignores Y (Lemma 4). `growth` runs the tree code there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import z3
from numpy.typing import ArrayLike

from exact.proofs import ranking
from exact.proofs.claims import LEMMA_4
from exact.proofs.forks import Forks, Form, Linear
from exact.proofs.proof import Control, Proof, Verdict, Witness
from exact.proofs.symbolic import row_of
from rheo_core import TreeShape, proxies
from rheo_core.drafting import expand
from rheo_core.laws import Row
from rheo_core.pool import Drafter
from rheo_core.proxies import Proxy
from rheo_core.tree import SAMPLED

STATEMENT = "rank of the sampled slot given Y = y is the same for every y with q~(y) > 0"
LATEX = r"\operatorname{rank}(Y \mid Y = y) = \operatorname{rank}(Y \mid Y = y') \text{ for all } y, y'"


MAX_VOCABULARY = 8
SHAPES = ((4, 3, 2), (3, 2, 3))
"""(V, K, D)."""
TIMEOUT_MS = 60_000
LARGEST_POWER = 8
"""Scores of a witness are powers of 1/2 up to this one."""

HALF_NEXT = proxies.ProxyRule("q(x_{m+1})/2", lambda score, order, m, sampled: score[order[m]] / 2, uses_token=False)
"""Below the bound of Lemma 4, for the controls."""


@dataclass
class UnknownRow:
    """A draft row whose tokens stand by falling q: what `Pool` asks of one."""

    score: Row
    positive: Callable[[int], bool]

    @property
    def order(self) -> Row:
        """Draft ids by falling score."""
        return np.arange(len(self.score))

    def tail(self, lead: Sequence[int]) -> Row | None:
        """Weights of the tokens off the lead, 1 where q is positive; None without mass there."""
        weights = [int(v not in lead and self.positive(v)) for v in range(len(self.score))]
        return row_of(weights) if any(weights) else None


class UnknownPair:
    """The draft rows by prefix: what `Drafter` and the tree code ask of a pair."""

    def __init__(self, row: Callable[[tuple[int, ...]], UnknownRow]) -> None:
        self._row = row
        self._rows: dict[tuple[int, ...], UnknownRow] = {}

    def q(self, prefix: tuple[int, ...]) -> UnknownRow:
        """The draft row at a prefix."""
        if prefix not in self._rows:
            self._rows[prefix] = self._row(prefix)
        return self._rows[prefix]

    def p(self, prefix: tuple[int, ...]) -> Row:
        """Only its arithmetic is looked at."""
        return np.empty(0, dtype=object)

    def target_id(self, draft_id: int) -> int:
        """One vocabulary."""
        return draft_id


class Drawn:
    """A chooser that draws by address: what `pick` says the first time, the same ever after."""

    def __init__(self, pick: Callable[[Hashable, list[int]], int]) -> None:
        self.pick = pick
        self.record: dict[Hashable, int] = {}

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """No coin is tossed while a tree is drafted."""
        raise AssertionError("a coin while drafting")

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """One of the positions of positive weight."""
        if at not in self.record:
            self.record[at] = self.pick(at, [v for v, weight in enumerate(np.asarray(weights).tolist()) if weight])
        return self.record[at]


class AnyProxy:
    """A proxy that is known row by row; it ignores Y."""

    uses_token = False

    def __init__(self) -> None:
        self.of: dict[int, Any] = {}

    def __call__(self, score: Row, order: Row, m: int, sampled: int) -> Any:
        """The proxy of the row with these scores."""
        return self.of[id(score)]


def ranks(size: int, width: int, m: int, proxy: Proxy, forks: Forks) -> Callable[[], dict[int, int]]:
    """A program: the rank of the sampled slot in one pool for each Y that q~ allows."""
    entries = [Linear(tuple(int(i == v + 1) for i in range(size + 1)), forks) for v in range(size)]

    def program() -> dict[int, int]:
        found = {}
        for y in range(m, size):
            if not entries[y] > 0:
                break
            pair = UnknownPair(lambda prefix: UnknownRow(row_of(entries), lambda v: entries[v] > 0))
            drafter = Drafter(pair, width, m, proxy)  # type: ignore[arg-type]
            tree = expand(drafter, (), TreeShape(width, 1, 1), Drawn(lambda at, options, y=y: y))  # type: ignore[misc]
            found[y] = int(np.flatnonzero(tree.kind == SAMPLED)[0])
        return found

    return program


def falling_law(size: int) -> Forks:
    """All laws q with q(x_1) >= q(x_2) >= .. >= 0 and sum 1."""
    unit = [tuple(int(i == v + 1) for i in range(size + 1)) for v in range(size)]
    falling = [tuple(x - y for x, y in zip(unit[v], unit[v + 1], strict=True)) for v in range(size - 1)]
    whole: Form = (-1, *([1] * size))
    return Forks([f"q{v + 1}" for v in range(size)], [*falling, unit[-1], whole, tuple(-x for x in whole)])


def dependence(size: int, width: int, m: int, proxy: Proxy) -> tuple[Witness | None, int]:
    """A law for which the rank depends on Y in one pool, if there is one; and the number of runs."""
    forks = falling_law(size)
    for found in forks.runs(ranks(size, width, m, proxy, forks)):
        if len(set(found.values())) > 1:
            q = forks.point()
            where = ", ".join(f"Y = {y}: rank {rank + 1}" for y, rank in found.items())
            return Witness({"V": size, "K": width, "m": m, "q": q}, where), forks.count
    return None, forks.count


def prove_depth_one(name: str, proxy: Proxy, limit: int, expected: Verdict = "proved") -> Proof:
    """One pool, every V up to `limit`, K <= V, m < K, every R and every q."""
    started = time.perf_counter()
    witness, runs, least = None, 0, 2
    for size, width, m in ((v, k, m) for v in range(least, limit + 1) for k in range(1, v + 1) for m in range(k)):
        witness, count = dependence(size, width, m, proxy)
        runs += count
        if witness is not None:
            break
    return line(
        f"survival of the sampled slot, depth 1: {name}",
        started,
        "refuted" if witness else "proved",
        f"V <= {limit}, K <= V, m < K, D = 1, every R; every q",
        "expand run on unknown laws, comparisons by z3",
        runs,
        expected,
        witness,
    )


def prove_deeper(size: int, width: int, depth: int) -> Proof:
    """All V and K up to a shape below depth 1, every m < K, R and q, by `ranking`; "unknown" if z3 gives up."""
    started = time.perf_counter()
    verdict: Verdict = "proved"
    count, held = 0, True
    shapes = [(v, k, m) for v in range(2, size + 1) for k in range(1, width + 1) for m in range(min(k, v))]
    for v, k, m in shapes:
        for parent, one, two, extra in ranking.pairs(v, k, depth, m):
            question = ranking.query(ranking.Rows(v, m), k, depth, parent, one, two, extra)
            solver = z3.Solver()
            solver.set("timeout", TIMEOUT_MS)
            solver.add(*question.assumptions)
            held = held and solver.check() == z3.sat
            solver.add(question.apart)
            answer = solver.check()
            count += 1
            if answer != z3.unsat:
                verdict = "unknown"
    control = unbounded(size, width, depth)
    return line(
        f"survival of the sampled slot, depth {depth}",
        started,
        verdict,
        f"V <= {size}, K <= {width}, D = {depth}, m < K, every R; every q, every proxy in [q(x_{{m+1}}), 1]",
        "the ranking as a formula (by hand, tested against expand), z3",
        count,
        "proved",
        None,
        control=Control("the same for any proxy in (0, 1]", "refuted" if control else "unknown", control),
        assumed=held,
    )


def unbounded(size: int, width: int, depth: int) -> Witness | None:
    """With the proxy's lower bound dropped: scores on which rheo_core's `expand` ranks the slot by its token."""
    cases = [(m, *each) for m in range(width) for each in ranking.pairs(size, width, depth, m)]
    for m, parent, one, two, extra in cases:
        question = ranking.query(ranking.Rows(size, m, bounded=False), width, depth, parent, one, two, extra)
        solver = z3.Solver()
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*question.assumptions, question.apart)
        solver.add(*(z3.And(log >= -LARGEST_POWER, z3.IsInt(log)) for log in question.worlds[0].rows.logs()))
        if solver.check() != z3.sat:
            continue
        found = [ranking.concrete(world, solver.model()) for world in question.worlds]
        at = [ranked(*each, width, depth, m, question.slot) for each in found]
        if at[0] != at[1]:
            rows = {str(list(prefix)): row for prefix, row in {**found[0][0], **found[1][0]}.items()}
            where = f"its rank is {at[0]} or {at[1]} as Y there is {found[0][1][parent]} or {found[1][1][parent]}"
            return Witness({"m": m, "scores and proxy by prefix": rows, "slot": list(question.slot)}, where)
    return None


def ranked(
    rows: Mapping[tuple[int, ...], Sequence[Fraction]],
    draws: Mapping[tuple[int, ...], int],
    width: int,
    depth: int,
    m: int,
    slot: tuple[int, ...],
) -> int | None:
    """The rank that rheo_core's `expand` gives a slot on scores (a row ends with its proxy); None if absent."""

    def row(prefix: tuple[int, ...]) -> UnknownRow:
        known = rows.get(prefix, rows[()])  # not known: below a token without mass, where every score is 0
        score = row_of(list(known[:-1]))
        proxy.of[id(score)] = known[-1]
        return UnknownRow(score, lambda v: score[v] > 0)

    proxy = AnyProxy()
    drafter = Drafter(UnknownPair(row), width, m, proxy)  # type: ignore[arg-type]
    shape = TreeShape(width, depth, 1)
    tree = expand(drafter, (), shape, Drawn(lambda at, options: draws[at[2]]))  # type: ignore[index]
    return next((node for node in range(len(tree)) if tree.path(node) == slot), None)


def line(
    name: str,
    started: float,
    verdict: Verdict,
    domain: str,
    method: str,
    runs: int,
    expected: Verdict,
    witness: Witness | None,
    control: Control | None = None,
    assumed: bool = True,
    statement: str = STATEMENT,
    latex: str = LATEX,
) -> Proof:
    """A line about survival; its control is a proxy below Lemma 4's bound unless another is given."""
    if control is None:
        found, _ = dependence(3, 3, 1, HALF_NEXT)
        control = Control("the same for proxy q(x_{m+1})/2", "refuted" if found else "unknown", found)
    plain = Witness({"q": [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]}, "a falling law")
    return Proof(
        name=name,
        source="Lemma 7; section 4",
        statement=statement,
        latex=latex,
        domain=domain,
        method=method,
        verdict=verdict,
        cases=runs,
        seconds=time.perf_counter() - started,
        assumptions=plain if assumed else None,
        control=control,
        expected=expected,
        witness=witness,
    )


def lemma_4(entries: Sequence[Linear], m: int, control: bool) -> bool:
    """Whether the paper's proxy lies in [q(x_{m+1}), 1], or, as a control, above q(x_m), on one run."""
    score = row_of(list(entries))
    proxy = proxies.RHEO(score, np.arange(len(entries)), m, -1)
    return bool(proxy >= entries[m - 1] if control else entries[m] <= proxy <= 1)


def prove_lemma_4() -> Proof:
    """Lemma 4 for every V: the tokens before x_m poured into one, those after x_{m+1} into another; m = 0 by itself."""
    started = time.perf_counter()
    unit = [tuple(int(i == v + 1) for i in range(5)) for v in range(4)]
    whole: Form = (-1, 1, 1, 1, 1)
    falls = tuple(x - y for x, y in zip(unit[1], unit[2], strict=True))
    total: list[Form] = [whole, tuple(-x for x in whole)]
    pools = {0: falling_law(4), 2: Forks(["before", "q(x_m)", "q(x_{m+1})", "after"], [*unit, falls, *total])}
    held, refuted, count = True, None, 0
    for m, forks in pools.items():
        entries = [Linear(form, forks) for form in unit]
        held = held and all(list(forks.runs(lambda m=m, entries=entries: lemma_4(entries, m, False))))  # type: ignore[misc]
        count += forks.count
    forks = falling_law(4)
    for above in forks.runs(lambda: lemma_4([Linear(form, forks) for form in unit], 2, True)):
        if not above:
            refuted = Witness({"V": 4, "m": 2, "q": forks.point()}, "z is less than q(x_m)")
            break
    return Proof(
        name=LEMMA_4.name,
        source=LEMMA_4.source,
        statement=LEMMA_4.text(),
        latex=LEMMA_4.latex(),
        domain="every V, 0 <= m < V; every q",
        method="the paper's proxy rule run on an unknown law, z3",
        verdict="proved" if held else "unknown",
        cases=count,
        seconds=time.perf_counter() - started,
        assumptions=Witness({"V": 4, "q": falling_law(4).point()}, "a falling law"),
        control=Control(LEMMA_4.control_text(), "refuted" if refuted else "unknown", refuted),
    )


def depth_one() -> list[Proof]:
    """The paper's proxy proved, the two wrong ones refuted, in one pool."""
    return [
        prove_depth_one("the paper's proxy", proxies.RHEO, MAX_VOCABULARY),
        prove_depth_one("the ad-hoc proxy 1/4", proxies.ADHOC, MAX_VOCABULARY, "refuted"),
        prove_depth_one("raw q(Y)", proxies.RAW, MAX_VOCABULARY, "refuted"),
    ]


def deeper() -> list[Proof]:
    """Shapes below depth 1; at the last the K-per-level rule binds."""
    return [prove_deeper(*shape) for shape in SHAPES]
