"""What the two models say: target rows, draft rows, and the pair of them seen through an id map.

A draft row plays two roles that the paper keeps apart (sections 3.2 and 5.4, appendix B): its *score law* (T = 1, full
vocabulary) ranks tokens, its *sampling law* (temperature, sparse support) is what the sampled token is drawn from.
`ModelPair` is the one door through which rows reach the algorithms: every row is checked there, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rheo_core.checks import (
    InvalidInput,
    check_count,
    check_id,
    check_law,
    check_logits,
    check_map,
    check_same,
    check_temperature,
)
from rheo_core.laws import Row, RowLike, softmax, without

Prefix = tuple[int, ...]
TargetModel = Callable[[Prefix], RowLike]
DraftModel = Callable[[Prefix], "RowLike | DraftRow"]

DEFAULT_SUPPORT = 128
"""Tokens kept in the sampling law by the commands unless told otherwise (section 3.2, table 5)."""


class DraftRow:
    """A draft model's row at one prefix: a score law that ranks and a sampling law that Y is drawn from.

    Made by `DraftRow.law`, `DraftRow.pair` or `DraftRow.logits`. `score` is a law [V]; `tail(lead)` is q~ [V], the
    sampling law restricted to the tokens outside `lead` and normalised, or None where it has no mass there.

    >>> row = DraftRow.law([0.5, 0.25, 0.25])
    >>> row.order.tolist(), row.tail([0]).tolist(), DraftRow.law([1, 0]).tail([0])
    ([0, 1, 2], [0.0, 0.5, 0.5], None)
    """

    def __init__(self, score: Row, tail: Callable[[Sequence[int]], Row | None], sampling: Row | None = None) -> None:
        self.score = score
        self.sampling = sampling  # None where the tail law is not a restriction of one law
        self._tail = tail

    @classmethod
    def law(cls, q: RowLike, name: str = "q") -> DraftRow:
        """Give one distribution `q` [V] that stands for both."""
        law = check_law(q, name)
        return cls(law, lambda lead: without(law, lead), law)

    @property
    def is_one_law(self) -> bool:
        """Tell whether one distribution is both the score and the sampling distribution."""
        return self.score is self.sampling

    @classmethod
    def pair(cls, score: RowLike, sampling: RowLike) -> DraftRow:
        """Give a score distribution [V] and a sampling distribution [V] of the same arithmetic."""
        ranked, drawn = check_law(score, "score"), check_law(sampling, "sampling")
        check_same(drawn, ranked, "sampling", "score")
        return cls(ranked, lambda lead: without(drawn, lead), drawn)

    @classmethod
    def logits(cls, logits: ArrayLike, temperature: float = 1, support: int | None = None) -> DraftRow:
        """Score law softmax(`logits`) at T = 1; tail law the softmax at `temperature` over supported non-lead tokens.

        `support` is the number of best tokens that the sampling law keeps (None: all of them); masked tokens (-inf)
        never belong to it. At temperature 0 the tail law lies wholly on its best token. The tail is a softmax of its
        own, not a restricted one, which underflows when the lead holds nearly all mass.
        """
        x = check_logits(logits)
        check_temperature(temperature)
        if support is not None:
            check_count("support", support, 1)
        score = check_law(softmax(x), "softmax(logits)")
        supported = [int(v) for v in falling_order(score)[:support] if np.isfinite(x[v])]

        def tail(lead: Sequence[int]) -> Row | None:
            held = set(lead)
            kept = [v for v in supported if v not in held]
            if not kept:
                return None
            law = np.zeros_like(x)
            if temperature == 0:
                law[kept[0]] = 1  # x_{m+1}; where scores round to a tie, the best logit need not be there
            else:
                law[kept] = softmax(x[kept], temperature)
            return law

        return cls(score, tail)

    @cached_property
    def order(self) -> Row:
        """Draft ids by falling score; equal scores by lower id (a function of q alone, so harmless)."""
        return falling_order(self.score)

    def tail(self, lead: Iterable[int]) -> Row | None:
        """q~ [V] outside `lead` (appendix C.1); None where the sampling distribution has no mass there."""
        return self._tail([int(v) for v in lead])


class ModelPair:
    """A target and a draft, each row checked once and kept, with draft ids mapped to target ids.

    `target(prefix)` gives a 1-D law over target ids, `draft(prefix)` a 1-D law or a `DraftRow` over draft ids; a prefix
    is a tuple of target ids. `ids[draft id] = target id` must be injective; None means the two vocabularies are one.
    """

    def __init__(self, target: TargetModel, draft: DraftModel, ids: Sequence[int] | None = None) -> None:
        self._target = target
        self._draft = draft
        self.ids = ids
        self.target_rows: dict[Prefix, Row] = {}  # every row that was read
        self.draft_rows: dict[Prefix, DraftRow] = {}
        self._sizes: dict[str, tuple[int, Prefix]] = {}

    def unread(self) -> ModelPair:
        """Give the same models with no row read."""
        return ModelPair(self._target, self._draft, self.ids)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave what was read behind when a pair is sent to another process."""
        return ModelPair, (self._target, self._draft, self.ids)

    def p(self, prefix: Prefix) -> Row:
        """Give the target distribution [V] at `prefix`."""
        if prefix not in self.target_rows:
            row = check_law(self._target(prefix), f"target({prefix})")
            self._check_size("target", len(row), prefix)
            self.target_rows[prefix] = row
        return self.target_rows[prefix]

    def q(self, prefix: Prefix) -> DraftRow:
        """Give the draft row [draft V] at `prefix`, in draft ids."""
        if prefix not in self.draft_rows:
            p = self.p(prefix)
            given = self._draft(prefix)
            row = given if isinstance(given, DraftRow) else DraftRow.law(given, f"draft({prefix})")
            self._check_size("draft", len(row.score), prefix)
            if not self.draft_rows:  # sizes are the same at every prefix
                check_map(self.ids, len(row.score), len(p))
            if row.score.dtype != p.dtype:
                raise InvalidInput(f"draft({prefix})", row.score.dtype, f"the target's arithmetic, {p.dtype}")
            self.draft_rows[prefix] = row
        return self.draft_rows[prefix]

    def given_draft(self, prefix: Prefix) -> Row | DraftRow:
        """Give the checked draft row in the form the draft gave it: a plain law [draft V], or a `DraftRow`."""
        row = self.q(prefix)
        return row.score if row.is_one_law else row

    def target_id(self, draft_id: int) -> int:
        """Give the target id of a draft id."""
        return draft_id if self.ids is None else int(self.ids[draft_id])

    def in_target_ids(self, row: Row, size: int) -> Row:
        """Give a row over draft ids spread over the `size` target ids, zero elsewhere."""
        if self.ids is None:
            return row
        spread = np.zeros(size, dtype=row.dtype)
        spread[list(self.ids)] = row
        return spread

    def _check_size(self, name: str, size: int, prefix: Prefix) -> None:
        known, where = self._sizes.setdefault(name, (size, prefix))
        if size != known:
            raise InvalidInput(f"{name}({prefix})", f"{size} entries", f"{known}, as at prefix {where}")


def falling_order(score: Row) -> Row:
    """Sort token ids by falling score; equal scores by lower id (a function of q alone, so harmless)."""
    return np.argsort(-score, kind="stable")


def check_prefix(prefix: Iterable[int], pair: ModelPair) -> Prefix:
    """`prefix` as a tuple of ids of the target's vocabulary."""
    try:
        ids = tuple(prefix)
    except TypeError:
        raise InvalidInput("prefix", prefix, "a sequence of token ids") from None
    for position, token in enumerate(ids):
        check_count(f"prefix[{position}]", token, 0)
    ids = tuple(int(token) for token in ids)
    size = len(pair.p(ids))
    return tuple(check_id(token, size, f"prefix[{position}]") for position, token in enumerate(ids))
