"""Given the same rows, draws and coins, the torch twin does what rheo_core does: every call, number, node and token."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_runner.certify.faults import faults
from gpu_runner.certify.reference_diff import compare_cycle
from gpu_runner.decode.draws import FromChooser, Seeded, keyed_chooser
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import tree_method
from gpu_runner.decode.processing import Processing
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import TreeShape, speculate
from tests.gpu_runner.reproduce.tables import Tables, twin_cycle

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
    method = tree_method(draw(st.sampled_from(TREES)))
    if method.lead is not None:
        method = replace(method, lead=draw(st.integers(0, shape.width)))
    return tables, method, shape, draw(st.integers(0, 2**63 - 1))


@settings(max_examples=150)
@given(cases())
def test_twin_equals_reference_call_for_call(case):
    tables, method, shape, seed = case
    prefix = (0,)
    expected, got = Log(keyed_chooser(seed)), Log(keyed_chooser(seed))
    cycle = speculate(tables.target, tables.draft, prefix, method, shape, expected, ids=tables.ids)
    drafted, tokens = twin_cycle(tables, method, shape, prefix, FromChooser(got))
    assert drafted.tree == cycle.tree
    assert tokens == cycle.tokens
    assert got.calls == expected.calls


@settings(max_examples=150)
@given(cases())
def test_seeded_draws_are_the_keyed_choosers(case):
    tables, method, shape, seed = case
    cycle = speculate(tables.target, tables.draft, (0,), method, shape, keyed_chooser(seed), ids=tables.ids)
    drafted, tokens = twin_cycle(tables, method, shape, (0,), Seeded(seed))
    assert drafted.tree == cycle.tree
    assert tokens == cycle.tokens


@pytest.mark.parametrize(  # every pair of method, kind and type
    ("name", "kind", "dtype"),
    [
        ("top-k", "skip", torch.float32),
        ("top-k", "eagle-mapped", torch.float64),
        ("rheo", "skip", torch.float64),
        ("rheo", "eagle-mapped", torch.float32),
        ("rheo-rrsw", "skip", torch.float32),
        ("rheo-rrsw", "eagle-mapped", torch.float64),
    ],
    ids=str,
)
def test_engine_cycles_equal_the_reference_on_the_engines_own_rows(kind, name, dtype, tmp_path):
    target = tiny_model(vocabulary=23, dtype=dtype)
    draft = (
        CausalDraft.skipping(target, [1]) if kind == "skip" else EagleDraft.load(tiny_head(tmp_path, 23, 17), target)
    )
    engine = Engine(target, draft, tree_method(name), TreeShape(4, 4, 12), Processing(0.8, top_k=15), support=9)
    session = engine.start([1, 5, 2])
    for _ in range(12):
        assert compare_cycle(engine, session, 11).difference is None


@pytest.mark.parametrize(
    ("fault", "words"),
    [("token-ties", "node "), ("raw-proxy", "node "), ("trust-first", "emitted tokens"), ("verify-with-q", "emitted")],
)
def test_the_first_difference_is_reported(fault, words):
    target = tiny_model(vocabulary=11)
    method = replace(tree_method("rheo"), lead=0 if fault == "token-ties" else 1)
    engine = Engine(target, CausalDraft.skipping(target, [1]), method, TreeShape(3, 3, 7), fault=faults[fault])
    session = engine.start([1, 5, 2])
    found = [compare_cycle(engine, session, 3).difference for _ in range(20)]
    told = next(each for each in found if each is not None)
    assert told.startswith(words)
    assert "rheo_core" in told
