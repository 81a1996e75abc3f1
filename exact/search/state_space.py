"""A cycle as a process that emits one token after another, each step decided by the rows at hand.

A tree method's verifier, and a method that treats a fixed tree parent by parent, read the models only where they
stand. Such a method is lossless for all rows iff, at every state that can be reached, the next token has the law of the
target's row there. Rows are therefore tried state by state, not table by table, and no state is tried twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from exact.enumeration.fixed_trees import FixedTreeMethod, node_at, node_law
from exact.enumeration.rationals import ONE, ZERO
from exact.enumeration.tree_classes import TreeClass
from exact.enumeration.walk import EnumerationError, Walk, outcomes
from exact.search.row_table import IndexedDrafter, IndexedPair, RowTable
from rheo_core import InvalidInput, TreeMethod, TreeShape
from rheo_core.chooser import Chooser
from rheo_core.models import Prefix
from rheo_core.tree import ROOT, SAMPLED, SlotPath, Tree
from rheo_core.verification import verify_node

State = int
"""Number of a law over nodes: what may stand at this point, given the text so far."""

Verdicts = tuple[tuple[int, int | None, Any], ...]
"""(token, the node below it or None where the text leaves the tree, probability)."""


IN_A_DRAW = ("weights", "probability")
"""Arguments that `InvalidInput` names where a rule draws from nothing or from no law: it broke, it did not refuse."""

IN_AN_ANSWER = ("result of ", "token emitted by ", "tokens emitted by ", "child")
"""How those begin that it names where a rule's answer is none: broken as well."""


@dataclass
class Refusals:
    """What a rule refused (`InvalidInput`) and where it broke (any other error): how often, and the first of each."""

    refused: int = 0
    broken: int = 0
    first_refused: str = ""
    first_broken: str = ""

    def note(self, error: Exception, where: str) -> None:
        """Count one error."""
        line = f"{type(error).__name__}: {error} (at {where})"
        if isinstance(error, InvalidInput) and not error.argument.startswith(IN_A_DRAW + IN_AN_ANSWER):
            self.refused += 1
            self.first_refused = self.first_refused or line
        else:
            self.broken += 1
            self.first_broken = self.first_broken or line

    def add(self, other: Refusals) -> None:
        """Count another's errors as one's own."""
        self.refused += other.refused
        self.broken += other.broken
        self.first_refused = self.first_refused or other.first_refused
        self.first_broken = self.first_broken or other.first_broken


@dataclass(frozen=True)
class TokenStep:
    """Whether the next token has the target's law, and the state after each token that may stay in the tree."""

    right: bool
    after: dict[int, State]


class NodeVerifier(Protocol):
    """The rule at one node, given the numbers of the target's and the draft's rows there."""

    def verdicts(self, node: int, p: int, q: int) -> Verdicts:
        """Give the distribution of the verdict at `node`."""
        ...


@dataclass
class TokenProcess:
    """Steps of a rule on the rows of a row table; `computed` counts them, `refusals` what went wrong in them."""

    table: RowTable
    laws: NodeVerifier
    computed: int = 0
    refusals: Refusals = field(default_factory=Refusals)
    states: list[tuple[tuple[int, Any], ...]] = field(default_factory=list)
    _numbers: dict[tuple[tuple[int, Any], ...], State] = field(default_factory=dict)
    _steps: dict[tuple[State, int, int], TokenStep | None] = field(default_factory=dict)

    def state(self, masses: Mapping[int, Any]) -> State:
        """Give the state in which each node stands with its share of the masses."""
        total = sum(masses.values())
        law = tuple(sorted((node, mass / total) for node, mass in masses.items()))
        if law not in self._numbers:
            self._numbers[law] = len(self.states)
            self.states.append(law)
        return self._numbers[law]

    def step(self, state: State, p: int, q: int) -> TokenStep | None:
        """Give the next token at target row `p` and draft row `q`; None where the rule does not take these rows."""
        key = (state, p, q)
        if key not in self._steps:
            self.computed += 1
            try:
                self._steps[key] = self._step(state, p, q)
            except EnumerationError:
                raise
            except Exception as error:
                self.refusals.note(error, f"p = {_shown(self.table, p)}, q = {_shown(self.table, q)}")
                self._steps[key] = None
        return self._steps[key]

    def _step(self, state: State, p: int, q: int) -> TokenStep:
        law = [ZERO] * len(self.table.laws[p])
        below: dict[int, dict[int, Any]] = {}
        for node, weight in self.states[state]:
            for token, child, share in self.laws.verdicts(node, p, q):
                law[token] += weight * share
                if child is not None:
                    masses = below.setdefault(token, {})
                    masses[child] = masses.get(child, ZERO) + weight * share
        right = law == self.table.p[p].tolist()
        return TokenStep(right, {token: self.state(masses) for token, masses in below.items()})


@dataclass(frozen=True)
class _Example:
    """A node of a drafted tree that stands for all that verify alike; `draft` is the row Y was drawn from, or -1."""

    tree: Tree
    node: int
    children: list[int]
    below: tuple[int, ...]
    draft: int
    shape: TreeShape


class TreeNodes:
    """The nodes of all trees that a tree method drafts, those that verify alike known by one number."""

    def __init__(self, method: TreeMethod, table: RowTable) -> None:
        self.method = method
        self.table = table
        self._numbers: dict[Hashable, int] = {}
        self._examples: list[_Example] = []
        self._verdicts: dict[tuple[int, int], Verdicts] = {}

    def start(self, classes: list[TreeClass], pair: IndexedPair, shape: TreeShape) -> dict[int, Any]:
        """Give the masses of the roots of the classes' trees."""
        masses: dict[int, Any] = {}
        for each in classes:
            children: dict[int, list[int]] = {}
            for row in sorted(range(len(each.tree)), key=each.tree.slot.tolist().__getitem__):
                children.setdefault(int(each.tree.parent[row]), []).append(row)
            node = self._number(each.tree, ROOT, children, pair, shape, (), ())
            masses[node] = masses.get(node, ZERO) + each.probability
        return masses

    def _number(
        self,
        tree: Tree,
        node: int,
        children_of: Mapping[int, list[int]],
        pair: IndexedPair,
        shape: TreeShape,
        text: Prefix,
        path: SlotPath,
    ) -> int:
        children = children_of.get(node, [])
        tokens = tuple(int(tree.token[child]) for child in children)
        below = tuple(
            self._number(tree, child, children_of, pair, shape, (*text, token), (*path, int(tree.slot[child])))
            for child, token in zip(children, tokens, strict=True)
        )
        sampled = next((i for i, child in enumerate(children) if tree.kind[child] == SAMPLED), -1)
        draft = pair.at("q", text) if sampled != -1 else -1
        key = (path, tokens, sampled, draft, below)
        if key not in self._numbers:
            self._numbers[key] = len(self._examples)
            self._examples.append(_Example(tree, node, children, below, draft, shape))
        return self._numbers[key]

    def verdicts(self, node: int, p: int, q: int) -> Verdicts:
        """The law of the verification rule at a node; the draft row that counts there is the node's own."""
        if (node, p) not in self._verdicts:
            one = self._examples[node]
            pair = IndexedPair(self.table, lambda side, prefix: p if side == "p" else one.draft)
            drafter = IndexedDrafter(pair, self.method, one.shape)

            def program(chooser: Chooser) -> tuple[int, int]:
                return verify_node(one.tree, one.node, one.children, drafter, (), self.method.verify, chooser)

            masses: dict[tuple[int, int], Any] = {}
            for verdict, weight in outcomes(program):
                masses[verdict] = masses.get(verdict, ZERO) + weight
            self._verdicts[node, p] = tuple(
                (token, None if child == -1 else one.below[child], weight) for (token, child), weight in masses.items()
            )
        return self._verdicts[node, p]


class FixedNodes:
    """The nodes of the fixed tree of a `FixedTreeMethod` at one shape, by number; 0 is the root."""

    def __init__(self, method: FixedTreeMethod, table: RowTable, shape: TreeShape) -> None:
        self.method = method
        self.table = table
        self.widths = method.topology(shape)
        self._paths: list[SlotPath] = [()]
        self._numbers: dict[SlotPath, int] = {(): 0}
        self._verdicts: dict[tuple[int, int, int], Verdicts] = {}

    def start(self) -> dict[int, Any]:
        """Give the mass of the root."""
        return {0: ONE}

    def reads_draft(self, node: int) -> bool:
        """Tell whether anything is drafted below a node; where nothing is, the draft's row there does not matter."""
        return self.widths.get(self._paths[node], 0) > 0

    def verdicts(self, node: int, p: int, q: int) -> Verdicts:
        """Give the distribution of drafting and verifying the siblings below one node."""
        key = (node, p, q if self.reads_draft(node) else -1)
        if key not in self._verdicts:
            path = self._paths[node]
            pair = IndexedPair(self.table, lambda side, prefix: p if side == "p" else q)
            law = node_law(self.method, node_at(pair, (), path, self.widths.get(path, 0)))
            self._verdicts[key] = tuple(
                (token, None if child == -1 else self._below(path, child), weight)
                for (token, child), weight in law.items()
            )
        return self._verdicts[key]

    def _below(self, path: SlotPath, slot: int) -> int:
        child = (*path, slot)
        if child not in self._numbers:
            self._numbers[child] = len(self._paths)
            self._paths.append(child)
        return self._numbers[child]


def _shown(table: RowTable, number: int) -> str:
    return "[" + ", ".join(str(mass) for mass in table.laws[number]) + "]" if number >= 0 else "none"


Result = TypeVar("Result")


def tables(
    table: RowTable, program: Callable[[IndexedPair], Result], allowed: Sequence[int], first: int, alike: bool
) -> Iterator[tuple[IndexedPair, Result | Exception]]:
    """Run `program(pair)` on every pair of models with rows among `allowed`, numbers of the row table.

    The draft's row at the empty prefix is `first`; with `alike` each model has one row for all prefixes. Yields the
    pair, which knows what was read, and the result or the exception that the program raised. An error of the
    enumeration itself propagates.
    """
    walk = Walk()
    even = [1] * len(allowed)

    def run() -> tuple[IndexedPair, Result | Exception]:
        chosen: dict[tuple[str, Prefix], int] = {("q", ()): first}

        def choose(side: Literal["p", "q"], prefix: Prefix) -> int:
            row = (side, () if alike else prefix)
            if row not in chosen:
                chosen[row] = allowed[walk.branch(row, lambda: even)]
            return chosen[row]

        pair = IndexedPair(table, choose)
        try:
            return pair, program(pair)
        except EnumerationError:
            raise
        except Exception as error:
            return pair, error

    for outcome, _ in walk.runs(run):
        yield outcome


RowSequence = tuple[tuple[Prefix, int, int], ...]
"""(text so far, number of the target's row there, number of the draft's), one entry for each token."""

NO_ROW = -1
"""Where the draft's row is settled by the state, or does not matter."""


class DraftChoices(Protocol):
    """The draft rows to be tried at a state."""

    def __call__(self, state: State) -> Sequence[int]:
        """Numbers of distributions of the row table."""
        ...


class RowSequences:
    """Sequences of rows out of `allowed` (numbers of a row table) from a state on, and whether one of them fails."""

    def __init__(
        self, process: TokenProcess, allowed: Sequence[int], drafts: DraftChoices, tick: Callable[[], None]
    ) -> None:
        self.process = process
        self.allowed = allowed
        self.drafts = drafts
        self.tick = tick
        self._always_exact: dict[State, bool] = {}
        self._alike: dict[tuple[State, int, int], bool] = {}

    def always_exact(self, state: State) -> bool:
        """Tell whether every sequence from here on emits the target's distribution (refused rows left out)."""
        if state not in self._always_exact:
            self.tick()
            self._always_exact[state] = all(self._right(state, p, q) for q in self.drafts(state) for p in self.allowed)
        return self._always_exact[state]

    def _right(self, state: State, p: int, q: int) -> bool:
        step = self.process.step(state, p, q)
        if step is None:
            return True
        return step.right and all(self.always_exact(after) for after in step.after.values())

    def wrong(self, state: State, text: Prefix = (), first: Sequence[int] | None = None) -> Iterator[RowSequence]:
        """Yield every sequence that fails at its last token; `first` limits the draft rows at this state."""
        for q in self.drafts(state) if first is None else first:
            for p in self.allowed:
                self.tick()
                step = self.process.step(state, p, q)
                if step is None:
                    continue
                here = ((text, p, q),)
                if not step.right:
                    yield here
                    continue
                for token, after in step.after.items():
                    if not self.always_exact(after):
                        yield from (here + more for more in self.wrong(after, (*text, token)))

    def fails(self, state: State, p: int, q: int) -> bool:
        """Tell whether the same two rows at every prefix fail."""
        key = (state, p, q)
        if key not in self._alike:
            self.tick()
            step = self.process.step(state, p, q)
            self._alike[key] = step is not None and (
                not step.right or any(self.fails(after, p, q) for after in step.after.values())
            )
        return self._alike[key]
