"""transformers' own speculative decoding, unmodified: its verification function and its whole generate loops."""

from fractions import Fraction

import pytest

from exact.interception import Interception, certify_function, torch_law
from exact.interception.verdict import total_variation

torch = pytest.importorskip("torch", reason="torch is not installed (extra `torch`)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra `torch`)")

from transformers.generation.utils import _speculative_sampling  # noqa: E402

from tests.exact.interception.tiny_models import drafting, sampler, tiny_model  # noqa: E402

pytestmark = [pytest.mark.exact, pytest.mark.certificate]
PINNED = "5.24."
V = 3


def logits(count, seed, vocabulary=V, dtype=torch.float32):
    """Rows [1, count, V] that differ at every position."""
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(1, count, vocabulary, generator=generator)).to(dtype)


def cycle(drafted, draft, new, weight=None, drawn=None):
    """Draw `drafted` tokens from the draft's rows (or from `drawn`) and let transformers verify them."""
    tokens = torch.multinomial((draft if drawn is None else drawn).softmax(-1)[0], 1).T
    ids = torch.cat([torch.zeros(1, 1, dtype=torch.long), tokens], dim=1)
    return _speculative_sampling(ids, draft, drafted, new, weight)[0]


def model(rows):
    """The target as a model: the row of a position, whatever the tokens before it."""
    return lambda prefix: rows[0, len(prefix)].softmax(-1)


def joint(rows, tokens):
    product = Fraction(1)
    for position, token in enumerate(tokens):
        row = [Fraction(x) for x in rows[0, position].softmax(-1).tolist()]
        product *= row[token] / sum(row)
    return product


def test_the_version_that_these_laws_are_of():
    if not transformers.__version__.startswith(PINNED):
        pytest.skip(f"written for transformers {PINNED}x; the laws below are of {transformers.__version__}")


@pytest.mark.parametrize("drafted", [1, 2, 3])
def test_speculative_sampling_is_lossless_up_to_rounding(drafted):
    draft, new = logits(drafted, 0), logits(drafted + 1, 1)
    found = certify_function(cycle, drafted, draft, new, target=model(new), length=drafted + 1, one_cycle=True)
    assert found.verdict == "lossless up to rounding"
    assert 0 < found.total_variation < Fraction(1, 10**6)
    assert (found.total_variation_float64 or 0) < Fraction(1, 10**15)
    assert found.right == {tokens: joint(new, tokens) for tokens in found.right}
    if drafted == 2:
        assert found.outcomes <= 2 * V * (V + 1) ** 2


@pytest.mark.parametrize("drafted", [1, 2, 3])
def test_a_draft_that_was_drawn_at_another_temperature_is_refuted(drafted):
    draft, new = logits(drafted, 0), logits(drafted + 1, 1)
    found = certify_function(
        cycle, drafted, draft, new, drawn=2 * draft, target=model(new), length=drafted + 1, one_cycle=True
    )
    assert found.verdict == "lossy"
    assert len(found.sequence) == 1  # the first token is wrong already
    drawn, q, p = ([Fraction(x) for x in each[0, 0].softmax(-1).tolist()] for each in (2 * draft, draft, new))
    accepted = [d / sum(drawn) * min(Fraction(1), b / a) for d, a, b in zip(drawn, q, p, strict=True)]
    rest: list[Fraction] = [max(Fraction(0), b - a) for a, b in zip(q, p, strict=True)]
    token = found.sequence[0]
    assert found.got is not None
    expected = accepted[token] + (1 - sum(accepted)) * rest[token] / sum(rest)
    assert abs(found.got - expected) < Fraction(1, 10**6)
    assert found.total_variation > Fraction(1, 100)


@pytest.mark.parametrize("weight", [0.25, 0.5, 0.75])
def test_the_ensemble_weight_is_lossy_by_one_minus_the_weight(weight):
    draft, new = logits(1, 0, dtype=torch.float64), logits(2, 1, dtype=torch.float64)
    law = torch_law(lambda: cycle(1, draft, new, weight)[0, 0])
    p, q = new[0, 0].softmax(-1), draft[0, 0].softmax(-1)
    mixed = weight * p + (1 - weight) * q
    assert all(abs(float(law[token]) - float(mixed[token])) < 1e-15 for token in range(V))
    found = certify_function(cycle, 1, draft, new, weight, target=model(new), length=1)
    assert found.lossless is False
    assert abs(float(found.total_variation) - (1 - weight) * float((p - q).abs().sum()) / 2) < 1e-15


def settings(*marks, **options):
    return pytest.param(options, marks=marks, id=" ".join(f"{k}={v}" for k, v in options.items()) or "plain")


@pytest.mark.parametrize(
    "options",
    [
        settings(pytest.mark.slow),
        settings(temperature=0.7, top_k=3),
        settings(top_p=0.8),
        settings(temperature=1.5, top_k=2, top_p=0.9),
    ],
)
def test_assisted_generation_has_the_joint_law_of_plain_sampling(options):
    target, assistant = tiny_model(0), drafting(tiny_model(1), 1)
    found = certify_function(
        sampler(target, [0, 1], assistant=assistant, **options), target=sampler(target, [0, 1], **options)
    )
    assert found.verdict.startswith("lossless"), str(found)
    assert found.total_variation < Fraction(1, 10**5)
    assert all(len(tokens) == 3 for tokens in found.law)


@pytest.mark.slow
@pytest.mark.parametrize("vocabulary", [4, 5, 6])
def test_assisted_generation_with_two_drafted_tokens(vocabulary):
    target, assistant = tiny_model(0, vocabulary), drafting(tiny_model(1, vocabulary), 2)
    options = {"top_k": 3} if vocabulary > 4 else {}
    found = certify_function(
        sampler(target, [0, 1], assistant=assistant, **options), target=sampler(target, [0, 1], **options)
    )
    assert found.verdict == "lossless up to rounding", str(found)


@pytest.mark.parametrize("options", [settings(top_k=2), settings(temperature=0.7, top_p=0.8)])
def test_prompt_lookup_has_the_joint_law_of_plain_sampling(options):
    target, prompt = tiny_model(0), [0, 1, 2, 0, 1]
    found = certify_function(
        sampler(target, prompt, prompt_lookup_num_tokens=2, **options), target=sampler(target, prompt, **options)
    )
    assert found.verdict.startswith("lossless"), str(found)


def test_the_ensemble_weight_makes_generation_lossy_by_the_exact_amount():
    target, assistant, weight = tiny_model(0), drafting(tiny_model(1), 1), 0.5
    loop = sampler(target, [0, 1], length=2, assistant=assistant, assistant_ensemble_weight=weight)
    found = certify_function(loop, target=sampler(target, [0, 1], length=2))
    assert found.verdict == "lossy"
    assert len(found.sequence) == 1
    ids = torch.tensor([[0, 1]])
    with torch.no_grad():
        p, q = (each(ids).logits[0, -1].softmax(-1) for each in (target, assistant))
    first = Interception().law(lambda: loop()[0])
    for token in range(4):
        assert abs(float(first[token]) - float(weight * p[token] + (1 - weight) * q[token])) < 1e-6
    expected = (1 - weight) * float((p - q).abs().sum()) / 2
    plain = Interception().law(lambda: sampler(target, [0, 1], length=1)()[0])
    assert abs(float(total_variation(first, plain)) - expected) < 1e-6


def test_greedy_drafts_are_point_masses_and_lossless():
    target, assistant = tiny_model(0), drafting(tiny_model(1), 2)
    assistant.generation_config.do_sample = False
    options = {"top_k": 2}
    found = certify_function(
        sampler(target, [0, 1], assistant=assistant, **options), target=sampler(target, [0, 1], **options)
    )
    assert found.lossless is True, str(found)
