"""One uniform number for every random step, known by the step's address: of ints, NumPy arrays and torch tensors alike.

A sequential generator ties the outcome to the order in which a program asks. Here the number is a function of (seed,
run, address), so a vectorised program and the reference, which ask in different orders, run on the same randomness and
can be compared token by token. The function is the SplitMix64 finaliser (Steele, Lea and Flood 2014; constants of
Stafford's variant 13) applied to the run and then to the address.

A word has 64 bits: a Python int, a uint64 array, or an int64 tensor of the same bits; the functions of words take all
three, and torch need not be installed.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from hashlib import blake2b
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rheo_core import InvalidInput, SamplingChooser
from rheo_core.chooser import Address
from rheo_core.tree import SlotPath

Words = NDArray[np.uint64]

TAIL, COIN, EMIT = 1, 2, 3
KINDS = {"tail": TAIL, "coin": COIN, "emit": EMIT}
ROOT_CODE = 1

_BITS = 2**64 - 1
_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_STEP = 0xD1342543DE82EF95  # odd: a path code is a polynomial in it, modulo 2^64


def mix(word: Any) -> Any:
    """A bijection of words in which every input bit moves about half of the output bits."""
    for by, factor in ((30, _FIRST), (27, _SECOND)):
        word = _times(word ^ shifted(word, by), factor)
    return word ^ shifted(word, 31)


def child_code(code: Any, slot: Any) -> Any:
    """The code of the children in `slot` of nodes whose slot path has `code`."""
    return _wrapped(_times(code, _STEP) + slot + 1)


def code_of(path: SlotPath) -> int:
    """The code of one slot path."""
    return reduce(child_code, path, ROOT_CODE)


def key_of(seed: int) -> int:
    """The word of a seed."""
    return int(mix(_wrapped(seed + _GOLDEN)))


def stream(key: Any, run: Any, cycle: Any) -> Any:
    """One word for each run and cycle of a seed's key."""
    return mix(_wrapped(mix(_wrapped(key + _times(run, _GOLDEN))) + _times(cycle, _STEP)))


def number_word(streams: Any, kind: int, code: Any, i: Any) -> Any:
    """The word at addresses (kind, cycle, path of code, i)."""
    place = mix(_wrapped(_times(code, _GOLDEN) + 4 * i + kind))
    return mix(_wrapped(mix(streams ^ place) + _held(_GOLDEN, streams)))


def derived(seed: int, *parts: int) -> int:
    """A seed of its own below 2^63 for each (seed, parts): for questions, turns, processes."""
    word = 0
    for part in (seed, *parts):
        word = mix(_wrapped(word + _times(part + 1, _GOLDEN)))
    return word >> 1


def signed(word: int) -> int:
    """A 64-bit word as the int64 of the same bits."""
    return word - 2**64 if word >> 63 else word


def shifted(word: Any, by: int) -> Any:
    """Shift right, filling with zeros (an int64 tensor would fill with its sign)."""
    return (word >> by) & (_BITS >> by)


def _held(constant: int, like: Any) -> int:
    return constant if isinstance(like, int | np.ndarray) else signed(constant)


def _times(word: Any, constant: int) -> Any:
    return _wrapped(word * _held(constant, word))


def _wrapped(word: Any) -> Any:
    return word & _BITS if isinstance(word, int) else word  # arrays and tensors wrap around by themselves


def number_at(key: int, run: int, at: Address) -> float:
    """The number in [0, 1), a multiple of 2^-53, at one address of a run."""
    kind, cycle, path, i = at
    return float(shifted(number_word(stream(key, run, cycle), KINDS[kind], code_of(path), i), 11) * 2.0**-53)


def root_codes(count: int) -> Words:
    """Codes [count] of the empty slot path."""
    return np.full(count, ROOT_CODE, dtype=np.uint64)


def child_codes(codes: Words, slots: ArrayLike) -> Words:
    """Codes of the children in `slots` of nodes with path `codes` (broadcast against each other)."""
    return cast("Words", child_code(codes, np.asarray(slots).astype(np.uint64)))


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
        self.key = key_of(seed)

    def streams(self, runs: ArrayLike, cycle: int) -> Words:
        """One word for each of `runs` [n]; the cycles of one run have different words."""
        numbers = np.atleast_1d(np.asarray(runs)).astype(np.uint64)
        return cast("Words", stream(self.key, numbers, cycle))

    def at(self, streams: Words, kind: int, codes: Words, i: ArrayLike) -> NDArray[np.float64]:
        """The numbers at addresses (kind, cycle, path of code, i); all broadcast against each other."""
        words: Words = number_word(streams, kind, codes, np.asarray(i).astype(np.uint64))
        return (words >> 11).astype(np.float64) * 2.0**-53


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
            code = np.array([code_of(path)], dtype=np.uint64)
            return float(
                self.uniforms.at(self.uniforms.streams(self.run, self._cycle + cycle), KINDS[kind], code, i)[0]
            )
        word = int.from_bytes(blake2b(repr(at).encode(), digest_size=8).digest(), "little")
        streams = self.uniforms.streams(self.run, self._cycle)
        return float(self.uniforms.at(streams, 0, np.array([word], dtype=np.uint64), 0)[0])


class _OneNumber:
    """Stands for a generator whose next number is known."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number
