"""What one interception knows: the walk, the uniforms made on this run, and the streams they come from.

Every caught call ends here, as a branch of the walk with exact weights or as a fresh uniform. Two generators that are
given the same seed during the call give the same numbers, as they would outside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from gmpy2 import mpq

from exact.enumeration.rationals import ONE, ZERO, exact, fraction
from exact.enumeration.walk import ExhaustiveChooser, Walk
from exact.enumeration.whole_rows import DrawnRows, RowStore, WholeRow
from exact.interception.symbolic import Coin, Uniform
from exact.interception.symbolic_maps import (
    FLOAT_TYPES,
    Affine,
    AtLeast,
    Exp,
    Log,
    Reciprocal,
    Rounded,
    Step,
    exponential,
)
from exact.interception.whole_results import WholeResult, unread_paths
from exact.runtime.unsupported import Unsupported, invalid, user_line
from rheo_core import InvalidInput

_REFLECTED = Affine(-ONE, ONE)


def rates(row: Sequence[Uniform], largest: bool, use: str) -> list[Any]:
    """Exact weights with which each number of `row` is the largest (or the smallest) of them.

    The row must hold independent uniforms of which nothing is known yet, sent through one common monotone map of
    E / rate (E exponential). Anything else raises.
    """
    coins = [x.coin for x in row]
    if len({coin.number for coin in coins}) < len(coins) or not all(coin.unused for coin in coins):
        raise Unsupported(use, "uniforms that were used before", "independent noise that is used once")
    if any(coin.step is not None for coin in coins):
        raise Unsupported(use, "coins on a grid, which may tie", "ideal coins")
    chains = [list(x.steps) for x in row]
    while all(chain and chain[-1] == chains[0][-1] for chain in chains) and (sign := _direction(chains[0][-1])):
        largest = largest is (sign > 0)
        for chain in chains:
            chain.pop()
    if not any(chains):
        return [ONE] * len(row)
    for chain in chains:
        if chain and chain[0] == _REFLECTED:
            chain.pop(0)
    found = [_rate(chain) for chain in chains]
    if any(key is None or key[1:] != found[0][1:] for key in found) or found[0][1] is not largest:  # type: ignore[index]
        raise Unsupported(use, f"{row[0]!r} and {len(row) - 1} more", "weights over exponential or Gumbel noise")
    return [key[0] for key in found if key is not None]


def _direction(step: Step) -> int:
    """1 where the map rises strictly, -1 where it falls, 0 where it has flat parts."""
    if isinstance(step, Affine):
        return 1 if step.a > 0 else -1
    return 1 if isinstance(step, Log | Exp) else -1 if isinstance(step, Reciprocal) else 0


def _rate(chain: Sequence[Step]) -> tuple[Any, bool, Any] | None:
    """(rate, whether the largest wins, what must be common to the row) for a chain over a fresh uniform."""
    if not chain or not isinstance(chain[0], Log):
        return None
    scale, rest = -ONE, list(chain[1:])  # ln u is -E
    if rest and isinstance(rest[0], Affine):
        scale, shift = -rest[0].a, rest[0].b
        rest.pop(0)
        if not rest:
            return 1 / abs(scale), scale < 0, ("linear", shift)
        if shift or scale < 0:
            return None
    if not rest:
        return ONE, True, ("linear", ZERO)
    outer = rest[1] if len(rest) > 1 else Affine(ONE, ZERO)
    if len(rest) > 2 or scale < 0 or not isinstance(outer, Affine):
        return None
    if isinstance(rest[0], Reciprocal):  # a / (scale E) + b
        return abs(outer.a) / scale, outer.a > 0, ("quotient", outer.b)
    if isinstance(rest[0], Log):  # a ln(scale E) + b
        factor = exponential(-outer.b / outer.a) if outer.a else ONE
        return factor / scale, outer.a < 0, ("logarithm", outer.a)
    return None


Coins = Literal["ideal", "grid"]
FILLINGS = (0.0, 2.0**120, -(2.0**120), 0.5, float("nan"))
"""What uninitialised memory holds, one after another; integers hold the number, cut to their range."""
MOST_ORDERS = 5040
"""The largest number of orders that a permutation may have (7!)."""


@dataclass
class Stream:
    """The draws of one generator, so that another one of the same seed can repeat them."""

    drawn: list[tuple[Hashable, Any]] = field(default_factory=list)


class Source:
    """A generator as the code sees it: a place in a stream."""

    def __init__(self, session: Tracer, seed: Hashable | None = None) -> None:
        self._session = session
        self.seed(seed)

    def seed(self, seed: Hashable | None) -> None:
        """Start the stream of this seed; with None, one of its own."""
        self._stream = Stream() if seed is None else self._session.streams.setdefault(seed, Stream())
        self._next = 0

    def draw(self, call: Hashable, make: Callable[[], Any]) -> Any:
        """`make()`, or what an earlier generator of the same seed drew here."""
        if not self._session.active:
            raise Unsupported(_name(call), "a generator made in a law that has been taken", "one made during the call")
        drawn = self._stream.drawn
        if self._next == len(drawn):
            drawn.append((call, make()))
        self._next += 1
        asked, result = drawn[self._next - 1]
        if asked != call:
            raise Unsupported(
                f"{_name(call)} from a seed used twice", f"{_name(asked)} the first time", "the same calls"
            )
        return result


ACTIVE: list[Tracer] = []
"""The session of the law that is being taken, if any."""


class Tracer:
    """One interception: `begin()` starts a run; the other methods are what caught calls turn into.

    `standing` are the streams of the global generators where they stand; `filling` is what uninitialised memory holds
    on this run, and `blanks` the lines where there was any.
    """

    def __init__(self, coins: Coins = "ideal") -> None:
        self.walk = Walk()
        self.store = RowStore()
        self.rows = DrawnRows(self.store, on=False)
        self.tensors: dict[Any, list[WholeRow]] = {}
        self.coins = coins
        self.active = True
        self.suspicious = False
        self.streams: dict[Hashable, Stream] = {}
        self.standing: dict[str, Hashable] = {}
        self.filling = FILLINGS[0]
        self.blanks: dict[str, None] = {}
        self.legacy = False  # whether the code names constructors of uninitialised tensors
        self.globals = {name: Source(self) for name in ("torch", "numpy", "random")}
        self.begin()

    def begin(self) -> None:
        """Forget the run before."""
        self._made = 0
        self.rows.begin()
        self.streams.clear()
        for name, source in self.globals.items():
            source.seed(self.standing.get(name))

    def uniform(self, kind: str = "float64") -> Uniform:
        """A fresh uniform in [0, 1) of a float type.

        On the grid it is a multiple of 2^-53 (float64) or 2^-24 (float32). Torch makes the narrower types by rounding a
        float32 one and turning 1 into 0: shifted by what rounds to 1, that is monotone.
        """
        self._made += 1
        if self.coins == "ideal":
            return Uniform(Coin(self.walk.branch, self._made - 1))
        narrow = FLOAT_TYPES[kind]
        coin = Coin(self.walk.branch, self._made - 1, exact(Fraction(1, 2 ** max(narrow.precision, 24))))
        if narrow.precision >= 24:
            return Uniform(coin)
        wrapped = exact(-Fraction(1, 2 ** (narrow.precision + 1)))
        return Uniform(coin, (Affine(exact(1), wrapped), AtLeast(exact(0)), Rounded(narrow)))

    def exponential(self, rate: Any = 1) -> Any:
        """A fresh exponential of the given rate: -ln(u) / rate."""
        if self.coins == "grid":
            raise Unsupported("exponential noise", "coins on a grid", "ideal coins")
        self._made += 1
        fresh = Uniform(Coin(self.walk.branch, self._made - 1), (Log(),))
        return fresh.then(Affine(-1 / exact(rate), exact(0)))

    def index(self, name: str, weights: Sequence[Any] | WholeRow) -> int:
        """A position with probability proportional to `weights`; NaN, negative and all-zero weights raise."""
        row = weights if isinstance(weights, WholeRow) else self.row(name, weights)
        return self.walk.branch((name, row), lambda: list(map(mpq, row.numbers)))

    def waiting(self, name: str, row: WholeRow) -> Any:
        """The same, chosen when it is read where the row is long."""
        drawn = self.rows.waiting(self.walk, (name, row), row, None)
        return self.index(name, row) if drawn is None else drawn

    def ended(self, result: Any) -> Any:
        """The result of a run with its numbers read, or where one is left unread with the row in its place."""
        found = unread_paths(result)
        for path in found if len(found) > 1 else ():
            result = _with_number(result, path)
        if len(found) != 1:
            return result
        drawn = _at(result, found[0])
        if self.rows.keep(drawn) is drawn:
            return _with_number(result, found[0])
        return WholeResult(WholeResult(result, found[0], drawn.row).placed(0), found[0], drawn.row)

    def row(self, name: str, weights: Sequence[Any]) -> WholeRow:
        """Weights as a row, checked where they are new."""
        asked = tuple(weights)
        for known in self.store.known:
            if known.weights == asked:
                return known
        if not all(0 <= weight < float("inf") for weight in asked):
            raise invalid(name, list(asked), "finite non-negative weights")
        if not any(asked):
            raise invalid(name, list(asked), "weights of positive sum")
        return self.store.add(WholeRow(asked))

    def flip(self, name: str, probability: Any) -> bool:
        """A coin that is True with `probability`, a number in [0, 1]."""
        if not 0 <= probability <= 1:
            raise invalid(name, probability, "a probability in [0, 1]")
        p = exact(probability)
        return self.walk.branch((name, probability), lambda: (p, 1 - p)) == 0

    def without_replacement(self, name: str, weights: Sequence[Any], count: int) -> list[int]:
        """`count` positions one after another, each in proportion to the weights that are left."""
        left, taken = list(weights), []
        if sum(1 for weight in left if weight) < count:
            raise Unsupported(name, f"{left}, {count} draws without replacement", "as many positive weights as draws")
        for _ in range(count):
            taken.append(self.index(name, left))
            left[taken[-1]] = 0
        return taken

    def order(self, name: str, n: int, count: int | None = None) -> list[int]:
        """`count` of range(n) in random order (all of them by default)."""
        count = n if count is None else count
        orders = 1
        for i in range(count):
            orders *= n - i
        if orders > MOST_ORDERS:
            raise Unsupported(name, f"{orders} orders", f"at most {MOST_ORDERS}")
        return self.without_replacement(name, [1] * n, count)

    def integer(self, name: str, low: int, high: int) -> int:
        """An integer in [low, high)."""
        if not low < high:
            raise invalid(name, (low, high), "low < high")
        if high - low > MOST_ORDERS:
            raise Unsupported(name, f"{high - low} values", f"at most {MOST_ORDERS}")
        return low + self.index(name, [1] * (high - low))

    def race(self, name: str, row: Sequence[Any], count: int, largest: bool = True) -> list[int]:
        """Positions of the `count` largest (or smallest) numbers of a row that holds uniforms, best first."""
        noisy = [i for i, x in enumerate(row) if isinstance(x, Uniform)]
        known = [x for x in row if not isinstance(x, Uniform)]
        if len(noisy) == 1 and count == 1:
            return [self._against(row, noisy[0], largest)]
        if known and not all(_surely_ahead(row[i], known, largest) for i in noisy):
            raise Unsupported(name, f"{len(noisy)} uniforms among known numbers", "uniforms that surely win over them")
        if count > len(noisy):
            raise Unsupported(name, f"{count} of {len(noisy)} uniforms", "at most as many as there are uniforms")
        if len({row[i].coin.number for i in noisy}) == 1:
            return self._of_one_coin(name, row, noisy, count, largest)
        weights = rates([row[i] for i in noisy], largest, name)
        order = [noisy[i] for i in self.without_replacement(name, weights, count)]
        for i in noisy:
            row[i].coin.consume(f"{name} at {user_line()}")
        return order

    def _against(self, row: Sequence[Any], noisy: int, largest: bool) -> int:
        """One uniform among known numbers: the first of the largest, as torch and NumPy choose."""
        best = noisy
        for i, x in enumerate(row):
            if i != best and _before(x, i, row[best], best, largest):
                best = i
        return best

    def _of_one_coin(self, name: str, row: Sequence[Any], noisy: list[int], count: int, largest: bool) -> list[int]:
        left, order = list(noisy), []
        for _ in range(count):
            best = left[0]
            for i in left[1:]:
                if _before(row[i], i, row[best], best, largest):
                    best = i
            order.append(best)
            left.remove(best)
        return order


def _at(result: Any, path: tuple[int, ...]) -> Any:
    return _at(result[path[0]], path[1:]) if path else result


def _with_number(result: Any, path: tuple[int, ...]) -> Any:
    """The result with the number at a place read."""
    drawn = _at(result, path)
    return WholeResult(result, path, drawn.row).placed(int(drawn))


def _before(x: Any, i: int, best: Any, at: int, largest: bool) -> bool:
    """Whether x, at position i, comes ahead of the best so far; ties go to the lower position."""
    if largest:
        return bool(x > best or (i < at and x == best))
    return bool(x < best or (i < at and x == best))


def _surely_ahead(x: Uniform, known: Iterable[Any], largest: bool) -> bool:
    """Whether x beats every known number whatever its coin: true of w / E against 0 and of anything against -inf."""
    bound = max(known) if largest else min(known)
    if largest:
        return bool(bound == -float("inf") or (bound <= 0 and x.positive))
    return bool(bound == float("inf"))


def _name(call: Hashable) -> str:
    return str(call[0]) if isinstance(call, tuple) else str(call)


def current() -> Tracer:
    """The session of the law that is being taken."""
    if not ACTIVE:
        raise InvalidInput("a uniform", "used after its law was taken", "use inside the function that is certified")
    return ACTIVE[-1]


def covered() -> Fraction | None:
    """The mass of the runs that are done, of the law that is being taken; None between two runs."""
    return fraction(ACTIVE[-1].walk.covered_mass()) if ACTIVE else None


def current_chooser() -> ExhaustiveChooser:
    """A Chooser on the walk of the law that is being taken: rheo_core's drafting beside torch's verification."""
    return ExhaustiveChooser(current().walk)
