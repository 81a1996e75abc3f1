"""The claims of losslessness as tables of counts with known probabilities.

A suite runs cycles and counts: whole sequences, the token at each depth given that the depth was reached, the sampled
token given that its slot survived pruning, tokens that the target forbids, and acceptance where it is known exactly.
What is conditioned on is known before the token's own coins and draws; anything else would raise false alarms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from exact.enumeration.cycle_law import acceptance_by_depth, cycle_law
from montecarlo.cells import SequenceCells, equal_cells, transform
from montecarlo.drafting import Trees
from montecarlo.goodness import Counts, Floats
from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import Batch, BatchedPair, CallablePair, Ints, TablePair, scores
from montecarlo.simulator import Cycles, Simulator, after, engine, texts
from rheo_core import DraftRow, Method, TreeMethod, TreeShape, proxies, rates, verification
from rheo_core.models import ModelPair, Prefix
from rheo_core.tree import SAMPLED

TRANSFORM_CELLS = 32
ENUMERABLE = 5000
"""Sequences of draws up to which acceptance is enumerated exactly."""

WORDS = {1: "first token", 2: "first two tokens", 3: "first three tokens"}


@dataclass
class Tally:
    """Counts of some cycles: tokens emitted [D+2] by number, and one table of counts for each check."""

    emitted: Counts
    tables: dict[str, Counts]

    def add(self, other: Tally) -> None:
        """Add the counts of other cycles."""
        self.emitted += other.emitted
        for name, counts in other.tables.items():
            self.tables[name] += counts

    @property
    def cycles(self) -> int:
        """Cycles counted."""
        return int(self.emitted.sum())


@dataclass
class Suite:
    """All checks of one method on one pair, from one prefix.

    `length` tokens are checked jointly, cycles repeated where `repeated`, else the text is continued from the target
    after one cycle. `laws` holds the probabilities of each check's cells.
    """

    method: Method
    pair: TablePair | CallablePair
    shape: TreeShape
    uniforms: Uniforms
    prefix: Prefix = ()
    length: int = 3
    repeated: bool = True
    laws: dict[str, Floats] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = engine(self.method, self.pair, self.shape, self.uniforms)
        self.sequences: dict[str, SequenceCells] = {}
        for length in range(1, self.length + 1):
            name = WORDS.get(length, f"first {length} tokens")
            self.sequences[name] = SequenceCells(self.pair.targets, self.prefix, length)
            self.laws[name] = self.sequences[name].probabilities
        equal = np.full(TRANSFORM_CELLS, 1 / TRANSFORM_CELLS)
        # One more cell, of probability 0: tokens that the target forbids.
        self.laws |= {depth_name(depth): np.append(equal, 0) for depth in range(self.shape.depth + 1)}
        if isinstance(self.engine, Simulator) and self.engine.method.leads(self.shape) < self.shape.width:
            self.laws |= dict.fromkeys((AT_ROOT, BELOW), equal)
        expected = expected_acceptance(self.method, self.pair, self.prefix, self.shape)
        if expected is not None:
            self.laws[ACCEPTANCE] = expected

    def batch(self) -> int:
        """How many cycles to ask for at once."""
        return self.engine.batch(self.prefix)

    def nothing(self) -> Tally:
        """Counts of no cycles."""
        tables = {name: np.zeros(len(law), dtype=np.int64) for name, law in self.laws.items()}
        return Tally(np.zeros(self.shape.depth + 2, dtype=np.int64), tables)

    def count(self, runs: Ints) -> Tally:
        """Run the cycles of `runs` [B] and count."""
        rng = np.random.default_rng([self.uniforms.seed, int(runs[0]), 1])
        cycles = self.engine.cycles(after(self.prefix, np.zeros((len(runs), 0), dtype=np.int64)), runs)
        tables = self.nothing().tables
        text = self._texts(cycles, runs)
        for name, sequences in self.sequences.items():
            tables[name] += np.bincount(sequences.of(text), minlength=len(sequences))
        for depth in range(self.shape.depth + 1):
            cells = self._depth_cells(cycles, depth, rng)
            tables[depth_name(depth)] += np.bincount(cells, minlength=TRANSFORM_CELLS + 1)
        if AT_ROOT in self.laws and cycles.trees is not None:
            for depth in range(1, self.shape.depth + 1):
                cells = self._sampled_cells(cycles.trees, depth, rng)
                tables[AT_ROOT if depth == 1 else BELOW] += np.bincount(cells, minlength=TRANSFORM_CELLS)
        if ACCEPTANCE in self.laws:
            tables[ACCEPTANCE] += np.bincount(cycles.accepted, minlength=self.shape.depth + 1)
        return Tally(np.bincount(cycles.emitted, minlength=self.shape.depth + 2), tables)

    def _texts(self, cycles: Cycles, runs: Ints) -> Ints:
        if self.repeated:
            return texts(self.engine, self.prefix, runs, self.length, first=cycles)[0]
        tokens = np.full((len(runs), self.length), -1, dtype=np.int64)
        known = min(self.length, cycles.tokens.shape[1])
        tokens[:, :known] = cycles.tokens[:, :known]
        rng = np.random.default_rng([self.uniforms.seed, int(runs[0]), 2])
        for position in range(1, self.length):
            here = np.flatnonzero(tokens[:, position] < 0)
            if len(here):
                tokens[here, position] = drawn(self.pair.targets(after(self.prefix, tokens[here, :position])), rng)
        return tokens

    def _depth_cells(self, cycles: Cycles, depth: int, rng: np.random.Generator) -> Ints:
        """The token at one depth of its cycle, by the draft's ranking; the last cell is for forbidden ones."""
        here = np.flatnonzero(cycles.tokens[:, depth] >= 0)
        if not len(here):
            return here
        contexts, token = after(self.prefix, cycles.tokens[here, :depth]), cycles.tokens[here, depth]
        p = self.pair.targets(contexts)
        values = transform(p, ranking(self.pair, contexts, p.shape[1]), token, rng.random(len(here)))
        forbidden = p[np.arange(len(here)), token] == 0
        return np.where(forbidden, TRANSFORM_CELLS, equal_cells(values, TRANSFORM_CELLS))

    def _sampled_cells(self, trees: Trees, depth: int, rng: np.random.Generator) -> Ints:
        """Sampled tokens of one depth whose slots survived, by the draft's ranking under q~."""
        cycles, nodes = np.nonzero((trees.kind == SAMPLED) & (trees.depth == depth))
        if not len(cycles) or not isinstance(self.engine, Simulator):
            return np.zeros(0, dtype=np.int64)
        contexts = after(self.prefix, trees.tokens_to(cycles, trees.parent[cycles, nodes]))
        table, rows = self.engine.source.at(contexts)
        values = table.tail_transform(rows, trees.token[cycles, nodes], rng.random(len(cycles)))
        return equal_cells(values, TRANSFORM_CELLS)


AT_ROOT = "sampled token at the root | slot kept"
BELOW = "sampled token below the root | slot kept"
ACCEPTANCE = "acceptance"
INNER = frozenset({AT_ROOT, BELOW, ACCEPTANCE})
"""Checks of how the method works inside; the others are of the emitted tokens, where a failure is a loss."""


def depth_name(depth: int) -> str:
    """Name of the check of the token emitted at one depth of its cycle."""
    return f"token at depth {depth} | reached"


def ranking(pair: BatchedPair, prefixes: Ints, vocabulary: int) -> Batch:
    """The draft's scores [n, V] over target ids; -1 for those that it does not know."""
    score = scores(pair.drafts(prefixes))
    if pair.ids is None:
        return score
    spread = np.full((len(score), vocabulary), -1, dtype=score.dtype)
    spread[:, list(pair.ids)] = score
    return spread


def drawn(rows: Batch, rng: np.random.Generator) -> Ints:
    """One draw [n] from each of the laws `rows` [n, V]."""
    cumulative = np.add.accumulate(rows, axis=1, dtype=np.float64)
    edge = rng.random(len(rows))[:, None] * cumulative[:, -1:]
    return np.asarray((edge < cumulative).argmax(axis=1), dtype=np.int64)


def expected_acceptance(
    method: Method, pair: TablePair | CallablePair, prefix: Prefix, shape: TreeShape
) -> Floats | None:
    """P(d drafted tokens accepted), d = 0..D: Theorem 3 and its kin for D = 1, enumeration where small, else None."""
    if shape.depth == 1 and isinstance(method, TreeMethod) and _pool_is_fixed(method, shape):
        rate = float(_one_layer(method, pair, prefix, shape))
        return np.array([1 - rate, rate])
    vocabulary = pair.targets(after(prefix, np.zeros((1, 0), dtype=np.int64))).shape[1]
    if isinstance(method, TreeMethod) and vocabulary ** min(shape.budget, 20) <= ENUMERABLE:
        law, _ = cycle_law(method, ModelPair(pair.target_at, pair.draft_at, pair.ids), prefix, shape)
        reached = [float(mass) for mass in (*acceptance_by_depth(law, shape.depth), 0)]
        return -np.diff(np.array(reached))
    return None


RATES: Mapping[object, str] = {
    verification.algorithm_1: "rheo_rate",
    verification.rrsw: "rrsw_rate",
    verification.vanilla: "topk_rate",
}


FIXED = (proxies.RHEO, proxies.NEXT_TOKEN, proxies.TAIL_MASS)
"""Proxies in [q(x_{m+1}), 1] that ignore Y: the sampled candidate is then in the pool whatever it is."""


def _pool_is_fixed(method: TreeMethod, shape: TreeShape) -> bool:
    return method.verify in RATES and (method.leads(shape) >= shape.width or method.proxy in FIXED)


def _one_layer(method: TreeMethod, pair: TablePair | CallablePair, prefix: Prefix, shape: TreeShape) -> float:
    p, q = pair.target_at(prefix), pair.draft_at(prefix)
    size = len(q.score) if isinstance(q, DraftRow) else len(q)
    candidates = min(shape.budget, shape.width, size)
    rate = getattr(rates, RATES[method.verify])
    return float(rate(p, q, method.leads(shape), candidates, ids=pair.ids))
