"""Verification with one read: the walk's tokens to the bit, lossless by itself, and few waits on a pretend device."""

import pytest
import torch

from gpu_runner.certify import certify
from gpu_runner.decode import one_read
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import find_method
from gpu_runner.decode.processing import Processing
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.tiny import tiny_model
from rheo_core import InvalidInput, TreeShape

METHODS = ("top-k", "rheo:0", "rheo:1", "rheo:2", "rheo-rrsw")


@pytest.fixture(scope="module")
def target():
    return tiny_model(vocabulary=13, layers=2)


def emitted(target, name, one, processing=None):
    rule = find_method(name, TreeShape(4, 3, 9))
    assert rule.tree_method is not None
    draft = CausalDraft.skipping(target, [1])
    made = Engine(target, draft, rule.tree_method, rule.shape, processing, support=7)
    made.one_read = one
    texts = [made.generate([1, 5, 2], 12, Seeded(seed)) for seed in range(3)]
    return [(cycle.tokens, cycle.accepted) for text in texts for cycle in text.cycles]


@pytest.mark.parametrize("name", METHODS)
def test_one_read_emits_what_the_walk_emits(name, target):
    processing = Processing(0.8, top_k=9, top_p=0.95)
    walked, at_once = (emitted(target, name, one, processing) for one in (False, True))
    assert walked == at_once
    assert any(accepted for _, accepted in walked)


class OneRead(Engine):
    """The engine as on a GPU: it verifies with one read."""

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self.one_read = True


@pytest.mark.parametrize(
    "name", ["rheo:1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("top-k", "rheo-rrsw"))]
)
def test_the_engine_with_one_read_is_certified(name, monkeypatch):
    monkeypatch.setattr(certify, "Engine", OneRead)
    rule = find_method(name, TreeShape(2, 2, 3))
    assert rule.tree_method is not None
    assert certify.certify_engine("skip", name, rule.tree_method, rule.shape, torch.device("cpu")).lossless


def test_a_residual_that_is_not_taken_is_refuted(monkeypatch):
    monkeypatch.setattr(certify, "Engine", OneRead)
    monkeypatch.setattr(one_read, "excess", lambda p, q: p)
    rule = find_method("rheo:1", TreeShape(2, 1, 2))
    assert rule.tree_method is not None
    verdict = certify.certify_engine("skip", "rheo", rule.tree_method, rule.shape, torch.device("cpu"))
    assert verdict.total_variation is not None
    assert verdict.total_variation > 1e-3


def test_a_row_that_is_no_law_and_a_token_that_was_not_drawn_are_refused(target, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Processing, "law", lambda self, logits: torch.full_like(logits, torch.nan))
        with pytest.raises(InvalidInput, match="target row"):
            emitted(target, "rheo:1", True)
    right = Engine.laws

    def without_tail(self, drafted, scored):
        law, tail = right(self, drafted, scored)
        return law, lambda node: torch.zeros_like(tail(node))

    monkeypatch.setattr(Engine, "laws", without_tail)
    with pytest.raises(InvalidInput, match="a positive probability at the sampled candidate"):
        emitted(target, "rheo:1", True)
