"""The exact law of what an engine writes, by walking every draw and coin of the whole loop.

Drafting, pruning, verification, cache compaction and the next cycle all run for real; only the randomness is replaced,
by the exhaustive chooser of `exact`. Sessions that are equal to the bit (tokens, caches, features) have one future, so
they are merged between cycles; nothing else is assumed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from torch import Tensor

from exact.enumeration.rationals import ONE, ZERO, fraction
from exact.enumeration.walk import outcomes
from gpu_runner.decode.drafting import Drafted
from gpu_runner.decode.draws import FromChooser
from gpu_runner.decode.engine import Engine, Scored, Session
from gpu_runner.model.cache import TreeCache
from gpu_runner.model.causal_lm import CausalModel
from rheo_core import Chooser

Law = dict[tuple[int, ...], Fraction]


def engine_law(engine: Engine, prompt: Sequence[int], length: int) -> Law:
    """Exact law of the first `length` tokens that `engine` writes after `prompt`.

    Probabilities are taken as the exact values of the floats that the engine computed, so the law differs from the
    target's by rounding where the engine is lossless.
    """
    enough = len(prompt) + length
    finished: Law = {}
    start = engine.start(prompt)
    under_way: dict[Hashable, tuple[Session, Any]] = {start.key(): (start, ONE)}
    while under_way:
        later: dict[Hashable, tuple[Session, Any]] = {}
        for session, mass in under_way.values():
            for after, weight in cycle_outcomes(engine, session):
                if len(after.tokens) >= enough:
                    text = tuple(after.tokens[len(prompt) : enough])
                    finished[text] = finished.get(text, ZERO) + mass * weight
                else:
                    key = after.key()
                    known, sofar = later.get(key, (after, ZERO))
                    later[key] = (known, sofar + mass * weight)
        under_way = later
    return {text: fraction(mass) for text, mass in finished.items()}


def cycle_outcomes(engine: Engine, session: Session) -> Iterator[tuple[Session, Any]]:
    """(session afterwards, exact weight) of every outcome of one cycle: every tree, then every verdict on it."""

    def draft(chooser: Chooser) -> tuple[Session, Drafted]:
        after = session.copy()
        return after, engine.draft_tree(after, FromChooser(chooser))

    for (drafting, drafted), drawn in outcomes(draft):
        scored = engine.score(drafting, drafted)
        for after, weight in outcomes(partial(_committed, engine, drafting, drafted, scored)):
            yield after, drawn * weight


def _committed(engine: Engine, session: Session, drafted: Drafted, scored: Scored, chooser: Chooser) -> Session:
    after = session.copy()
    engine.commit(after, drafted, scored, FromChooser(chooser))
    return after


class Remembering(CausalModel):
    """A model that runs each distinct forward once: same tokens, positions, mask and cache, same answer and states.

    An exhaustive walk repeats the same forwards over and over. Nothing is assumed but that a forward is a function of
    its inputs, all of which are in the key.
    """

    def __init__(self, model: CausalModel) -> None:
        super().__init__(model.model, model.name, model.tokenizer)
        self._known: dict[Hashable, tuple[Tensor, Tensor, list[tuple[int, Tensor, Tensor]]]] = {}

    def __call__(
        self,
        tokens: Tensor,
        positions: Tensor,
        visible: Tensor,
        cache: TreeCache,
        *,
        last: int = 0,
        features: Sequence[int] = (),
    ) -> tuple[Tensor, Tensor]:
        """As `CausalModel`."""
        asked = tuple(tensor.cpu().numpy().tobytes() for tensor in (tokens, positions, visible))
        key = (*asked, cache.key(), last, tuple(features))
        held = cache.length
        if key not in self._known:
            logits, streams = super().__call__(tokens, positions, visible, cache, last=last, features=features)
            run = [(i, layer.states(held)) for i, layer in enumerate(cache.held) if layer.is_initialized]
            self._known[key] = (logits, streams, [(i, keys.clone(), values.clone()) for i, (keys, values) in run])
            return logits, streams
        logits, streams, states = self._known[key]
        for layer, keys, values in states:
            cache.update(keys, values, layer)
        return logits, streams
