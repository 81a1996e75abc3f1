"""Where the engine's randomness comes from.

Every draw has an address, ("tail" | "coin" | "emit", cycle, slot path of the parent, i), as in rheo_core. `Seeded`
turns seed and address into a uniform number by hashing, on the device for the draws of a whole level at once: nothing
waits for the host, the same seed gives the same text, and `KeyedChooser` gives rheo_core exactly the same draws and
coins. `FromChooser` lets any rheo_core chooser drive the engine: the exhaustive one of `exact` certifies it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gpu_runner.decode.draft_rows import Tails
from gpu_runner.decode.laws import check_int, position
from rheo_core import Chooser, InvalidInput, SamplingChooser
from rheo_core.chooser import Address, check_probability

KINDS = {"tail": 1, "coin": 2, "emit": 3}
WORD = (1 << 64) - 1
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
END_OF_PATH = 1 << 32
Word = TypeVar("Word", int, Tensor)


class Draws(Protocol):
    """What the engine asks for: one draw for each parent of a level, a coin, a draw of the emitted token.

    The addresses of a level's draws are a tensor, one row a parent, made from those of the level before: the draft loop
    then does the same at every level, however deep.
    """

    def root(self, cycle: int, device: torch.device) -> Tensor:
        """The address of the root's draw: one row."""
        ...

    def below(self, addresses: Tensor, slots: Tensor) -> Tensor:
        """The addresses of n nodes, in the slots `slots` [n] of the parents at `addresses`, one row each."""
        ...

    def tails(self, tails: Tails, size: int, addresses: Tensor) -> Tensor:
        """Draft ids [n] drawn from the laws of n parents at `addresses`; anything where a law is absent."""
        ...

    def accept(self, probability: float, at: Address) -> bool:
        """Toss a coin."""
        ...

    def index(self, weights: Tensor, at: Address) -> int:
        """Draw a position of `weights` [V]."""
        ...


class Seeded:
    """Address-keyed draws from a seed, on the device of the rows; an address is the hash of its parts so far [n]."""

    def __init__(self, seed: int) -> None:
        self.seed = check_seed(seed)

    def root(self, cycle: int, device: torch.device) -> Tensor:
        """The hash of the seed and the cycle."""
        return torch.full((1,), signed(start(self.seed, "tail", cycle)), dtype=torch.long, device=device)

    def below(self, addresses: Tensor, slots: Tensor) -> Tensor:
        """One more slot in each path."""
        return fold(addresses, slots)

    def tails(self, tails: Tails, size: int, addresses: Tensor) -> Tensor:
        """One draw a row, without a look from the host."""
        word = fold(addresses, torch.full_like(addresses, END_OF_PATH))
        u = ((word >> 11) & ((1 << 53) - 1)).to(torch.float64) * 2.0**-53
        return tails.ids.gather(-1, position(tails.law, u)[:, None])[:, 0]

    def accept(self, probability: float, at: Address) -> bool:
        """u < probability, strictly."""
        check_probability(probability)
        return uniform(self.seed, at) < probability

    def index(self, weights: Tensor, at: Address) -> int:
        """By the inverse distribution function; waits for the device."""
        u = torch.tensor([uniform(self.seed, at)], dtype=torch.float64, device=weights.device)
        return int(position(weights[None], u))


class FromChooser:
    """Draws from a rheo_core chooser: rows are copied to the host, one call for each draw and coin.

    An address is the cycle and the slot path [n, 1 + depth].
    """

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser

    def root(self, cycle: int, device: torch.device) -> Tensor:
        """The cycle and no slot."""
        return torch.full((1, 1), cycle, device=device)

    def below(self, addresses: Tensor, slots: Tensor) -> Tensor:
        """One more slot in each path."""
        return torch.cat([addresses, slots[:, None]], dim=-1)

    def tails(self, tails: Tails, size: int, addresses: Tensor) -> Tensor:
        """One call for each parent that has a tail law, in the order of the parents."""
        rows = tails.dense(size).cpu().numpy()
        drawn = [
            self.chooser.index(row, at=("tail", cycle, tuple(path), 0)) if present else 0
            for row, (cycle, *path), present in zip(rows, addresses.tolist(), tails.present.tolist(), strict=True)
        ]
        return torch.tensor(drawn, device=tails.ids.device)

    def accept(self, probability: float, at: Address) -> bool:
        """The chooser's coin."""
        return self.chooser.accept(probability, at)

    def index(self, weights: Tensor, at: Address) -> int:
        """The chooser's draw."""
        return self.chooser.index(weights.cpu().numpy(), at)


class KeyedChooser:
    """A rheo_core chooser with the draws and coins of `Seeded(seed)`; every call needs its address.

    `cycle` replaces the cycle of the addresses (a single `speculate` writes 0 there).

    >>> KeyedChooser(7).accept(0.5, ("coin", 0, (1, 0), 2)) == Seeded(7).accept(0.5, ("coin", 0, (1, 0), 2))
    True
    """

    def __init__(self, seed: int, cycle: int | None = None) -> None:
        self.seed = check_seed(seed)
        self._cycle = cycle

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        """The coin at an address."""
        return self._at(at).accept(probability)

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        """The draw at an address."""
        return self._at(at).index(weights)

    def _at(self, at: Hashable | None) -> SamplingChooser:
        if not isinstance(at, tuple) or len(at) != 4 or at[0] not in KINDS:
            raise InvalidInput("at", at, 'an address ("tail" | "coin" | "emit", cycle, slot path, i)')
        kind, cycle, path, i = at
        place = (kind, cycle if self._cycle is None else self._cycle, path, i)
        return SamplingChooser(_Fixed(lambda: uniform(self.seed, place)))  # type: ignore[arg-type]


class _Fixed:
    """As much of a NumPy generator as a chooser uses."""

    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random


def uniform(seed: int, at: Address) -> float:
    """The number in [0, 1) at an address, a multiple of 2^-53."""
    kind, cycle, path, i = at
    state = start(seed, kind, cycle)
    for slot in path:
        state = fold(state, slot)
    return float((fold(state, END_OF_PATH + i) >> 11) * 2.0**-53)


def start(seed: int, kind: str, cycle: int) -> int:
    """The hash of what all addresses of one kind and cycle share."""
    return fold(fold(fold(0, seed), KINDS[kind]), cycle)


def fold(state: Word, part: Word) -> Word:
    """Take one more part of an address into a 64-bit hash by SplitMix64's finaliser.

    Python ints are unsigned words; tensors are int64, which wraps around, so both give the same bits.
    """
    if isinstance(state, int):
        word = (state + STEP * (part + 1)) & WORD
        word = (word ^ (word >> 30)) * FIRST & WORD
        word = (word ^ (word >> 27)) * SECOND & WORD
        return word ^ (word >> 31)
    word = state + signed(STEP) * (part + 1)
    word = (word ^ _shifted(word, 30)) * signed(FIRST)
    word = (word ^ _shifted(word, 27)) * signed(SECOND)
    return word ^ _shifted(word, 31)


def derived(seed: int, *parts: int) -> int:
    """A seed of its own for each (seed, parts): for questions, turns, processes."""
    state = fold(0, check_seed(seed))
    for part in parts:
        state = fold(state, part)
    return state >> 1


def signed(word: int) -> int:
    """A 64-bit word as the int64 of the same bits."""
    return word - (1 << 64) if word >> 63 else word


def _shifted(word: Tensor, by: int) -> Tensor:
    """Shift right, filling with zeros (torch fills with the sign)."""
    return (word >> by) & ((1 << (64 - by)) - 1)


def check_seed(seed: int) -> int:
    """`seed` as an int; raises unless it is one of 0..2^63 - 1."""
    if check_int(seed, 0, "seed") >= 1 << 63:
        raise InvalidInput("seed", seed, "an int below 2^63")
    return int(seed)
