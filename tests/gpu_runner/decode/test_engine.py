"""The engine on tiny models: tree attention, greedy text, end tokens, turns, seeds, refusals."""

from dataclasses import replace

import pytest
import torch

from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.drafting import Nodes
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine, ancestors
from gpu_runner.decode.methods import tree_method
from gpu_runner.decode.processing import Processing
from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.causal_lm import CausalModel, check_tree_attention
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import FAMILIES, tiny_head, tiny_model
from rheo_core import InvalidInput, TreeShape

SHAPE = TreeShape(3, 3, 7)
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10}


def drafts(target, tmp_path):
    return {
        "skip": CausalDraft.skipping(target, [1]),
        "causal": CausalDraft(tiny_model("qwen3", target.vocabulary, 2, 9, target.dtype, target.device), target),
        "eagle": EagleDraft.load(tiny_head(tmp_path / "own", target.vocabulary), target),
        "eagle-mapped": EagleDraft.load(tiny_head(tmp_path / "mapped", target.vocabulary, 9), target),
        "eagle-speculators": EagleDraft.load(
            tiny_head(tmp_path / "s", target.vocabulary, 9, speculators=True, norm_before_residual=True), target
        ),
    }


def plain_logits(model, tokens):
    with torch.no_grad():
        return model.model(input_ids=torch.tensor([list(tokens)])).logits[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_tree_logits_equal_plain_forwards_of_every_path(family, dtype, tmp_path):
    target = tiny_model(family, 13, dtype=dtype)
    check_tree_attention(target)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), SHAPE)
    session = engine.start([1, 5, 2, 7, 3])
    for cycle in range(4):
        drafted = engine.draft_tree(session, Seeded(cycle))
        scored = engine.score(session, drafted)
        for node in range(-1, len(drafted.tree)):
            plain = plain_logits(target, [*session.tokens, *drafted.tree.tokens_to(node)])[-1]
            assert torch.allclose(scored.logits[node + 1], plain, rtol=0, atol=TOLERANCE[dtype])
        engine.commit(session, drafted, scored, Seeded(cycle))


@pytest.mark.parametrize("kind", ["skip", "causal"])
def test_draft_rows_equal_plain_forwards_of_every_path(kind, tmp_path):
    target = tiny_model(vocabulary=13)
    draft = drafts(target, tmp_path)[kind]
    engine = Engine(target, draft, tree_method("rheo"), SHAPE)
    session = engine.start([1, 5, 2])
    for cycle in range(3):
        drafted = engine.draft_tree(session, Seeded(cycle))
        for node in [-1, *(node for node in range(len(drafted.tree)) if int(drafted.nodes.row[node]) >= 0)]:
            plain = plain_logits(draft.model, [*session.tokens, *drafted.tree.tokens_to(node)])[-1]
            assert torch.allclose(drafted.score(node), torch.softmax(plain, -1), rtol=0, atol=1e-10)
        engine.commit(session, drafted, engine.score(session, drafted), Seeded(cycle))


def test_ancestors():
    parent = torch.tensor([-1, 0, 0, 2, 3, -1])
    nodes = Nodes(*[parent] * 7)
    seen = {row: {0, row + 1} for row in range(6)}
    seen[1] |= {1}
    seen[2] |= {1}
    seen[3] |= {1, 3}
    seen[4] |= {1, 3, 4}
    got = ancestors(nodes)
    assert [set(row.nonzero()[:, 0].tolist()) for row in got] == [{0}, *seen.values()]


def greedy(target, prompt, length):
    with torch.no_grad():
        ids = target.model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=length,
            do_sample=False,
            eos_token_id=None,
        )
    return ids[0, len(prompt) :].tolist()


@pytest.mark.parametrize(  # every method, every kind of draft
    ("name", "kind"),
    [
        ("top-k", "eagle"),
        ("rheo", "skip"),
        ("rheo", "causal"),
        ("rheo", "eagle-mapped"),
        ("rheo-rrsw", "eagle-speculators"),
        ("rheo-rrsw", "skip"),
    ],
)
def test_temperature_0_is_greedy_generate(kind, name, tmp_path):
    target = tiny_model(vocabulary=11, dtype=torch.float32)
    engine = Engine(target, drafts(target, tmp_path)[kind], tree_method(name), SHAPE, Processing(0))
    text = engine.generate([1, 5, 2, 7], 40, Seeded(1)).tokens
    expected = greedy(target, [1, 5, 2, 7], 40)
    assert list(text) == expected
    assert autoregressive(target, [1, 5, 2, 7], 40, Seeded(1), Processing(0)).tokens == text


@pytest.mark.parametrize("kind", ["skip", "causal", "eagle-mapped"])
def test_long_text_keeps_cache_and_draft_in_step(kind, tmp_path):
    target = tiny_model(vocabulary=11)
    engine = Engine(target, drafts(target, tmp_path)[kind], tree_method("rheo"), SHAPE)
    session = engine.start([1, 5, 2])
    for _ in range(25):
        engine.cycle(session, Seeded(3))
    assert session.cache.length == len(session.tokens) - 1
    fresh = engine.start(session.tokens)
    again, other = engine.draft_tree(fresh, Seeded(4)), engine.draft_tree(session.copy(), Seeded(4))
    fresh_rows, rows = (torch.cat([level.score for level in drafted.rows]) for drafted in (again, other))
    assert torch.allclose(rows[0], fresh_rows[0], rtol=0, atol=1e-9)


def test_same_seed_same_text_and_other_seed_other_text(tmp_path):
    target = tiny_model(vocabulary=11)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), SHAPE)
    texts = [engine.generate([1, 2], 30, Seeded(seed)).tokens for seed in (5, 5, 6)]
    assert texts[0] == texts[1] != texts[2]


def test_text_stops_at_an_end_token_inside_an_accepted_path():
    target = tiny_model(vocabulary=5)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), SHAPE)
    free = engine.generate([1, 2], 40, Seeded(5))
    end = free.tokens[9]
    cut = engine.generate([1, 2], 40, Seeded(5), end=[end])
    assert cut.tokens == free.tokens[: free.tokens.index(end) + 1]
    assert sum(len(cycle.tokens) for cycle in cut.cycles) == len(cut.tokens)
    assert cut.acceptance_length == len(cut.tokens) / len(cut.cycles)


def test_length_is_kept_exactly():
    target = tiny_model(vocabulary=5)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), SHAPE)
    assert [len(engine.generate([1, 2], n, Seeded(5)).tokens) for n in range(6)] == list(range(6))
    whole = [cycle.tokens for cycle in engine.cycles(engine.start([1, 2]), 9, Seeded(5), whole=True)]
    assert sum(len(tokens) for tokens in whole[:-1]) < 9 <= sum(len(tokens) for tokens in whole)


@pytest.mark.parametrize("kind", ["skip", "causal", "eagle-mapped"])
def test_a_next_turn_reuses_the_common_beginning(kind, tmp_path):
    target = tiny_model(vocabulary=11)
    engine = Engine(target, drafts(target, tmp_path)[kind], tree_method("rheo"), SHAPE)
    session = engine.start([1, 5, 2])
    for _ in engine.cycles(session, 9, Seeded(3)):
        pass
    for following in ([*session.tokens, 4, 4], [*session.tokens[:6], 9, 8, 7], [1, 5], [3, 1, 2, 9]):
        engine.set_text(session, following)
        assert session.tokens == following
        fresh = engine.start(following)
        draws = Seeded(session.cycles)
        fresh.cycles = session.cycles
        got, expected = engine.draft_tree(session, draws), engine.draft_tree(fresh, draws)
        assert torch.allclose(got.score(-1), expected.score(-1), rtol=0, atol=1e-9)
        assert torch.allclose(
            engine.score(session, got).logits, engine.score(fresh, expected).logits, rtol=0, atol=1e-9
        )
        engine.set_text(session, following)
        for _ in engine.cycles(session, 5, draws):
            pass


def test_cached_states_are_those_of_a_plain_forward():
    target = tiny_model(vocabulary=11)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), SHAPE)
    session = engine.start([1, 5, 2])
    for _ in range(6):
        engine.cycle(session, Seeded(2))
    cache, held = TreeCache(), len(session.tokens) - 1
    target(torch.tensor(session.tokens[:held]), torch.arange(held), causal(0, held, target.device), cache)
    for layer, plain in zip(session.cache.held, cache.held, strict=True):
        for states, expected in zip(layer.states(), plain.states(), strict=True):
            assert torch.allclose(states, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("family", "overrides", "message"),
    [
        ("mistral", {"sliding_window": 8}, "sliding window of 8"),
        (
            "qwen3",
            {
                "layer_types": ["full_attention", "sliding_attention"] * 2,
                "use_sliding_window": True,
                "sliding_window": 4,
            },
            "sliding",
        ),
    ],
)
def test_models_without_full_attention_are_refused(family, overrides, message):
    with pytest.raises(InvalidInput, match=message):
        tiny_model(family, 11, **overrides)


def test_recurrent_models_are_refused():
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(vocab_size=7, hidden_size=8, state_size=2, num_hidden_layers=1)
    with pytest.raises(InvalidInput, match="recurrent"):
        CausalModel(MambaForCausalLM(config), "tiny mamba")


def test_a_model_that_ignores_positions_is_refused():
    target = tiny_model(vocabulary=11)
    forward = target.model.forward
    target.model.forward = lambda position_ids, **named: forward(**named)
    with pytest.raises(InvalidInput, match="tree logits"):
        check_tree_attention(target)


def test_refusals(tmp_path):
    target = tiny_model(vocabulary=11)
    draft = CausalDraft.skipping(target, [1])
    with pytest.raises(InvalidInput, match="vocabulary of draft tiny llama: got 7"):
        CausalDraft(tiny_model(vocabulary=7), target)
    with pytest.raises(InvalidInput, match="skip: got 4"):
        CausalDraft.skipping(target, [4])
    with pytest.raises(InvalidInput, match="skip"):
        CausalDraft.skipping(target, [0, 1, 2, 3])
    with pytest.raises(InvalidInput, match="lead: got 5"):
        Engine(target, draft, replace(tree_method("rheo"), lead=5), SHAPE)
    engine = Engine(target, draft, tree_method("rheo"), SHAPE)
    with pytest.raises(InvalidInput, match=r"prompt\[1\]: got 11"):
        engine.start([1, 11])
    with pytest.raises(InvalidInput, match=r"prompt\[0\]: got -1"):
        engine.start([-1])
    with pytest.raises(InvalidInput, match="prompt: got no tokens"):
        engine.start([])
    eagle = Engine(target, drafts(target, tmp_path)["eagle"], tree_method("rheo"), SHAPE)
    with pytest.raises(InvalidInput, match="at least 2 for an EAGLE-3 draft"):
        eagle.generate([1], 3, Seeded(0))


def test_out_of_memory_names_the_size(monkeypatch):
    target = tiny_model(vocabulary=11)

    def full(**named):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    monkeypatch.setattr(target.model, "forward", full)
    with pytest.raises(InvalidInput, match=r"not enough for tiny llama, 1 tokens on 0.*20.00 GiB"):
        target(torch.tensor([1]), torch.tensor([0]), causal(0, 1, target.device), TreeCache())


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_half_precision_models_give_float32_laws(name):
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[name]
    target = tiny_model(vocabulary=11, dtype=dtype)
    check_tree_attention(target)
    engine = Engine(target, CausalDraft.skipping(target, [1]), tree_method("rheo"), SHAPE)
    session = engine.start([1, 2, 3])
    drafted = engine.draft_tree(session, Seeded(0))
    assert drafted.tails is not None
    assert drafted.tails.law.dtype == drafted.nodes.score.dtype == torch.float32
    assert engine.score(session, drafted).logits.dtype == torch.float32
    assert len(engine.generate([1, 2, 3], 12, Seeded(0)).tokens) == 12


@pytest.mark.parametrize("side", ["target", "draft"])
@pytest.mark.parametrize("value", [float("nan"), float("-inf")], ids=str)
def test_a_row_that_is_no_law_never_yields_a_token(side, value):
    target = tiny_model(vocabulary=11)
    draft = CausalDraft(tiny_model(vocabulary=11, layers=2, seed=9), target)
    engine = Engine(target, draft, tree_method("rheo"), SHAPE)
    model = target if side == "target" else draft.model
    forward = model.model.forward

    def broken(**named):
        output = forward(**named)
        output.logits[:] = value
        return output

    session = engine.start([1, 5, 2])
    model.model.forward = broken
    if side == "target":
        with pytest.raises(InvalidInput, match="target row"):
            engine.cycle(session, Seeded(0))
        with pytest.raises(InvalidInput, match="target row"):
            autoregressive(target, [1, 5, 2], 3, Seeded(0))
    else:
        with pytest.raises(InvalidInput, match="draft row"):
            engine.cycle(session, Seeded(0))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["skip", "causal", "eagle-mapped"])
def test_cuda_writes_the_same_text_from_the_same_seed(kind, tmp_path):
    texts = []
    for device in ("cpu", "cuda"):
        target = tiny_model(vocabulary=11, device=device)
        engine = Engine(target, drafts(target, tmp_path)[kind], tree_method("rheo"), SHAPE)
        texts.append([engine.generate([1, 5, 2], 30, Seeded(seed)).tokens for seed in range(3)])
    assert texts[0] == texts[1]
