"""What must hold on a CUDA device: certificate, identity, no waiting in the draft loop. Skipped without one."""

import pytest
import torch

from gpu_runner.certify.certify import DRAFTS, certify_engine
from gpu_runner.certify.faults import faults
from gpu_runner.certify.reference_diff import compare_cycle
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import find_method, tree_method
from gpu_runner.model.causal_lm import CausalModel, check_tree_attention
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from montecarlo.keyed_random import child_code, mix
from rheo_core import TreeShape

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("kind", DRAFTS)
@pytest.mark.parametrize("name", ["top-k", "rheo:1", "rheo-rrsw"])
def test_the_whole_loop_is_certified_on_the_device(kind, name):
    rule = find_method(name, TreeShape(2, 2, 3))
    assert rule.tree_method is not None
    assert certify_engine(kind, name, rule.tree_method, rule.shape, torch.device("cuda")).lossless


@pytest.mark.parametrize("fault", ["no-compaction", "siblings-visible", "residual-from-p"])
def test_planted_faults_are_refuted_on_the_device(fault):
    rule = find_method("rheo:1", TreeShape(2, 2, 3))
    assert rule.tree_method is not None
    verdict = certify_engine("causal", "rheo", rule.tree_method, rule.shape, torch.device("cuda"), faults[fault])
    assert verdict.total_variation is not None
    assert verdict.total_variation > 1e-4


@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
def test_cycles_equal_rheo_core_in_float64(name, tmp_path):
    target = tiny_model(vocabulary=23, device="cuda")
    draft = EagleDraft.load(tiny_head(tmp_path, 23, 17), target)
    engine = Engine(target, draft, tree_method(name), TreeShape(4, 4, 12), support=9)
    session = engine.start([1, 5, 2])
    found = [compare_cycle(engine, session, 11) for _ in range(12)]
    # sums are added in the device's order here: scores may differ in the last bit, tokens may not
    assert [each.tokens for each in found] == [each.reference for each in found]


def test_the_draft_loop_does_not_wait_for_the_device(tmp_path):
    target = tiny_model(vocabulary=23, device="cuda", dtype=torch.float32)
    draft = EagleDraft.load(tiny_head(tmp_path, 23, 17), target)
    engine = Engine(target, draft, tree_method("rheo"), TreeShape(4, 4, 12))
    session = engine.start([1, 5, 2])
    for _ in range(3):  # kernels are loaded and buffers made
        engine.cycle(session, Seeded(1))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        drafted = engine.draft_tree(session, Seeded(1))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(drafted.tree) == 12


def test_the_hash_has_the_same_bits_on_the_device():
    states = torch.randint(-(2**62), 2**62, (1000,))
    assert torch.equal(mix(child_code(states.cuda(), states.cuda() >> 40)).cpu(), mix(child_code(states, states >> 40)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_tree_attention(dtype):
    target = tiny_model(vocabulary=23, device="cuda", dtype=dtype)
    check_tree_attention(target)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), TreeShape(4, 4, 12))
    assert len(engine.generate([1, 2, 3], 20, Seeded(0)).tokens) == 20


def test_out_of_memory_is_one_line():
    from gpu_runner.model.causal_lm import memory
    from rheo_core import InvalidInput

    with pytest.raises(InvalidInput, match="device memory: got not enough for a test"), memory("a test"):
        torch.empty(1 << 50, device="cuda")
    assert isinstance(tiny_model(device="cuda"), CausalModel)
