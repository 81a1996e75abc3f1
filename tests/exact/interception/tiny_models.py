"""Tiny random language models of transformers, for laws of whole generate loops."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
pytest.importorskip("transformers", reason="transformers is not installed (extra `torch`)")

from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM  # noqa: E402


def tiny_model(seed, vocabulary=4):
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=1.0,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def drafting(model, tokens):
    """The model as an assistant that drafts `tokens` tokens each time, and keeps nothing from one call to the next."""
    model.generation_config.num_assistant_tokens = tokens
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.assistant_confidence_threshold = 0.0
    return model


def sampler(model, prompt, length=3, assistant=None, **options):
    """A function of no argument: the tokens that `generate` samples after the prompt."""
    ids = torch.tensor([prompt])

    def generate():
        settings = {"do_sample": True, "max_new_tokens": length, "top_k": 0} | options
        out = model.generate(ids, generation_config=GenerationConfig(**settings), assistant_model=assistant)
        return out[0, len(prompt) :]

    return generate
