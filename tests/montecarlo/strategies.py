"""Small pairs with ties, zeros and one-hot rows, and uniform numbers that hit the edges of coins and draws."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import TablePair, hashed_states
from rheo_core import DraftRow, TreeMethod, TreeShape, methods, proxies

FLOATS = (np.float64, np.float32, np.float16)


class GridUniforms(Uniforms):
    """Numbers rounded down to a grid of `levels` steps, so that u = probability happens all the time."""

    def __init__(self, seed, levels):
        super().__init__(seed)
        self.levels = levels

    def at(self, streams, kind, codes, i):
        return np.floor(super().at(streams, kind, codes, i) * self.levels) / self.levels


def laws(vocabulary, count, dtype):
    """`count` rows of small integer weights, normalised: zeros and ties are the rule."""
    row = st.lists(st.integers(0, 3), min_size=vocabulary, max_size=vocabulary).filter(any)
    return st.lists(row, min_size=count, max_size=count).map(lambda rows: normalised(np.array(rows), dtype))


def normalised(weights, dtype):
    return (weights / weights.sum(axis=1, keepdims=True)).astype(dtype)


@st.composite
def pairs(draw):
    dtype = draw(st.sampled_from(FLOATS))
    states = draw(st.integers(1, 4))
    vocabulary = draw(st.integers(2, 7))
    target = draw(laws(vocabulary, states, dtype))
    ids = None
    size = vocabulary
    if draw(st.booleans()):
        size = draw(st.integers(1, vocabulary))
        ids = draw(st.permutations(range(vocabulary)))[:size]
    form = draw(st.sampled_from(["plain", "two laws", "logits"]))
    if form == "plain":
        drafts = draw(laws(size, states, dtype))
    elif form == "two laws":
        drafts = draw(laws(size, states, dtype)), draw(laws(size, states, dtype))
    else:
        logits = st.lists(st.sampled_from([-2.0, 0.0, 1.0, 1.5]), min_size=size, max_size=size)
        temperature = draw(st.sampled_from([0, 0.5, 1]))
        support = draw(st.one_of(st.none(), st.integers(1, size)))
        drafts = [DraftRow.logits(np.array(draw(logits), dtype=dtype), temperature, support) for _ in range(states)]
    return TablePair(target, drafts, hashed_states(states, draw(st.integers(0, 99))), ids)


@st.composite
def setups(draw):
    """(method, pair, shape, uniforms)."""
    pair = draw(pairs())
    shape = TreeShape(draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 14)))
    method = draw(st.sampled_from([rule for rule in methods.values() if isinstance(rule, TreeMethod)]))
    if method.lead is not None:
        least = 1 if method.proxy in (proxies.NEXT_TOKEN, proxies.TAIL_MASS) else 0  # else beyond 1 by rounding
        method = replace(method, lead=draw(st.integers(min(least, shape.width), shape.width)))
    seed = draw(st.integers(0, 2**32))
    levels = draw(st.sampled_from([1, 2, 4, 60, None]))
    return method, pair, shape, Uniforms(seed) if levels is None else GridUniforms(seed, levels)
