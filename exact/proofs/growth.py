"""The layered tree against the grown one on unknown scores: both constructions of rheo_core, run for every order.

Growth admits a slot before it draws its token. Where the layered tree is the grown one for every draw, rank for rank,
survival cannot depend on the token. One run for each order that some scores allow: small shapes only.
At the root every Y is drawn; below it one, since there Y only renames the fills (by hand; the scores are unknowns).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from exact.proofs.forks import Forks, Form, Monomial, Unsettled
from exact.proofs.proof import Proof, Verdict
from exact.proofs.survival import AnyProxy, Drawn, UnknownPair, UnknownRow, line
from exact.proofs.symbolic import row_of
from rheo_core import TreeShape
from rheo_core.drafting import expand, grown
from rheo_core.laws import Row
from rheo_core.pool import Drafter

STATEMENT = "the layered tree is the grown tree, every node and its rank, for the same draws"
LATEX = r"\mathrm{Prune}_R(U) = \mathrm{grown}_R"


@dataclass
class Unknowns:
    """Rows of unknown scores by logarithm: q(x_1) >= .. >= q(x_V) and a proxy in [q(x_{m+1}), 1] for each prefix."""

    size: int
    m: int
    rows: int

    def forks(self) -> Forks:
        """All such rows."""
        width = self.size + 1
        at_least: list[Form] = []
        for row in range(self.rows):
            q, s = [row * width + v for v in range(self.size)], row * width + self.size
            at_least += [self._form({q[0]: -1}), self._form({s: -1})]
            at_least.append(self._form({s: 1, q[min(self.m, self.size - 1)]: -1}))
            at_least += [self._form({q[v]: 1, q[v + 1]: -1}) for v in range(self.size - 1)]
        return Forks([f"x{i}" for i in range(self.rows * width)], at_least)

    def _form(self, coefficients: dict[int, int]) -> Form:
        return (0, *(coefficients.get(i, 0) for i in range(self.rows * (self.size + 1))))

    def score(self, row: int, v: int, forks: Forks) -> Monomial:
        """q(x_{v+1}) of a row, or its proxy (v = V)."""
        return Monomial(self._form({row * (self.size + 1) + v: 1}), forks)


def agree(unknowns: Unknowns, shape: TreeShape, zeros: bool, forks: Forks) -> Callable[[], bool]:
    """A program: whether the layered tree is the grown one, every node and its rank, for the same draws."""

    def program() -> bool:
        proxy = AnyProxy()
        known: list[Row] = []

        def row(prefix: tuple[int, ...]) -> UnknownRow:
            number = len(known)
            count = unknowns.size - (forks.choose(("zeros at", prefix), unknowns.size) if zeros else 0)
            score = row_of(
                [unknowns.score(number, v, forks) if v < count else Monomial(None, forks) for v in range(unknowns.size)]
            )
            known.append(score)
            proxy.of[id(score)] = unknowns.score(number, unknowns.size, forks)
            return UnknownRow(score, lambda v: v < count)

        def pick(at: Hashable, options: list[int]) -> int:
            return options[forks.choose(("Y at", at), len(options))] if at[2] == () else options[-1]  # type: ignore[index]

        drafter = Drafter(UnknownPair(row), shape.width, unknowns.m, proxy)  # type: ignore[arg-type]
        chooser = Drawn(pick)
        layered = expand(drafter, (), shape, chooser)
        return layered.key() == grown(drafter, (), shape, chooser).key()

    return program


def prove_growth(size: int, width: int, depth: int, zeros: bool, seconds: float) -> Proof:
    """Layered = grown for every m < K; "unknown" when the time or z3 runs out."""
    started = time.perf_counter()
    runs, note = 0, ""
    verdict: Verdict = "proved"
    parents = [min(width, width**level) for level in range(depth)]
    shape = TreeShape(width, depth, width * sum(parents))
    for m in range(width):
        unknowns = Unknowns(size, m, sum(parents))
        forks = unknowns.forks()
        try:
            for same in forks.runs(agree(unknowns, shape, zeros, forks)):
                if not same or time.perf_counter() - started > seconds:
                    note = f"; stopped at m = {m}: " + ("out of time" if same else "the trees differ")
                    break
        except Unsettled as error:
            note = f"; {error}"
        runs += forks.count
        if note:
            verdict = "unknown"
            break
    return line(
        f"layered = grown, depth {depth}",
        started,
        verdict,
        f"V = {size}, K = {width}, D = {depth}, m < K, every R; every q" + ("" if zeros else " without zeros"),
        f"expand and grown run on unknown scores, comparisons by z3{note}",
        runs,
        "proved",
        None,
        statement=STATEMENT,
        latex=LATEX,
    )
