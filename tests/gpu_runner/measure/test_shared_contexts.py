"""Rules on the same contexts: exact means, the text's exact law, and nothing carried from one rule to another."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from exact.enumeration.walk import outcomes
from gpu_runner.certify.certify import plain_law, tiny_pair
from gpu_runner.certify.engine_law import cycle_outcomes
from gpu_runner.decode.draws import FromChooser, Seeded
from gpu_runner.decode.engine import until
from gpu_runner.decode.methods import find_method
from gpu_runner.decode.processing import Processing
from gpu_runner.measure import shared_contexts as contexts_module
from gpu_runner.measure.bench import Setting, engine_of
from gpu_runner.measure.shared_contexts import Contexts, SharedAnswer, same_contexts
from gpu_runner.model.drafts.causal import CausalDraft
from rheo_core import InvalidInput, TreeShape
from tests.gpu_runner.words import worded_model

CPU = torch.device("cpu")
PROMPT = [1, 2, 0]
SHAPE = TreeShape(2, 2, 3)
ROUNDING = 1e-12


def setting_of(kind, tmp_path, vocabulary=3, **given):
    target, draft = tiny_pair(kind, vocabulary, CPU, tmp_path)
    return Setting(target, draft, Processing(**given), 3)


def rules_of(*names, shape=SHAPE):
    return [find_method(name, shape) for name in names]


def drafting(setting, rule):
    engine = engine_of(setting, rule)
    assert engine is not None
    return engine


def at_start(contexts, end, chooser):
    """The figures of one context, by rule."""
    found = contexts.empty_answer()
    session = contexts.host.start(PROMPT)
    contexts.record(found, contexts.draft_all(session, FromChooser(chooser)), end)
    return found


@pytest.mark.parametrize(
    ("kind", "end", "names"),
    [
        ("skip", (), ("rheo:1", "top-k")),
        ("eagle3", (1,), ("rheo:0", "chain")),
        ("causal", (1,), ("rheo-rrsw:1", "top-k", "rheo:1")),
        pytest.param("skip", (1,), ("rheo:0", "rheo:1", "top-k"), marks=pytest.mark.slow),
    ],
)
def test_the_mean_over_trees_is_that_of_the_exact_law(kind, names, end, tmp_path):
    setting, rules = setting_of(kind, tmp_path), rules_of(*names)
    contexts = Contexts(setting, rules)
    mean = {rule.label: [0.0] * (1 + rule.shape.depth) for rule in rules}
    for found, weight in outcomes(partial(at_start, contexts, end)):
        for label, sums in mean.items():
            assert found.accepted[label] == [found.by_depth[label][0]]
            figures = [found.expected[label][0], *found.by_depth[label]]
            mean[label] = [a + float(weight) * b for a, b in zip(sums, figures, strict=True)]
    for rule in rules:
        engine = drafting(setting, rule)
        exact = [0.0] * (1 + rule.shape.depth)
        for after, weight in cycle_outcomes(engine, engine.start(PROMPT)):
            tokens = after.tokens[len(PROMPT) :]
            kept = until(tokens, end)
            accepted = min(len(tokens) - 1, len(kept))
            exact[0] += float(weight) * len(kept)
            for depth in range(accepted):
                exact[1 + depth] += float(weight)
        assert mean[rule.label] == pytest.approx(exact, abs=ROUNDING, rel=0)


def text_law(contexts, length, writer):
    """Exact law of the first tokens, `writer(cycle, context)` naming the rule that writes on."""
    start = contexts.host.start(PROMPT)
    under_way: dict[Any, Any] = {start.key(): (start, 1)}
    finished: dict[Any, Any] = {}

    def step(session, chooser):
        after, draws = session.copy(), FromChooser(chooser)
        context = contexts.draft_all(after, draws)
        contexts.extend(after, context, writer(after.cycles, context), draws)
        return after

    while under_way:
        later: dict[Any, Any] = {}
        for session, mass in under_way.values():
            for after, weight in outcomes(partial(step, session)):
                text = tuple(after.tokens[len(PROMPT) :])[:length]
                if len(text) == length:
                    finished[text] = finished.get(text, 0) + mass * weight
                else:
                    known, sofar = later.get(after.key(), (after, 0))
                    later[after.key()] = (known, sofar + mass * weight)
        under_way = later
    return finished


def total_variation(got, right):
    return sum(abs(float(got.get(text, 0)) - right[text]) for text in right) / 2


@pytest.mark.exact
@pytest.mark.parametrize("kind", [pytest.param("skip", marks=pytest.mark.slow), "eagle3"])
def test_the_text_written_in_turns_has_the_targets_law(kind, tmp_path):
    setting = setting_of(kind, tmp_path)
    contexts = Contexts(setting, rules_of("rheo:0", "top-k", shape=TreeShape(2, 1, 2)))
    right = plain_law(setting.target, PROMPT, 3, setting.processing)
    law = text_law(contexts, 3, lambda cycle, context: contexts.labels[cycle % 2])
    assert sum(law.values()) == 1
    assert total_variation(law, right) < ROUNDING


def test_letting_the_trees_choose_who_writes_would_bias_the_text(tmp_path):
    """A planted fault: who goes on depends on the token that was drawn."""
    setting = setting_of("skip", tmp_path)
    contexts = Contexts(setting, rules_of("rheo:0", "top-k", shape=TreeShape(2, 1, 2)))
    right = plain_law(setting.target, PROMPT, 2, setting.processing)

    def writer(cycle, context):
        drawn = next(iter(context.drafted.values())).tree.token[0]
        return contexts.labels[int(drawn) % 2]

    law = text_law(contexts, 2, writer)
    assert total_variation(law, right) > 1e-4


@pytest.mark.parametrize(("kind", "number"), [("skip", 0), ("skip", 3), ("causal", 1), ("eagle3", 2), ("eagle3", 0)])
def test_a_writer_in_company_writes_what_it_would_alone(kind, number, tmp_path):
    """Five cycles of one rule with the others looking on: tokens, trees and states as without them."""
    target, draft = tiny_pair(kind, 9, CPU, tmp_path)
    setting = Setting(target, draft, Processing(0.8, top_p=0.9), 3)
    rules = rules_of("rheo:1", "top-k", "rheo:0", "chain", shape=TreeShape(3, 3, 8))
    contexts, label = Contexts(setting, rules), rules[number].label
    engine = drafting(setting, rules[number])
    alone, shared = engine.start(PROMPT), contexts.host.start(PROMPT)
    for _ in range(5):
        found = contexts.empty_answer()
        context = contexts.draft_all(shared, Seeded(5))
        contexts.record(found, context, ())
        contexts.extend(shared, context, label, Seeded(5))
        cycle = engine.cycle(alone, Seeded(5))
        assert found.expected[label] == pytest.approx([cycle.expected], abs=ROUNDING, rel=0)
        assert shared.tokens == alone.tokens
        assert shared.cache.length == alone.cache.length


def test_states_that_leak_would_be_seen(tmp_path, monkeypatch):
    """A planted fault: nodes of one token taken for one node, whatever their parents."""
    right = contexts_module.joined

    def by_token(trees):
        tokens, parents, rows = right(trees)
        first = [tokens.index(token) + 1 for token in tokens]
        return tokens, parents, [[first[row - 1] for row in own] for own in rows]

    monkeypatch.setattr(contexts_module, "joined", by_token)
    with pytest.raises(AssertionError):
        test_a_writer_in_company_writes_what_it_would_alone("skip", 0, tmp_path)


def test_figures_do_not_depend_on_company_or_order(tmp_path):
    setting = setting_of("eagle3", tmp_path, vocabulary=9)
    rules = rules_of("rheo:1", "rheo-rrsw:1", "top-k", "rheo:2", "rheo:0", shape=TreeShape(3, 3, 8))

    def figures(some):
        contexts = Contexts(setting, some)
        found = contexts.empty_answer()
        contexts.record(found, contexts.draft_all(contexts.host.start(PROMPT), Seeded(3)), ())
        return found

    together, reversed_ = figures(rules), figures(rules[::-1])
    for rule in rules:
        alone = figures([rule])
        for name in ("expected", "accepted", "by_depth"):
            values = getattr(alone, name)[rule.label]
            assert getattr(together, name)[rule.label] == pytest.approx(values, abs=ROUNDING, rel=0)
            assert getattr(reversed_, name)[rule.label] == pytest.approx(values, abs=ROUNDING, rel=0)


@pytest.fixture(scope="module")
def words():
    target = worded_model(layers=3, seed=1)
    return Setting(target, CausalDraft.skipping(target, [1]), Processing(), 12)


def test_a_question_of_two_turns(words):
    rules = [*rules_of("autoregressive", "top-k", "rheo:1", "rheo:0", shape=TreeShape(3, 2, 6))]
    found = [same_contexts(words, rules, number, ("a b", "c d"), 4) for number in range(6)]
    labels = [rule.label for rule in rules[1:]]
    for each in found:
        assert SharedAnswer(**json.loads(json.dumps(each.document()))) == each
        count = len(each.advanced)
        assert [len(each.expected[label]) for label in labels] == [count] * 3
        assert list(each.coverage) == labels[1:]
        assert sum(each.emitted) == len(each.tokens)
        start = labels.index(each.advanced[0])
        assert each.advanced == [labels[(start + i) % 3] for i in range(count)]
        assert each.by_depth[labels[0]][0] == pytest.approx(sum(each.accepted[labels[0]]) / count)
    assert len({each.advanced[0] for each in found}) > 1
    assert any(0 in each.tokens for each in found)  # a turn that an end token ended
    # emitted minus what the writer's tree made expect has mean 0; 5 standard errors: a false alarm in 2 million runs
    errors = [
        emitted - each.expected[label][i]
        for each in found
        for i, (label, emitted) in enumerate(zip(each.advanced, each.emitted, strict=True))
    ]
    spread = (sum(error**2 for error in errors) / len(errors)) ** 0.5
    assert abs(sum(errors) / len(errors)) < 5 * spread / len(errors) ** 0.5


def test_the_same_seed_gives_the_same_answer(words):
    rules = rules_of("top-k", "rheo:1")
    assert same_contexts(words, rules, 3, ("a",), 1) == same_contexts(words, rules, 3, ("a",), 1)
    assert same_contexts(words, rules, 3, ("a",), 1).tokens != same_contexts(words, rules, 3, ("a",), 2).tokens


def test_coverage_is_the_mass_of_the_support(words):
    rheo = find_method("rheo", SHAPE)
    rules = [replace(rheo, label="narrow", support=2), replace(rheo, label="full", support=None)]
    contexts = Contexts(words, rules)
    session = contexts.host.start(PROMPT)
    context = contexts.draft_all(session, Seeded(1))
    found = contexts.empty_answer()
    contexts.record(found, context, ())
    q = context.drafted[next(iter(context.drafted))].score(-1)
    assert found.coverage["full"] == [1.0]
    assert found.coverage["narrow"] == pytest.approx([float(q.sort(descending=True).values[:2].sum())])


def test_refusals(words):
    with pytest.raises(InvalidInput, match=r"methods: got \['autoregressive'\], expected at least one that drafts"):
        Contexts(words, rules_of("autoregressive"))
    with pytest.raises(InvalidInput, match="fault: got"):
        Contexts(replace(words, fault=lambda parts: parts), rules_of("rheo"))
    with pytest.raises(InvalidInput, match="method: got rheo m=1, expected a label of its own"):
        Contexts(words, rules_of("rheo", "rheo:1"))
