"""Given the same rows, draws and coins, the torch twin does what rheo_core does: every call, number, node and token."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_runner.draws import FromChooser, KeyedChooser, Seeded
from rheo_core import TreeShape, methods, speculate
from tests.gpu_runner.tables import Tables, twin_cycle

TREES = ["top-k", "rheo", "rheo-rrsw", "rheo-next", "rheo-z", "rheo-adhoc", "rheo-raw", "rheo-half", "rheo-rrsw-z"]


class Log:
    """A chooser that writes down every call: its address and the exact numbers it was given."""

    def __init__(self, source):
        self.source = source
        self.calls = []

    def accept(self, probability, at=None):
        self.calls.append(("accept", at, float(probability)))
        return self.source.accept(probability, at)

    def index(self, weights, at=None):
        self.calls.append(("index", at, [float(w) for w in weights]))
        return self.source.index(weights, at)


@st.composite
def cases(draw):
    size = draw(st.integers(1, 7))
    mapped = draw(st.booleans())
    draft_size = draw(st.integers(1, size)) if mapped else size
    ids = tuple(draw(st.permutations(range(size)))[:draft_size]) if mapped else None
    dtype, grain = draw(st.sampled_from([(np.float64, 0), (np.float64, 8), (np.float32, 4), (np.float32, 16)]))
    tables = Tables(draw(st.integers(0, 10**6)), size, draft_size, dtype, grain, draw(st.booleans()), ids)
    shape = TreeShape(draw(st.integers(1, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 14)))
    method = methods[draw(st.sampled_from(TREES))]
    if method.lead is not None:
        method = replace(method, lead=draw(st.integers(0, shape.width)))
    return tables, method, shape, draw(st.integers(0, 2**63 - 1))


@settings(max_examples=300)
@given(cases())
def test_twin_equals_reference_call_for_call(case):
    tables, method, shape, seed = case
    prefix = (0,)
    expected, got = Log(KeyedChooser(seed)), Log(KeyedChooser(seed))
    cycle = speculate(tables.target, tables.draft, prefix, method, shape, expected, ids=tables.ids)
    drafted, tokens = twin_cycle(tables, method, shape, prefix, FromChooser(got))
    assert drafted.tree == cycle.tree
    assert tokens == cycle.tokens
    assert got.calls == expected.calls


@settings(max_examples=300)
@given(cases())
def test_seeded_draws_are_the_keyed_choosers(case):
    tables, method, shape, seed = case
    cycle = speculate(tables.target, tables.draft, (0,), method, shape, KeyedChooser(seed), ids=tables.ids)
    drafted, tokens = twin_cycle(tables, method, shape, (0,), Seeded(seed))
    assert drafted.tree == cycle.tree
    assert tokens == cycle.tokens
