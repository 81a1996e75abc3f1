"""The first verdict on a small tree over a whole vocabulary, where no sequence of tokens is listed.

The tokens of one cycle are an emitted token and, where a candidate was accepted, one from the target's own row behind
it; a rejected layer is continued from the same row. So the first two tokens have the target's distribution iff the
first one has, and its distribution is known in closed form. Of a deeper tree the first token alone is judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exact.acceptance.one_pool import CLOSED, Emitted, OneLayerTree
from exact.acceptance.tree_sums import BY_NODE, TreeSums
from exact.enumeration.cycle_law import Tokens
from exact.enumeration.rationals import format_distinct
from exact.verdict.document import number
from rheo_core import Method, ModelPair, TreeShape
from rheo_core.methods import Claim
from rheo_core.models import Prefix

WIDE = 64
"""Vocabulary from which a layer is judged so; below it every class is enumerated as well."""


@dataclass(frozen=True)
class WrongToken:
    """A first token with its probability and the right one."""

    sequence: Tokens
    got: Fraction
    right: Fraction

    def __str__(self) -> str:
        got, right = format_distinct(self.got, self.right)
        return f"{self.sequence}: got {got}, right {right}"

    def document(self) -> dict[str, Any]:
        """Give the token as plain JSON values."""
        return {"sequence": list(self.sequence), "got": number(self.got), "right": number(self.right)}


@dataclass(frozen=True)
class LayerVerdict:
    """Whether a layer, or the first token of a deeper tree, has the target's distribution, and what is accepted.

    `tokens` is how many tokens the verdict covers, `path` the way to it, `classes` None where none were listed.
    """

    claim: Claim
    prefix: Prefix
    acceptance_length: Fraction
    total_variation: Fraction
    counterexample: WrongToken | None
    tokens: int
    path: str
    classes: int | None

    @classmethod
    def of(cls, method: Method, pair: ModelPair, shape: TreeShape, prefix: Prefix = ()) -> LayerVerdict | None:
        """Give the verdict; None where the vocabulary is small or the layer has no closed form."""
        if len(pair.p(prefix)) < WIDE or pair.p(prefix).dtype.kind != "O":
            return None
        rest: tuple[int, str, int | None]
        if (layer := OneLayerTree.of(method, pair, shape, prefix)) is not None:
            tau, emitted, rest = 1 + layer.acceptance, layer.emitted, (2, CLOSED, None)
        elif (sums := TreeSums.of(method, pair, shape, prefix)) is not None:
            tau, emitted, rest = sums.acceptance_length, sums.first, (1, BY_NODE, sums.classes)
        else:
            return None
        return cls(method.claim, prefix, tau, emitted.total_variation, _wrong(emitted), *rest)

    @property
    def lossless(self) -> bool:
        """Tell whether the emitted distribution is the target's."""
        return self.counterexample is None

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return "lossless" if self.lossless else "lossy"

    @property
    def scope(self) -> str:
        """One line on what the verdict covers and the way to it."""
        return (
            f"scope: these rows; first {self.tokens} tokens after prefix {self.prefix}, one cycle continued from the "
            f"target, ends not compared; ideal coins; exact; by {self.path}"
        )

    def summary(self) -> dict[str, Any]:
        """Verdict and figures as plain JSON values, with the keys of a certificate's."""
        wrong = self.counterexample
        return {
            "verdict": self.verdict,
            "lossless": self.lossless,
            "every_target": None,
            "every_target_reason": "",
            "claim": self.claim,
            "classes": self.classes,
            "total_variation": number(self.total_variation),
            "acceptance_length": number(self.acceptance_length),
            "acceptance_by_depth": [number(1), number(self.acceptance_length - 1)] if self.tokens == 2 else None,
            "counterexample": None if wrong is None else wrong.document(),
            "lemmas": {},
            "scope": self.scope,
            "note": "",
        }


def _wrong(emitted: Emitted) -> WrongToken | None:
    found = emitted.wrong
    return None if found is None else WrongToken((found[0],), found[1], found[2])
