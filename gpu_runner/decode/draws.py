"""Where the engine's randomness comes from.

Every draw has an address, ("tail" | "coin" | "emit", cycle, slot path of the parent, i), as in rheo_core. `Seeded`
turns seed and address into a uniform number by hashing (`montecarlo.keyed_random`), on the device for the draws of a
whole level at once: nothing waits for the host, the same seed gives the same text, and `keyed_chooser` gives rheo_core
exactly the same draws and coins. `FromChooser` lets any rheo_core chooser drive the engine: the exhaustive one of
`exact` certifies it.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from gpu_runner.decode.draft_rows import Tails
from gpu_runner.decode.laws import check_int, position
from montecarlo.keyed_random import (
    ROOT_CODE,
    TAIL,
    AddressChooser,
    Uniforms,
    child_code,
    key_of,
    number_at,
    number_word,
    shifted,
    signed,
    stream,
)
from rheo_core import Chooser, InvalidInput
from rheo_core.checks import check_probability
from rheo_core.chooser import Address

RUN = 0
"""The run of all addresses: an engine's seed has one."""


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
    """Address-keyed draws from a seed, on the device of the rows; addresses [n, 2]: a cycle's word, a path's code."""

    def __init__(self, seed: int) -> None:
        self.seed = check_seed(seed)
        self.key = key_of(self.seed)

    def root(self, cycle: int, device: torch.device) -> Tensor:
        """The cycle's word and the empty path."""
        address = torch.full((1, 2), ROOT_CODE, dtype=torch.long, device=device)
        address[:, 0].fill_(signed(stream(self.key, RUN, cycle)))  # a fill does not wait, as a copy from the host would
        return address

    def below(self, addresses: Tensor, slots: Tensor) -> Tensor:
        """One more slot in each path."""
        return torch.stack([addresses[:, 0], child_code(addresses[:, 1], slots)], dim=-1)

    def tails(self, tails: Tails, size: int, addresses: Tensor) -> Tensor:
        """One draw a row, without a look from the host."""
        word: Tensor = number_word(addresses[:, 0], TAIL, addresses[:, 1], 0)
        u = shifted(word, 11).to(torch.float64) * 2.0**-53
        return tails.ids.gather(-1, position(tails.law, u)[:, None])[:, 0]

    def accept(self, probability: float, at: Address) -> bool:
        """u < probability, strictly."""
        check_probability(probability)
        return self.number(at) < probability

    def index(self, weights: Tensor, at: Address) -> int:
        """By the inverse distribution function; waits for the device."""
        u = torch.tensor([self.number(at)], dtype=torch.float64, device=weights.device)
        return int(position(weights[None], u))

    def number(self, at: Address) -> float:
        """The number in [0, 1) at an address."""
        return number_at(self.key, RUN, at)


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


def keyed_chooser(seed: int, cycle: int = 0) -> AddressChooser:
    """A rheo_core chooser with the draws and coins of `Seeded(seed)`; `cycle` is added to that of every address.

    >>> keyed_chooser(7).accept(0.5, ("coin", 0, (1, 0), 2)) == Seeded(7).accept(0.5, ("coin", 0, (1, 0), 2))
    True
    """
    return AddressChooser(Uniforms(check_seed(seed)), RUN, cycle)


def check_seed(seed: int) -> int:
    """`seed` as an int; raises unless it is one of 0..2^63 - 1."""
    if check_int(seed, 0, "seed") >= 1 << 63:
        raise InvalidInput("seed", seed, "an int below 2^63")
    return int(seed)
