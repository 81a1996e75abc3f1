"""The condition on a verifier under which Lemma 7 makes it lossless for every target, proved or refuted.

With Y = y sampled it must emit some law g_y and accept a candidate c with some probability a_c(y), both whatever other
candidates survived, with sum q~ g_y = p and sum q~ a_c = p(c); without a sampled candidate it must emit p and accept c
with p(c). Rules that look at how many siblings survived fail it and lose on the dynamic tree, however good on one pool.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from exact.enumeration.walk import law as exact_law
from exact.proofs.engines.cells import ALL_PARTS, RowCell, cells
from exact.proofs.engines.rings import Engine
from exact.proofs.layer import total
from exact.proofs.proof import Control, CounterModel, Proof, Verdict
from exact.proofs.symbolic import Reduced, Symbolic, law, row_of
from rheo_core import TreeMethod, TreeShape, proxies, speculate
from rheo_core.chooser import Chooser
from rheo_core.laws import Row, residual
from rheo_core.verification import Place, Verify, algorithm_1, rrsw, sequential_rejection, vanilla
from rheo_core.verification import Verdict as Answer

MAX_VOCABULARY = 3
STATEMENT = "g_y and a_c(y) do not depend on the other candidates; sum_y q~(y) g_y = p; sum_y q~(y) a_c(y) = p(c)"
LATEX = r"\sum_y \tilde{q}(y)\, g_y = p,\quad \sum_y \tilde{q}(y)\, a_c(y) = p(c) \text{ for every set of candidates}"


def optimal_on_one_pool(
    p: Row, tail: Row | None, candidates: Sequence[int], sampled: int, lead: int, chooser: Chooser, at: Place
) -> Answer:
    """The rule that attains A* on one pool: test its one token u outside Top_{n-1} against the law that u has there.

    u is x_n when Y falls in Top_n, so its law Q is q~ with the mass of Top_n moved to x_n. Lossless on one pool and not
    on a dynamic tree, where n depends on Y.
    """
    n = len(candidates)
    if sampled == -1 or tail is None or n <= lead:
        return sequential_rejection(p, candidates, range(n), chooser, at)
    by_tail = sorted((v for v in range(len(p)) if v not in candidates[:lead]), key=lambda v: -tail[v])
    top = [*candidates[:lead], *by_tail][:n]
    law_of_u = tail.copy()
    law_of_u[top] = 0
    law_of_u[top[-1]] = sum(tail[v] for v in top)
    i = next(i for i, token in enumerate(candidates) if token not in top[:-1])
    u = candidates[i]
    r = residual(p, law_of_u)
    if chooser.accept(1 if r is None else min(1, p[u] / law_of_u[u]), ("coin", *at, i)):
        return u, i
    return sequential_rejection(p if r is None else r, candidates, [j for j in range(n) if j != i], chooser, at)


Answers = Mapping[Any, Any]
"""The law of (token, candidate accepted or None)."""


def answers(rule: Verify, p: Row, tail: Row, others: Sequence[int], y: int | None, m: int, of: Any) -> Answers:
    """What a rule does with Y = y (None: no sampled candidate) beside `others`, in slot order."""
    leads, fills = [v for v in others if v < m], [v for v in others if v >= m]
    pool = [*leads, *([] if y is None else [y]), *fills]
    sampled = -1 if y is None else len(leads)

    def program(chooser: Chooser) -> tuple[int, int | None]:
        token, child = rule(p, None if y is None else tail, pool, sampled, m, chooser, (0, ()))
        return token, None if child == -1 else token

    return dict(of(program))


def emitted(found: Answers, token: int) -> Any:
    """P(token is emitted)."""
    return total([mass for (each, _), mass in found.items() if each == token])


def accepted(found: Answers, token: int) -> Any:
    """P(token is accepted as a candidate)."""
    return total([mass for (_, each), mass in found.items() if each == token])


def subsets(tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every subset, smallest first."""
    for count in range(len(tokens) + 1):
        yield from combinations(tokens, count)


def failure(rule: Verify, p: Row, tail: Row, m: int, of: Any, same: Callable[[Any, Any], bool]) -> str | None:
    """What of the condition fails at these rows, over every set of candidates; None if nothing does."""
    tokens = range(len(p))
    for others in subsets(tokens):
        found = answers(rule, p, tail, others, None, m, of)
        emits = all(same(emitted(found, v), p[v]) for v in tokens)
        if not (emits and all(same(accepted(found, c), p[c]) for c in others)):
            return f"without Y, candidates {list(others)}: p is not emitted, or c not accepted with p(c)"
    drawn = [y for y in range(m, len(p)) if tail[y] > 0]
    met: dict[int, dict[int, Any]] = {c: {} for c in tokens}
    given: dict[int, Answers] = {}
    for y in drawn:
        given[y] = answers(rule, p, tail, (), y, m, of)
        for others in subsets([v for v in tokens if v != y]):
            found = answers(rule, p, tail, others, y, m, of)
            if not all(same(emitted(found, v), emitted(given[y], v)) for v in tokens):
                return f"Y = {y}: what is emitted changes when {list(others)} survive beside it"
            for c in (*others, y):
                if not same(accepted(found, c), met[c].setdefault(y, accepted(found, c))):
                    return f"Y = {y}: how often {c} is accepted changes when {list(others)} survive"
    for v in tokens:
        if not same(total([tail[y] * emitted(given[y], v) for y in drawn]), p[v]):
            return f"token {v}: sum q~ g_y is not p"
        if not same(total([tail[y] * met[v][y] for y in drawn if y in met[v]]), p[v]):
            return f"candidate {v}: sum q~ a_c is not p(c)"
    return None


def failure_on(cell: RowCell, rule: Verify, engine: Engine) -> str | None:
    """Give the condition on a whole cell."""
    p, q, gap = cell.rows(engine)
    mass = total(p)
    relation = total([gap[v] for v in cell.above]) - total([gap[v] for v in cell.below])

    def same(one: Any, other: Any) -> bool:
        apart = one - other
        top = apart.num if isinstance(apart, Symbolic) else apart
        return bool(top == 0 or (not isinstance(relation, int) and divmod(top, relation)[1] == 0))

    target, tail = (row_of([0 if isinstance(x, int) else Reduced(x, mass) for x in row]) for row in (p, q))
    return failure(rule, target, tail, cell.m, law, same)


@dataclass(frozen=True)
class TreeCase:
    """A tree on which a rule loses: rows by prefix, one target law, the proxy and the shape."""

    proxy: Any
    lead: int
    shape: TreeShape
    p: tuple[Fraction, ...]
    draft: Callable[[tuple[int, ...]], Sequence[Fraction]]
    shown: Mapping[str, Any]

    def first_token(self, rule: Verify) -> list[Fraction]:
        """Give the exact distribution of the first token that a cycle emits."""
        method = TreeMethod("candidate", None, lead=self.lead, proxy=self.proxy, verify=rule)

        def program(chooser: Chooser) -> int:
            return speculate(lambda prefix: self.p, self.draft, (), method, self.shape, chooser).tokens[0]

        found = exact_law(program)
        return [found.get(token, Fraction(0)) for token in range(len(self.p))]


THIRD, HALF, FIFTH = Fraction(1, 3), Fraction(1, 2), Fraction(1, 5)


def _rrsw_draft(prefix: tuple[int, ...]) -> list[Fraction]:
    rows = {(): [FIFTH, 2 * FIFTH, 2 * FIFTH], (2,): [Fraction(1), Fraction(0), Fraction(0)]}
    return rows.get(prefix, [THIRD] * 3)


RRSW_CASE = TreeCase(
    proxies.TAIL_MASS,
    1,
    TreeShape(2, 2, 2),
    (Fraction(0), HALF, HALF),
    _rrsw_draft,
    {"V": 3, "m": 1, "K, D, R": [2, 2, 2], "proxy": "z", "q()": [FIFTH, 2 * FIFTH, 2 * FIFTH], "q(2)": [1, 0, 0]},
)
OPTIMAL_CASE = TreeCase(
    proxies.RHEO,
    0,
    TreeShape(2, 2, 2),
    (THIRD, 2 * THIRD),
    lambda prefix: [THIRD, 2 * THIRD],
    {"V": 2, "m": 0, "K, D, R": [2, 2, 2], "proxy": "the paper's", "q": [THIRD, 2 * THIRD]},
)


def careless(
    p: Row, tail: Row | None, candidates: Sequence[int], sampled: int, lead: int, chooser: Chooser, at: Place
) -> Answer:
    """Give the control: Algorithm 1 with one term changed, p instead of the residual after Y is rejected (line 8)."""
    if sampled == -1 or tail is None:
        return vanilla(p, tail, candidates, sampled, lead, chooser, at)
    u_s = candidates[sampled]
    if chooser.accept(min(1, p[u_s] / tail[u_s]), ("coin", *at, sampled)):
        return u_s, sampled
    return sequential_rejection(p, candidates, [i for i in range(len(candidates)) if i != sampled], chooser, at)


def numeric_failure(rule: Verify, limit: int = MAX_VOCABULARY) -> CounterModel | None:
    """Give a failure of the condition on plain numbers, on the smallest vocabulary that has one."""
    for size in range(1, limit + 1):
        for m in range(size):
            for cell in cells(size, m):
                p, q = cell.point([1] * size, [1] * size)
                why = failure(rule, row_of(p), row_of(q), m, exact_law, lambda one, other: bool(one == other))
                if why is not None:
                    return CounterModel({"V": size, "m": m, "p": p, "q~": q}, why)
    return None


def prove_verifiers(limit: int = MAX_VOCABULARY, engine: Engine = "flint") -> list[Proof]:
    """Give the condition for Algorithm 1 and top-K (proved), for RRSw and the A*-rule (refuted, each with a tree)."""
    return [
        prove_condition("Algorithm 1", algorithm_1, limit, engine),
        prove_condition("vanilla top-K", vanilla, limit, engine),
        refute_condition("RRSw (proxy z)", rrsw, RRSW_CASE, limit),
        refute_condition("the A*-rule", optimal_on_one_pool, OPTIMAL_CASE, limit),
    ]


def prove_condition(name: str, rule: Verify, limit: int, engine: Engine) -> Proof:
    """Give the condition on every cell, faces included, over every set of candidates."""
    started = time.perf_counter()
    tried = [cell for size in range(1, limit + 1) for m in range(size) for cell in cells(size, m, ALL_PARTS)]
    failed = next((cell for cell in tried if failure_on(cell, rule, engine)), None)
    witness = numeric_failure(rule, limit) if failed else None
    verdict: Verdict = "proved" if failed is None else "refuted" if witness else "unknown"
    domain = f"V <= {limit}, every set of candidates; every p, q (every V by the loop lemma and Eq. (6))"
    method = f"run on every cell and face ({engine})"
    return _line(name, started, verdict, len(tried), "proved", witness, domain, method)


def refute_condition(name: str, rule: Verify, case: TreeCase, limit: int) -> Proof:
    """Give a failure of the condition, and a dynamic tree on which it costs losslessness."""
    started = time.perf_counter()
    failed, got = numeric_failure(rule, limit), case.first_token(rule)
    witness = None
    if failed is not None and tuple(got) != case.p:
        shown = {**case.shown, "p": list(case.p), "first token": got}
        witness = CounterModel(shown, f"lossy on this tree; the condition fails at {failed}")
    verdict: Verdict = "refuted" if witness else "unknown"
    return _line(name, started, verdict, 1, "refuted", witness, "one tree, every run enumerated", "exact law")


def _line(
    name: str,
    started: float,
    verdict: Verdict,
    cases: int,
    expected: Verdict,
    witness: CounterModel | None,
    domain: str,
    method: str,
) -> Proof:
    control = numeric_failure(careless)
    p, q = RowCell(((1, 1), (1, -1)), 0).point([1, 1], [1, 1])
    return Proof(
        name=f"lossless for every target: {name}",
        source="Lemma 7; Algorithm 1; appendix D.2",
        statement=STATEMENT,
        latex=LATEX,
        domain=domain,
        method=method,
        verdict=verdict,
        cases=cases,
        seconds=time.perf_counter() - started,
        assumptions=CounterModel({"V": 2, "m": 0, "p": p, "q~": q}, "two laws"),
        control=Control("the same for Algorithm 1 with p in place of r", "refuted" if control else "unknown", control),
        expected=expected,
        witness=witness,
    )
