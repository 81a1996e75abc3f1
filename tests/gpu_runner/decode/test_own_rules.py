"""A user's own rules on real models: written for rheo_core, run on the host by the engine."""

from dataclasses import replace

import pytest

from exact.cli import options
from gpu_runner.cli.main import app
from gpu_runner.decode.draws import FromChooser, keyed_chooser
from gpu_runner.decode.engine import Engine
from gpu_runner.decode.host_rules import HostVerify, host_proxy
from gpu_runner.decode.methods import find_method, tree_method
from gpu_runner.decode.pool import torch_proxy
from gpu_runner.decode.verification import torch_verify
from gpu_runner.model.drafts.causal import CausalDraft
from gpu_runner.model.tiny import tiny_model
from rheo_core import InvalidInput, TreeShape, proxies, verification
from tests.gpu_runner.reproduce.tables import Tables, twin_cycle

SHAPE = TreeShape(3, 3, 7)


@pytest.mark.parametrize("rule", [verification.algorithm_1, verification.vanilla, verification.rrsw])
def test_a_rule_on_the_host_does_what_its_twin_does(rule):
    def own(*arguments):
        return rule(*arguments)

    assert isinstance(torch_verify(own), HostVerify)
    for seed in range(20):
        tables = Tables(seed, 6, 6)
        method = replace(tree_method("rheo"), verify=rule)
        expected = twin_cycle(tables, method, SHAPE, (0,), FromChooser(keyed_chooser(seed)))[1]
        got = twin_cycle(tables, replace(method, verify=own), SHAPE, (0,), FromChooser(keyed_chooser(seed)))[1]
        assert got == expected


@pytest.mark.parametrize("rule", [proxies.RHEO, proxies.RAW, proxies.NEXT_TOKEN])
def test_a_proxy_on_the_host_does_what_its_twin_does(rule):
    def own(score, order, m, sampled):
        return rule(score, order, m, sampled)

    assert torch_proxy(own) is not torch_proxy(rule)
    for seed in range(20):
        tables = Tables(seed, 6, 6, grain=8)
        method = replace(tree_method("rheo"), proxy=rule)
        expected = twin_cycle(tables, method, SHAPE, (0,), FromChooser(keyed_chooser(seed)))[0]
        got = twin_cycle(tables, replace(method, proxy=own), SHAPE, (0,), FromChooser(keyed_chooser(seed)))[0]
        assert got.tree == expected.tree


def test_wrong_answers_are_refused():
    target = tiny_model(vocabulary=11)
    draft = CausalDraft.skipping(target, [1])
    verdicts = {"token emitted by verify": lambda *given: (11, -1), "child": lambda *given: (given[2][0], 99)}
    for message, rule in verdicts.items():
        engine = Engine(target, draft, replace(tree_method("rheo"), verify=rule), SHAPE)
        with pytest.raises(InvalidInput, match=message):
            engine.generate([1, 2], 3, FromChooser(keyed_chooser(1)))
    engine = Engine(target, draft, replace(tree_method("rheo"), proxy=lambda *given: 1.5), SHAPE)
    with pytest.raises(InvalidInput, match=r"proxy: got 1\.5"):
        engine.generate([1, 2], 3, FromChooser(keyed_chooser(1)))
    assert host_proxy(proxies.RHEO) is not None


RULES = """
def right(p, tail, candidates, sampled, lead, chooser, at):
    token = chooser.index(p)
    return (token, candidates.index(token)) if token in candidates else (token, -1)


def wrong(p, tail, candidates, sampled, lead, chooser, at):
    return (candidates[0], 0) if candidates else (chooser.index(p), -1)
"""


def test_a_rule_in_a_file_is_certified_on_the_engine(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(RULES)
    assert options.run(app, ["certify", f"{file}:right", "--draft", "causal", "--device", "cpu"]) == 0
    assert options.run(app, ["certify", f"{file}:wrong", "--draft", "causal", "--device", "cpu"]) == 1
    assert "right m=1" in capsys.readouterr().out
    assert find_method(f"{file}:right", SHAPE).label == "right m=1"
    assert options.run(app, ["certify", f"{file}:none"]) == 2
    assert options.run(app, ["certify", "block"]) == 2
