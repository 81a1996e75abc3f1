"""The rows that two models gave while a method ran, as the plain numbers that a document keeps.

A `ModelPair` keeps each row that it checked; a transcript is taken of it when the runs are over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from exact.enumeration.rationals import fraction
from rheo_core import DraftRow, ModelPair
from rheo_core.laws import Row
from rheo_core.models import Prefix

Table = Mapping[tuple[int, ...], tuple[Any, ...]]
"""Rows by prefix; the key "*" does not occur: every prefix that was read is listed."""


@dataclass(frozen=True)
class Transcript:
    """Every row that was read, by prefix, the shortest first; `ids` is the vocabulary map.

    A draft row is its distribution, or (score, sampling) distributions with the same q~ outside the leads.
    """

    target: Table
    draft: Table
    ids: tuple[int, ...] | None

    @classmethod
    def of(cls, models: ModelPair, lead: int | None) -> Transcript:
        """What `models` gave to a method with `lead` lead tokens (None: the method has no such number)."""
        return cls(
            _table(models.target_rows, lambda row: tuple(row.tolist())),
            _table(models.draft_rows, lambda row: plain_row(row, lead or 0)),
            None if models.ids is None else tuple(int(each) for each in models.ids),
        )


def plain_row(row: Row | DraftRow, lead: int = 0) -> tuple[Any, ...]:
    """Give a row as numbers: its distribution, or (score, sampling) with the q~ outside `lead` lead tokens."""
    if not isinstance(row, DraftRow):
        return tuple(row.tolist())
    if row.is_one_law:
        return tuple(row.score.tolist())
    sampling = row.tail(row.order[:lead])
    if sampling is None:  # no mass off the lead: any distribution on the lead says so
        sampling = np.zeros_like(row.score)
        sampling[row.order[0]] = 1
    return tuple(row.score.tolist()), tuple(sampling.tolist())


def _table(rows: Mapping[Prefix, Any], plain: Callable[[Any], tuple[Any, ...]]) -> Table:
    by_length = sorted(rows, key=lambda prefix: (len(prefix), prefix))
    return {prefix: _kept(plain(rows[prefix])) for prefix in by_length}


def _kept(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rationals as `Fraction`, whatever made them; floats as they are."""
    if set(map(type, row)) == {float}:
        return row
    return tuple(_kept(x) if isinstance(x, tuple) else x if isinstance(x, float) else fraction(x) for x in row)
