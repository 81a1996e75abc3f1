"""The whole loop on tiny random models, every draw and coin walked: the first three tokens have the target's law."""

from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction

import pytest
import torch

from exact.enumeration.walk import law
from gpu_runner.certify.engine_law import Remembering, engine_law
from gpu_runner.certify.faults import faults
from gpu_runner.decode.draws import FromChooser
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import tree_method
from gpu_runner.decode.processing import Processing
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import TreeShape

LENGTH = 3
ROUNDING = 1e-13
LOSS = 1e-4

METHODS = {
    "top-k": (tree_method("top-k"), TreeShape(2, 2, 3)),
    "rheo m=0": (replace(tree_method("rheo"), lead=0), TreeShape(2, 2, 3)),
    "rheo m=1": (tree_method("rheo"), TreeShape(2, 2, 3)),
    "rheo m=2": (replace(tree_method("rheo"), lead=2), TreeShape(3, 2, 4)),
    "rheo-rrsw": (tree_method("rheo-rrsw"), TreeShape(2, 2, 3)),
    "chain": (replace(tree_method("rheo"), name="chain", lead=0), TreeShape(1, 2, 2)),
}


def target_law(target, prompt, processing):
    """Oracle: plain forwards of the model without cache, mask or tree."""
    masses: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LENGTH):
        longer: dict[tuple[int, ...], float] = {}
        for text, mass in masses.items():
            with torch.no_grad():
                logits = target.model(input_ids=torch.tensor([[*prompt, *text]])).logits[0, -1:]
            for token, p in enumerate(processing.law(logits)[0].tolist()):
                longer[*text, token] = mass * p
        masses = longer
    return masses


def total_variation(got, right):
    return sum(abs(float(got.get(text, 0)) - right.get(text, 0)) for text in got.keys() | right.keys()) / 2


def pair(kind, tmp_path, vocabulary, family="llama"):
    target = Remembering(tiny_model(family, vocabulary, layers=3, seed=3))
    if kind == "skip":
        return target, CausalDraft(Remembering(target.without_layers([1])), target)
    if kind == "causal":
        return target, CausalDraft(Remembering(tiny_model("qwen3", vocabulary, layers=1, seed=8)), target)
    own = {"eagle": vocabulary, "eagle-mapped": vocabulary - 1}[kind]
    return target, EagleDraft.load(tiny_head(tmp_path, vocabulary, own, seed=2), target)


def loss(kind, tmp_path, method, shape, vocabulary=3, fault=None, processing=None, support=128):
    target, draft = pair(kind, tmp_path, vocabulary)
    processing = processing or Processing()
    engine = Engine(target, draft, method, shape, processing, support, faults[fault] if fault else None)
    got = engine_law(engine, [1, 2, 0], LENGTH)
    assert sum(got.values()) == 1
    return total_variation(got, target_law(target, [1, 2, 0], processing))


# every method, every kind of draft, every lead beside a head's own vocabulary; the other pairs are slow
PLAIN = {("top-k", "skip"), ("rheo m=0", "eagle-mapped"), ("rheo m=1", "causal"), ("rheo m=1", "eagle-mapped")}
PLAIN |= {("rheo m=2", "eagle-mapped"), ("rheo-rrsw", "causal"), ("chain", "skip")}
PAIRS = [
    pytest.param(name, kind, marks=() if (name, kind) in PLAIN else pytest.mark.slow)
    for name in METHODS
    for kind in ("skip", "causal", "eagle-mapped")
]


@pytest.mark.exact
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_first_three_tokens_have_the_targets_law(kind, name, tmp_path):
    method, shape = METHODS[name]
    # a head drafts over one token less; with m = 0 two are enough for draws, with m = 1 and 2 it takes more
    vocabulary = 4 if method.lead == 2 or (kind == "eagle-mapped" and method.lead == 1) else 3
    assert loss(kind, tmp_path, method, shape, vocabulary) < ROUNDING


@pytest.mark.exact
@pytest.mark.parametrize("fault", faults)
def test_every_planted_fault_is_refuted(fault, tmp_path):
    kind = "eagle-mapped" if fault == "shifted-map" else "causal"  # two draft ids of three
    method, shape = METHODS["rheo m=0" if fault in ("token-ties", "shifted-map") else "rheo m=1"]
    assert loss(kind, tmp_path, method, shape, 3, fault) > LOSS


@pytest.mark.exact
@pytest.mark.parametrize("family", ["qwen2", "qwen3", "mistral"])
def test_other_families(family, tmp_path):
    target = Remembering(tiny_model(family, 3, layers=3, seed=4))
    draft = CausalDraft(Remembering(target.without_layers([0, 2])), target)
    engine = Engine(target, draft, *METHODS["rheo m=1"])
    right = target_law(target, [2, 1], Processing())
    assert total_variation(engine_law(engine, [2, 1], LENGTH), right) < ROUNDING


@pytest.mark.exact
@pytest.mark.parametrize(
    "processing", [Processing(0.6), Processing(1.7, top_k=2), Processing(0.9, top_p=0.7), Processing(0)], ids=str
)
def test_temperature_top_k_and_top_p_are_the_law_everywhere(processing, tmp_path):
    method, shape = METHODS["rheo m=1"]
    assert loss("causal", tmp_path, method, shape, 4, processing=processing, support=3) < ROUNDING


@pytest.mark.exact
def test_the_wrong_temperature_would_be_seen(tmp_path):
    target, draft = pair("causal", tmp_path, 3)
    got = engine_law(Engine(target, draft, *METHODS["rheo m=1"], Processing(0.6)), [1, 2, 0], LENGTH)
    assert total_variation(got, target_law(target, [1, 2, 0], Processing())) > 0.05


@pytest.mark.exact
@pytest.mark.parametrize("name", ["top-k", "chain"])
def test_the_walk_by_cycles_equals_one_walk_over_generate(name, tmp_path):
    target, draft = pair("causal", tmp_path, 2)
    engine = Engine(target, draft, *METHODS[name])
    whole = law(lambda chooser: engine.generate([1, 0], LENGTH, FromChooser(chooser)).tokens)
    by_cycles: dict[Hashable, Fraction] = dict(engine_law(engine, [1, 0], LENGTH).items())
    assert whole.keys() == by_cycles.keys()
    assert all(abs(whole[text] - by_cycles[text]) < Fraction(1, 10**13) for text in whole)
