"""Whether the sampled slot survives pruning must not depend on which token was sampled, for every draft distribution.

rheo_core's own tree code is run on one pool of unknown rows, once for each outcome of the comparisons that some row
allows: proved for the paper's proxy, refuted with a row for wrong ones. Below depth 1, and for every V, K, D and R,
survival is a theorem of `exact/rocq` (`topological_invariance`, `growth_is_pruning`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exact.proofs.claims import LEMMA_4
from exact.proofs.forks import Forks, Form, Linear
from exact.proofs.proof import Control, CounterModel, Proof, Verdict
from exact.proofs.symbolic import row_of
from rheo_core import TreeShape, proxies
from rheo_core.construction import expand
from rheo_core.laws import Row
from rheo_core.pool import Drafter, Proxy
from rheo_core.tree import SAMPLED

STATEMENT = "rank of the sampled slot given Y = y is the same for every y with q~(y) > 0"
LATEX = r"\operatorname{rank}(Y \mid Y = y) = \operatorname{rank}(Y \mid Y = y') \text{ for all } y, y'"


MAX_VOCABULARY = 6
DEEP_VOCABULARY = 8

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
        """Give the draft row at a prefix."""
        if prefix not in self._rows:
            self._rows[prefix] = self._row(prefix)
        return self._rows[prefix]

    def p(self, prefix: tuple[int, ...]) -> Row:
        """Only its arithmetic is looked at."""
        return np.empty(0, dtype=object)

    def target_id(self, draft_id: int) -> int:
        """Give one vocabulary."""
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


def ranks(size: int, width: int, m: int, proxy: Proxy, forks: Forks) -> Callable[[], dict[int, int]]:
    """Give a program: the rank of the sampled slot in one pool for each Y that q~ allows."""
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
    """Give all distributions q with q(x_1) >= q(x_2) >= .. >= 0 and sum 1."""
    unit = [tuple(int(i == v + 1) for i in range(size + 1)) for v in range(size)]
    falling = [tuple(x - y for x, y in zip(unit[v], unit[v + 1], strict=True)) for v in range(size - 1)]
    whole: Form = (-1, *([1] * size))
    return Forks([f"q{v + 1}" for v in range(size)], [*falling, unit[-1], whole, tuple(-x for x in whole)])


def dependence(size: int, width: int, m: int, proxy: Proxy) -> tuple[CounterModel | None, int]:
    """Give a distribution for which the rank depends on Y in one pool, if there is one; and the number of runs."""
    forks = falling_law(size)
    for found in forks.runs(ranks(size, width, m, proxy, forks)):
        if len(set(found.values())) > 1:
            q = forks.point()
            where = ", ".join(f"Y = {y}: rank {rank + 1}" for y, rank in found.items())
            return CounterModel({"V": size, "K": width, "m": m, "q": q}, where), forks.count
    return None, forks.count


def prove_depth_one(name: str, proxy: Proxy, limit: int, expected: Verdict = "proved") -> Proof:
    """Give one pool, every V up to `limit`, K <= V, m < K, every R and every q."""
    started = time.perf_counter()
    witness, runs, least = None, 0, 2
    for size, width, m in ((v, k, m) for v in range(least, limit + 1) for k in range(1, v + 1) for m in range(k)):
        witness, count = dependence(size, width, m, proxy)
        runs += count
        if witness is not None:
            break
    return proof_record(
        f"survival of the sampled slot, depth 1: {name}",
        started,
        "refuted" if witness else "proved",
        f"V <= {limit}, K <= V, m < K, D = 1, every R; every q",
        "expand run on unknown laws, comparisons by z3",
        runs,
        expected,
        witness,
    )


def proof_record(
    name: str,
    started: float,
    verdict: Verdict,
    domain: str,
    method: str,
    runs: int,
    expected: Verdict,
    witness: CounterModel | None,
    control: Control | None = None,
    assumed: bool = True,
    statement: str = STATEMENT,
    latex: str = LATEX,
) -> Proof:
    """Give a line about survival; its control is a proxy below Lemma 4's bound unless another is given."""
    if control is None:
        found, _ = dependence(3, 3, 1, HALF_NEXT)
        control = Control("the same for proxy q(x_{m+1})/2", "refuted" if found else "unknown", found)
    plain = CounterModel({"q": [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]}, "a falling law")
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
    """Tell whether the paper's proxy lies in [q(x_{m+1}), 1], or, as a control, above q(x_m), on one run."""
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
            refuted = CounterModel({"V": 4, "m": 2, "q": forks.point()}, "z is less than q(x_m)")
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
        assumptions=CounterModel({"V": 4, "q": falling_law(4).point()}, "a falling law"),
        control=Control(LEMMA_4.control_text(), "refuted" if refuted else "unknown", refuted),
    )


def depth_one(limit: int = MAX_VOCABULARY) -> list[Proof]:
    """Give the paper's proxy proved, the two wrong ones refuted, in one pool."""
    return [
        prove_depth_one("the paper's proxy", proxies.RHEO, limit),
        prove_depth_one("the ad-hoc proxy 1/4", proxies.ADHOC, limit, "refuted"),
        prove_depth_one("raw q(Y)", proxies.RAW, limit, "refuted"),
    ]
