"""Without a CUDA device: every level of every method is a graph that torch would capture, on one device."""

from dataclasses import replace

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.cudagraphs import check_for_skip, get_device_node_mapping
from torch._dynamo.backends.debugging import boxed_nop

from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import find_method
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.tiny import tiny_model
from rheo_core import InvalidInput, TreeShape
from tests.gpu_runner.device.fake_cuda import fake_cuda

SHAPE = TreeShape(4, 3, 9)
LEVELS = 3


def checking():
    """A backend that asks torch what the backend "cudagraphs" asks before it captures: (skipped why, devices)."""
    seen = []

    def compiled(graph, inputs):
        seen.append((check_for_skip(graph, 0), set(get_device_node_mapping(graph))))
        return boxed_nop(graph, inputs)

    return aot_autograd(fw_compiler=compiled, inference_compiler=compiled), seen


@pytest.fixture(scope="module")
def device():
    with fake_cuda() as place:
        yield place


@pytest.fixture(scope="module")
def target(device):
    with device:
        return tiny_model(vocabulary=13, layers=2, dtype=torch.float32, device=device)


def drafted(target, name, fault=None, shape=SHAPE):
    """What torch's checks say of each graph of a method: its levels are compiled and run once."""
    rule = find_method(name, shape)
    assert rule.tree_method is not None
    backend, seen = checking()
    draft = CausalDraft.skipping(target, [1])
    engine = Engine(target, draft, rule.tree_method, shape, support=9, backend=backend, fault=fault)
    engine.draft_tree(engine.start([1, 5, 2]), Seeded(1))
    return seen


@pytest.mark.parametrize(
    "name",
    ["top-k", "rheo:0", "rheo:1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("rheo:2", "rheo-rrsw"))],
)
def test_every_level_can_be_captured(name, target, device):
    assert drafted(target, name) == [(None, {device})] * LEVELS


def a_number_assigned(parts):
    def proxy(score, order, m, sampled):
        scores = score[:, 0].clone()
        scores[0] = 1  # a constant on the host
        return scores

    return replace(parts, proxy=proxy)


def an_index_from_the_host(parts):
    return replace(parts, proxy=lambda score, order, m, sampled: score[torch.arange(len(score)), 0])


def test_a_constant_of_the_host_is_a_graph_that_torch_skips(target, device):
    seen = drafted(target, "rheo:1", a_number_assigned, TreeShape(4, 1, 4))
    assert seen
    for skipped, devices in seen:
        assert "cpu device" in skipped
        assert devices == {device, torch.device("cpu")}


def test_an_index_of_the_host_is_refused(target):
    with pytest.raises(InvalidInput, match=r"compile: got \['cpu', 'cuda:0'\], expected a level's graph on one device"):
        drafted(target, "rheo:1", an_index_from_the_host, TreeShape(4, 1, 4))
