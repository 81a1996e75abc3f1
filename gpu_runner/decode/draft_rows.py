"""Draft rows of many parents at once: the torch counterpart of `rheo_core.DraftRow`.

A row plays the two roles that the paper keeps apart (sections 3.2 and 5.4, appendix B): its score law at T = 1 over the
full draft vocabulary ranks tokens, its sampling law (temperature, sparse support) is what the sampled token is drawn
from. Tail laws stay sparse, [n, S] over the supported ids, until verification asks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gpu_runner.decode.laws import best, check_int, check_rows, softmax, total
from rheo_core.checks import check_temperature


@dataclass(frozen=True)
class Tails:
    """q~ of n parents: `law` [n, S] over draft ids `ids` [n, S], rising; rows not `present` [n] have none."""

    ids: Tensor
    law: Tensor
    present: Tensor

    def dense(self, size: int, ids: Tensor | None = None) -> Tensor:
        """The laws over a vocabulary of `size` tokens [n, size]; `ids[draft id]` = target id maps them there."""
        columns = self.ids if ids is None else ids[self.ids]
        return self.law.new_zeros(len(self.law), size).scatter_(-1, columns, self.law)

    def row(self, number: int) -> Tails:
        """One parent's law, as `Tails` of one row."""
        return Tails(self.ids[number : number + 1], self.law[number : number + 1], self.present[number : number + 1])


class DraftRows:
    """The rows of n parents: `score` laws [n, draft V], and their tail laws once the leads are known.

    `given` [n, draft V] is what they are made from, laws or logits; the score laws are made when first asked for.
    """

    def __init__(
        self,
        given: Tensor,
        law: Callable[[Tensor], Tensor],
        tails: Callable[[Tensor], Tails | None],
        support: int = 0,
    ) -> None:
        self.given = given
        self._law = law
        self._score: Tensor | None = None
        self._tails = tails
        self._least = support
        self._best = torch.empty(len(given), 0, dtype=torch.long, device=given.device)

    @classmethod
    def laws(cls, score: Tensor, sampling: Tensor | None = None) -> DraftRows:
        """Laws [n, V] that rank and laws [n, V] that are drawn from (None: the same)."""
        drawn = check_rows(score if sampling is None else sampling, "sampling")

        def tails(leads: Tensor) -> Tails:
            left = drawn.scatter(-1, leads, 0)
            mass = total(left)
            present = mass > 0
            law = torch.where(present[:, None], left / mass[:, None], torch.zeros_like(left))
            return Tails(torch.arange(left.shape[-1], device=left.device).expand_as(left), law, present)

        return cls(check_rows(score, "score"), lambda laws: laws, tails)

    @classmethod
    def logits(cls, logits: Tensor, temperature: float = 1, support: int | None = None) -> DraftRows:
        """Score laws softmax(`logits`) at T = 1; tail laws at `temperature` over the `support` best tokens (None: all).

        The tail is a softmax of its own over the supported tokens outside the lead (a restricted one underflows when
        the lead holds nearly all mass); masked tokens (-inf) never belong to it.
        """
        check_rows(logits, "logits")
        check_temperature(temperature)
        check_support(support)
        size = logits.shape[-1]
        kept = size if support is None else min(int(support), size)
        rows = cls(logits, softmax, lambda leads: tails(leads), kept)

        def tails(leads: Tensor) -> Tails | None:
            m = leads.shape[-1]
            if m >= kept:
                return None
            supported = rows.best(kept)[:, m:kept]
            kept_logits = logits.gather(-1, supported)
            present = kept_logits.amax(-1) > -torch.inf
            law = softmax(kept_logits, temperature).masked_fill(~present[:, None], 0)
            ids, order = supported.sort(dim=-1)
            return Tails(ids, law.gather(-1, order), present)

        return rows

    def __len__(self) -> int:
        return len(self.given)

    @property
    def score(self) -> Tensor:
        """The score laws [n, draft V]."""
        if self._score is None:  # a cached_property locks in Python 3.11, which torch cannot put in a graph
            self._score = self._law(self.given)
        return self._score

    def best(self, k: int) -> Tensor:
        """Draft ids of the k best tokens of each row [n, k], equal scores by lower id."""
        if self._best.shape[-1] < k:
            self._best = best(self.score, max(k, self._least))
        return self._best[:, :k]

    def tails(self, leads: Tensor) -> Tails | None:
        """q~ outside `leads` [n, m] (appendix C.1); None where no row can have one."""
        return self._tails(leads)


def check_support(support: int | None) -> None:
    """Raise unless `support` is a positive int, or None for the full vocabulary."""
    if support is not None:
        check_int(support, 1, "support", ", or None for the full vocabulary")
