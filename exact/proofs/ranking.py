"""The layered tree's ranking as a formula, for shapes with too many orders to run one by one.

Scores are pairs (is it 0, its logarithm), so that a product along a path is a sum and every comparison linear. By hand
is the formula itself: a node exists iff its parent is expanded, the K first of a level are expanded; score, depth and
place from left to right decide who is first. The tests hold it against `rheo_core.drafting.expand` on numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product
from typing import Any

import z3

Path = tuple[int, ...]
Draws = Mapping[Path, Any]
"""The sampled token of each parent: an int, or a z3 Int where nothing below it is drafted."""


@dataclass(frozen=True)
class Score:
    """A number in [0, 1]: whether it is 0, and its logarithm if not."""

    zero: Any
    log: Any

    def __mul__(self, other: Score) -> Score:
        return Score(z3.Or(self.zero, other.zero), self.log + other.log)

    def beats(self, other: Score) -> Any:
        """self > other."""
        return z3.And(z3.Not(self.zero), z3.Or(other.zero, self.log > other.log))

    def ties(self, other: Score) -> Any:
        """self = other."""
        return z3.If(self.zero, other.zero, z3.And(z3.Not(other.zero), self.log == other.log))


def chosen(condition: Any, one: Score, other: Score) -> Score:
    """One score or another."""
    if isinstance(condition, bool):
        return one if condition else other
    return Score(z3.If(condition, one.zero, other.zero), z3.If(condition, one.log, other.log))


@dataclass
class Rows:
    """Unknown rows by token prefix: q(x_1) >= .. >= q(x_V) >= 0 and a proxy in [q(x_{m+1}), 1], 0 iff q(x_{m+1}) is.

    `bounded` False leaves the proxy anywhere in (0, 1].
    """

    size: int
    m: int
    bounded: bool = True
    assumptions: list[Any] = field(default_factory=list)
    _rows: dict[Path, list[Score]] = field(default_factory=dict)

    def at(self, prefix: Path) -> list[Score]:
        """q of each token, then the proxy."""
        if prefix not in self._rows:
            names = [f"{'q' if v < self.size else 's'}{v}{list(prefix)}" for v in range(self.size + 1)]
            row = [Score(z3.Bool(f"zero {name}"), z3.Real(f"log {name}")) for name in names]
            self._rows[prefix] = row
            *q, proxy = row
            self.assumptions += [each.log <= 0 for each in row] + [z3.Not(q[0].zero)]
            self.assumptions += [z3.Not(low.beats(high)) for high, low in pairwise(q)]
            self.assumptions.append(proxy.zero == q[self.m].zero)
            if self.bounded:
                self.assumptions.append(z3.Not(q[self.m].beats(proxy)))
        return self._rows[prefix]

    def logs(self) -> list[Any]:
        """The logarithms of all scores met so far."""
        return [each.log for row in self._rows.values() for each in row]


class World:
    """The layered tree of one set of draws: who exists, who is expanded, who comes before whom."""

    def __init__(self, rows: Rows, width: int, depth: int, draws: Draws) -> None:
        self.rows = rows
        self.width = width
        self.depth = depth
        self.draws = draws
        self.slots = min(width, rows.size)
        self._known: dict[Any, Any] = {}
        for parent, y in draws.items():
            q = rows.at(self.tokens(parent))
            drawn = [z3.Implies(y == v, z3.Not(q[v].zero)) for v in range(rows.m, rows.size)]
            rows.assumptions += [rows.m <= y, y < rows.size, z3.Or(q[rows.m].zero, z3.And(drawn))]

    def level(self, depth: int) -> list[Path]:
        """The slot paths of one level."""
        return list(product(range(self.slots), repeat=depth))

    def tokens(self, path: Path) -> Path:
        """Tokens along a path; drawn ones on it must be ints."""
        return tuple(self._token(path[:i], slot) for i, slot in enumerate(path))

    def _token(self, parent: Path, slot: int) -> int:
        if slot < self.rows.m:
            return slot
        y = int(self.draws[parent])
        return y if slot == self.rows.m else slot - 1 if slot - 1 < y else slot

    def score(self, path: Path) -> Score:
        """The path score of a slot."""
        if path not in self._known:
            own = self._slot_score(path[:-1], path[-1])
            self._known[path] = own if len(path) == 1 else self.score(path[:-1]) * own
        return self._known[path]  # type: ignore[no-any-return]

    def _slot_score(self, parent: Path, slot: int) -> Score:
        row, m = self.rows.at(self.tokens(parent)), self.rows.m
        if slot < m:
            return row[slot]
        if slot == m:
            return row[-1]
        return chosen(slot - 1 < self.draws[parent], row[slot - 1], row[slot])

    def before(self, one: Path, other: Path) -> Any:
        """Whether one node ranks before another, should both exist."""
        key = ("before", one, other)
        if key not in self._known:
            a, b = self.score(one), self.score(other)
            self._known[key] = z3.Or(a.beats(b), z3.And(a.ties(b), self._placed_first(one, other)))
        return self._known[key]

    def _placed_first(self, one: Path, other: Path) -> Any:
        if len(one) != len(other):
            return z3.BoolVal(len(one) < len(other))
        if one[:-1] == other[:-1]:
            return z3.BoolVal(one[-1] < other[-1])
        return self.before(one[:-1], other[:-1])

    def exists(self, path: Path) -> Any:
        """Whether the slot is there at all."""
        return z3.BoolVal(True) if len(path) == 1 else self.expanded(path[:-1])

    def expanded(self, path: Path) -> Any:
        """Whether a node is among the K first of its level."""
        key = ("expanded", path)
        if key not in self._known:
            level = self.level(len(path))
            first = z3.BoolVal(True) if len(level) <= self.width else self._ahead(path, level) < self.width
            self._known[key] = z3.And(self.exists(path), first)
        return self._known[key]

    def rank(self, path: Path) -> Any:
        """The number of nodes that rank before this one in the whole tree."""
        return self._ahead(path, [each for d in range(1, self.depth + 1) for each in self.level(d)])

    def _ahead(self, path: Path, others: list[Path]) -> Any:
        ahead = [z3.If(z3.And(self.exists(each), self.before(each, path)), 1, 0) for each in others if each != path]
        return reduce(lambda one, other: one + other, ahead, z3.IntVal(0))


def pairs(size: int, width: int, depth: int, m: int) -> Iterator[tuple[Path, Draws, Draws, list[Any]]]:
    """(parent, draws, draws, assumptions): every two sets of draws that differ at one parent.

    Draws at parents of the last level only order their own slots and stay symbolic; those above are listed.
    """
    slots, tail = min(width, size), range(m, size)
    if len(tail) < 2:
        return  # one token only: nothing to draw
    upper = [path for d in range(depth - 1) for path in product(range(slots), repeat=d)]
    last = {path: z3.Int(f"Y{list(path)}") for path in product(range(slots), repeat=depth - 1)}
    for drawn in product(tail, repeat=len(upper)):
        draws = dict(zip(upper, drawn, strict=True))
        for parent in upper:
            for other in tail:
                if other > draws[parent]:
                    yield parent, {**draws, **last}, {**draws, parent: other, **last}, []
        for parent, y in last.items():
            other = z3.Int("Y'")
            yield parent, {**draws, **last}, {**draws, **last, parent: other}, [y != other]


@dataclass(frozen=True)
class Query:
    """Two worlds whose draws differ at one parent: what is assumed, and that its sampled slot ranks differently."""

    slot: Path
    worlds: tuple[World, World]
    assumptions: list[Any]
    apart: Any


def query(rows: Rows, width: int, depth: int, parent: Path, one: Draws, two: Draws, extra: list[Any]) -> Query:
    """The question for one parent and two sets of draws."""
    first, second = (World(rows, width, depth, draws) for draws in (one, two))
    slot = (*parent, rows.m)
    there, also = first.exists(slot), second.exists(slot)
    rows.assumptions += [*extra, z3.Not(rows.at(first.tokens(parent))[rows.m].zero)]
    apart = z3.Or(there != also, z3.And(there, first.rank(slot) != second.rank(slot)))
    return Query(slot, (first, second), rows.assumptions, apart)


def concrete(world: World, model: Any) -> tuple[dict[Path, list[Fraction]], dict[Path, int]]:
    """The rows and draws of a model whose logarithms are integers: powers of 1/2 by prefix (the proxy last), and Y."""
    draws = {parent: _integer(model, y) for parent, y in world.draws.items()}
    used = {prefix: world.rows.at(prefix) for prefix in {world.tokens(parent) for parent in draws}}

    def number(each: Score) -> Fraction:
        if z3.is_true(model.eval(each.zero, model_completion=True)):
            return Fraction(0)
        return Fraction(1, 2 ** int(-model.eval(each.log, model_completion=True).as_fraction()))

    return {prefix: [number(each) for each in row] for prefix, row in used.items()}, draws


def _integer(model: Any, y: Any) -> int:
    return y if isinstance(y, int) else int(model.eval(y, model_completion=True).as_long())
