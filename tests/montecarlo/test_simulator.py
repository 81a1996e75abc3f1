"""The vectorised simulator against the reference code on the same numbers: every tree and every token."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from exact.methods.rows_file import parse_rows, shipped_rows
from montecarlo.keyed_random import AddressChooser, Uniforms
from montecarlo.pairs import CallablePair, Dials, TablePair, rows_pair, scores, synthetic
from montecarlo.simulator import ReferenceLoop, Simulator, engine, texts
from rheo_core import DraftRow, InvalidInput, TreeMethod, TreeShape, generate, methods, proxies, speculate
from tests.montecarlo.strategies import GridUniforms, normalised, setups

RUNS = 4


def tree_method(name, **changes):
    method = methods[name]
    assert isinstance(method, TreeMethod)
    return replace(method, **changes)


def prefixes(prefix, count):
    return np.tile(np.array([prefix], dtype=np.int64).reshape(1, -1), (count, 1))


def same_cycles(method, pair, shape, uniforms, prefix=(), runs=RUNS):
    """Every tree and token of the simulator against the reference on the same numbers."""
    cycles = Simulator(method, pair, shape, uniforms).cycles(prefixes(prefix, runs), np.arange(runs))
    assert cycles.trees is not None
    for run in range(runs):
        chooser = AddressChooser(uniforms, run)
        expected = speculate(pair.target_at, pair.draft_at, prefix, method, shape, chooser, ids=pair.ids)
        assert cycles.trees.tree(run) == expected.tree
        assert cycles.trees.tree(run).depth.tolist() == expected.tree.depth.tolist()
        assert tuple(cycles.tokens[run][cycles.tokens[run] >= 0].tolist()) == expected.tokens
        assert cycles.accepted[run] == expected.accepted


@settings(max_examples=400)
@given(setups())
def test_every_tree_and_token_equals_the_reference(setup):
    same_cycles(*setup)


@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
@pytest.mark.parametrize("lead", [0, 1, 2, 10])
@pytest.mark.parametrize("ties", [0, 12])
def test_equal_at_full_size(name, lead, ties):
    """The paper's shape, V = 1,000, support 128."""
    method = methods[name] if name == "top-k" else tree_method(name, lead=lead)
    pair = synthetic(Dials(vocabulary=1000, ties=ties, states=8))
    same_cycles(method, pair, TreeShape(10, 8, 59), Uniforms(3), prefix=(5, 6), runs=3)


def test_equal_on_real_rows_at_any_temperature():
    for rows in shipped_rows(temperature=0.7, support=3, arithmetic="float32")[:2]:
        same_cycles("rheo", rows_pair(rows), TreeShape(3, 3, 6), Uniforms(5), runs=20)


def test_equal_on_a_batched_callable_of_prefixes_longer_than_any_table():
    def rows(prefixes, salt):
        weights = 1 + np.sin(prefixes.sum(axis=1)[:, None] + salt + np.arange(30) * (salt + 2))
        return weights / weights.sum(axis=1, keepdims=True)

    pair = CallablePair(lambda prefixes: rows(prefixes, 0), lambda prefixes: (rows(prefixes, 1), rows(prefixes, 2)))
    same_cycles("rheo", pair, TreeShape(4, 3, 9), Uniforms(1), prefix=(3, 1), runs=10)


@settings(max_examples=60)
@given(setups())
def test_texts_of_several_cycles_equal_generate(setup):
    method, pair, shape, uniforms = setup
    tokens, used = texts(Simulator(method, pair, shape, uniforms), (), np.arange(RUNS), 4)
    for run in range(RUNS):
        chooser = AddressChooser(uniforms, run)
        text = generate(pair.target_at, pair.draft_at, (), method, shape, chooser, 4, ids=pair.ids)
        assert tuple(tokens[run].tolist()) == text.tokens
        assert used[run] == len(text.cycles)


def test_the_reference_loop_runs_on_the_same_numbers():
    pair = synthetic(Dials(vocabulary=20, states=5))
    shape, runs = TreeShape(3, 2, 5), np.arange(30)
    fast, slow = (kind("rheo", pair, shape, Uniforms(9)) for kind in (Simulator, ReferenceLoop))
    np.testing.assert_array_equal(
        fast.cycles(prefixes((1,), 30), runs, 2).tokens, slow.cycles(prefixes((1,), 30), runs, 2).tokens
    )


def test_a_wrong_tie_break_is_seen():
    """Planted fault: equal scores ordered from right to left. The comparison above must see it on rows with ties."""
    pair = synthetic(Dials(vocabulary=12, ties=2, states=3))
    flipped = Simulator("rheo", pair, TreeShape(4, 3, 6), GridUniforms(1, 8))
    table, _ = flipped.source.at(np.zeros((1, 0), dtype=np.int64))
    table.order = np.argsort(-table.score[:, ::-1], axis=1, kind="stable")
    table.order = table.score.shape[1] - 1 - table.order
    cycles = flipped.cycles(prefixes((), 50), np.arange(50))
    right = Simulator("rheo", pair, TreeShape(4, 3, 6), GridUniforms(1, 8)).cycles(prefixes((), 50), np.arange(50))
    assert cycles.trees is not None
    assert right.trees is not None
    assert (cycles.trees.token != right.trees.token).any()


def test_engine_takes_the_vectorised_path_only_where_it_knows_every_part():
    pair = synthetic(Dials(vocabulary=20, states=2))
    shape = TreeShape(3, 2, 5)
    assert isinstance(engine("rheo", pair, shape, Uniforms(0)), Simulator)
    assert isinstance(engine(tree_method("rheo", construction="grown"), pair, shape, Uniforms(0)), ReferenceLoop)


def test_memory_does_not_grow_with_the_vocabulary_of_a_batch():
    pair = synthetic(Dials(vocabulary=20_000, states=2))
    assert Simulator("rheo", pair, TreeShape(10, 8, 59), Uniforms(0)).batch() * 20_000 <= 2**21


@pytest.mark.parametrize(("lead", "message"), [(5, "lead: got 5, expected 0 to the width K = 3"), (-1, "lead: got -1")])
def test_a_lead_outside_the_width_is_refused(lead, message):
    pair = synthetic(Dials(vocabulary=20, states=2))
    with pytest.raises(InvalidInput, match=message):
        Simulator(tree_method("rheo", lead=lead), pair, TreeShape(3, 2, 5), Uniforms(0))


def test_a_proxy_above_one_is_refused():
    pair = synthetic(Dials(vocabulary=20, states=2))
    method = tree_method("rheo", proxy=proxies.Constant(2))
    with pytest.raises(InvalidInput, match="proxy: got 2"):
        Simulator(method, pair, TreeShape(3, 2, 5), Uniforms(0))


@pytest.mark.parametrize(
    ("target", "draft", "message"),
    [
        ([[0.5, 0.6]], [[0.5, 0.5]], r"target\[0\]: .* a law: its sum is 1.1"),
        ([[0.5, 0.5]], [[1.5, -0.5]], r"draft\[0\]\[1\]: got -0.5, expected a non-negative number"),
        ([[0.5, float("nan")]], [[0.5, 0.5]], r"target\[0\]\[1\]: got nan"),
        ([[0.5, 0.5]], [[0.5, 0.25, 0.25]], "draft vocabulary: got 3"),
        ([[0.5, 0.5]], np.array([[0.5, 0.5]], dtype=np.float32), "the target's arithmetic, float64"),
    ],
)
def test_bad_rows_of_a_callable_are_refused(target, draft, message):
    pair = CallablePair(lambda prefixes: np.array(target), lambda prefixes: np.asarray(draft))
    with pytest.raises(InvalidInput, match=message):
        Simulator("rheo", pair, TreeShape(2, 1, 2), Uniforms(0)).cycles(prefixes((), 1), np.arange(1))


def test_a_prefix_that_the_rows_file_lacks_is_named():
    rows = parse_rows('{"contexts": {"": {"target": [0.5, 0.5], "draft": [0.5, 0.5]}}}', "mine", arithmetic="float64")
    with pytest.raises(InvalidInput, match="mine: prefix"):
        Simulator("rheo", rows_pair(rows), TreeShape(2, 2, 4), Uniforms(0)).cycles(prefixes((), 1), np.arange(1))


def test_dials_do_what_they_say():
    from montecarlo.pairs import overlap

    for wanted in (0.5, 0.8, 1.0):
        assert overlap(synthetic(Dials(vocabulary=300, overlap=wanted))) == pytest.approx(wanted)
    flat, peaked = (synthetic(Dials(peak=peak, overlap=0.9)).target.max(axis=1).mean() for peak in (0.2, 2.0))
    assert peaked > 20 * flat
    tied = scores(synthetic(Dials(ties=10)).draft)
    assert all(len(np.unique(row)) <= 11 for row in tied)
    with pytest.raises(InvalidInput, match=r"overlap: got 0\.01, expected at least"):
        synthetic(Dials(overlap=0.01))


class GreatestUniforms(Uniforms):
    """Every number as large as it can be: only what is certain is accepted."""

    def at(self, streams, kind, codes, i):
        return np.full_like(super().at(streams, kind, codes, i), 1 - 2.0**-53)


@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_a_residual_without_mass_is_a_sure_acceptance(name, dtype):
    """Rounding makes p < q~ at every token: nothing may be rejected there, whatever the coin."""
    q = np.full((1, 2), 0.5, dtype=dtype)
    p = np.nextafter(q, dtype(0))
    assert (p < q).all()
    pair = TablePair(p, q, lambda prefixes: np.zeros(len(prefixes), dtype=np.int64))
    method = tree_method(name, lead=None if name == "top-k" else 0)
    for shape in (TreeShape(1, 2, 2), TreeShape(2, 2, 4)):
        same_cycles(method, pair, shape, GreatestUniforms(0))


def test_the_greatest_number_draws_the_last_token_of_positive_weight():
    """Tail laws whose sum exceeds 1 by rounding, in a table where rows of fewer tokens are padded."""
    weights = np.random.default_rng(0).integers(0, 4, size=(3000, 9)) * np.arange(1, 10)
    weights[:, 0] += 1
    rows = normalised(weights, np.float64)
    tails = [DraftRow.law(row).tail([int(np.argmax(row))]) for row in rows]
    over = [state for state, tail in enumerate(tails) if tail is not None and np.add.accumulate(tail)[-1] > 1]
    assert len(over) > 10
    wide = np.full(9, 1 / 9)
    for state in over[:40]:
        table = np.stack([wide, rows[state]])
        pair = TablePair(table[::-1], table, lambda prefixes: np.ones(len(prefixes), dtype=np.int64))
        same_cycles("rheo", pair, TreeShape(2, 1, 2), GreatestUniforms(0), runs=1)
