"""The program extracted from the Coq proof as an oracle for rheo_core, and as a second judge of certificates."""

from __future__ import annotations

import json
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exact import law
from exact.cli import options
from exact.cli.main import app
from exact.enumeration.tree_classes import grown_classes
from exact.proofs import extracted
from exact.proofs.extracted import Answer, Question, ask
from rheo_core import InvalidInput, ModelPair, speculate
from rheo_core.pool import RHEO, Drafter
from tests.exact.rocq.conftest import NEEDS_OCAML
from tests.exact.rocq.test_rocq import Case, nodes_of
from tests.pairs import rational, rule, varied

BATCH, BATCHES = 25, 80  # 2,000 cases a run

pytestmark = NEEDS_OCAML


def to_question(case: Case) -> Question:
    """The rows of a case at each context that a tree can reach."""
    contexts: list[tuple[int, ...]] = [()]
    for context in contexts:
        if len(context) < case.depth:
            contexts += [(*context, token) for token in range(case.size)]
    target, scores, sampling = (
        {c: varied(*rows)(c) for c in contexts} for rows in (case.targets, case.scores, case.sampling)
    )
    return Question(target, scores, sampling, case.lead, case.width, case.depth, case.budget)


def of_rheo_core(case: Case) -> Answer:
    """What rheo_core gives: the law of one cycle's tokens, and the classes."""
    method = rule("rheo", lead=case.lead)
    emitted: Any = law(lambda chooser: speculate(case.target, case.draft, (), method, case.shape, chooser).tokens)
    drafter = Drafter(ModelPair(case.target, case.draft), case.width, case.lead, RHEO)
    classes: Any = {nodes_of(each.tree): F(each.probability) for each in grown_classes(drafter, (), case.shape)}
    return Answer({text: F(mass) for text, mass in emitted.items() if mass}, classes)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Rows that change with the prefix, with zeros and ties; a sampling law of its own in half of the cases."""
    size = draw(st.integers(2, 3))
    row = st.lists(st.integers(0, 4), min_size=size, max_size=size).filter(any).map(lambda x: rational(*x))
    rows = st.lists(row, min_size=1, max_size=3)
    targets, scores = draw(rows), draw(rows)
    sampling = draw(rows) if draw(st.booleans()) else scores
    depth = draw(st.integers(1, 2))
    width, budget = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    lead = draw(st.integers(0, min(2, width)))
    return Case("drawn", targets, scores, sampling, lead, width, depth, budget)


def test_two_thousand_drawn_cases_are_the_same(oracle: Path):
    """Law and classes of rheo_core are those of the program that the theorems are about."""
    seen = []

    @settings(max_examples=BATCHES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(cases(), min_size=BATCH, max_size=BATCH))
    def compare(batch: list[Case]) -> None:
        seen.extend(batch)
        for case, answer in zip(batch, ask([to_question(case) for case in batch], oracle), strict=True):
            assert answer == of_rheo_core(case), str(case)

    compare()
    assert len(seen) >= 2000


def test_another_lead_would_be_seen(oracle: Path):
    """The planted fault: rheo_core with another m."""
    rows = [rational(5, 3, 2), rational(1, 2, 3)]
    one, two = (Case("lead", rows, rows[::-1], rows[::-1], lead, 2, 2, 3) for lead in (0, 1))
    [answer] = ask([to_question(one)], oracle)
    assert answer == of_rheo_core(one)
    assert answer.emitted != of_rheo_core(two).emitted
    assert answer.classes != of_rheo_core(two).classes


def test_integers_are_of_any_length(oracle: Path):
    """Denominators of 60 bits, whose products machine integers would wrap in silence."""
    big = (1 << 60) - 93
    targets = [[F(1000000007, big), F(2, 3) - F(1000000007, big), F(1, 3)]]
    drafts = [[F(big // 2, big), F(1, big), F(big - big // 2 - 1, big)]]
    case = Case("60 bits", targets, drafts, drafts, 1, 2, 2, 3)
    [answer] = ask([to_question(case)], oracle)
    assert answer == of_rheo_core(case)
    assert sum(answer.emitted.values()) == 1
    assert max(mass.denominator for mass in answer.emitted.values()) > 1 << 64


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A certificate of the paper's method on small rational rows."""
    rows = {"contexts": {"*": {"target": ["1/3", "1/6", "1/2"], "draft": ["1/2", "3/10", "1/5"]}}}
    (tmp_path / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    file = tmp_path / "certificate.json"
    shape = ["--width", "2", "--depth", "2", "--budget", "3"]
    assert (
        options.run(app, ["certify", "rheo", "--rows", str(tmp_path / "rows.json"), *shape, "--save", str(file)]) == 0
    )
    return file


def _certificate(file: Path) -> Any:
    document = json.loads(file.read_text(encoding="utf-8"))
    return document["results"][0]["certificate"] if "results" in document else document


def test_check_verified(oracle: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(extracted, "ORACLE", oracle)
    assert options.run(app, ["check", str(saved), "--verified"]) == 0
    assert "verified: the program extracted from the Coq proof gives the same" in capsys.readouterr().out


def test_a_wrong_law_and_wrong_classes_would_be_seen(oracle: Path, saved: Path):
    """The planted faults: mass moved between two texts, and a digest of other classes."""
    certificate = _certificate(saved)
    assert extracted.differences(certificate, oracle)[1] == []
    one, two, *_ = certificate["derived"]["emitted"]
    moved = certificate["derived"]["emitted"]
    moved[one], moved[two] = str(F(moved[one]) + F(1, 1000)), str(F(moved[two]) - F(1, 1000))
    certificate["derived"]["classes"]["count"] += 1
    law_one, law_two, classes = extracted.differences(certificate, oracle)[1]
    assert law_one.startswith("emitted")
    assert law_two.startswith("emitted")
    assert classes.startswith("classes")


@pytest.mark.parametrize(("part", "value"), [("verify", "rrsw"), ("proxy", "z")])
def test_other_methods_are_refused(oracle: Path, saved: Path, part: str, value: str):
    certificate = _certificate(saved)
    certificate["inputs"]["method"][part] = value
    with pytest.raises(InvalidInput, match=f"{part}: got {value}, expected .*extracted program"):
        extracted.differences(certificate, oracle)


def test_a_missing_program_is_named(saved: Path, tmp_path: Path):
    with pytest.raises(InvalidInput, match="make -C exact/rocq oracle"):
        extracted.differences(_certificate(saved), tmp_path / "verified")
