"""Evaluates one block of cases: all those of a level whose draft row at the empty prefix is the same.

A `CaseEvaluator` serves one method and keeps what it has computed from block to block. Methods that decide node by
node are tried state by state; any other is replayed on every table of rows that it can tell apart.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from exact.enumeration.cycle_law import compare
from exact.enumeration.fixed_trees import FixedTreeMethod, fixed_tree_law
from exact.enumeration.node_laws import Emitted, Tokens, VerifierCache, emitted_law
from exact.enumeration.rationals import ZERO
from exact.enumeration.tree_classes import TreeClass, classes
from exact.enumeration.walk import EnumerationError, TooManyOutcomes, outcomes
from exact.search.cases import Case, CaseBlock, Model, SearchLevel, smallest_law
from exact.search.row_table import IndexedDrafter, IndexedPair, RowTable
from exact.search.state_space import (
    NO_ROW,
    FixedNodes,
    Refusals,
    RowSequence,
    RowSequences,
    State,
    TokenProcess,
    TreeNodes,
    tables,
)
from rheo_core import Method, TreeMethod, TreeShape
from rheo_core.methods import run_cycle
from rheo_core.models import ModelPair

NUMBERS = ("width", "depth", "budget")


class RecordingShape(TreeShape):
    """A `TreeShape` with `read`, the names of the numbers that have been asked for since it was made."""

    def __init__(self, width: int, depth: int, budget: int) -> None:
        super().__init__(width, depth, budget)
        object.__setattr__(self, "read", set())

    def __getattribute__(self, name: str) -> Any:
        if name in NUMBERS:
            vars(self).get("read", set()).add(name)
        return super().__getattribute__(name)

    def settled_by(self, tried: RecordingShape) -> bool:
        """Tell whether a run at the shape `tried` has settled this one: alike in the depth and in all that was read."""
        mine, theirs = vars(self), vars(tried)
        return all(mine[name] == theirs[name] for name in {*theirs["read"], "depth"})


Rule = TypeVar("Rule", bound="Method | None")

OUTCOMES = 2048
"""Outcomes of one case (drafted trees, or whole runs) beyond which it counts as too large to enumerate."""

MOST_TEXTS = 30
"""V^D up to which every target of small denominator is tried on one draft."""


@dataclass
class BlockResult:
    """What came of a block: laws computed, cases too large to enumerate, refusals, and the smallest lossy case."""

    finished: bool = True
    computed: int = 0
    too_large: int = 0
    refusals: Refusals = field(default_factory=Refusals)
    found: Case | None = None


class OutOfTime(EnumerationError):
    """The deadline passed in the middle of a block."""


class CaseEvaluator:
    """Tries cases of one method up to the time.time() of `deadline`; not to be shared by threads."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.table = RowTable()
        self.tried = BlockResult()
        self.deadline = float("inf")
        self._processes: dict[Hashable, TokenProcess] = {}
        self._sequences: dict[Hashable, RowSequences] = {}
        self._replays: dict[Hashable, list[RecordingShape]] = {}

    def block(self, block: CaseBlock, deadline: float = float("inf")) -> BlockResult:
        """Try every case of a block, up to the time.time() of `deadline`."""
        self.deadline = deadline
        self.tried = tried = BlockResult()
        try:
            for case in self._lossy(block, tried):
                smaller = tried.found is None or case.size < tried.found.size
                if smaller and self.is_lossy(case):  # with all rows in place: the rule may refuse one left open so far
                    tried.found = case
        except OutOfTime:
            tried.finished = False
        except TooManyOutcomes:
            tried.too_large += 1
        except EnumerationError:
            raise
        except Exception as error:  # a rule that cannot be run at this shape at all
            tried.refusals.note(error, str(block.level.shape))
        return tried

    def is_lossy(self, case: Case) -> bool:
        """Tell whether one case is lossy; False where the rule refuses it, breaks, or has too many outcomes."""
        pair = self.pair_of(case)
        try:
            emitted = self.law(with_lead(self.method, case.lead), pair, case.shape)
            return compare(emitted, pair, (), case.shape.depth + 1).wrong is not None
        except TooManyOutcomes:
            return False
        except EnumerationError:
            raise
        except Exception as error:
            self._refused(error, pair, self.tried)
            return False

    def law(self, rule: Method, pair: IndexedPair, shape: TreeShape) -> Emitted:
        """Give the exact distribution of one cycle's tokens. Raises `TooManyOutcomes`."""
        if isinstance(rule, TreeMethod):
            drafter = IndexedDrafter(pair, rule, shape)
            return emitted_law(classes(drafter, (), shape, OUTCOMES), VerifierCache(drafter, rule.verify), ())
        if isinstance(rule, FixedTreeMethod):
            return fixed_tree_law(rule, pair, (), shape)
        return replayed_law(rule, pair, shape)

    def pair_of(self, case: Case) -> IndexedPair:
        """Give the models of a case, their rows from this trier's table."""
        models = {"p": case.target, "q": case.draft}
        return IndexedPair(self.table, lambda side, prefix: self.table.number(models[side](prefix)))

    def lossy_variant(self, case: Case) -> Case | None:
        """Give the case itself if it is lossy; for a tree method its draft with another target of small denominator."""
        rule = with_lead(self.method, case.lead)
        if self.is_lossy(case):
            return case
        if not isinstance(rule, TreeMethod) or case.vocabulary**case.shape.depth > MOST_TEXTS:
            return None
        level = SearchLevel(case.vocabulary, case.shape, case.lead, True, 3 if case.vocabulary <= 3 else 2)
        sequences = self._sequences_of(rule, level, [self.table.number(law) for law in level.laws])
        nodes = sequences.process.laws
        assert isinstance(nodes, TreeNodes)
        pair = self.pair_of(case)
        try:
            found = classes(IndexedDrafter(pair, rule, case.shape), (), case.shape, OUTCOMES)
            state = sequences.process.state(nodes.start(found, pair, case.shape))
            return None if sequences.always_exact(state) else self._case(level, pair, next(sequences.wrong(state)))
        except (TooManyOutcomes, OutOfTime):
            return None
        except EnumerationError:
            raise
        except Exception as error:
            self._refused(error, pair, self.tried)
            return None

    def _tick(self) -> None:
        if time.time() > self.deadline:
            raise OutOfTime

    def _lossy(self, block: CaseBlock, tried: BlockResult) -> Iterator[Case]:
        """Lossy cases of the block, the smallest among them."""
        rule = with_lead(self.method, block.level.lead)
        allowed = [self.table.number(law) for law in block.level.laws]
        first = allowed[block.first]
        if not isinstance(rule, (TreeMethod, FixedTreeMethod)):
            yield from self._replayed(rule, block.level, allowed, first, tried)
            return
        sequences = self._sequences_of(rule, block.level, allowed)
        process = sequences.process
        process.computed, process.refusals = 0, tried.refusals
        try:
            if isinstance(rule, TreeMethod):
                yield from self._drafted(rule, sequences, block.level, first, tried)
            else:
                yield from self._fixed(sequences, block.level, first)
        finally:
            tried.computed += process.computed

    def _replayed(
        self, rule: Method, level: SearchLevel, allowed: list[int], first: int, tried: BlockResult
    ) -> Iterator[Case]:
        """Any method: its whole law on each pair of models that it can tell apart."""
        shape = RecordingShape(level.shape.width, level.shape.depth, level.shape.budget)
        if any(shape.settled_by(tried) for tried in self._replays.get((level.rows, first), [])):
            return

        def is_lossy(pair: IndexedPair) -> bool:
            self._tick()
            emitted = replayed_law(rule, pair, shape)
            return compare(emitted, pair, (), level.shape.depth + 1).wrong is not None

        for pair, lossy in tables(self.table, is_lossy, allowed, first, not level.dependent):
            tried.computed += 1
            if isinstance(lossy, Exception):
                self._refused(lossy, pair, tried)
            elif lossy:
                yield self._case(level, pair)
        self._replays.setdefault((level.rows, first), []).append(shape)

    def _drafted(
        self, rule: TreeMethod, sequences: RowSequences, level: SearchLevel, first: int, tried: BlockResult
    ) -> Iterator[Case]:
        """A tree method: its classes on each draft that they can tell apart, then every sequence of target rows."""
        nodes = sequences.process.laws
        assert isinstance(nodes, TreeNodes)

        def drafted(pair: IndexedPair) -> list[TreeClass]:
            self._tick()
            return classes(IndexedDrafter(pair, rule, level.shape), (), level.shape, OUTCOMES)

        for pair, found in tables(self.table, drafted, sequences.allowed, first, not level.dependent):
            tried.computed += 1
            if isinstance(found, Exception):
                self._refused(found, pair, tried)
                continue
            state = sequences.process.state(nodes.start(found, pair, level.shape))
            if not level.dependent:
                yield from self._alike(sequences, state, level, first)
            elif not sequences.always_exact(state):
                for sequence in sequences.wrong(state):
                    yield self._case(level, pair, sequence)

    def _fixed(self, sequences: RowSequences, level: SearchLevel, first: int) -> Iterator[Case]:
        """Yield a method on a fixed tree: sequences of rows of both models."""
        nodes = sequences.process.laws
        assert isinstance(nodes, FixedNodes)
        start = sequences.process.state(nodes.start())
        if not level.dependent:
            yield from self._alike(sequences, start, level, first)
            return
        for sequence in sequences.wrong(start, first=[first]):
            yield self._case(level, None, sequence)

    def _alike(self, sequences: RowSequences, state: State, level: SearchLevel, q: int) -> Iterator[Case]:
        """Target rows that go wrong when every prefix has them; smaller levels have tried the smaller rows."""
        new = self.table.denominators[q] == level.denominator
        for p in sequences.allowed:
            if not new and self.table.denominators[p] < level.denominator:
                continue
            self._tick()
            if sequences.fails(state, p, q):
                yield Case(Model(self.table.laws[p]), Model(self.table.laws[q]), level.shape, level.lead)

    def _case(self, level: SearchLevel, pair: IndexedPair | None, sequence: RowSequence = ()) -> Case:
        """The case of the rows that were read or are on the sequence; the smallest law everywhere else."""
        if pair is not None and not level.dependent:
            one = {side: self.table.laws[number] for (side, _), number in pair.numbers.items()}
            default = smallest_law(level.vocabulary)
            return Case(Model(one.get("p", default)), Model(one.get("q", default)), level.shape, level.lead)
        target = {} if pair is None else pair.read("p")
        draft = {} if pair is None else pair.read("q")
        for text, p, q in sequence:
            target[text] = self.table.laws[p]
            if q != NO_ROW:
                draft[text] = self.table.laws[q]
        default = smallest_law(level.vocabulary)
        return Case(Model(default, target), Model(default, draft), level.shape, level.lead)

    def _refused(self, error: Exception, pair: IndexedPair, tried: BlockResult) -> None:
        rows = "; ".join(
            f"{side}{prefix} = [{', '.join(str(mass) for mass in self.table.laws[number])}]"
            for (side, prefix), number in pair.numbers.items()
        )
        tried.refusals.note(error, rows)

    def _sequences_of(self, rule: TreeMethod | FixedTreeMethod, level: SearchLevel, allowed: list[int]) -> RowSequences:
        """Give the sequences of a level's rows; steps already computed are shared with other levels."""
        where = (level.vocabulary, level.lead, level.shape if isinstance(rule, FixedTreeMethod) else None)
        if where not in self._processes:
            nodes = (
                FixedNodes(rule, self.table, level.shape)
                if isinstance(rule, FixedTreeMethod)
                else TreeNodes(rule, self.table)
            )
            self._processes[where] = TokenProcess(self.table, nodes)
        if (where, level.denominator) not in self._sequences:
            process = self._processes[where]

            def drafts(state: State) -> list[int]:
                reads = isinstance(process.laws, FixedNodes) and any(
                    process.laws.reads_draft(node) for node, _ in process.states[state]
                )
                return allowed if reads else [NO_ROW]

            self._sequences[where, level.denominator] = RowSequences(process, allowed, drafts, self._tick)
        return self._sequences[where, level.denominator]


def with_lead(method: Rule, lead: int | None) -> Rule:
    """The same tree method with another m; any other method as it is."""
    if isinstance(method, TreeMethod) and method.lead is not None and lead is not None:
        return dataclasses.replace(method, lead=lead)
    return method


def replayed_law(rule: Method, pair: ModelPair, shape: TreeShape, limit: int | None = OUTCOMES) -> Emitted:
    """Give the distribution of one cycle's tokens by replaying it whole. Raises `TooManyOutcomes` beyond `limit`."""
    law: dict[Tokens, Any] = {}
    for tokens, weight in outcomes(lambda chooser: run_cycle(rule, pair, (), shape, chooser).tokens, limit=limit):
        law[tokens] = law.get(tokens, ZERO) + weight
    return law
