"""How many classes there are, without listing them: growths that go on alike are one state.

Best-first growth depends on its open slots alone: their scores, depths and order, the contexts below them, and how many
nodes each level may still expand. Cut to the budget that is left and with parents named by their order, such states are
few where classes are 10^20. What a graph of them shows holds by construction of growth: the number of classes, each
with the product of q~ as its probability, at proxies that growth can follow. That the layered code builds the same
trees is shown elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from math import lcm
from operator import itemgetter
from typing import Any

from exact.enumeration.context_states import State, States
from exact.enumeration.exact_order import Key, Scores, told_apart
from rheo_core import TreeShape
from rheo_core.growth import NotGrowable
from rheo_core.pool import Drafter, Pool
from rheo_core.tree import FILL, LEAD, SAMPLED

Entry = tuple[Key, int, Key, int, int, int]
Option = tuple[tuple[tuple[int, Any, State], ...], State, int]
"""Tokens Y that go on alike: the fills (slot, score, state below), the state below Y, how many Y."""

_Level = dict[Any, list[Any]]  # by state: open slots, room a depth, number of classes
_Group = tuple[list[Entry], State, int]
_depth, _number = itemgetter(1), itemgetter(5)
LEAF = -1  # the state below a node of full depth


class TooManyStates(Exception):
    """More states than asked for; `admitted` nodes were done of those in the budget."""

    def __init__(self, most: int, admitted: int) -> None:
        self.most, self.admitted = most, admitted
        super().__init__(f"more than {most:,} states after {admitted} nodes")


@dataclass(frozen=True)
class GrowthGraph:
    """What the graph of one tree's growths says."""

    classes: int
    states: int
    contexts: int
    options: int


class GraphPools:
    """One state's pool as growth needs it: what is open at once, and how it goes on after Y."""

    def __init__(self, pool: Pool, target_id: Callable[[int], int]) -> None:
        self._pool, self._id = pool, target_id
        self.draws: list[tuple[int, Any]] = []
        self.proxy: Any = None
        first = [(slot, LEAD, target_id(token), score) for slot, _, token, score in pool.lead_slots()]
        if pool.tail is None:
            first += [(slot, FILL, target_id(token), score) for slot, _, token, score in pool.fill_slots(None)]
        else:
            self.draws = [(token, share) for token, share in enumerate(pool.tail.tolist()) if share]
            self.proxy, least = pool.proxy_score(), pool.score[pool.row.order[pool.m]]
            if self.proxy < least:
                said = f"at least q(x_(m+1)) = {least} for growth (Lemma 4; else: layered)"
                raise NotGrowable("proxy", self.proxy, said)
            first.append((pool.m, SAMPLED, -1, self.proxy))
        self.first = first
        self._best = pool.row.order[pool.m : pool.width + 1].tolist()

    @cached_property
    def cumulated(self) -> list[int]:
        """Running sums of q~ in whole numbers."""
        scale = lcm(*(int(share.denominator) for _, share in self.draws))
        return list(accumulate(int(share * scale) for _, share in self.draws))

    @cached_property
    def ranked(self) -> list[tuple[int, Any]]:
        """The draws by falling q~."""
        return sorted(self.draws, key=itemgetter(1), reverse=True)

    def fills(self, token: int) -> list[tuple[int, int, Any]]:
        """(slot, target id, score) of the fills beside Y, a draft id."""
        most = self._pool.width - self._pool.m - 1
        others = [each for each in self._best if each != token][:most]
        return [(self._pool.m + 1 + i, self._id(each), self._pool.score[each]) for i, each in enumerate(others)]

    def options(self, states: States, state: State, inner: bool) -> list[Option]:
        """The tokens Y in groups that go on alike; `inner`: nodes below may be expanded."""

        def below(token: int) -> State:
            return states.step(state, token) if inner else LEAF

        groups: dict[Any, int] = {}
        for token, _ in self.draws:
            fills = tuple((slot, score, below(each)) for slot, each, score in self.fills(token))
            group = (fills, below(self._id(token)))
            groups[group] = groups.get(group, 0) + 1
        return [(*group, count) for group, count in groups.items()]


class PoolTables:
    """The pools of all states that were met."""

    def __init__(self, drafter: Drafter, states: States) -> None:
        if getattr(drafter.proxy, "uses_token", True):
            raise NotGrowable("construction", "grown", "a proxy that ignores the sampled token (else: layered)")
        self.drafter, self.states = drafter, states
        self.target_id = drafter.pair.target_id
        self._tables: dict[State, GraphPools] = {}
        self._options: dict[tuple[State, bool], list[Option]] = {}

    def at(self, state: State) -> GraphPools:
        """The pool of one state."""
        if state not in self._tables:
            pool = self.drafter.pool(self.states.prefix(state))
            self._tables[state] = GraphPools(pool, self.target_id)
        return self._tables[state]

    def options(self, state: State, inner: bool) -> list[Option]:
        """How growth goes on after each Y of one state."""
        if (state, inner) not in self._options:
            self._options[state, inner] = self.at(state).options(self.states, state, inner)
        return self._options[state, inner]

    def __len__(self) -> int:
        return len(self._tables)


def growth_graph(
    drafter: Drafter,
    shape: TreeShape,
    states: States,
    most: int = 10**7,
    tick: Callable[[int, int], None] = lambda admitted, states: None,
) -> GrowthGraph:
    """Walk all growths at once, merged into states, node by node; `tick(nodes, states)` is called after each.

    Raises `NotGrowable` for proxies that growth cannot follow, and `TooManyStates`.
    """
    tables = PoolTables(drafter, states)
    return told_apart(lambda scores: _GraphWalk(tables, shape, scores).all(most, tick))


class _GraphWalk:
    """One walk, with everything that is the same wherever it is met kept once.

    An entry is (key of its score, depth, key of its parent's score, which of the parents of that key and depth, slot,
    number): its order is the rank of the slot, since parents of one depth rank by score and then as they came.
    """

    def __init__(self, tables: PoolTables, shape: TreeShape, scores: Scores) -> None:
        self.tables, self.shape, self.scores = tables, shape, scores
        self._numbers: dict[Any, int] = {}
        self._about: list[tuple[int, State]] = []  # by number: kind; the state below, or of a sampled slot's parent
        self._leaves: list[Entry] = []  # by number: the same slot where nothing below it can be expanded
        self._children: dict[Any, list[Entry]] = {}
        self._options: dict[Any, list[_Group]] = {}

    def all(self, most: int, tick: Callable[[int, int], None]) -> GrowthGraph:
        budget, depth, width = self.shape.budget, self.shape.depth, self.shape.width
        room = (*(width,) * (depth - 1), 0)  # how many nodes of each depth from 1 on may still be expanded
        level: _Level = {}
        self._add(level, self._opened(self.scores.root, 0, 0, 0), budget, room, 1)
        count, states, options = 0, 1, 0
        for admitted in range(1, budget + 1):
            following: _Level = {}
            left = budget - admitted
            for slots, room, ways in level.values():
                if not slots:  # the whole tree is smaller than the budget
                    count += ways
                    continue
                for more, after, times in self._next(slots, room, left):
                    options += 1
                    self._add(following, more, left, after, ways * times)
                if states + len(following) > most:
                    raise TooManyStates(most, admitted)
            level = following
            states += len(level)
            tick(admitted, states)
        count += sum(ways for _, _, ways in level.values())
        return GrowthGraph(count, states, len(self.tables), options)

    def _add(
        self, level: dict[Any, list[Any]], slots: list[Entry], left: int, room: tuple[int, ...], ways: int
    ) -> None:
        """Put growths into the state that they are in: the slots that may still be admitted, and the levels' room."""
        kept = sorted(slots)[:left]
        first = min(map(_depth, kept), default=0)
        free = tuple([min(each, left) if depth >= first else 0 for depth, each in enumerate(room, 1)])
        known = level.setdefault((tuple(map(_number, kept)), free), [kept, free, 0])
        known[2] += ways

    def _next(self, slots: list[Entry], room: tuple[int, ...], left: int) -> list[tuple[list[Entry], Any, int]]:
        """(open slots, room, number of tokens) after the best open slot is admitted, `left` nodes before the end."""
        (key, depth, above, which, _, number), *rest = slots
        kind, state = self._about[number]
        inner = bool(left) and room[depth - 1] > 0
        if inner:
            room = (*room[: depth - 1], room[depth - 1] - 1, *room[depth:])
            place = 1 + max((each[3] for each in rest if each[2] == key and each[1] == depth + 1), default=-1)
            if not room[depth - 1]:
                rest = [self._leaves[each[5]] if each[1] == depth else each for each in rest]
        if kind != SAMPLED:
            return [(rest + self._opened(key, depth, place, state) if inner else rest, room, 1)]
        found = []
        for fills, below, count in self._after(above, depth, which, state, depth < self.shape.depth):
            more = rest + fills if left else rest
            found.append((more + self._opened(key, depth, place, below) if inner else more, room, count))
        return found

    def _opened(self, key: Key, depth: int, place: int, state: State) -> list[Entry]:
        """The slots that open when a node of one state at `depth` is expanded."""
        at = key, depth, place, state
        if at not in self._children:
            inner, found = depth + 1 < self.shape.depth, []
            for slot, kind, token, score in self.tables.at(state).first:
                below = state if kind == SAMPLED else self.tables.states.step(state, token) if inner else LEAF
                found.append(self._entry(self.scores.times(key, score), depth + 1, key, place, slot, kind, below))
            self._children[at] = found
        return self._children[at]

    def _after(self, key: Key, depth: int, which: int, state: State, inner: bool) -> list[_Group]:
        """The groups of tokens of a sampled slot, with the open slots of their fills."""
        at = key, depth, which, state
        if at not in self._options:
            times, entry = self.scores.times, partial(self._entry, depth=depth, above=key, which=which, kind=FILL)
            groups = self.tables.options(state, inner)
            self._options[at] = [
                ([entry(times(key, q), slot=slot, state=to) for slot, q, to in fills], below, count)
                for fills, below, count in groups
            ]
        return self._options[at]

    def _entry(self, key: Key, depth: int, above: Key, which: int, slot: int, kind: int, state: State) -> Entry:
        """An open slot, the same wherever it is met."""
        about = key, depth, above, which, slot, kind, state
        if about not in self._numbers:
            number = self._numbers[about] = len(self._about)
            self._about.append((kind, state))
            entry = key, depth, above, which, slot, number
            self._leaves.append(entry)
            if kind != SAMPLED and state != LEAF:
                self._leaves[number] = self._entry(key, depth, above, which, slot, kind, LEAF)
            return entry
        return key, depth, above, which, slot, self._numbers[about]
