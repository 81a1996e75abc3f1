"""A certificate by a graph says what a listed one says, and no more than was replayed."""

import json
from dataclasses import replace

import pytest

from exact import certify
from exact.cli.main import app
from exact.cli.options import run
from exact.enumeration.batched_layered import LayeredBatch
from exact.enumeration.class_table import ClassTable, class_sample
from exact.verdict import graph_certificate, wide_drafting
from exact.verdict.certificate import Certificate
from exact.verdict.graph_certificate import GraphCertificate, GraphLimits, within
from rheo_core import InvalidInput, TreeShape
from rheo_core.verification import algorithm_1
from tests.pairs import alike, rational, rule, varied

pytestmark = pytest.mark.exact
SHAPE = TreeShape(3, 3, 9)
ROWS = rational(5, 4, 3, 2), rational(1, 2, 3, 4)


def by_graph(method="rheo", target=None, draft=None, **bounds):
    """The certificate where more than ten classes are too many to list."""
    with within(GraphLimits(listed=10, **bounds)):
        return certify(method, target or alike(ROWS[1]), draft or alike(ROWS[0]), SHAPE)


@pytest.mark.parametrize("draft", [alike(ROWS[0]), varied(*ROWS)], ids=["alike", "varied"])
@pytest.mark.parametrize("name", ["rheo", "rheo-rrsw", "rheo-next"])
def test_it_agrees_with_the_certificate_of_listed_classes(name, draft):
    found = by_graph(rule(name), draft=draft)
    listed = certify(name, alike(ROWS[1]), draft, SHAPE)
    assert isinstance(found, GraphCertificate)
    assert not isinstance(listed, GraphCertificate)
    count = listed.classes or 0
    assert found.classes == count > 10
    assert (found.verdict, found.every_target) == (listed.verdict, listed.every_target) == ("lossless", True)
    assert found.replays.by_reference == min(count, wide_drafting.REPLAYED)
    assert 0 < found.replays.reference_mass <= found.replays.twin_mass <= 1
    assert "Coq" in found.every_target_reason
    assert "not replayed in full" in found.every_target_reason


def test_a_class_that_the_layered_code_does_not_build_leaves_it_undecided(monkeypatch):
    """Planted: one token of one sampled class is another; where nothing is replayed it would be proved."""

    def wrong(*arguments):
        table = class_sample(*arguments)
        table.token[0, 0] = (table.token[0, 0] + 1) % 4
        return ClassTable(
            (table.parent, table.slot, table.kind, table.token, table.score),
            table.probabilities,
            table.scores,
            table.keys,
        )

    monkeypatch.setattr(wide_drafting, "class_sample", wrong)
    monkeypatch.setattr(graph_certificate, "unknown_parts", lambda method: "")  # which sees that the code was changed
    monkeypatch.setattr(graph_certificate, "verifier_name", lambda rule: "algorithm_1")
    monkeypatch.setattr(wide_drafting, "known_tree_method", lambda method: True)
    found = by_graph()
    assert (found.every_target, found.lossless) == (None, None)
    assert "undecided: a class is not what the layered code builds" in found.every_target_reason
    monkeypatch.setattr(graph_certificate, "first_moved", lambda *arguments: None)
    monkeypatch.setattr(LayeredBatch, "first_moved", lambda *arguments: None)
    assert by_graph().every_target is True


def test_changed_code_of_the_graph_is_known_parts_no_longer(monkeypatch):
    """The graph's own rooms are held to their files: with other code there, nothing is proved by them."""
    monkeypatch.setattr(wide_drafting, "class_sample", lambda *arguments: None)
    assert not isinstance(by_graph(), GraphCertificate)


def test_other_parts_take_the_general_path():
    def mine(*arguments):
        return algorithm_1(*arguments)

    for method in (replace(rule("rheo"), verify=mine), rule("rheo-raw"), rule("rheo-rrsw-z")):
        assert type(by_graph(method)) is Certificate


def test_figures_that_need_a_list_are_refused_by_name():
    found = by_graph()
    for name in ("emitted", "text", "acceptance_length", "acceptance_by_depth", "classes_digest"):
        with pytest.raises(InvalidInput, match=f"{name}: got .* classes in a graph"):
            getattr(found, name)
    assert found.summary()["classes"] == found.classes
    assert found.summary()["acceptance_length"] is None


def test_the_checker_validates_form_and_digest_and_takes_the_rest_as_recorded(tmp_path, capsys):
    document = by_graph().document()
    assert check_exit(tmp_path, document) == 3
    said = capsys.readouterr().out
    assert "as recorded, not checked: every target: proved; not replayed in full" in said
    assert f"classes {document['graph']['classes']}" in said
    assert check_exit(tmp_path, document | {"every_target": None}) == 1
    assert "sha256" in capsys.readouterr().out
    short = {name: value for name, value in document.items() if name != "graph"}
    assert check_exit(tmp_path, short | {"sha256": graph_certificate._digest(short)}) == 1
    parts = document["method"]["identity"]
    own = parts | {"verify": parts["verify"] | {"known": False}}
    for identity, why in (
        (own, "a part is not known"),
        ({}, "another form"),
        ({"verify": own["verify"]}, "another form"),
    ):
        forged = document | {"method": document["method"] | {"identity": identity}}
        assert check_exit(tmp_path, forged | {"sha256": graph_certificate._digest(forged)}) == 1
        assert why in capsys.readouterr().out


def check_exit(folder, document):
    path = folder / "graph.json"
    path.write_text(json.dumps({"command": "certify", "results": [{"certificate": document}]}))
    return run(app, ["check", str(path)])


def test_an_interruption_says_what_is_known_and_a_graph_too_large_is_refused():
    def stop(what, done, of):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        by_graph(tick=stop)
    assert any("states after 5 of 9 nodes" in note for note in caught.value.__notes__)
    with pytest.raises(InvalidInput, match="more than 8 states after"):
        by_graph(states=8)
