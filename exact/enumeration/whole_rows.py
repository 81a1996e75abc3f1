"""Draws that only become output, taken as whole rows.

At a vocabulary of 50,000 the last draw of a chain has 50,000 outcomes, and each would be a run of its own. Whoever
draws from a long row therefore gets a number that is chosen only when it is read (`read_ints`). Where a run ends and
nobody has read it, the run stands for all of its values: the result is what the run returned, with the row in the
place of its last token. A draw that was never read and is no part of the result decides nothing and is not branched.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Protocol

from gmpy2 import mpq

from exact.enumeration.rationals import ZERO, integers
from exact.enumeration.read_ints import ReadInt
from exact.enumeration.walk import MOST_REPLAYS, Branch, EnumerationError, ExhaustiveChooser, Walk, current_log
from rheo_core import InvalidInput
from rheo_core.checks import check_weights

LEAST = 512
"""Positive weights from which on a draw is kept as a whole row."""

LISTED = 200_000
"""Sequences up to which a distribution that is kept in rows is written out."""

SHOWN = 16
"""Weights of a row that are written out."""

MOST_KNOWN = 256
"""Long rows that are remembered at a time."""

TRIED = 8
"""Runs that ended in a whole row which are made again with plain numbers, three each."""

MOST_WHOLE_REPLAYS = 64
"""Runs made once more where some end in whole rows: such runs are long."""

Tokens = tuple[int, ...]


class WholeRow:
    """The distribution of one draw, by its weights [n]; `numbers` are the same as integers, `total` their sum."""

    def __init__(self, weights: Sequence[Any]) -> None:
        self.weights = tuple(weights)
        self._distances: dict[int, tuple[WholeRow, Any]] = {}

    @cached_property
    def numbers(self) -> list[Any]:
        """The exact weights over one common denominator, as integers."""
        return integers(self.weights)

    @cached_property
    def total(self) -> Any:
        """Their sum."""
        return sum(self.numbers)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, WholeRow) and self.weights == other.weights)

    def __hash__(self) -> int:
        return hash((len(self.weights), self.weights[0]))

    def __repr__(self) -> str:
        few = len(self.weights) <= SHOWN
        return str(self.weights) if few else f"a row of {len(self.weights)} weights ({hash(self.weights):x})"

    def share(self, token: int) -> Any:
        """The probability of one position."""
        return mpq(self.numbers[token], self.total)

    @cached_property
    def support(self) -> list[int]:
        """The positions of positive weight."""
        return [token for token, weight in enumerate(self.weights) if weight]

    def same(self, other: WholeRow) -> bool:
        """Whether two rows are one distribution."""
        return self == other or not self.distance(other)

    def distance(self, other: WholeRow) -> Any:
        """Total variation between two rows; the shorter one counts as followed by zeros."""
        if self == other:
            return ZERO
        if id(other) not in self._distances:
            one, two = self.total, other.total
            apart = sum(abs(a * two - b * one) for a, b in zip(self.numbers, other.numbers, strict=False))
            both = min(len(self.numbers), len(other.numbers))
            apart += sum(self.numbers[both:]) * two + sum(other.numbers[both:]) * one
            self._distances[id(other)] = other, mpq(apart, 2 * one * two)  # the row is kept, so its id stays its own
        return self._distances[id(other)][1]


class Spread(Mapping[Any, Any]):
    """A distribution of token sequences: `plain` ones, and `rows` from which the last token is drawn.

    `rows[tokens]` are (mass, row) for the sequences that begin with `tokens` and go on with one token of the row. As a
    mapping it lists every sequence, where there are at most `LISTED`.
    """

    def __init__(self, plain: dict[Tokens, Any], rows: dict[Tokens, list[tuple[Any, WholeRow]]]) -> None:
        self.plain = plain
        self.rows = rows
        self._listed: dict[Tokens, Any] | None = None

    def __len__(self) -> int:
        own = sum(len({*_own(self.plain, at), *_supports(kept)}) for at, kept in self.rows.items())
        return own + sum(1 for tokens in self.plain if tokens[:-1] not in self.rows)

    def __getitem__(self, tokens: Tokens) -> Any:
        mass = self.plain.get(tokens, ZERO)
        for weight, row in self.rows.get(tokens[:-1], ()) if tokens else ():
            if 0 <= tokens[-1] < len(row.weights):
                mass += weight * row.share(tokens[-1])
        if not mass:
            raise KeyError(tokens)
        return mass

    def __iter__(self) -> Iterator[Tokens]:
        return iter(self.listed())

    def listed(self) -> dict[Tokens, Any]:
        """Every sequence with its probability; raises `InvalidInput` beyond `LISTED`."""
        if self._listed is None:
            most = sum(sum(len(row.support) for _, row in kept) for kept in self.rows.values())
            if most > LISTED:
                raise InvalidInput("distribution", f"{len(self):,} sequences", f"at most {LISTED:,} to list them")
            self._listed = dict(self.plain)
            for tokens, kept in self.rows.items():
                for mass, row in kept:
                    for token in row.support:
                        longer = (*tokens, token)
                        self._listed[longer] = self._listed.get(longer, ZERO) + mass * row.share(token)
        return self._listed

    def lengths(self) -> Iterator[tuple[int, Any]]:
        """(number of tokens, probability) over all sequences, not merged."""
        yield from ((len(tokens), mass) for tokens, mass in self.plain.items())
        yield from ((len(tokens) + 1, mass) for tokens, kept in self.rows.items() for mass, _ in kept)


def _own(plain: dict[Tokens, Any], at: Tokens) -> list[int]:
    return [tokens[-1] for tokens in plain if tokens and tokens[:-1] == at]


def _supports(kept: list[tuple[Any, WholeRow]]) -> set[int]:
    return set().union(*(row.support for _, row in kept))


def spread(plain: dict[Tokens, Any], rows: dict[Tokens, list[tuple[Any, WholeRow]]]) -> Mapping[Tokens, Any]:
    """The distribution as a plain dictionary where it is short, else kept in rows."""
    if not rows:
        return plain
    found = Spread(plain, rows)
    most = len(plain) + sum(sum(len(row.support) for _, row in kept) for kept in rows.values())
    return found.listed() if most <= LISTED // 10 else found


def add_row(rows: dict[Any, list[tuple[Any, WholeRow]]], at: Any, mass: Any, row: WholeRow) -> None:
    """Add a mass to the row of a place, or a row to the place."""
    kept = rows.setdefault(at, [])
    for i, (before, known) in enumerate(kept):
        if known == row:
            kept[i] = before + mass, known
            return
    kept.append((mass, row))


class _Drawn(ReadInt):
    """A position that the walk has not chosen yet."""

    __slots__ = ("row",)

    def __init__(self, ask: Callable[[], int], row: WholeRow) -> None:
        super().__init__(ask)
        self.row = row


class RowStore:
    """Long rows that were drawn from, each kept once, and how many runs that ended in one were tried with numbers."""

    def __init__(self) -> None:
        self.known: list[WholeRow] = []
        self.tried = 0

    def row(self, weights: Any, asked: tuple[Any, ...]) -> WholeRow:
        """The row of these weights."""
        for known in self.known:
            if known.weights == asked:
                return known
        check_weights(weights)
        return self.add(WholeRow(asked))

    def add(self, row: WholeRow) -> WholeRow:
        """Keep a row; of very many, the latest."""
        self.known = [row, *self.known[: MOST_KNOWN - 1]]
        return row


class DrawnRows:
    """The whole rows of one enumeration: what is drawn from long rows on a run, and what became of it."""

    def __init__(self, store: RowStore, on: bool = True) -> None:
        self.store = store
        self.on = on
        self.forced: tuple[int, int] | None = None  # which draw of the run is a plain number, and which number
        self.begin()

    def begin(self) -> None:
        """Forget the run before."""
        self.over = False
        self.made: list[_Drawn] = []
        self.unread: dict[int, _Drawn] = {}
        self.kept: _Drawn | None = None

    def drawn(self, walk: Walk, weights: Any, asked: tuple[Any, ...], at: Any) -> Any:
        """A position that is chosen when it is read; None where the row is short."""
        if not self.on or len(asked) < LEAST or len(asked) - asked.count(0) < LEAST:
            return None
        row = self.store.row(weights, asked)
        return self.waiting(walk, ("index", row), row, at)

    def waiting(self, walk: Walk, call: Hashable, row: WholeRow, at: Any) -> Any:
        """A position that is chosen when it is read; None where the row is short."""
        if not self.on or len(row.weights) < LEAST or len(row.support) < LEAST:
            return None
        place, chosen = len(self.made), list[int]()

        def ask() -> int:
            if self.over or self.kept is drawn or self.made[place] is not drawn:
                raise Spoiled
            if not chosen:
                self.unread.pop(place, None)
                chosen.append(walk.branch(call, lambda: list(map(mpq, row.numbers)), at))
            return chosen[0]

        drawn = _Drawn(ask, row)
        self.made.append(drawn)
        if self.forced is not None and self.forced[0] == place:
            return self.forced[1]
        self.unread[place] = drawn
        return drawn

    @property
    def place(self) -> int:
        """Which draw of the run is kept."""
        return next(i for i, each in enumerate(self.made) if each is self.kept)

    def keep(self, token: Any) -> Any:
        """The token of a result: where nobody has read it, the largest that it can be, which stands for the row."""
        waiting = any(token is each for each in self.unread.values())
        if not waiting or self.kept is not None:
            return token
        self.kept = token
        return token.row.support[-1]


class Spoiled(EnumerationError):
    """A number that stood for a whole row was read, or made a difference where nobody read it."""

    def __init__(self) -> None:
        super().__init__("a drawn number was read after it stood for a whole row, or after its run")


Keep = Callable[[Any], Any]
Ended = tuple[Any, WholeRow | None, Any]
"""A result, the row that its token is drawn from (None: the token is what it is), and the exact weight."""


class Noted(Protocol):
    """Whoever notes the draws of every run."""

    def note(self, path: Sequence[Branch], row: WholeRow | None, result: Any) -> None:
        """Note one run."""

    def clear(self) -> None:
        """Forget all runs."""


def row_outcomes(
    program: Callable[[ExhaustiveChooser, Keep], Any],
    placed: Callable[[Any, int], Any],
    steps: Noted | None = None,
    store: RowStore | None = None,
) -> list[Ended]:
    """Every run of a program whose result may end in a whole row; `placed` puts a number into a result.

    `store` is shared by the enumerations of one method.

    The program passes the token that its result may hold unread through `keep`. Where a run breaks, or goes another
    way, while a number waits to be read, all runs are made once more with plain numbers.
    """
    store = RowStore() if store is None else store
    rows = DrawnRows(store, _WHOLE.get())
    runs = _Runs(program, placed, rows, steps)
    try:
        ended = list(runs.made())
        runs.try_numbers(ended)
        return ended
    except Exception as error:
        if not (rows.unread or rows.forced or isinstance(error, Spoiled)):
            raise
    runs.forget()
    return list(_Runs(program, placed, DrawnRows(store, on=False), steps).made())


class _Runs:
    def __init__(
        self,
        program: Callable[[ExhaustiveChooser, Keep], Any],
        placed: Callable[[Any, int], Any],
        rows: DrawnRows,
        steps: Noted | None,
    ) -> None:
        self.program = program
        self.placed = placed
        self.rows = rows
        self.steps = steps
        self.walk = Walk()
        self.chooser = ExhaustiveChooser(self.walk, rows)
        self.log = current_log()
        self.paths: list[tuple[list[tuple[Branch, int]], int]] = []

    def run(self) -> tuple[Any, WholeRow | None]:
        self.rows.begin()
        result = self.program(self.chooser, self.rows.keep)
        self.rows.over = True
        return result, None if self.rows.kept is None else self.rows.kept.row

    def made(self) -> Iterator[Ended]:
        for (result, row), weight in self.walk.runs(self.run):
            if self.log is not None:
                self.log.most_replays = min(self.log.most_replays, MOST_REPLAYS if row is None else MOST_WHOLE_REPLAYS)
                self.log.record(self.walk, self.run, (result, row))
            if self.steps is not None:
                self.steps.note(self.walk.path, row, result if row is None else self.placed(result, 0))
            if row is not None:
                self.paths.append(([(branch, branch.taken) for branch in self.walk.path], self.rows.place))
            yield result, row, weight

    def try_numbers(self, ended: list[Ended]) -> None:
        """Make some runs again with plain numbers in place of those that nobody read: nothing else may change."""
        kept = [(result, row) for result, row, _ in ended if row is not None]
        if not kept or self.rows.store.tried >= TRIED:
            return
        for (result, row), (steps, place) in list(zip(kept, self.paths, strict=True))[:: max(1, len(kept) // TRIED)]:
            self.rows.store.tried += 1
            for token in {row.support[0], row.support[len(row.support) // 2], row.support[-1]}:
                self.rows.forced = place, token
                if self.walk.rerun(self.run, steps) != (self.placed(result, token), None):
                    raise Spoiled
        self.rows.forced = None

    def forget(self) -> None:
        """Leave no trace in what is remembered."""
        if self.log is not None:
            self.log.forget(self.run)
        if self.steps is not None:
            self.steps.clear()


_WHOLE: ContextVar[bool] = ContextVar("whole rows", default=True)


@contextmanager
def plain_numbers(wanted: bool = True) -> Iterator[None]:
    """Within, every draw is a plain number and a branch, however long its row."""
    token = _WHOLE.set(not wanted and _WHOLE.get())
    try:
        yield
    finally:
        _WHOLE.reset(token)
