"""Many cycles of a tree method at once, equal to the reference token by token.

`Simulator` runs the methods that are made of known parts (top-k, rheo with any m and proxy, rheo-rrsw) vectorised over
cycles; `ReferenceLoop` runs any method at all by calling it. Both take their randomness by address from the same
numbers, so for the same seed they emit the same tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from montecarlo.drafting import Trees, draft
from montecarlo.keyed_random import AddressChooser, Uniforms
from montecarlo.pairs import BatchedPair, CallablePair, Ints, TablePair
from montecarlo.pools import PoolSource
from montecarlo.verifying import RULES, verify
from rheo_core import InvalidInput, Method, TreeMethod, TreeShape, find_method, speculate
from rheo_core.models import Prefix

BATCH_NUMBERS = 2**19
"""Numbers in the largest array of one batch, about what a processor's cache holds; memory is bounded by it."""

LEAST_BATCH = 64
"""Cycles of one batch whatever the vocabulary, so that it is worth its fixed costs."""


@dataclass(frozen=True)
class Cycles:
    """B cycles: emitted target ids [B, D+1] padded with -1, and the trees where they are known."""

    tokens: Ints
    trees: Trees | None

    @property
    def emitted(self) -> Ints:
        """Tokens emitted by each cycle [B], the target's own included."""
        return np.asarray((self.tokens >= 0).sum(axis=1), dtype=np.int64)

    @property
    def accepted(self) -> Ints:
        """Drafted tokens accepted in each cycle [B]."""
        return self.emitted - 1


class CycleEngine(Protocol):
    """Anything that runs cycles from prefixes of one length."""

    def cycles(self, prefixes: Ints, runs: Ints, number: int = 0) -> Cycles:
        """Cycle `number` of each of `runs` [B] at `prefixes` [B, L]."""
        ...

    def batch(self, prefix: Prefix = ()) -> int:
        """How many cycles to ask for at once at `prefix`."""
        ...


class Simulator:
    """Vectorised cycles of a `TreeMethod` with the layered construction and a known verification rule."""

    def __init__(self, method: TreeMethod | str, pair: BatchedPair, shape: TreeShape, uniforms: Uniforms) -> None:
        rule = find_method(method)
        if not isinstance(rule, TreeMethod) or not can_simulate(rule):
            raise InvalidInput("method", rule.name, "a layered TreeMethod with a verification rule of rheo_core")
        self.method = rule
        self.shape = shape
        self.uniforms = uniforms
        self.source = PoolSource(pair, shape.width, rule.leads(shape), rule.proxy)
        self._rule = RULES[rule.verify]
        self._rows_a_cycle = 1 if isinstance(pair, TablePair) else shape.width

    def cycles(self, prefixes: Ints, runs: Ints, number: int = 0) -> Cycles:
        """Cycle `number` of each of `runs` [B] at `prefixes` [B, L]."""
        streams = self.uniforms.streams(runs, number)
        trees = draft(self.source, prefixes, self.shape, self.uniforms, streams)
        tokens = verify(self.source, trees, prefixes, self._rule, self.shape.depth, self.uniforms, streams)
        return Cycles(tokens, trees)

    def batch(self, prefix: Prefix = ()) -> int:
        """How many cycles keep a batch within BATCH_NUMBERS."""
        numbers = self.source.targets(after(prefix, np.zeros((1, 0), dtype=np.int64))).shape[1] * self._rows_a_cycle
        return int(np.clip(BATCH_NUMBERS // numbers, max(1, LEAST_BATCH // self._rows_a_cycle), 4096))


class ReferenceLoop:
    """Any method, one cycle after another through rheo_core."""

    def __init__(
        self, method: Method | str, pair: TablePair | CallablePair, shape: TreeShape, uniforms: Uniforms
    ) -> None:
        self.method = find_method(method)
        self.pair = pair
        self.shape = shape
        self.uniforms = uniforms

    def cycles(self, prefixes: Ints, runs: Ints, number: int = 0) -> Cycles:
        """Cycle `number` of each of `runs` [B] at `prefixes` [B, L]."""
        tokens = np.full((len(prefixes), self.shape.depth + 1), -1, dtype=np.int64)
        for row, (prefix, run) in enumerate(zip(prefixes.tolist(), runs.tolist(), strict=True)):
            emitted = self._cycle(tuple(prefix), AddressChooser(self.uniforms, run, number))
            tokens[row, : len(emitted)] = emitted
        return Cycles(tokens, None)

    def batch(self, prefix: Prefix = ()) -> int:
        """A few, so that there is something to look at soon."""
        return 64

    def _cycle(self, prefix: Prefix, chooser: AddressChooser) -> tuple[int, ...]:
        pair = self.pair
        cycle = speculate(pair.target_at, pair.draft_at, prefix, self.method, self.shape, chooser, ids=pair.ids)
        return cycle.tokens


def can_simulate(method: Method) -> bool:
    """Whether `Simulator` knows all the parts of this method."""
    return isinstance(method, TreeMethod) and method.construction == "layered" and method.verify in RULES


def engine(
    method: Method | str, pair: TablePair | CallablePair, shape: TreeShape, uniforms: Uniforms
) -> Simulator | ReferenceLoop:
    """The vectorised simulator where it knows the method, else the loop over the reference."""
    rule = find_method(method)
    if isinstance(rule, TreeMethod) and can_simulate(rule):
        return Simulator(rule, pair, shape, uniforms)
    return ReferenceLoop(rule, pair, shape, uniforms)


def texts(
    runner: CycleEngine, prefix: Prefix, runs: Ints, length: int, first: Cycles | None = None
) -> tuple[Ints, Ints]:
    """The first `length` tokens of each of `runs` [B], cycles repeated: (tokens [B, length], cycles used [B]).

    `first`: the cycles at `prefix`, where they have been run already.
    """
    tokens = np.full((len(runs), length), -1, dtype=np.int64)
    filled = np.zeros(len(runs), dtype=np.int64)
    used = np.zeros(len(runs), dtype=np.int64)
    for number in range(length):
        for reached in range(length):
            here = np.flatnonzero((filled == reached) & (used == number))
            if not len(here):
                continue
            if number == 0 and first is not None:
                cycles = first
            else:
                cycles = runner.cycles(after(prefix, tokens[here, :reached]), runs[here], number)
            emitted = cycles.tokens[:, : length - reached]
            tokens[here, reached : reached + emitted.shape[1]] = emitted
            filled[here] = reached + (emitted >= 0).sum(axis=1)
            used[here] += 1
    return tokens, used


def after(prefix: Prefix, tokens: Ints) -> Ints:
    """Prefixes [B, L + n]: `prefix` and then `tokens` [B, n]."""
    start = np.broadcast_to(np.array(prefix, dtype=np.int64), (len(tokens), len(prefix)))
    return np.concatenate([start, tokens], axis=1)


def batches(start: int, cycles: int, size: int) -> Iterator[Ints]:
    """Run numbers start..cycles-1 in batches of at most `size`."""
    for first in range(start, cycles, size):
        yield np.arange(first, min(first + size, cycles), dtype=np.int64)
