"""Every outcome of a program that draws through a Chooser, with its exact weight.

The program is run again and again; each run follows the recorded choices of the one before and takes the next branch
that is left. Nothing about the program is assumed but that it is a function of its draws, and that is checked on
every replay, and with a `ReplayLog` once more at the end. Floats enter as the exact values that they are, so the
distribution of a float32 run is exact too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from exact.enumeration.exits import EnumerationError as EnumerationError
from exact.enumeration.exits import checked, contained
from exact.enumeration.rationals import ONE, ZERO, exact, fraction
from rheo_core.checks import check_probability, check_weights
from rheo_core.chooser import Chooser


def format_mass(mass: Fraction) -> str:
    """A share of the whole in words; one that a float would round to 1 is said by what it lacks.

    >>> format_mass(Fraction(1, 4)), format_mass(1 - Fraction(1, 2**90))
    ('0.25', 'all but 8.08e-28')
    """
    return f"{float(mass):.6g}" if mass == 1 or mass < Fraction(999999, 10**6) else f"all but {float(1 - mass):.3g}"


def format_weight(weight: Any) -> str:
    """An exact weight for a message: as it is where it is short, else about how large.

    >>> format_weight(Fraction(1, 6)), format_weight(Fraction(1, 3**10_000))
    ('1/6', 'about 10^-4772')
    """
    exactly = fraction(weight)
    if exactly and exactly.denominator.bit_length() > 128:
        bits = exactly.numerator.bit_length() - exactly.denominator.bit_length()
        return f"about 10^{math.floor(bits * math.log10(2))}"
    return str(exactly)


class NotReproducible(EnumerationError):
    """On replay the program made another sequence of calls: it does not draw through its chooser alone."""


class UnhashableResult(EnumerationError):
    """The program returned something that cannot be a key of a law."""


class TooManyOutcomes(EnumerationError):
    """More outcomes than the limit; `covered` is the mass of those enumerated."""

    def __init__(self, limit: int, covered: Fraction) -> None:
        self.limit = limit
        self.covered = covered
        super().__init__(f"more than {limit} outcomes (those enumerated hold {format_mass(covered)} of the mass)")


class TooManyDraws(EnumerationError):
    """One run with more random calls than `most`: it may never end; `covered` is the mass of the runs before it."""

    def __init__(self, most: int, covered: Fraction) -> None:
        self.most = most
        self.covered = covered
        super().__init__(
            f"a run of more than {most} random calls, which may never end (the runs before it hold "
            f"{format_mass(covered)} of the mass)"
        )


@dataclass
class Branch:
    """One random call on the current path: what was asked, the options of positive weight, and the one taken."""

    call: Hashable
    options: list[tuple[int, Any]]
    at: Hashable | None
    taken: int = 0


DRAWS = 1_000
"""Random calls of one run, where the number of outcomes is limited at all."""


class Walk:
    """Depth-first walk over every sequence of choices of a program.

    `branch(call, weights)` is the one primitive: it returns the position chosen on this run. `call` is what the program
    asked, compared on every replay; `weights` is only called the first time and gives exact numbers of positive sum. A
    run of more than `max_draws` calls is refused (None: no such limit).
    """

    def __init__(self, max_draws: int | None = None) -> None:
        self.max_draws = max_draws
        self.path: list[Branch] = []
        self.rerunning = False
        self._weights: list[Any] = [ONE]
        self._depth = 0

    def branch(self, call: Hashable, weights: Callable[[], Sequence[Any]], at: Hashable | None = None) -> int:
        """The position chosen on this run among `weights()`; zero weights are never chosen."""
        if self._depth == len(self.path):
            if self._depth == self.max_draws:
                raise TooManyDraws(self.max_draws, fraction(self.covered_mass()))
            self._open(call, list(weights()), at)
        branch = self.path[self._depth]
        if branch.call != call:
            raise NotReproducible(f"call {self._depth + 1} was {branch.call} and is {call} when replayed")
        self._depth += 1
        return branch.options[branch.taken][0]

    def _open(self, call: Hashable, weights: list[Any], at: Hashable | None) -> None:
        mass = sum(weights)
        options = [(i, weight / mass) for i, weight in enumerate(weights) if weight]
        self.path.append(Branch(call, options, at))
        self._weights.append(self._weights[-1] * options[0][1])

    @property
    def weight(self) -> Any:
        """Exact probability of the choices made so far on this run."""
        return self._weights[self._depth]

    def runs(self, run: Callable[[], Any]) -> Iterator[tuple[Any, Any]]:
        """(result, weight) of every run, in lexicographic order of choices."""
        while True:
            self._depth = 0
            try:
                result = run()
            except BaseException as error:
                error.add_note(f"in the branch {self.describe()}, of weight {format_weight(self.weight)}")
                if (found := checked(None, error)) is not error:
                    raise found from error
                raise
            if self._depth < len(self.path):
                raise NotReproducible(f"the run ended after {self._depth} calls; {len(self.path)} were expected")
            yield result, self.weight
            if not self._next():
                return

    def _next(self) -> bool:
        """Step to the next path; False when all are done."""
        while self.path:
            branch = self.path[-1]
            branch.taken += 1
            self._weights.pop()
            if branch.taken < len(branch.options):
                self._weights.append(self._weights[-1] * branch.options[branch.taken][1])
                return True
            self.path.pop()
        return False

    def rerun(self, run: Callable[[], Any], steps: Sequence[tuple[Branch, int]]) -> Any:
        """The result of one run, made once more with the choices of `steps`; raises unless it asks for the same."""
        self.path = [Branch(branch.call, [branch.options[taken]], branch.at) for branch, taken in steps]
        self.rerunning, self.max_draws = True, len(steps)
        self._weights, self._depth = [ONE] * (len(steps) + 1), 0
        try:
            with contained(None):
                result = run()
        except TooManyDraws:
            raise NotReproducible(f"a run of {len(steps)} calls made more when asked again: {_STATE}") from None
        if self._depth < len(steps):
            raise NotReproducible(f"a run of {len(steps)} calls made {self._depth} when asked again: {_STATE}")
        return result

    def covered_mass(self) -> Any:
        """Exact mass of the runs before the current path."""
        if self.rerunning:
            return ONE
        taken = (sum(weight for _, weight in branch.options[: branch.taken]) for branch in self.path)
        return sum((mass * share for mass, share in zip(self._weights, taken, strict=False)), ZERO)

    def describe(self) -> str:
        """The choices of this run, one after another."""
        steps = (branch for branch in self.path[: self._depth])
        text = ", ".join(f"{b.call[0] if isinstance(b.call, tuple) else b.call}" + _place(b) for b in steps)
        return f"[{text}]"


def _place(branch: Branch) -> str:
    return f" -> {branch.options[branch.taken][0]}" + (f" at {branch.at}" if branch.at is not None else "")


class ExhaustiveChooser:
    """The chooser of a `Walk`: accept gives P and 1 - P, index gives w_i / sum(w), all exact."""

    def __init__(self, walk: Walk, rows: Any = None) -> None:
        self.walk = walk
        self.rows = rows  # of `whole_rows`: where given, a draw from a long row waits until it is read

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """Branch into True with weight P and False with 1 - P."""
        check_probability(probability)

        def weights() -> Sequence[Any]:
            p = exact(probability)
            return (p, ONE - p)

        return self.walk.branch(("accept", probability), weights, at) == 0

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """Branch into every position of positive weight."""
        asked = tuple(weights.tolist() if isinstance(weights, np.ndarray) else weights)  # type: ignore[arg-type]
        waiting: Any = None if self.rows is None else self.rows.drawn(self.walk, weights, asked, at)
        if waiting is not None:
            return waiting  # type: ignore[no-any-return]
        return self.walk.branch(("index", asked), lambda: _exact_weights(weights, asked), at)


def _exact_weights(weights: ArrayLike, asked: tuple[Any, ...]) -> list[Any]:
    check_weights(weights)
    return [exact(weight) for weight in asked]  # not NumPy's row of them: it would round ints beside floats


_STATE = "it keeps something between calls, or draws unseen"
MOST_REPLAYS = 400
"""Runs that are made once more: all of so many, an even sample of more."""


class ReplayLog:
    """Runs that are remembered, to be made once more in reverse order when all are done.

    What a program carries from one run to the next shows there, where the walk itself met each run only once. `used`
    says whether the run just made is one to remember.
    """

    def __init__(self, strict: bool = True) -> None:
        self.strict = strict
        self.used = False
        self.most_replays = MOST_REPLAYS
        self._runs: list[tuple[Walk, Callable[[], Any], list[tuple[Branch, int]], Any]] = []
        self._every = 1
        self._count = 0

    @property
    def made(self) -> int:
        """How many runs there were to remember."""
        return self._count

    @property
    def asked(self) -> int:
        """How many are remembered, which `replay` makes again."""
        return len(self._runs)

    def record(self, walk: Walk, run: Callable[[], Any], result: Any) -> None:
        """Remember a run, or not, so that those remembered stay evenly spaced."""
        if not (self.strict or self.used):
            return
        self.used = False
        if self._count % self._every == 0:
            self._runs.append((walk, run, [(branch, branch.taken) for branch in walk.path], result))
        self._count += 1
        while len(self._runs) > self.most_replays:
            self._runs, self._every = self._runs[::2], 2 * self._every

    def forget(self, run: Callable[[], Any]) -> None:
        """Drop the runs of one program."""
        self._runs = [each for each in self._runs if each[1] != run]

    def replay(self) -> None:
        """Make the runs again; raises `NotReproducible` where one differs."""
        for walk, run, steps, result in reversed(self._runs):
            found = walk.rerun(run, steps)
            if found != result and repr(found) != repr(result):  # NaN is not equal to itself
                raise NotReproducible(f"one run gave {result} and, asked again with the same coins, {found}: {_STATE}")


_LOG: ContextVar[ReplayLog | None] = ContextVar("log", default=None)


def current_log() -> ReplayLog | None:
    """What remembers runs at the moment, if anything."""
    return _LOG.get()


@contextmanager
def recorded(log: ReplayLog) -> Iterator[None]:
    """Within, `outcomes` remembers its runs."""
    token = _LOG.set(log)
    try:
        yield
    finally:
        _LOG.reset(token)


def outcomes(program: Callable[[Chooser], Any], *, limit: int | None = None) -> Iterator[tuple[Any, Any]]:
    """(result, exact weight) of every run of `program(chooser)`, one by one; equal results are not merged."""
    walk = Walk(None if limit is None else DRAWS)
    chooser = ExhaustiveChooser(walk)
    log = _LOG.get()

    def run() -> Any:
        return program(chooser)

    for count, (result, weight) in enumerate(walk.runs(run)):
        if log is not None:
            log.record(walk, run, result)
        if limit is not None and count == limit:
            raise TooManyOutcomes(limit, fraction(walk.covered_mass()))
        yield result, weight


def law(program: Callable[[Chooser], Hashable], *, limit: int | None = None) -> dict[Hashable, Fraction]:
    """The exact law of `program(chooser)`, by exhaustive replay.

    Branches of probability 0 never run; the law has no zero entries and sums to 1. An exception of the program
    propagates with its branch and weight as a note. Raises `NotReproducible` where a replay makes other calls,
    `UnhashableResult`, and with a `limit` `TooManyOutcomes` beyond so many runs and `TooManyDraws` in a run that may
    never end.

    >>> law(lambda chooser: chooser.index([1, 2]) + chooser.accept(Fraction(1, 4)))
    {1: Fraction(7, 12), 0: Fraction(1, 4), 2: Fraction(1, 6)}
    """
    masses: dict[Hashable, Any] = {}
    for result, weight in outcomes(program, limit=limit):
        try:
            masses[result] = masses.get(result, ZERO) + weight
        except TypeError:
            raise UnhashableResult(f"result: got {result!r}, expected something hashable") from None
    return {result: fraction(mass) for result, mass in masses.items()}
