"""The Coq development compiles, rests on no axiom, and speaks of this program.

Its definitions run on rationals: on each case below the kernel's trees, class probabilities and text laws must be
rheo_core's to the last digit. A theorem about other definitions would be a theorem about another program.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction as F
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pytest

from exact import law
from exact.enumeration.tree_classes import TreeClass, brute_force_classes, grown_classes
from rheo_core import Chooser, DraftRow, ModelPair, Tree, TreeShape, speculate
from rheo_core.pool import RHEO, Drafter
from rheo_core.rates import rheo_rate
from tests.exact.rocq.conftest import NEEDS_COQ, PATIENCE
from tests.pairs import rational, rule, varied

pytestmark = NEEDS_COQ

Rows = list[list[F]]


@dataclass(frozen=True)
class Case:
    """Models that change with the prefix, a lead, a shape; `sampling` rows where they are not the score rows."""

    name: str
    targets: Rows
    scores: Rows
    sampling: Rows
    lead: int
    width: int
    depth: int
    budget: int

    @property
    def size(self) -> int:
        return len(self.targets[0])

    @property
    def runs_twice(self) -> bool:
        """Whether two cycles are run: the unmerged law of their text is the square of one cycle's."""
        return self.depth == 1 and self.size <= 3

    @property
    def shape(self) -> TreeShape:
        return TreeShape(self.width, self.depth, self.budget)

    def target(self, prefix: tuple[int, ...]) -> Any:
        return varied(*self.targets)(prefix)

    def draft(self, prefix: tuple[int, ...]) -> Any:
        if self.sampling is self.scores:
            return varied(*self.scores)(prefix)
        return DraftRow.pair(varied(*self.scores)(prefix), varied(*self.sampling)(prefix))

    def __str__(self) -> str:
        return f"{self.name}, m={self.lead}, K={self.width}, D={self.depth}, R={self.budget}"


def _cases() -> Iterator[Case]:
    uneven = [rational(5, 3, 2), rational(1, 2, 3), rational(2, 1, 1)]
    target = [rational(5, 2, 3), rational(1, 1, 4), rational(3, 1, 2)]
    ties = [rational(1, 1, 1), rational(1, 2, 1), rational(2, 1, 1)]
    zeros = [rational(1, 1, 0), rational(0, 1, 1), rational(1, 0, 0)]
    gaps = [rational(0, 1, 1), rational(1, 0, 1), rational(1, 1, 1)]
    two, other = [rational(1, 2), rational(1, 1), rational(3, 1)], [rational(2, 1), rational(1, 3)]
    four, wide = [rational(4, 3, 2, 1), rational(1, 2, 2, 1)], [rational(1, 3, 2, 4), rational(1, 1, 1, 1)]
    for m, budget in product((0, 1, 2), (1, 2, 3, 5)):
        yield Case("rows that differ at every prefix", target, uneven, uneven, m, 2, 2, budget)
    for m, budget in product((0, 1, 2), (2, 4)):
        yield Case("ties", target, ties, ties, m, 2, 2, budget)
        yield Case("ties and the K cap", ties, ties, ties, m, 3, 2, budget + 3)
        yield Case("zeros", gaps, zeros, zeros, m, 2, 2, budget)
    for m, budget in product((0, 1), (3, 6)):
        yield Case("three levels under the K cap", other, two, two, m, 2, 3, budget)
    for m in (0, 1, 2, 3):
        yield Case("one wide layer", wide, four, four, m, 3, 1, 2)
        yield Case("one layer", target, uneven, uneven, m, 3, 1, 2)
        yield Case("fewer tokens than slots", other, two, two, m, 3, 2, 4)
    for m, budget in product((0, 1, 2), (2, 5)):
        yield Case("another sampling law", target, uneven, zeros, m, 2, 2, budget)
    for m in (0, 1):
        yield Case("no mass off the lead", gaps, [[F(1), F(0), F(0)], *ties], [[F(1), F(0), F(0)], *zeros], m, 3, 2, 6)
        yield Case("p = q", two, two, two, m, 2, 2, 4)
        yield Case("one chain", target, uneven, uneven, m, 1, 3, 3)
        yield Case("one token", [[F(1)]], [[F(1)]], [[F(1)]], m, 1, 2, 2)


def _without_repeats(cases: Iterator[Case]) -> list[Case]:
    return list({str(case): case for case in cases}.values())


CASES = _without_repeats(_cases())


def _row(row: list[F]) -> str:
    return "[:: " + "; ".join(f"fraction {x.numerator} {x.denominator}" for x in row) + "]"


def _table(case: Case, rows: Rows) -> str:
    """Every prefix that a tree can reach, and the row of each."""
    longest = 3 if case.runs_twice else case.depth  # a second cycle, where one is run, starts after up to 2 tokens
    prefixes = [p for length in range(longest + 1) for p in product(range(case.size), repeat=length)]
    listed = "; ".join(f"([:: {'; '.join(f'{t}%nat' for t in p)}], {_row(varied(*rows)(p))})" for p in prefixes)
    return f"([:: {listed}], {_row(rows[0])})".replace("[:: ]", "[::]")


def _script(cases: list[Case]) -> str:
    """A Coq file that prints for each case grown and layered classes, rates of one pool, the text of 1 and 2 cycles.

    Two cycles only where that is small.
    """
    lines = [
        "From Coq Require Import ZArith.",
        "From mathcomp Require Import all_ssreflect all_algebra.",
        "From Rheo Require Import execution.",
        "Set Printing Width 1000000.",
        "Set Printing Depth 1000000.",
    ]
    for i, case in enumerate(cases):
        for name, rows in (("p", case.targets), ("q", case.scores), ("s", case.sampling)):
            lines.append(f"Definition {name}{i} : table := {_table(case, rows)}.")
        numbers = f"{case.size}%nat {case.lead}%nat {case.width}%nat {case.depth}%nat {case.budget}%nat"
        drafts = f"(model q{i}) (model s{i})"
        lines.append(f"Eval vm_compute in grown_classes {numbers} {drafts}.")
        lines.append(f"Eval vm_compute in layered_classes {numbers} {drafts}.")
        rate = f"layer_rate {case.size}%nat {case.lead}%nat (model p{i}) {drafts}"
        lines.append(f"Eval vm_compute in [seq {rate} n | n <- iota {case.lead + 1} {max(0, case.size - case.lead)}].")
        lines.append(f"Eval vm_compute in text {numbers} (model p{i}) {drafts}.")
        if case.runs_twice:
            lines.append(f"Eval vm_compute in texts {numbers} (model p{i}) {drafts} 2.")
    return "\n".join(lines) + "\n"


def _values(case: Case) -> int:
    """How many values the script prints for a case."""
    return 5 if case.runs_twice else 4


def _parsed(output: str) -> list[Any]:
    """The values that Coq printed, as Python lists and tuples."""
    values = re.findall(r"^ *= (.*?)^ *: ", output, flags=re.MULTILINE | re.DOTALL)
    return [ast.literal_eval(re.sub(r"%\w+", "", value).replace("[::", "[").replace(";", ",")) for value in values]


@pytest.fixture(scope="session")
def computed(compiled: Path) -> dict[str, tuple[Any, ...]]:
    """What Coq computes for each case."""
    (compiled / "cases.v").write_text(_script(CASES))
    command = ["coqc", "-w", "none", "-Q", ".", "Rheo", "cases.v"]
    ran = subprocess.run(command, cwd=compiled, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr
    values = _parsed(ran.stdout)
    counts = [_values(case) for case in CASES]
    assert len(values) == sum(counts)
    ends = list(accumulate(counts))
    return {str(case): tuple(values[end - n : end]) for case, n, end in zip(CASES, counts, ends, strict=True)}


def test_every_main_statement_is_closed_under_the_global_context(compiled: Path):
    made = subprocess.run(
        ["make", "check"], cwd=compiled, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    statements = (compiled / "assumptions.v").read_text().count("\nPrint Assumptions ")
    assert statements >= 20
    assert made.stdout.count("Closed under the global context") == statements


def test_the_check_rejects_an_axiom(compiled: Path, tmp_path: Path):
    """The planted fault: one statement that rests on an assumption that the text search does not look for."""
    folder = tmp_path / "planted"
    shutil.copytree(compiled, folder)  # times are kept, so nothing is compiled again
    statements = folder / "assumptions.v"
    statements.write_text(statements.read_text() + "\nVariable false : False.\nPrint Assumptions false.\n")
    made = subprocess.run(["make", "check"], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert made.returncode != 0
    assert "false : False" in made.stdout


def test_there_are_cases_of_every_awkward_kind():
    assert len(CASES) >= 50
    assert {case.lead for case in CASES} >= {0, 1, 2}
    assert any(0 in row for case in CASES for row in case.scores)


def _coq_classes(listed: Any) -> dict[Any, F]:
    """Trees by their nodes in rank order (slot path, kind, token, path score), with their probabilities."""
    classes = {}
    for numerator, denominator, nodes in listed:
        key = tuple((tuple(path), kind, token, F(*score)) for path, kind, token, score in nodes)
        assert key not in classes
        classes[key] = F(numerator, denominator)
    return classes


def _coq_law(listed: Any) -> dict[tuple[int, ...], F]:
    """Texts of positive probability."""
    return {tuple(tokens): F(*mass) for *mass, tokens in listed if mass[0]}


def nodes_of(tree: Tree) -> Any:
    """The nodes of a tree in rank order: slots from the root, kind, token, path score."""
    return tuple((tree.path(i), int(tree.kind[i]), int(tree.token[i]), F(tree.score[i])) for i in range(len(tree)))


def _our_classes(classes: Iterable[TreeClass]) -> dict[Any, F]:
    return {nodes_of(item.tree): F(item.probability) for item in classes}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_trees_classes_and_text_law_are_the_same(case: Case, computed: dict[str, tuple[Any, ...]]):
    """Grown and layered classes with slots, kinds, tokens, scores and order; the law of one cycle's text."""
    grown, layered, _, text, *_ = computed[str(case)]
    drafter = Drafter(ModelPair(case.target, case.draft), case.width, case.lead, RHEO)
    assert _coq_classes(grown) == _our_classes(grown_classes(drafter, (), case.shape))
    assert _coq_classes(layered) == _our_classes(brute_force_classes(drafter, (), case.shape))
    method = rule("rheo", lead=case.lead)
    ours = law(lambda chooser: speculate(case.target, case.draft, (), method, case.shape, chooser).tokens)
    assert _coq_law(text) == ours


@pytest.mark.parametrize("case", [case for case in CASES if case.runs_twice], ids=str)
def test_the_text_of_two_cycles_is_the_same(case: Case, computed: dict[str, tuple[Any, ...]]):
    """What the theorem about cycles speaks of: the second starts from the prefix that the first has emitted."""
    method = rule("rheo", lead=case.lead)

    def two_cycles(chooser: Chooser) -> tuple[int, ...]:
        first = speculate(case.target, case.draft, (), method, case.shape, chooser).tokens
        return first + speculate(case.target, case.draft, first, method, case.shape, chooser).tokens

    assert _coq_law(computed[str(case)][4]) == law(two_cycles)


def _samples_at_the_root(case: Case) -> bool:
    return Drafter(ModelPair(case.target, case.draft), case.lead + 1, case.lead, RHEO).pool(()).tail is not None


@pytest.mark.parametrize("case", [case for case in CASES if _samples_at_the_root(case)], ids=str)
def test_rates_of_one_pool_are_the_same(case: Case, computed: dict[str, tuple[Any, ...]]):
    """Theorem 3's left side, enumerated by Coq, beside the closed form: every pool at the root with a sampled token."""
    p, q = case.target(()), case.draft(())
    ours = [rheo_rate(p, q, case.lead, n) for n in range(case.lead + 1, case.size + 1)]
    assert [F(*rate) for rate in computed[str(case)][2]] == ours


def test_a_difference_would_be_seen(computed: dict[str, tuple[Any, ...]]):
    """The planted fault: the same case with another lead has other classes and another law."""
    one, two = (case for case in CASES if case.name.startswith("rows that") and case.budget == 3 and case.lead < 2)
    for theirs, others in zip(computed[str(one)], computed[str(two)], strict=True):
        assert theirs != others
