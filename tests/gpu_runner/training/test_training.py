"""Training of heads: training-time test against inference and an oracle, what is learnt, what is written."""

import json
import math

import pytest
import torch

from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import tree_method
from gpu_runner.model.drafts.base import Level
from gpu_runner.model.drafts.checkpoint import read_checkpoint
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import FFN, tiny_head, tiny_model
from gpu_runner.training import loop
from gpu_runner.training.documents import Corpus, Document, frequent, split_corpus
from gpu_runner.training.folder import STATE, TrainingFolder
from gpu_runner.training.head import new_head, trainable, write_head
from gpu_runner.training.loop import Settings, Training, plan
from gpu_runner.training.objective import judge, losses, read, unroll, weights
from rheo_core import InvalidInput, TreeShape
from tests.gpu_runner.model.test_eagle3 import StepByStep

V, OWN, STEPS = 11, 7, 4
TEXTS = (
    Document((1, 5, 2, 7, 3, 3, 10, 0, 4), 3, 1),
    Document((9, 2, 2, 8, 6, 1), 0, 2),
    Document((4, 4), 0, 3),
    Document((0, 1, 2, 3, 4, 5, 6), 6, 4),
)


@pytest.fixture(scope="module")
def target():
    return tiny_model(vocabulary=V, layers=6)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    return tiny_head(tmp_path_factory.mktemp("head"), V, OWN)


def countable(document, root, step):
    """By its own words: the token after the root is followed by an answer token, and the step's is in the text."""
    return root + 2 >= document.start and root + 2 + step < len(document.tokens)


def test_every_step_equals_the_inference_session_on_the_same_path(target, head):
    draft = EagleDraft.load(head, target)
    compared = 0
    for document in TEXTS:
        text = torch.tensor(document.tokens)
        _, features = read(target, document, draft.features)
        outputs = unroll(draft, document, features, STEPS)
        for root in range(len(text) - 1):
            session = draft.start()
            found = session.root(text[: root + 2], features[: root + 1])
            for step in range(min(STEPS, len(text) - 1 - root)):
                if step:
                    token = root + 1 + step
                    found = session.expand(text[token : token + 1], torch.zeros(1, dtype=torch.long))
                expected = draft.logits(outputs[step][root : root + 1])
                assert torch.allclose(found, expected, rtol=0, atol=1e-9)
                compared += 1
    assert compared > 50


class Oracle(StepByStep):
    """The loss of one root at a time: no mask, no packing, no cache; every earlier step recomputed from the text."""

    def logits(self, features, tokens, root, step):
        inputs = [(tokens[t + 1], self.w["fc.weight"] @ features[t], t) for t in range(root + 1)]
        for s in range(step):
            inputs.append((tokens[root + 2 + s], self.layer(inputs)[-1], root + 1 + s))
        return self.w["lm_head.weight"] @ self.norm(self.layer(inputs)[-1], "norm.weight")

    def loss(self, documents, steps, decay, ids):
        each, counts = [], [0] * steps
        for document in documents:
            features = self.features(list(document.tokens))
            with torch.no_grad():
                rows = self.target.model(torch.tensor([document.tokens])).logits[0]
            for step in range(steps):
                for root in range(len(document.tokens)):
                    if countable(document, root, step):
                        soft = torch.softmax(rows[root + 1 + step][ids], -1)
                        q = torch.log_softmax(self.logits(features, document.tokens, root, step), -1)
                        each.append((step, -(soft * q).sum()))
                        counts[step] += 1
        weight = weights(steps, decay)
        return sum(weight[step] * loss / counts[step] for step, loss in each), counts


def test_loss_and_gradient_equal_a_recomputation_root_by_root(target, head):
    training = Training(target, read_checkpoint(head), Corpus(TEXTS, TEXTS), Settings(steps=3))
    summed, counts = training.gradient(TEXTS)
    oracle = Oracle(head, target, training.draft.features)
    oracle.w = {name: value.detach().clone().requires_grad_() for name, value in training.draft.weights.items()}
    expected, numbers = oracle.loss(TEXTS, 3, loop.DECAY, read_checkpoint(head).ids)
    expected.backward()
    assert counts == numbers
    assert min(counts) > 5
    found = sum(w * loss / count for w, loss, count in zip(weights(3, loop.DECAY), summed, counts, strict=True))
    assert found == pytest.approx(expected.item(), abs=1e-10)
    for name, value in training.draft.weights.items():
        given, wanted = value.grad, oracle.w[name].grad
        assert given is not None
        assert wanted is not None
        assert float(wanted.abs().max()) > 1e-6
        assert torch.allclose(given, wanted, rtol=0, atol=1e-10), name


@pytest.mark.parametrize("fault", ["siblings", "positions", "no own steps"])
def test_a_wrong_pattern_of_later_steps_is_seen_by_the_oracle(target, head, fault, monkeypatch):
    """The comparison above can fail: faults in what the later steps see or in where they stand change the loss."""

    def wrong(level, parents):
        seen = right(level, parents)
        n = len(parents)
        if fault == "siblings":
            seen[:, -n:] = True
        if fault == "no own steps":
            seen[:, n:-n] = False
        return seen

    right = Level.below
    draft = trainable(read_checkpoint(head), target, "head")
    logits, features = read(target, TEXTS[0], draft.features)

    def loss_by_step():
        outputs = unroll(draft, TEXTS[0], features, 3)
        return [loss.item() for loss in losses(draft, TEXTS[0], outputs, logits)]

    expected = loss_by_step()
    if fault == "positions":
        layer, positions = draft.layer, torch.arange(len(TEXTS[0].tokens))
        monkeypatch.setattr(draft, "layer", lambda t, h, p, v, c: layer(t, h, positions, v, c))
    else:
        monkeypatch.setattr(Level, "below", wrong)
    found = loss_by_step()
    assert found[0] == expected[0]
    assert abs(found[2] - expected[2]) > 1e-3


def test_acceptance_is_that_of_the_whole_law(target, head):
    draft = EagleDraft.load(head, target)
    judged = judge(draft, target, TEXTS, 2)
    oracle = StepByStep(head, target, draft.features)
    for step in range(2):
        total, count = 0.0, 0
        for document in TEXTS:
            with torch.no_grad():
                rows = target.model(torch.tensor([document.tokens])).logits[0]
            for root in range(len(document.tokens)):
                if countable(document, root, step):
                    q = torch.zeros(V, dtype=torch.float64)
                    path = document.tokens[root + 2 : root + 2 + step]
                    q[draft.ids] = oracle.law(list(document.tokens[: root + 2]), path)
                    total += float(torch.minimum(torch.softmax(rows[root + 1 + step], -1), q).sum())
                    count += 1
        assert judged.counts[step] == count
        assert judged.acceptance[step] == pytest.approx(total / count, abs=1e-9)
    assert [len(each.roots(1)) for each in TEXTS] == [5, 3, 0, 0]


def own_text(target, count=60, length=24):
    prompts = [[i % V, (3 * i) % V] for i in range(count)]
    answers = [autoregressive(target, prompt, length, Seeded(i)).tokens for i, prompt in enumerate(prompts)]
    pairs = enumerate(zip(prompts, answers, strict=True))
    return [Document((*prompt, *answer), len(prompt), i) for i, (prompt, answer) in pairs]


@pytest.fixture(scope="module")
def corpus(target):
    return split_corpus(own_text(target), 26, 0.2, 0)


SETTINGS = Settings(steps=3, learning_rate=0.03, epochs=3, batch=4)


def started(target, corpus, settings=SETTINGS, size=OWN):
    return Training(target, new_head(target, frequent(corpus.training, V, size), 0), corpus, settings)


def test_loss_falls_and_acceptance_rises_and_the_head_drafts(target, corpus, tmp_path):
    training = started(target, corpus)
    before = training.judge()
    while training.done < len(training.plan):
        training.update()
    after = training.judge()
    for step in range(3):
        assert after.loss[step] < before.loss[step] - 0.05
        assert after.acceptance[step] > before.acceptance[step] + 0.02
    write_head(tmp_path, training.draft, target)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.ids is not None
    assert torch.equal(checkpoint.ids, frequent(corpus.training, V, OWN))
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["rope_theta"], config["draft_vocab_size"], config["intermediate_size"]) == (10000.0, OWN, FFN)
    draft = EagleDraft.load(tmp_path, target)
    assert draft.features == training.draft.features == (2, 3, 3)
    again = Training(target, checkpoint, corpus, SETTINGS).judge()
    assert again.acceptance == pytest.approx(after.acceptance, abs=1e-9)
    engine = Engine(target, draft, tree_method("rheo"), TreeShape(3, 3, 8))
    assert len(engine.generate([1, 5, 2], 12, Seeded(0)).tokens) == 12


@pytest.mark.gpu
def test_a_training_on_the_device_goes_as_on_the_cpu(corpus):
    found = []
    for device in ("cpu", "cuda"):
        training = started(tiny_model(vocabulary=V, layers=6, device=device), corpus)
        found.append([training.update()[0] for _ in range(4)])
        found.append(training.judge().acceptance)
    assert found[:2] == [pytest.approx(each, abs=1e-6) for each in found[2:]]
    half = tiny_model(vocabulary=V, layers=6, device="cuda", dtype=torch.bfloat16)
    training = started(half, corpus, Settings(learning_rate=0.03))
    losses = [training.update()[0] for _ in range(len(training.plan))]
    assert losses[-1] < losses[0]


def test_the_whole_vocabulary_has_no_map_and_half_precision_is_kept(tmp_path):
    target = tiny_model(vocabulary=V, layers=6, dtype=torch.bfloat16)
    training = Training(target, new_head(target, None, 0, 500.0), Corpus(TEXTS, TEXTS), Settings())
    assert {value.dtype for value in training.draft.weights.values()} == {torch.float32}
    (first, *_) = training.update()
    assert first is not None
    assert math.isfinite(first)
    write_head(tmp_path, training.draft, target)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.ids is None
    assert checkpoint.config.rope_base == 500.0
    assert {value.dtype for value in checkpoint.tensors.values()} == {torch.bfloat16}


def test_a_new_head_reads_the_highest_stream_by_the_targets_own_last_layer(target):
    ids = torch.tensor([1, 4, 9])
    made = new_head(target, ids, 0)
    stream = torch.randn(3, 3 * made.config.hidden)
    draft = EagleDraft(made, tiny_model(vocabulary=V, layers=6, dtype=torch.float32), "new")
    assert torch.equal(draft.combine(stream), stream[:, -made.config.hidden :])
    own = target.model.get_output_embeddings().weight[ids]
    assert torch.equal(made.tensors["lm_head.weight"], own.float())
    assert torch.equal(made.tensors["norm.weight"], torch.full((made.config.hidden,), 0.3))
    other = new_head(target, ids, 1)
    assert not torch.equal(made.tensors["midlayer.mlp.up_proj.weight"], other.tensors["midlayer.mlp.up_proj.weight"])


def states_equal(one, other):
    a, b = one.state(), other.state()
    assert a["done"] == b["done"]
    assert all(torch.equal(a["weights"][name], b["weights"][name]) for name in a["weights"])
    for key, value in a["optimizer"]["state"].items():
        assert all(torch.equal(value[name], b["optimizer"]["state"][key][name]) for name in value)


def test_a_resumed_training_equals_an_uninterrupted_one_to_the_bit(target, corpus, tmp_path):
    folder = TrainingFolder(tmp_path, {"seed": 0}, resume=False)
    whole = started(target, corpus)
    updates = [whole.update() for _ in range(7)]
    first = started(target, corpus)
    assert not folder.restore(first)
    for _ in range(3):
        first.update()
    folder.save(first, {})
    first.update()  # lost, as a kill after the checkpoint loses it
    second = started(target, corpus)
    assert TrainingFolder(tmp_path, {"seed": 0}, resume=True).restore(second)
    assert second.done == 3
    assert [second.update() for _ in range(4)] == updates[3:]
    assert [entry["loss"] for entry in second.history] == updates
    states_equal(second, whole)
    third = started(target, corpus)  # the optimizer's state matters: without it the runs part
    third.restore({**first.state(), "optimizer": started(target, corpus).optimizer.state_dict()})
    first.update()
    third.update()
    assert not torch.equal(third.parameters[0], first.parameters[0])


def test_a_folder_of_other_settings_is_refused(target, corpus, tmp_path):
    folder = TrainingFolder(tmp_path, {"seed": 0}, resume=False)
    with pytest.raises(InvalidInput, match="seed of a resumed training: got 1, expected 0, as it began"):
        TrainingFolder(tmp_path, {"seed": 1}, resume=True)
    with pytest.raises(InvalidInput, match="which is not empty, expected a new folder, or --resume"):
        TrainingFolder(tmp_path, {"seed": 0}, resume=False)
    (tmp_path / STATE).write_bytes(b"half")
    with pytest.raises(InvalidInput, match=r"state\.pt: got a file that cannot be read"):
        folder.restore(started(target, corpus))


def test_updates_are_shuffled_by_epoch_and_a_function_of_the_seed(corpus):
    first = plan(corpus.training, 4, 2, 3)
    assert first == plan(corpus.training, 4, 2, 3) != plan(corpus.training, 4, 2, 4)
    shown = [each.source for update in first for each in update]
    half = len(shown) // 2
    assert sorted(shown[:half]) == sorted(shown[half:]) == sorted(each.source for each in corpus.training)
    assert shown[:half] != shown[half:]
    assert max(map(len, first)) == 4


def test_documents_are_split_by_line_cut_and_dropped():
    documents = [Document(tuple(range(8)), 2, source // 2) for source in range(20)]
    long, short = Document(tuple(range(50)), 2, 30), Document((1, 2), 0, 31)
    found = split_corpus([*documents, long, short], 8, 0.3, 1)
    assert (found.cut, found.dropped) == (1, 1)
    assert {each.source for each in found.training}.isdisjoint({each.source for each in found.held_out})
    assert len({each.source for each in found.held_out}) == 3
    for share in (0, 1.5, 0.99):
        with pytest.raises(InvalidInput, match="held-out: got"):
            split_corpus(documents, 8, share, 1)
    with pytest.raises(InvalidInput, match="leaves some of the 0 usable lines"):
        split_corpus([short], 2, 0.5, 1)


def test_the_draft_vocabulary_is_the_most_frequent_of_the_answers():
    documents = [Document((9, 9, 9, 4, 4, 2), 3, 0), Document((9, 2, 7, 4), 1, 1)]
    assert frequent(documents, V, 2).tolist() == [2, 4]
    assert frequent(documents, V, 3).tolist() == [2, 4, 7]
    assert frequent(documents, V, 4).tolist() == [0, 2, 4, 7]


@pytest.mark.parametrize(
    ("change", "message"),
    [({"steps": 0}, "steps: got 0"), ({"length": 2}, "length: got 2"),
     ({"learning_rate": math.inf}, "learning_rate: got inf"), ({"seed": -1}, "seed: got -1")],
)  # fmt: skip
def test_settings_out_of_range_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        Settings(**change)


def test_a_gradient_that_is_not_finite_is_one_line(target, corpus):
    training = started(target, corpus)
    with torch.no_grad():
        training.draft.weights["fc.weight"].fill_(math.nan)
    with pytest.raises(InvalidInput, match="gradient of update 1: got nan"):
        training.update()
    assert training.done == 0
    assert loop.learning_rate(1.0, 0, 1) == 1.0
