"""Verification of many trees at once: `algorithm_1`, `vanilla` and `rrsw` of `rheo_core.verification`, rows stacked.

The three rules differ in two things only: whether the sampled candidate is a point mass (vanilla) and whether it is
tried first (Algorithm 1) or in its slot (RRSw). Residuals are formed before their coins, as in the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from montecarlo.drafting import Trees
from montecarlo.keyed_random import COIN, EMIT, Uniforms, Words, root_codes
from montecarlo.pairs import Batch, Ints
from montecarlo.pools import PoolSource, PoolTable, totals
from rheo_core import verification
from rheo_core.tree import SAMPLED

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class CandidateOrder:
    """How the sampled candidate is treated."""

    sampled_first: bool
    point_mass: bool

    def turns(self, slots: int, m: int) -> list[tuple[int, bool]]:
        """(slot, as the sampled candidate) in the order of trial; slot m without a sampled token is a point mass."""
        masses = [(slot, False) for slot in range(slots)]
        if self.point_mass or m >= slots:
            return masses
        first = 0 if self.sampled_first else m
        return [*masses[:first], (m, True), *masses[first:]]


RULES: Mapping[Any, CandidateOrder] = MappingProxyType(
    {
        verification.algorithm_1: CandidateOrder(sampled_first=True, point_mass=False),
        verification.rrsw: CandidateOrder(sampled_first=False, point_mass=False),
        verification.vanilla: CandidateOrder(sampled_first=False, point_mass=True),
    }
)


@dataclass
class VerifyingStep:
    """One parent in each of n cycles: its children by slot, the running residual, and the numbers of its coins."""

    trees: Trees
    cycles: Ints
    child: Ints
    r: Batch
    table: PoolTable
    rows: Ints
    uniforms: Uniforms
    streams: Words
    codes: Words

    def try_slot(self, slot: int, sampled: bool, active: Bools, rule: CandidateOrder) -> Ints:
        """Toss the coins of the candidates in one slot; positions [k] where they are accepted, r updated elsewhere."""
        here = np.flatnonzero(active & (self.child[:, slot] >= 0))
        if not rule.point_mass:
            kind = self.trees.kind[self.cycles[here], self.child[here, slot]]
            here = here[(kind == SAMPLED) == sampled]
        if not len(here):
            return here
        token = self.trees.token[self.cycles[here], self.child[here, slot]]
        r = self.r[here]
        probability = r[np.arange(len(here)), token]
        if sampled:
            left = self.table.subtract_tail(r, self.rows[here])
            with np.errstate(over="ignore"):
                probability = probability / self.table.tail_of(self.rows[here], token)
        else:
            left = r
            left[np.arange(len(here)), token] = 0
        mass = totals(left)
        coin = self.uniforms.at(self.streams[here], COIN, self.codes[here], (self.child[here, :slot] >= 0).sum(axis=1))
        won = (coin < probability) | ~(mass > 0)
        lost = ~won
        self.r[here[lost]] = left[lost] / mass[lost, None]
        accepted: Ints = here[won]
        return accepted

    def emit(self, here: Ints) -> Ints:
        """Draw from r [k, V] where no candidate was accepted."""
        r = self.r[here]
        cumulative = np.add.accumulate(r, axis=1, dtype=np.float64)
        number = self.uniforms.at(self.streams[here], EMIT, self.codes[here], 0)
        above = number[:, None] * cumulative[:, -1:] < cumulative
        last = r.shape[1] - 1 - np.argmax(r[:, ::-1] > 0, axis=1)
        return np.asarray(np.where(above[:, -1], np.argmax(above, axis=1), last), dtype=np.int64)


def verify(
    source: PoolSource,
    trees: Trees,
    prefixes: Ints,
    rule: CandidateOrder,
    depth: int,
    uniforms: Uniforms,
    streams: Words,
) -> Ints:
    """Descend every tree until the text leaves it; emitted tokens [B, depth + 1], padded with -1."""
    tokens = np.full((len(trees), depth + 1), -1, dtype=np.int64)
    cycles = np.arange(len(trees))
    nodes = np.full(len(trees), -1, dtype=np.int64)
    for level in range(depth + 1):
        contexts = np.concatenate([prefixes[cycles], tokens[cycles, :level]], axis=1)
        p = source.targets(contexts)
        table, rows = source.at(contexts)
        source.check(p, table)
        codes = np.where(nodes < 0, root_codes(len(nodes)), trees.code[cycles, nodes])
        child = trees.children(cycles, nodes, table.slots)
        step = VerifyingStep(trees, cycles, child, p, table, rows, uniforms, streams[cycles], codes)
        below = np.full(len(cycles), -1, dtype=np.int64)
        for slot, sampled in rule.turns(table.slots, source.m):
            won = step.try_slot(slot, sampled, below < 0, rule)
            below[won] = child[won, slot]
        left = np.flatnonzero(below < 0)
        tokens[cycles[left], level] = step.emit(left)
        kept = np.flatnonzero(below >= 0)
        tokens[cycles[kept], level] = trees.token[cycles[kept], below[kept]]
        cycles, nodes = cycles[kept], below[kept]
        if not len(cycles):
            break
    return tokens
