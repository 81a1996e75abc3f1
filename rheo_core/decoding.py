"""One cycle, and text made of cycles.

`speculate` runs a method once; `generate` repeats it until a length or an end token. What counts as emitted is decided
here: text stops at an end token inside an accepted path, and tokens after it do not count.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from rheo_core.checks import InvalidInput, check_count, check_id
from rheo_core.chooser import Chooser
from rheo_core.methods import Cycle, Method, find_method, run_cycle
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel, check_prefix
from rheo_core.tree import TreeShape


@dataclass(frozen=True)
class Text:
    """Emitted target ids (the prefix not included) and the cycles that emitted them."""

    tokens: tuple[int, ...]
    cycles: tuple[Cycle, ...]

    @property
    def acceptance_length(self) -> Fraction:
        """tau = tokens emitted / cycles run, the target's own token of each cycle included."""
        if not self.cycles:
            raise InvalidInput("cycles", 0, "at least one cycle")
        return Fraction(len(self.tokens), len(self.cycles))


def speculate(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    method: Method | str,
    shape: TreeShape,
    chooser: Chooser,
    *,
    ids: Sequence[int] | None = None,
) -> Cycle:
    """Give one cycle of `method` at `prefix` (target ids).

    `target(prefix)` is a 1-D law [V]; `draft(prefix)` a 1-D law or `DraftRow` in draft ids, where `ids[draft id]` is
    the target id (None: one vocabulary). Raises `InvalidInput` on any row, id or shape that the definitions do not
    allow.

    >>> from fractions import Fraction as F
    >>> import numpy as np
    >>> from rheo_core import SamplingChooser
    >>> law = [F(1, 2), F(3, 10), F(1, 5)]
    >>> chooser = SamplingChooser(np.random.default_rng(0))
    >>> cycle = speculate(lambda prefix: law, lambda prefix: law, (), "rheo", TreeShape(3, 2, 5), chooser)
    >>> cycle.accepted == len(cycle.tokens) - 1 and len(cycle.tree) == 5
    True
    """
    pair = ModelPair(target, draft, ids)
    return run_cycle(find_method(method), pair, check_prefix(prefix, pair), shape, chooser)


def generate(
    target: TargetModel,
    draft: DraftModel,
    prefix: Prefix,
    method: Method | str,
    shape: TreeShape,
    chooser: Chooser,
    length: int,
    *,
    end: Collection[int] = (),
    ids: Sequence[int] | None = None,
) -> Text:
    """Cycles of `method` until `length` tokens are emitted or one of the `end` ids is; the end id is the last token."""
    check_count("length", length, 0)
    rule = find_method(method)
    pair = ModelPair(target, draft, ids)
    start = check_prefix(prefix, pair)
    stops = {check_id(token, len(pair.p(start)), "end") for token in end}
    tokens: list[int] = []
    cycles: list[Cycle] = []
    while len(tokens) < length and not (tokens and tokens[-1] in stops):
        chosen = _InCycle(chooser, len(cycles))
        cycles.append(run_cycle(rule, ModelPair(target, draft, ids), start + tuple(tokens), shape, chosen))
        tokens += _until(cycles[-1].tokens[: length - len(tokens)], stops)
    return Text(tuple(tokens), tuple(cycles))


def _until(tokens: tuple[int, ...], stops: set[int]) -> tuple[int, ...]:
    """Give the tokens up to and including the first end token."""
    end = next((i for i, token in enumerate(tokens) if token in stops), len(tokens) - 1)
    return tokens[: end + 1]


class _InCycle:
    """The same chooser with the number of the cycle written into each address."""

    def __init__(self, chooser: Chooser, cycle: int) -> None:
        self.chooser = chooser
        self.cycle = cycle

    def accept(self, probability: Any, at: Hashable | None = None) -> bool:
        return self.chooser.accept(probability, self._numbered(at))

    def index(self, weights: ArrayLike, at: Hashable | None = None) -> int:
        return self.chooser.index(weights, self._numbered(at))

    def _numbered(self, at: Hashable | None) -> Hashable | None:
        return (at[0], self.cycle, *at[2:]) if isinstance(at, tuple) and len(at) == 4 else at
