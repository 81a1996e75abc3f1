"""Two things that exact verdicts take for granted, looked at rather than believed.

A model is a function of its prefix: it is asked twice and must answer alike. A verification rule treats every cycle
alike: what is enumerated is cycle 0, so the same law must come out when the cycle in the addresses `at` is another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from exact.classes import TreeClass
from exact.cycle_law import Emitted, NodeLaws, emitted_law
from exact.nodewise import Node, NodeMethod, nodewise_law
from rheo_core import Chooser, DraftRow, InvalidInput, Method, TreeMethod, TreeShape
from rheo_core.rows import Pair, Prefix
from rheo_core.verification import Place, Verdict

CYCLES = (1, 2, 1000)
"""The cycles that a rule is told it is in."""

OURS = ("rheo_core.", "exact.catalogue.")


class Steady:
    """A model that is asked twice at each prefix; raises `InvalidInput` where it answers differently."""

    def __init__(self, model: Callable[[Prefix], Any], name: str) -> None:
        self.model = model
        self.name = name

    def __call__(self, prefix: Prefix) -> Any:
        """The row at `prefix`."""
        first, second = self.model(prefix), self.model(prefix)
        if not _same(_plain(first), _plain(second)):
            given = "two different rows when asked twice"
            raise InvalidInput(f"{self.name}({prefix})", given, "one row: a model must be a function of its prefix")
        return first


def _plain(row: Any) -> Any:
    """A row as plain numbers; None for what is no row, which is refused elsewhere."""
    if isinstance(row, DraftRow):
        return row.record(0)
    try:
        array = np.asarray(row)
    except (TypeError, ValueError):
        return None
    return array.tolist() if array.ndim == 1 else None


def _same(first: Any, second: Any) -> bool:
    return bool(first == second) or repr(first) == repr(second)  # NaN is not equal to itself


def check_every_cycle(
    rule: Method, pair: Pair, prefix: Prefix, shape: TreeShape, known: list[TreeClass] | None, emitted: Emitted
) -> None:
    """Raise `InvalidInput` unless a rule emits the law `emitted` in other cycles too; `known` are its classes.

    Only for rules that are handed addresses, and not for those of this project.
    """
    for cycle in CYCLES:
        if isinstance(rule, TreeMethod) and known is not None and not comes_from(rule.verify, OURS):
            laws = NodeLaws(rule.drafter(pair, shape), partial(_in_cycle, rule.verify, cycle))
            law = emitted_law(known, laws, prefix)
        elif isinstance(rule, NodeMethod) and not all(comes_from(part, OURS) for part in (rule.verify, rule.draft)):
            law = nodewise_law(_renumbered(rule, cycle), pair, prefix, shape)
        else:
            return
        if law != emitted:
            given = f"another law in cycle {cycle} than in cycle 0"
            raise InvalidInput(rule.name, given, "a rule that does not look at the cycle number in `at`")


def _in_cycle(
    verify: Any,
    cycle: int,
    p: Any,
    tail: Any,
    candidates: Sequence[int],
    sampled: int,
    lead: int,
    chooser: Chooser,
    at: Place,
) -> Any:
    return verify(p, tail, candidates, sampled, lead, chooser, (cycle, *at[1:]))


def _renumbered(rule: NodeMethod, cycle: int) -> NodeMethod:
    def there(node: Node) -> Node:
        return replace(node, at=(cycle, node.at[1]))

    def draft(node: Node, chooser: Chooser) -> Any:
        return rule.draft(there(node), chooser)

    def verify(node: Node, candidates: Sequence[int], chooser: Chooser) -> Verdict:
        return rule.verify(there(node), candidates, chooser)

    return replace(rule, draft=draft, verify=verify)


def comes_from(part: Any, packages: tuple[str, ...]) -> bool:
    """Whether a function, or what a partial is made of, is defined in one of `packages` (names ending in a dot)."""
    while isinstance(part, partial):
        part = part.func
    return str(getattr(part, "__module__", "")).startswith(packages)
