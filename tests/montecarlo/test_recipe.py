"""The transformers recipe of docs/recording.md, run as it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

from montecarlo.auditing import audit
from montecarlo.chunks import Chunker
from montecarlo.recording import read

DOCUMENT = Path(__file__).parents[2] / "docs" / "recording.md"

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra `torch`)")


def recipe(heading):
    """The first Python block below a heading of the document."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"## {heading}\n")[1]
    match = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert match is not None
    return match.group(1)


@pytest.fixture(scope="module")
def models():
    """Two tiny models with random weights and a peaked law each."""
    torch.set_num_threads(1)
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        config = transformers.LlamaConfig(
            vocab_size=24,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=512,
            bos_token_id=None,
            eos_token_id=None,
            pad_token_id=0,
        )
        model = transformers.LlamaForCausalLM(config).eval()
        model.lm_head.weight.data.mul_(40)
        made.append(model)
    return made


def recorded(path, model, texts, length, **options):
    """Record texts by the recipe and audit them."""
    space: dict[str, Any] = {}
    exec(compile(recipe("transformers"), str(DOCUMENT), "exec"), space)
    torch.manual_seed(7)
    with path.open("w") as file:
        for number in range(texts):
            prompt = torch.tensor([[1, 2 + number % 20]])
            space["record"](file, model, prompt, str(number), max_new_tokens=length, **options)
    return audit(Chunker(10).chunks(read(path)))


@pytest.mark.parametrize("assisted", [False, True])
def test_a_run_recorded_by_the_recipe_shows_no_loss(tmp_path, models, assisted):
    options = {"assistant_model": models[1]} if assisted else {}
    report = recorded(tmp_path / "run.jsonl", models[0], texts=4, length=100, **options)
    assert report.tokens == 400
    assert (report.with_draft > 50) == assisted
    assert not report.evidence_of_loss
    assert report.impossible == 0


def test_a_lossy_setting_is_seen(tmp_path, models):
    """Planted fault: `assistant_ensemble_weight` verifies against a mixture with the draft's law (lossy by design)."""
    report = recorded(
        tmp_path / "run.jsonl", models[0], texts=6, length=150, assistant_model=models[1], assistant_ensemble_weight=0.3
    )
    assert report.evidence_of_loss
    assert "draft" in report.leading.meaning


@pytest.mark.parametrize("engine", ["transformers", "vLLM", "SGLang"])
def test_every_recipe_is_valid_python(engine):
    compile(recipe(engine), engine, "exec")
