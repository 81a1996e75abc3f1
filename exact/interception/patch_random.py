"""The standard library's `random`, caught while unmodified code runs.

The module's functions and the `random.Random` made during the call draw from the session. An instance made before
is refused where it draws, and `math.log` and its kind learn to take a uniform.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable
from typing import Any

from exact.enumeration.rationals import exact
from exact.interception.session import Source, Tracer
from exact.interception.symbolic import Uniform
from exact.runtime.census import stream
from exact.runtime.patches import Patch
from exact.runtime.unseen import may_use, unwatched
from exact.runtime.unsupported import Unsupported

_FOLLOWED = "random, uniform, randrange, randint, choice, choices, sample, shuffle, getrandbits, expovariate or seed"
_ORIGINAL = random.Random


class CaughtRandom(_ORIGINAL):
    """`random.Random` over a stream of the session."""

    def __init__(self, session: Tracer, source: Source) -> None:
        self._session = session
        self._source = source

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Start the stream of a seed."""
        self._source.seed(None if a is None else unwatched(lambda: stream(_ORIGINAL(a))))

    def random(self) -> Any:
        """A uniform in [0, 1)."""
        return self._source.draw(("uniform",), self._session.uniform)

    def uniform(self, a: Any, b: Any) -> Any:
        """a + (b - a) u."""
        return a + (b - a) * self.random()

    def expovariate(self, lambd: float = 1.0) -> Any:
        """An exponential of the given rate."""
        return self._source.draw(("exponential", lambd), lambda: self._session.exponential(lambd))

    def getrandbits(self, k: int) -> int:
        """An integer of k random bits."""
        return self._integer("random.getrandbits", 0, 2**k)

    def _integer(self, name: str, low: int, high: int) -> int:
        return self._source.draw((name, low, high), lambda: self._session.integer(name, low, high))  # type: ignore[no-any-return]

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """One of range(start, stop, step)."""
        values = range(start) if stop is None else range(start, stop, step)
        if not values:
            raise ValueError(f"empty range for randrange() ({start}, {stop}, {step})")
        return values[self._integer("random.randrange", 0, len(values))]

    def randint(self, a: int, b: int) -> int:
        """An integer in [a, b]."""
        return self.randrange(a, b + 1)

    def choice(self, seq: Any) -> Any:
        """One of a sequence."""
        if not len(seq):
            raise IndexError("Cannot choose from an empty sequence")
        return seq[self._integer("random.choice", 0, len(seq))]

    def choices(self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1) -> list[Any]:
        """k of a population, with replacement."""
        population = list(population)
        if cum_weights is not None:
            cumulative = [exact(x) for x in cum_weights]
            weights = [high - low for low, high in zip([0, *cumulative], cumulative, strict=False)]
        row = [1] * len(population) if weights is None else [x.item() if hasattr(x, "item") else x for x in weights]
        if len(row) != len(population):
            raise ValueError("The number of weights does not match the population")
        call = ("random.choices", tuple(row), k)
        drawn = self._source.draw(call, lambda: [self._session.index("random.choices", row) for _ in range(k)])
        return [population[i] for i in drawn]

    def sample(self, population: Any, k: int, *, counts: Any = None) -> list[Any]:
        """k of a population, without replacement."""
        if counts is not None:
            raise Unsupported("random.sample(counts=...)", counts, "a population without counts")
        population = list(population)
        if not 0 <= k <= len(population):
            raise ValueError("Sample larger than population or is negative")
        return [population[i] for i in self._order("random.sample", len(population), k)]

    def shuffle(self, x: Any) -> None:
        """Shuffle in place."""
        x[:] = [x[i] for i in self._order("random.shuffle", len(x), len(x))]

    def _order(self, name: str, n: int, k: int) -> list[int]:
        return self._source.draw((name, n, k), lambda: self._session.order(name, n, k))  # type: ignore[no-any-return]


def _refused_method(name: str) -> Callable[..., Any]:
    def refused(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"random.{name}", "a method that is not followed", _FOLLOWED)

    return refused


_REFUSED = [
    "gauss", "normalvariate", "lognormvariate", "vonmisesvariate", "gammavariate", "betavariate", "triangular",
    "paretovariate", "weibullvariate", "randbytes", "binomialvariate", "getstate", "setstate",
]  # fmt: skip
for _name in _REFUSED:
    setattr(CaughtRandom, _name, _refused_method(_name))


def _math(name: str, method: Callable[[Uniform], Any]) -> Callable[..., Any]:
    original = getattr(math, name)

    def call(x: Any, *rest: Any) -> Any:
        return method(x) if isinstance(x, Uniform) and not rest else original(x, *rest)

    return call


def _for_others(caught: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `random`, real for a library that draws for itself: the state is put back."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not may_use("a generator", sys._getframe(1)):
            return caught(*args, **kwargs)
        state = random._inst.getstate()
        try:
            return original(*args, **kwargs)
        finally:
            random._inst.setstate(state)

    return call


def _made_before(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        if may_use("a generator", sys._getframe(1)):
            return original(*args)
        raise Unsupported(f"Random.{name}", "a random.Random made before the call", "one made during the call")

    return call


def random_patches(session: Tracer) -> tuple[list[Patch], dict[int, str]]:
    """What catches `random`, and the names of the functions replaced by the id of the original."""
    shared = CaughtRandom(session, session.globals["random"])

    class Random(CaughtRandom):
        def __new__(cls, x: Any = None) -> Any:
            return _ORIGINAL(x) if may_use("a generator", sys._getframe(1)) else super().__new__(cls)

        def __init__(self, x: Any = None) -> None:
            super().__init__(session, Source(session))
            self.seed(x)

    originals = {
        name: function
        for name, function in vars(random).items()
        if not name.startswith("_") and isinstance(getattr(function, "__self__", None), _ORIGINAL)
    }
    patches = [Patch(random, name, _for_others(getattr(shared, name), f)) for name, f in originals.items()]
    patches += [
        Patch(random, "Random", Random),
        *(Patch(_ORIGINAL, name, _made_before(name, getattr(_ORIGINAL, name))) for name in ("random", "getrandbits")),
        Patch(math, "log", _math("log", Uniform.log)),
        Patch(math, "log1p", _math("log1p", Uniform.log1p)),
        Patch(math, "exp", _math("exp", Uniform.exp)),
    ]
    return patches, {id(function): f"random.{name}" for name, function in originals.items()}
