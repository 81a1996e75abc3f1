"""Recordings of the reference decoder, in the same form as those of any engine.

They are what the audit is tested on, and an example of a recording that is right: each token beside the rows that hold
at its own prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from montecarlo.recording import Record, Row
from rheo_core import Chooser, Method, TreeShape, generate
from rheo_core.models import DraftModel, ModelPair, Prefix, TargetModel


def record(
    method: Method | str,
    target: TargetModel,
    draft: DraftModel,
    shape: TreeShape,
    chooser: Chooser,
    length: int,
    *,
    prefix: Prefix = (),
    ids: Sequence[int] | None = None,
    request: str | None = None,
) -> Iterator[Record]:
    """`length` tokens of `generate`, each with its target row, its draft row (in target ids), cycle and position."""
    text = generate(target, draft, prefix, method, shape, chooser, length, ids=ids)
    pair = ModelPair(target, draft, ids)
    done = 0
    for number, cycle in enumerate(text.cycles):
        for position, token in enumerate(cycle.tokens[: length - done]):
            context = (*prefix, *text.tokens[: done + position])
            p = pair.p(context)
            q = pair.in_target_ids(pair.q(context).score, len(p))
            where = f"{request or 'run'}: token {done + position}"
            yield Record(where, token, whole(p), whole(q), number, position, request)
        done += len(cycle.tokens)


def whole(law: Any) -> Row:
    """A whole law [V] as a recorded row."""
    return Row(None, np.asarray(law, dtype=np.float64), 0.0)
