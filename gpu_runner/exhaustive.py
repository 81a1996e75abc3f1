"""The exact law of what an engine writes, by walking every draw and coin of the whole loop.

Drafting, pruning, verification, cache compaction and the next cycle all run for real; only the randomness is replaced,
by the exhaustive chooser of `exact`. Sessions that are equal to the bit (tokens, caches, features) have one future, so
they are merged between cycles; nothing else is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

from torch import Tensor

from exact.outcomes import law
from gpu_runner.cache import TreeCache
from gpu_runner.draws import FromChooser
from gpu_runner.engine import Engine, Session
from gpu_runner.models import CausalModel
from rheo_core import Chooser

Law = dict[tuple[int, ...], Fraction]


def engine_law(engine: Engine, prompt: Sequence[int], length: int) -> Law:
    """Exact law of the first `length` tokens that `engine` writes after `prompt`.

    Probabilities are taken as the exact values of the floats that the engine computed, so the law differs from the
    target's by rounding where the engine is lossless.
    """
    finished: Law = {}
    under_way: dict[Hashable, tuple[Session, Fraction]] = {(): (engine.start(prompt), Fraction(1))}
    while under_way:
        later: dict[Hashable, tuple[Session, Fraction]] = {}
        for session, mass in under_way.values():
            reached: dict[Hashable, Session] = {}
            for key, weight in law(_cycle(engine, session, len(prompt) + length, reached)).items():
                after = reached[key]
                if len(after.tokens) >= len(prompt) + length:
                    text = tuple(after.tokens[len(prompt) :][:length])
                    finished[text] = finished.get(text, Fraction(0)) + mass * weight
                else:
                    known = later.get(key, (after, Fraction(0)))
                    later[key] = (known[0], known[1] + mass * weight)
        under_way = later
    return finished


def _cycle(
    engine: Engine, session: Session, enough: int, reached: dict[Hashable, Session]
) -> Callable[[Chooser], Hashable]:
    """One cycle from `session` as a program; its result is the key of the session reached."""

    def program(chooser: Chooser) -> Hashable:
        after = session.copy()
        engine.cycle(after, FromChooser(chooser))
        key = tuple(after.tokens[:enough]) if len(after.tokens) >= enough else after.key()
        reached.setdefault(key, after)
        return key

    return program


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
            run = [(i, layer) for i, layer in enumerate(cache.layers) if layer.is_initialized]
            added = [(i, layer.keys[:, :, held : layer.length], layer.values[:, :, held : layer.length]) for i, layer in run]
            self._known[key] = (logits, streams, [(i, keys.clone(), values.clone()) for i, keys, values in added])
            return logits, streams
        logits, streams, states = self._known[key]
        for layer, keys, values in states:
            cache.update(keys, values, layer)
        return logits, streams
