"""transformers' assisted generation beside the engine: the same draft, the same law, the same counting."""

import json
import statistics
from dataclasses import replace

import pytest
import torch

from exact.cli import options
from gpu_runner.cli.main import app
from gpu_runner.decode.autoregressive import autoregressive
from gpu_runner.decode.draws import Seeded
from gpu_runner.decode.methods import find_method, find_methods
from gpu_runner.decode.processing import Processing
from gpu_runner.measure.assisted import DEFAULT, PLAIN, Mode, assistant_of, assisted_answer, compared, comparison, modes
from gpu_runner.measure.bench import Answer, Setting, answer, engine_of
from gpu_runner.model.cache import TreeCache, causal
from gpu_runner.model.chat import prompt_ids
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.drafts.eagle3 import EagleDraft
from gpu_runner.model.tiny import tiny_head, tiny_model
from rheo_core import InvalidInput, TreeShape
from tests.gpu_runner.words import WORDS, worded_model


def skipping(skipped, family="llama", **processing):
    target = worded_model(family=family, layers=4, seed=2, dtype=torch.float32)
    return Setting(target, CausalDraft.skipping(target, skipped), Processing(**processing), 24)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("skipped", [[0], [1, 2]])
def test_the_assistant_is_the_draft(family, skipped):
    setting = skipping(skipped, family)
    assistant = assistant_of(setting.draft)
    ids = torch.tensor([3, 5, 4, 7, 6])
    with torch.no_grad():
        got = assistant(input_ids=ids[None, :3], use_cache=True)
        held = got.past_key_values if hasattr(got, "past_key_values") else got.cache
        name = "cache" if hasattr(got, "cache") else "past_key_values"
        got = assistant(input_ids=ids[None, 3:], **{name: held}).logits[0, -1]
    right, _ = setting.draft.model(ids, torch.arange(5), causal(0, 5, ids.device), TreeCache(), last=1)
    assert torch.allclose(got, right[0], atol=1e-5)
    assert [layer.self_attn.layer_idx for layer in setting.target.layers] == [0, 1, 2, 3]
    assert setting.target.model.config.num_hidden_layers == 4
    assert next(assistant.parameters()).data_ptr() == next(setting.target.model.parameters()).data_ptr()


@pytest.mark.parametrize("skipped", [[0], [2]])
def test_greedy_text_is_the_baselines(skipped):
    setting = skipping(skipped, temperature=0)
    assistant = assistant_of(setting.draft)
    prompt = prompt_ids(setting.target, [{"role": "user", "content": "a b c"}])
    right = autoregressive(setting.target, prompt, 40, Seeded(0), setting.processing, {0}).tokens
    for mode in modes(3):
        done = assisted_answer(setting, assistant, mode, 0, ("a b c",), 1)
        assert tuple(done.tokens) == right[: len(done.tokens)]
        assert len(done.tokens) >= 24 or done.tokens[-1] == 0
        assert sum(done.emitted) == len(done.tokens)
        assert set(done.emitted) == {1} or done.rule != PLAIN


@pytest.mark.slow
def test_a_chain_is_accepted_as_often_as_the_engines_chain():
    """Both are speculative sampling with the same draft, so tau is the same; 4 standard errors: 1 alarm in 15,000.

    Texts are the units: cycles of one text resemble each other. The planted fault is a draft that knows nothing of the
    target: tau 1.69 instead of 2.28, 6.7 standard errors, so with other seeds it would pass 4 times in 1,000.
    """
    setting = replace(skipping([1]), length=30)
    setting.target.tokenizer.eos_token = None
    rule, seeds = find_method("chain", TreeShape(1, 3, 3)), range(20)
    engine = engine_of(setting, rule)

    def taus(answers):
        return [statistics.fmean(each.emitted) for each in answers]

    def theirs(assistant):
        return taus(assisted_answer(setting, assistant, Mode("", 3), 0, ("a b",), seed) for seed in seeds)

    ours = taus(answer(setting, rule, engine, 0, ("a b",), seed) for seed in seeds)

    def apart(found):
        error = ((statistics.variance(found) + statistics.variance(ours)) / len(ours)) ** 0.5
        return abs(statistics.fmean(found) - statistics.fmean(ours)) / error

    assert apart(theirs(assistant_of(setting.draft))) < 4
    assert apart(theirs(tiny_model("llama", len(WORDS), layers=1, seed=9, dtype=torch.float32).model)) > 4


def test_all_take_turns_and_leave_the_models_as_they_were():
    setting = replace(skipping([1]), length=6)
    settings = setting.target.model.generation_config
    settings.repetition_penalty = 1.5  # not part of the law that is compared
    rules = find_methods(["autoregressive", "top-k"], TreeShape(2, 2, 3))
    torch.manual_seed(11)
    found = list(compared(setting, rules, modes(2), [("a", "b"), ("c",)], [0]))
    assert [each.rule for each in found[:5]] == ["autoregressive", "top-k", PLAIN, DEFAULT, f"{DEFAULT}, chain of 2"]
    assert [each.question for each in found] == [0] * 5 + [1] * 5
    drawn = torch.rand(1)
    torch.manual_seed(11)
    assert torch.equal(drawn, torch.rand(1))
    assert setting.target.model.generation_config is settings
    assert not setting.target.model._forward_hooks
    again = list(compared(setting, rules, modes(2), [("a", "b"), ("c",)], [0]))
    assert [each.tokens for each in again] == [each.tokens for each in found]


def test_another_model_is_its_own_assistant():
    target = worded_model(layers=3, dtype=torch.float32)
    model = tiny_model("qwen3", len(WORDS), layers=1, dtype=torch.float32)
    setting = Setting(target, CausalDraft(model, target), Processing(0.7), 8)
    assert assistant_of(setting.draft) is model.model
    done = assisted_answer(setting, model.model, Mode("", 2), 0, ("a",), 0)
    assert done.tokens


def test_figures_are_paired_within_questions():
    found = []
    for question, seed in ((0, 0), (0, 1), (1, 0)):
        found.append(Answer(DEFAULT, question, seed, tokens=[1] * 6, emitted=[2, 4], seconds=2.0, drafting=[0.25]))
        found.append(
            Answer(
                "mine", question, seed, tokens=[1] * (6 + 2 * question), emitted=[3 + question] * 2, seconds=1.0 + seed
            )
        )
    found.append(Answer("mine", 2, 0, tokens=[1], emitted=[1], seconds=1.0))  # not answered by the other
    base, mine = comparison(found)
    assert (base.method, base.difference, base.ratio, base.drafting) == (DEFAULT, None, None, 0.25)
    assert (mine.answers, mine.cycles, mine.tokens) == (3, 6, 20)
    assert mine.tau == 20 / 6
    assert mine.difference is not None
    assert mine.ratio is not None
    assert mine.difference.mean == 0.5  # 0 and 1
    assert mine.ratio.mean == ((12 / 3) / (12 / 4) + (8 / 1) / (6 / 2)) / 2
    assert mine.tokens_per_second == 20 / 4
    assert base.document()["ratio"] is None
    assert set(mine.document()["ratio"]) == {"mean", "low", "high"}
    assert comparison(found[:2])[1].document()["ratio"]["low"] is None


def test_the_command(tmp_path, capsys):
    place = tmp_path / "model"
    target = worded_model(layers=4, dtype=torch.float32)
    target.model.save_pretrained(place)
    target.tokenizer.save_pretrained(place)
    tiny_head(place / "head", len(WORDS), 9)
    pair = ("--target", str(place), "--device", "cpu", "--length", "6", "--seeds", "1")

    def run(*arguments):
        code = options.run(app, ["assisted", *pair, *arguments])
        return code, capsys.readouterr()

    code, said = run(
        "chain", "--draft", "skip:1", "--prompt", "a b", "--prompt", "c", "--save", str(tmp_path / "a.json")
    )
    assert code == 0
    for word in ("transformers, alone", "transformers, assisted, chain of 4", "chain of 4", "tokens/s", "support 128,"):
        assert word in said.out
    assert "transformers' assistant samples from all of q" in said.out
    document = json.loads((tmp_path / "a.json").read_text())
    assert [each["method"] for each in document["results"]] == ["chain of 4", *(mode.label for mode in modes(4))]
    assert document["provenance"]["finished"] is True
    sets = tmp_path / "sets" / "own"
    sets.mkdir(parents=True)
    (sets / "question.jsonl").write_text('{"question_id": 1, "turns": ["a", "b"]}\n')
    code, said = run("top-k", "--draft", "skip:1", "--data", str(sets.parent), "--sets", "own", "--json")
    assert code == 0
    assert json.loads(said.out)["provenance"]["questions"] == [["a", "b"]]
    for arguments, words in [
        (("--draft", str(place / "head")), "transformers cannot draft with an EAGLE head"),
        (
            ("--draft", "skip:1", "--data", str(sets.parent), "--sets", "own", "--questions", "2"),
            "1 to 1, or 0 for all",
        ),
        (("--draft", "skip:1", "--data", str(sets), "--sets", "own", "--prompt", "a"), "--prompt or --data"),
        (("--draft", "skip:1", "--data", str(sets)), "both or neither"),
        (("--draft", "skip:1", "--length", "0"), "length: got 0"),
    ]:
        code, said = run(*arguments)
        assert code == 2
        assert words in said.err


def test_an_eagle_head_is_refused(tmp_path):
    target = worded_model(layers=4)
    head = EagleDraft.load(tiny_head(tmp_path, len(WORDS), 9), target)
    with pytest.raises(InvalidInput, match="transformers cannot draft with an EAGLE head"):
        assistant_of(head)
