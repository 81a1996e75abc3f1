"""NumPy's random numbers, caught while unmodified code runs.

The legacy functions of `numpy.random`, and the Generators and RandomStates made during the call, draw from the session.
Uniforms in arrays are objects, which NumPy compares and combines one by one; what is not followed is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from exact.interception.session import Source, Tracer
from exact.runtime.census import stream
from exact.runtime.patches import Patch, refuser
from exact.runtime.unseen import unwatched
from exact.runtime.unsupported import Unsupported, invalid

_GENERATOR, _STATE, _PCG64 = np.random.Generator, np.random.RandomState, np.random.PCG64
_BITS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_FOLLOWED = (
    "random, uniform, integers, choice, permutation, shuffle, exponential, gumbel, multinomial or binomial with n = 1"
)


class NumpyDraws:
    """The methods that NumPy's Generator and RandomState share, over a stream of the session."""

    _session: Tracer
    _source: Source

    def _filled(self, call: tuple[Any, ...], size: Any, make: Callable[[], Any]) -> Any:
        """An object array of `size` (one number for None), each made by `make`."""
        shape = () if size is None else (size,) if isinstance(size, int | np.integer) else tuple(size)
        drawn = self._source.draw((*call, shape), lambda: [make() for _ in range(math.prod(shape))])
        if size is None:
            return drawn[0]
        array = np.empty(len(drawn), dtype=object)
        array[:] = drawn
        return array.reshape(shape)

    def _counted(self, call: tuple[Any, ...], size: Any, make: Callable[[], int]) -> Any:
        drawn = self._filled(call, size, make)
        return np.int64(drawn) if size is None else drawn.astype(np.int64)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniforms in [0, 1)."""
        if out is not None:
            raise Unsupported("Generator.random(out=...)", "an array to fill", "a call without out=")
        kind = np.dtype(dtype).name
        return self._filled(("uniform", kind), size, lambda: self._session.uniform(kind))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """low + (high - low) u."""
        return low + (high - low) * self.random(size)

    def standard_exponential(
        self, size: Any = None, dtype: Any = np.float64, method: str = "zig", out: Any = None
    ) -> Any:
        """Exponentials of rate 1."""
        if out is not None:
            raise Unsupported("Generator.standard_exponential(out=...)", "an array to fill", "a call without out=")
        return self._filled(("exponential",), size, self._session.exponential)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        """Exponentials of mean `scale`."""
        return scale * self.standard_exponential(size)

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """loc - scale ln(exponential)."""
        return loc - scale * np.log(self.standard_exponential(size))

    def _integers(self, low: Any, high: Any, size: Any, last: bool) -> Any:
        low, high = (0, low) if high is None else (low, high)
        low, high = int(low), int(high) + last
        return self._counted(("integer", low, high), size, lambda: self._session.integer("integers", low, high))

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> Any:
        """Entries of a, with the weights p."""
        population = np.arange(a) if isinstance(a, int | np.integer) else np.asarray(a)
        if axis != 0:
            raise Unsupported("choice(axis=...)", axis, "axis 0")
        n = len(population)
        weights = [1] * n if p is None else np.asarray(p).tolist()
        kind = getattr(p, "dtype", np.dtype(np.float64))
        tolerance = math.sqrt(max(np.finfo(kind).eps if kind.kind == "f" else 0, np.finfo(np.float64).eps))  # as NumPy
        if len(weights) != n or (p is not None and not abs(math.fsum(weights) - 1) <= tolerance):
            raise invalid("choice(p=...)", weights, f"{n} probabilities that sum to 1")
        if replace:
            call = ("choice", tuple(weights))
            index = self._counted(call, size, lambda: self._session.index("choice", weights))
            return population[index]
        shape = () if size is None else (size,) if isinstance(size, int | np.integer) else tuple(size)
        count = math.prod(shape)
        drawn = self._source.draw(
            ("choice without replacement", tuple(weights), shape),
            lambda: self._session.without_replacement("choice", weights, count),
        )
        return population[np.array(drawn, dtype=np.int64).reshape(shape)]

    def permutation(self, x: Any, axis: int = 0) -> Any:
        """The entries of x, or of range(x), in random order."""
        values = np.arange(x) if isinstance(x, int | np.integer) else np.asarray(x)
        return np.take(values, self._order("permutation", values.shape[axis]), axis=axis)

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Shuffle in place."""
        if axis != 0:
            raise Unsupported("shuffle(axis=...)", axis, "axis 0")
        x[:] = (
            [x[i] for i in self._order("shuffle", len(x))] if isinstance(x, list) else x[self._order("shuffle", len(x))]
        )

    def _order(self, name: str, n: int) -> list[int]:
        return self._source.draw((name, n), lambda: self._session.order(name, n))  # type: ignore[no-any-return]

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """A coin (n = 1)."""
        if n != 1 or np.ndim(p):
            raise Unsupported("binomial", f"n = {n}, p = {p}", "n = 1 and one p")
        return self._counted(("coin", p), size, lambda: int(self._session.flip("binomial", p)))

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """One-hot draws (n = 1). As in NumPy the last probability is what the others leave of 1."""
        *first, last = np.asarray(pvals, dtype=np.float64).tolist()
        if n != 1 or size is not None:
            raise Unsupported("multinomial", f"n = {n}, size = {size}", "n = 1 and no size")
        from exact.enumeration.rationals import exact

        left = 1 - sum(exact(x) for x in first)
        if abs(left - exact(last)) > 1e-12:
            raise invalid("multinomial(pvals=...)", [*first, last], "probabilities that sum to 1")
        weights = (*first, max(left, exact(0)))
        drawn = self._source.draw(("multinomial", weights), lambda: self._session.index("multinomial", weights))
        return np.eye(len(weights), dtype=np.int64)[drawn]


class CaughtNumpyGenerator(NumpyDraws, np.random.Generator):
    """`numpy.random.Generator` over a stream of the session."""

    def integers(self, low: Any, high: Any = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Any:
        """Integers in [low, high)."""
        return self._integers(low, high, size, endpoint)


class CaughtState(NumpyDraws, np.random.RandomState):
    """`numpy.random.RandomState`, and the legacy functions, over a stream of the session."""

    def rand(self, *shape: int) -> Any:
        """Uniforms of a shape."""
        return self.random(shape or None)

    def random_sample(self, size: Any = None) -> Any:
        """Uniforms in [0, 1)."""
        return self.random(size)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        """Integers in [low, high)."""
        return self._integers(low, high, size, False)

    def seed(self, seed: Any = None) -> None:
        """Start the stream of a seed."""
        self._source.seed(None if seed is None else unwatched(lambda: stream(_STATE(seed))))


def _own(cls: type, original: type) -> None:
    """Refuse by name every method of NumPy's that is not replaced: none may draw unseen."""
    for name in dir(original):
        if not name.startswith("_") and callable(getattr(original, name)) and not _written_here(cls, name):
            setattr(cls, name, refuser(f"numpy.random {name}", "a method that is not followed", _FOLLOWED))


def _written_here(cls: type, name: str) -> bool:
    return any(name in vars(owner) for owner in (cls, NumpyDraws))


_own(CaughtNumpyGenerator, np.random.Generator)
_own(CaughtState, np.random.RandomState)


def _no_bits(self: Any) -> Any:
    raise Unsupported("Generator.bit_generator", "the bits under a generator", _FOLLOWED)


for _class in (CaughtNumpyGenerator, CaughtState):
    for _name in ("bit_generator", "_bit_generator"):
        setattr(_class, _name, property(_no_bits))


class _StandIn(type):
    """In place of a class of NumPy's while code runs: makes a caught one, and knows the instances of both."""

    original: type
    make: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.make(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.original)


def numpy_patches(session: Tracer) -> tuple[list[Patch], dict[int, str]]:
    """What catches `numpy.random`, and the names of the functions replaced by the id of the original."""

    def prepared(cls: type, seeded: Callable[[Any], Any], seed: Any, source: Source | None = None) -> Any:
        made: Any = cls.__new__(cls) if cls is CaughtState else cls(_PCG64(0))
        made._session, made._source = session, source or Source(session)
        if seed is not None:
            made._source.seed(unwatched(lambda: stream(seeded(seed))))
        return made

    def default_rng(seed: Any = None) -> Any:
        if isinstance(seed, CaughtNumpyGenerator):
            return seed
        if seed is not None and not isinstance(seed, int | np.integer | list | tuple):
            raise Unsupported("numpy.random.default_rng", seed, "no seed, or an integer")
        return prepared(CaughtNumpyGenerator, _PCG64, seed)

    def random_state(seed: Any = None) -> Any:
        return prepared(CaughtState, _STATE, seed)

    shared = prepared(CaughtState, _STATE, None, session.globals["numpy"])
    originals = {
        name: function
        for name, function in vars(np.random).items()
        if not name.startswith("_") and isinstance(getattr(function, "__self__", None), np.random.RandomState)
    }
    refused = refuser("numpy.random.Generator", "a bit generator", "numpy.random.default_rng")
    patches = [Patch(np.random, name, getattr(shared, name)) for name in originals]
    patches += [
        Patch(np.random, "ranf", shared.random_sample),
        Patch(np.random, "sample", shared.random_sample),
        Patch(np.random, "seed", shared.seed),
        Patch(np.random, "default_rng", default_rng),
        Patch(np.random, "RandomState", _StandIn("RandomState", (), {"original": _STATE, "make": random_state})),
        Patch(np.random, "Generator", _StandIn("Generator", (), {"original": _GENERATOR, "make": refused})),
    ]
    for name in _BITS:
        original = getattr(np.random, name)
        no_bits = refuser(f"numpy.random.{name}", "a bit generator", "numpy.random.default_rng")
        patches.append(Patch(np.random, name, _StandIn(name, (), {"original": original, "make": no_bits})))
    for name in ("default_rng", "ranf", "sample", "seed"):
        originals[name] = getattr(np.random, name)
    return patches, {id(function): f"numpy.random.{name}" for name, function in originals.items()}
