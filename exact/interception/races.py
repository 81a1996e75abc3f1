"""Draws made by the largest or smallest of many noisy numbers.

The minimum of independent exponentials falls on i with probability proportional to its rate, whatever its value; the
same race hides in p / exponential, in logits + Gumbel noise and in ln(u) / w. Each uniform of a row is brought to
E / rate with one common monotone map around it, and the draw is made by the rates alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exact.arithmetic import ONE, ZERO
from exact.interception.errors import Unsupported
from exact.interception.maps import Affine, Exp, Log, Reciprocal, Step, exponential
from exact.interception.uniforms import Uniform

_REFLECTED = Affine(-ONE, ONE)


def rates(row: Sequence[Uniform], largest: bool, use: str) -> list[Any]:
    """Exact weights with which each number of `row` is the largest (or the smallest) of them.

    The row must hold independent uniforms of which nothing is known yet, sent through one common monotone map of
    E / rate (E exponential). Anything else raises.
    """
    coins = [x.coin for x in row]
    if len({coin.number for coin in coins}) < len(coins) or not all(coin.fresh for coin in coins):
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
