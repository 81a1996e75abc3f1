"""One uniform number for every random step, known by the step's address.

A sequential generator ties the outcome to the order in which a program asks. Here the number is a function of (seed,
run, address), so a vectorised program and the reference, which ask in different orders, run on the same randomness and
can be compared token by token. The function is the SplitMix64 finaliser (Steele, Lea and Flood 2014; constants of
Stafford's variant 13) applied to the run and then to the address.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheo_core import InvalidInput, SamplingChooser
from rheo_core.tree import SlotPath

Words = NDArray[np.uint64]

TAIL, COIN, EMIT = 1, 2, 3
KINDS = {"tail": TAIL, "coin": COIN, "emit": EMIT}

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1342543DE82EF95)  # odd: a path code is a polynomial in it, modulo 2^64
_ROOT_CODE = 1


def mix(words: Words) -> Words:
    """A bijection of 64-bit words in which every input bit moves about half of the output bits."""
    x: Words = words ^ (words >> np.uint64(30))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> np.uint64(27))
    x = x * np.uint64(0x94D049BB133111EB)
    mixed: Words = x ^ (x >> np.uint64(31))
    return mixed


def root_codes(count: int) -> Words:
    """Codes [count] of the empty slot path."""
    return np.full(count, _ROOT_CODE, dtype=np.uint64)


def child_codes(codes: Words, slots: ArrayLike) -> Words:
    """Codes of the children in `slots` of nodes with path `codes` (broadcast against each other)."""
    return codes * _STEP + np.asarray(slots).astype(np.uint64) + np.uint64(1)


def path_code(path: SlotPath) -> Words:
    """Code [1] of one slot path."""
    code = root_codes(1)
    for slot in path:
        code = child_codes(code, slot)
    return code


class Uniforms:
    """Uniform numbers in [0, 1), multiples of 2^-53, as a function of (seed, run, cycle, kind, slot path, i).

    >>> u = Uniforms(seed=7)
    >>> stream = u.streams(np.arange(3), cycle=0)
    >>> bool((u.at(stream, TAIL, root_codes(3), 0) == u.at(stream, TAIL, root_codes(3), 0)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        if type(seed) is not int or not 0 <= seed < 2**64:
            raise InvalidInput("seed", seed, "an int from 0 to 2^64 - 1")
        self.seed = seed
        self._key = mix(np.array([seed], dtype=np.uint64) + _GOLDEN)

    def streams(self, runs: ArrayLike, cycle: int) -> Words:
        """One word for each of `runs` [n]; the cycles of one run have different words."""
        numbers = np.atleast_1d(np.asarray(runs)).astype(np.uint64)
        words = mix(self._key + numbers * _GOLDEN)
        return mix(words + np.array([cycle], dtype=np.uint64) * _STEP)

    def at(self, streams: Words, kind: int, codes: Words, i: ArrayLike) -> NDArray[np.float64]:
        """The numbers at addresses (kind, cycle, path of code, i); all broadcast against each other."""
        place = codes * _GOLDEN + np.asarray(i).astype(np.uint64) * np.uint64(4) + np.uint64(kind)
        words = mix(mix(streams ^ mix(place)) + _GOLDEN)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


class AddressChooser:
    """A `Chooser` for rheo_core that runs on the numbers of `Uniforms`, for one run.

    `cycle` is added to the cycle of every address, for a single cycle that stands inside a longer text. A call without
    an address takes the next number of the run's own sequence. What a number decides is left to `SamplingChooser`: a
    coin accepts when u < probability, a draw takes the first position with u * total < cumulative.
    """

    def __init__(self, uniforms: Uniforms, run: int, cycle: int = 0) -> None:
        self.uniforms = uniforms
        self.run = run
        self._cycle = cycle
        self._unaddressed = 0

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """The coin at an address."""
        return self._chooser(at).accept(probability)

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """The draw at an address."""
        return self._chooser(at).index(weights)

    def _chooser(self, at: Hashable | None) -> SamplingChooser:
        return SamplingChooser(cast("np.random.Generator", _OneNumber(self.uniform(at))))

    def uniform(self, at: Hashable | None) -> float:
        """The number at one address."""
        if at is None:
            at = ("call", self._unaddressed)
            self._unaddressed += 1
        if isinstance(at, tuple) and len(at) == 4 and at[0] in KINDS:
            kind, cycle, path, i = at
            streams = self.uniforms.streams(self.run, self._cycle + cycle)
            return float(self.uniforms.at(streams, KINDS[kind], path_code(path), i)[0])
        word = int.from_bytes(blake2b(repr(at).encode(), digest_size=8).digest(), "little")
        streams = self.uniforms.streams(self.run, self._cycle)
        return float(self.uniforms.at(streams, 0, np.array([word], dtype=np.uint64), 0)[0])


class _OneNumber:
    """Stands for a generator whose next number is known."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number
