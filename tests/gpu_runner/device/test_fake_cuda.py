"""Without a CUDA device: the engine mixes no devices, and the draft loop never waits for the device."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine, Parts
from gpu_runner.decode.laws import position, rank
from gpu_runner.decode.methods import find_method
from gpu_runner.decode.processing import Processing
from gpu_runner.model.causal_lm import CausalModel
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.checkpoint import read_checkpoint
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import FILL, LEAD, SAMPLED, Tree, TreeShape
from tests.gpu_runner.device.fake_cuda import Waiting, fake_cuda

SHAPE = TreeShape(3, 2, 6)
PROMPT = [1, 5, 2]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return read_checkpoint(tiny_head(tmp_path_factory.mktemp("head"), 13, 11))


@pytest.fixture(scope="module")
def device(checkpoint) -> Iterator[torch.device]:
    with fake_cuda() as place:
        yield place


@pytest.fixture(scope="module")
def target(device) -> CausalModel:
    with device:
        return tiny_model(vocabulary=13, layers=3, dtype=torch.float32, device=device)


def engine_of(name, kind, target, checkpoint, **options):
    rule = find_method(name, SHAPE)
    assert rule.tree_method is not None
    draft = CausalDraft.skipping(target, [1]) if kind == "skip" else EagleDraft(checkpoint, target, "head")
    return Engine(target, draft, rule.tree_method, rule.shape, support=9, **options)


@pytest.mark.parametrize(("name", "kind"), [("top-k", "skip"), ("rheo:0", "skip"), ("rheo-z", "eagle3")])
def test_drafting_and_scoring_neither_mix_devices_nor_wait(name, kind, target, checkpoint, device):
    engine = engine_of(name, kind, target, checkpoint)
    session = engine.start(PROMPT)
    with Waiting():
        drafted = engine.draft_tree(session, Seeded(1))
        scored = engine.score(session, drafted)
    assert drafted.nodes.token.shape == (SHAPE.budget,)
    assert scored.logits.shape == (1 + SHAPE.budget, target.vocabulary)
    assert {scored.logits.device, drafted.nodes.score.device, drafted.target_ids.device} == {device}


class Decided(Seeded):
    """Every coin falls as told; laws are drawn from as usual, on the device, but the answer is token 0."""

    def __init__(self, accepted: bool) -> None:
        super().__init__(0)
        self.accepted = accepted

    def accept(self, probability, at):
        return self.accepted

    def index(self, weights, at):
        position(weights[None], torch.zeros(1, dtype=torch.float64, device=weights.device))
        return 0


def drawn_tree(second: int) -> Tree:
    """A tree as the host would have read it: three slots at the root and below its second node, of kind `second`."""
    columns = ([3, 4, 5, 6, 7, 8], [-1, -1, -1, 1, 1, 1], [1, 1, 1, 2, 2, 2], [0, 1, 2] * 2, [LEAD, second, FILL] * 2)
    token, parent, depth, slot, kind = (np.array(column) for column in columns)
    return Tree(token, parent, depth, slot, kind, np.full(6, 0.1))


@pytest.mark.parametrize(("name", "accepted"), [("top-k", True), ("rheo:1", True), ("rheo-rrsw", False)])
def test_verification_and_the_next_cycle_stay_on_the_device(name, accepted, target, checkpoint, device, monkeypatch):
    engine = engine_of(name, "eagle3", target, checkpoint, processing=Processing(0.7, top_k=5, top_p=0.9))
    session = engine.start(PROMPT)
    drafted = engine.draft_tree(session, Seeded(1))
    scored = engine.score(session, drafted)
    drafted.__dict__["_read"] = drawn_tree(FILL if name == "top-k" else SAMPLED), [1] * 6
    reads = []

    def read(tensor):
        """What the host would read: coins, rows that sum to 1, a token."""
        reads.append(tensor)
        return [[1.0] * tensor.shape[1]] * len(tensor)

    with monkeypatch.context() as patch, Waiting():
        patch.setattr(FakeTensor, "tolist", read)
        tokens, path = engine.commit(session, drafted, scored, Decided(accepted))
    assert len(reads) == 1
    assert len(tokens) == len(path) + 1
    assert bool(path) is accepted
    with Waiting():
        again = engine.draft_tree(session, Seeded(1))
        assert engine.score(session, again).logits.device == device


def proxy_read_by_the_host(parts: Parts) -> Parts:
    return replace(parts, proxy=lambda score, order, m, sampled: score.new_full((len(score),), float(score.max())))


def tokens_listed_by_the_host(parts: Parts) -> Parts:
    return replace(parts, order=lambda nodes: rank(nodes.score)[: len(nodes.token.tolist())])


def a_mask_as_index(parts: Parts) -> Parts:
    return replace(parts, order=lambda nodes: rank(nodes.score[nodes.score >= 0]))


def ranked_on_the_host(parts: Parts) -> Parts:
    return replace(parts, order=lambda nodes: rank(nodes.score.cpu()).to(nodes.score.device))


def an_index_on_the_host(parts: Parts) -> Parts:
    return replace(parts, order=lambda nodes: torch.arange(len(nodes)))


def a_constant_from_the_host(parts: Parts) -> Parts:
    return replace(parts, proxy=lambda score, order, m, sampled: torch.tensor([0.5], device=score.device))


def scores_of_the_host(parts: Parts) -> Parts:
    return replace(parts, proxy=lambda score, order, m, sampled: score[:, 0] * torch.ones(len(score)))


PLANTED = {
    proxy_read_by_the_host: "local_scalar_dense",
    tokens_listed_by_the_host: "local_scalar_dense",
    a_mask_as_index: "nonzero",
    ranked_on_the_host: "waits for a copy from cuda:0 to cpu",
    an_index_on_the_host: "on tensors of cpu and cuda:0",
    a_constant_from_the_host: "waits for a copy from cpu to cuda:0",
    scores_of_the_host: "two devices, cuda:0 and cpu",
}


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.__name__)
def test_planted_waits_and_mixed_devices_are_seen(fault, target, checkpoint):
    engine = engine_of("rheo:1", "skip", target, checkpoint, fault=fault)
    session = engine.start(PROMPT)
    with pytest.raises(Exception, match=PLANTED[fault]), Waiting():
        engine.draft_tree(session, Seeded(1))


def test_a_map_of_ids_left_on_the_host_is_seen(target, checkpoint):
    engine = engine_of("rheo:1", "eagle3", target, checkpoint)
    assert engine.draft.ids is not None
    engine.draft.ids = torch.arange(11)
    with pytest.raises(Exception, match=r"cpu and cuda:0|cuda:0 and cpu|same device"), Waiting():
        engine.draft_tree(engine.start(PROMPT), Seeded(1))


@pytest.mark.parametrize("name", ["top-k", "rheo:1"])
def test_the_tree_and_its_row_numbers_are_one_copy(name, target, checkpoint, monkeypatch):
    engine = engine_of(name, "eagle3", target, checkpoint)
    drafted = engine.draft_tree(engine.start(PROMPT), Seeded(1))
    copied = []

    class Host:
        def __init__(self, tensor):
            copied.append(tensor)
            self.numpy = lambda: np.zeros(tensor.shape, np.int64)

    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: Host(tensor))
    assert len(drafted.tree) == SHAPE.budget
    assert drafted.tails is None or len(drafted.tail(0).law) == 1
    assert len(copied) == 1


class Launches(TorchDispatchMode):
    """Counts the operators that start work on the device: neither views nor empty memory."""

    FREE = ("empty", "new_empty", "empty_like", "detach", "lift_fresh")

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = any(isinstance(each, torch.Tensor) and each.is_cuda for each in tree_leaves(result))
        self.count += made and not func.is_view and func._schema.name.partition("::")[2] not in self.FREE
        return result


@pytest.mark.parametrize(("name", "most"), [("top-k", 1120), ("rheo:0", 1850), ("rheo:1", 1900)])
def test_drafting_starts_no_more_kernels_than_it_did(name, most, target, checkpoint):
    rule = find_method(name, TreeShape(10, 8, 59))
    assert rule.tree_method is not None
    engine = Engine(target, EagleDraft(checkpoint, target, "head"), rule.tree_method, rule.shape, support=9)
    session = engine.start(PROMPT)
    engine.catch_up(session)
    with Launches() as launches:
        engine.draft_tree(session, Seeded(1))
    assert 0.9 * most < launches.count <= most


def test_the_finished_tree_is_where_the_host_waits(target, checkpoint):
    engine = engine_of("rheo:1", "skip", target, checkpoint)
    drafted = engine.draft_tree(engine.start(PROMPT), Seeded(1))
    with pytest.raises(RuntimeError, match="waits for a copy from cuda:0 to cpu"), Waiting():
        _ = drafted.tree
    with pytest.raises(DataDependentOutputException):
        float(drafted.nodes.score[0])
