"""Table 1 of the paper: why the proxy must not fall below q(x_{m+1}).

Draft law {A: 1/2, B: 3/10, C: 1/5}, one lead, three slots, budget 2. With the paper's proxy the sampled token always
survives; with the constant 1/4 it survives only as B, and the law of the output is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.enumeration.rationals import fraction
from exact.enumeration.tree_classes import unpruned
from rheo_core import SAMPLED, ModelPair, Tree, TreeMethod, TreeShape, methods
from rheo_core.models import Prefix

NAMES = ("A", "B", "C")
Q = (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
P = (Fraction(1, 2), Fraction(1, 5), Fraction(3, 10))
SHAPE = TreeShape(width=3, depth=1, budget=2)
PROXIES = {"rheo": "Rheo: min{q(A), z} = 1/2", "rheo-adhoc": "Ad hoc: 1/4"}


@dataclass(frozen=True)
class PoolRow:
    """One line of the table: the method, Y and q~(Y), the ranked pool, and the tokens that survive."""

    method: str
    sampled: str
    probability: Fraction
    ranking: tuple[tuple[str, Fraction], ...]
    survivors: tuple[str, ...]


def target(prefix: Prefix) -> tuple[Fraction, ...]:
    """Give a target on which the fault shows; the paper's table names none."""
    return P


def draft(prefix: Prefix) -> tuple[Fraction, ...]:
    """Give the paper's draft distribution."""
    return Q


def pools() -> Iterator[PoolRow]:
    """Yield the four lines of Table 1, computed."""
    for name in PROXIES:
        method = methods[name]
        assert isinstance(method, TreeMethod)
        for outcome in unpruned(method.drafter(ModelPair(target, draft), SHAPE), (), SHAPE):
            tree = outcome.tree
            labels = [_label(tree, node) for node in range(len(tree))]
            y = next(node for node in range(len(tree)) if tree.kind[node] == SAMPLED)
            yield PoolRow(
                name,
                NAMES[tree.token[y]],
                fraction(outcome.probability),
                tuple((label, fraction(score)) for label, score in zip(labels, tree.score.tolist(), strict=True)),
                tuple(labels[: SHAPE.budget]),
            )


def _label(tree: Tree, node: int) -> str:
    token: Any = NAMES[tree.token[node]]
    return f"Y={token}" if tree.kind[node] == SAMPLED else str(token)
