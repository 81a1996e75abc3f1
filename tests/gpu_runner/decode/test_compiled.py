"""A level of the draft tree as one graph: no break, few graphs, the plain engine's trees and tokens to the bit."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch

from exact.cli import options as shared
from gpu_runner.cli import options
from gpu_runner.cli.main import app
from gpu_runner.decode.compiled import graphs_made
from gpu_runner.decode.draws import FromChooser, Seeded, keyed_chooser
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import find_method
from gpu_runner.decode.processing import Processing
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import InvalidInput, TreeShape
from tests.gpu_runner.words import worded_model

SHAPE = TreeShape(4, 4, 12)
VOCABULARY = 23
LEVELS = 3
"""Root, inner and last level: the graphs that one way of growing needs."""
METHODS = ("top-k", "rheo:0", "rheo:1", "rheo:2", "rheo-rrsw")
KINDS = ("skip", "causal", "eagle3")


@pytest.fixture(scope="module")
def drafts(tmp_path_factory):
    target = tiny_model(vocabulary=VOCABULARY)
    head = tiny_head(tmp_path_factory.mktemp("head"), VOCABULARY, 17)
    return target, {
        "skip": CausalDraft.skipping(target, [1]),
        "causal": CausalDraft(tiny_model("qwen3", vocabulary=VOCABULARY, layers=2, seed=1), target),
        "eagle3": EagleDraft.load(head, target),
    }


def counting(inner="eager"):
    """A backend of its own that counts the graphs it is given and their runs, and leaves the rest to another."""
    given: Counter[str] = Counter()
    work = torch._dynamo.lookup_backend(inner)

    def backend(graph, inputs):
        given["graphs"] += 1
        run = work(graph, inputs)

        def counted(*values):
            given["runs"] += 1
            return run(*values)

        return counted

    return backend, given


def engine_of(drafts, name, kind, backend=None, **options):
    target, known = drafts
    rule = find_method(name, SHAPE)
    assert rule.tree_method is not None
    return Engine(target, known[kind], rule.tree_method, rule.shape, Processing(0.8), 9, backend=backend, **options)


def cycles(engine, count=6):
    session = engine.start([1, 5, 2])
    return [engine.cycle(session, Seeded(11)) for _ in range(count)]


def check_equal(drafts, name, kind, inner):
    backend, given = counting(inner)
    plain, compiled = (cycles(engine_of(drafts, name, kind, chosen)) for chosen in (None, backend))
    assert [each.tree for each in compiled] == [each.tree for each in plain]
    assert [each.tokens for each in compiled] == [each.tokens for each in plain]
    assert given == {"graphs": LEVELS, "runs": SHAPE.depth * len(plain)}


def test_graphs_draft_what_the_plain_engine_drafts(drafts):
    backend, given = counting()
    plain = cycles(engine_of(drafts, "rheo:1", "eagle3"))
    for _ in range(2):  # engines that grow alike share their graphs
        compiled = cycles(engine_of(drafts, "rheo:1", "eagle3", backend))
        assert [each.tree for each in compiled] == [each.tree for each in plain]
        assert [each.tokens for each in compiled] == [each.tokens for each in plain]
    assert given == {"graphs": LEVELS, "runs": 2 * SHAPE.depth * len(plain)}
    engine = engine_of(drafts, "rheo:1", "eagle3", backend)
    session = engine.start([3, 4])
    session.cycles = 1000
    engine.cycle(session, Seeded(2**62))  # the seed and the number of the cycle are inputs: neither makes a graph
    assert given["graphs"] == LEVELS


@pytest.mark.slow
@pytest.mark.parametrize("inner", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_and_draft_as_graphs(name, kind, inner, drafts):
    check_equal(drafts, name, kind, inner)


def test_a_number_read_by_the_host_is_a_break_and_refused(drafts):
    def read_by_the_host(parts):
        return replace(parts, proxy=lambda score, order, m, sampled: score.new_full((len(score),), score.max().item()))

    plain = engine_of(drafts, "rheo:1", "eagle3", fault=read_by_the_host)
    assert len(cycles(plain, 1)) == 1  # the planted fault draws trees as long as nobody asks for one graph
    with pytest.raises(InvalidInput, match=r"compile: got .*no number that is read from the device"):
        cycles(engine_of(drafts, "rheo:1", "eagle3", "eager", fault=read_by_the_host), 1)


def test_what_cannot_be_in_a_graph_is_refused_in_words(drafts):
    with pytest.raises(InvalidInput, match=r"compile: got nothing, expected a backend of torch\.compile: aot_eager"):
        engine_of(drafts, "rheo:1", "eagle3", "nothing")
    engine = engine_of(drafts, "rheo:1", "eagle3", "eager")
    with pytest.raises(InvalidInput, match="draws: got FromChooser, expected seeded draws"):
        engine.draft_tree(engine.start([1, 5, 2]), FromChooser(keyed_chooser(1)))


def test_bench_takes_the_option_and_writes_it_down(tmp_path, monkeypatch):
    target = worded_model(dtype=torch.float32)
    models = options.Models(target, CausalDraft.skipping(target, [1]))
    monkeypatch.setattr(options.PairOptions, "load", lambda given: models)
    made = []
    right = Engine.__init__

    def watched(*given, **named):
        made.append(named["backend"])
        right(*given, **named)

    monkeypatch.setattr(Engine, "__init__", watched)
    asked = ["bench", "top-k", "--width", "2", "--depth", "2", "--budget", "3", "--length", "2", "--seeds", "1"]
    file = tmp_path / "out.json"
    code = shared.run(app, [*asked, "--prompt", "a b", "--compile", "eager", "--json", "--save", str(file)])
    assert code == 0
    assert set(made) == {"eager"}
    source = json.loads(file.read_text())["provenance"]
    assert source["compile"] == "eager"
    assert source["graphs"] >= 1


def test_a_graph_that_cannot_be_captured_is_refused_and_not_run_plainly(drafts):
    engine = engine_of(drafts, "top-k", "skip", "cudagraphs")  # on a CPU torch itself would only log that it skips
    with pytest.raises(InvalidInput, match=r"compile: got skipping cudagraphs due to .*cpu device"):
        cycles(engine, 1)
    assert graphs_made("cudagraphs") == 0
