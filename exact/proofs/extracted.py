"""Ask the program that Coq extracts from the proof of losslessness, and re-check certificates with it.

`make -C exact/rocq oracle` builds it: the definitions that the theorems are about, on rationals of any length. It
shares no code with the rest. Trusted are Coq's extraction, the OCaml compiler with Zarith, its reader of cases
(`exact/rocq/oracle/main.ml`) and this module.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from rheo_core import InvalidInput

ORACLE = Path(__file__).parents[1] / "rocq" / "oracle" / "verified"
PACKAGES = "coq make libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra ocaml-nox ocaml-findlib libzarith-ocaml-dev"
SECONDS = 300
PROXY = "min{q(x_m), z}"

Tokens = tuple[int, ...]
Rows = Mapping[Tokens, Sequence[Fraction]]
Node = tuple[Tokens, int, int, Fraction]
"""Slots from the root, kind, token, path score."""


@dataclass(frozen=True)
class Question:
    """One cycle of RheoSampling: rows [V] at the contexts after the prefix, m, K, D and R."""

    target: Rows
    scores: Rows
    sampling: Rows
    lead: int
    width: int
    depth: int
    budget: int

    def lines(self) -> Iterator[str]:
        """The question as the oracle reads it. A context that is not listed has a row of zeros, which is no law."""
        size = len(next(iter(self.target.values())))
        yield f"{size} {self.lead} {self.width} {self.depth} {self.budget}"
        for rows in (self.target, self.scores, self.sampling):
            yield str(len(rows))
            for context, row in rows.items():
                if len(row) != size:
                    raise InvalidInput("row", f"{len(row)} entries at {context}", f"{size}, as the first has")
                yield " ".join(map(str, [len(context), *context]))
                yield " ".join(f"{x.numerator} {x.denominator}" for x in row)
            yield " ".join(["0 1"] * size)


@dataclass(frozen=True)
class Answer:
    """The law of one cycle's tokens and the classes of draft trees: nodes in rank order, with probabilities."""

    emitted: dict[Tokens, Fraction]
    classes: dict[tuple[Node, ...], Fraction]

    def digest(self) -> str:
        """The classes' digest in the form of a certificate."""
        lines = []
        for nodes, mass in self.classes.items():
            rank = {path: row for row, (path, *_) in enumerate(nodes)}
            key = [(rank.get(path[:-1], -1), path[-1], kind, token) for path, kind, token, _ in nodes]
            lines.append(json.dumps([key, str(mass)]))
        return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def ask(questions: Sequence[Question], oracle: Path | None = None, seconds: float = SECONDS) -> list[Answer]:
    """Run the extracted program on each question.

    Raises InvalidInput where it is not built, does not end in time or cannot read its case.
    """
    oracle = oracle or ORACLE
    if not oracle.is_file():
        build = f"the program that `make -C exact/rocq oracle` builds (apt-get install {PACKAGES})"
        raise InvalidInput("verified", f"no file {oracle}", build)
    text = "\n".join([str(len(questions)), *(line for each in questions for line in each.lines())])
    try:
        ran = subprocess.run(
            [oracle], input=text, capture_output=True, text=True, timeout=seconds, check=False, encoding="ascii"
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput("verified", f"no answer in {seconds:g} s", "a smaller tree or vocabulary") from None
    answers = list(_answers(ran.stdout))
    if ran.returncode or len(answers) != len(questions):
        last = (ran.stderr.strip().splitlines() or [f"exit code {ran.returncode}"])[-1]
        raise InvalidInput("verified", last, "an answer to each question")
    return answers


def _answers(output: str) -> Iterator[Answer]:
    emitted, classes = dict[Tokens, Fraction](), dict[tuple[Node, ...], Fraction]()
    for line in output.splitlines():
        word, *rest = line.split(" ")
        if word == "end":
            yield Answer(emitted, classes)
            emitted, classes = {}, {}
        elif word == "text" and (mass := Fraction(rest[0])):
            text = _tokens(rest[1])
            emitted[text] = emitted.get(text, Fraction(0)) + mass
        elif word == "class":
            classes[tuple(map(_node, rest[1:]))] = Fraction(rest[0])


def _tokens(text: str) -> Tokens:
    return tuple(map(int, text.split(","))) if text else ()


def _node(text: str) -> Node:
    slots, kind, token, score = text.split(";")
    return _tokens(slots), int(kind), int(token), Fraction(score)


def question(certificate: Mapping[str, Any]) -> Question:
    """The question of a certificate that `exact.check` accepts.

    Raises InvalidInput where the theorem is about another method than the certificate: another proxy or verifier, a
    rule of the user's own, rows in floats, two vocabularies.
    """
    inputs = certificate["inputs"]
    method, shape, prefix = inputs["method"], inputs["shape"], tuple(inputs["prefix"])
    for name, got, expected in (
        ("verify", method["verify"], "algorithm_1"),
        ("proxy", method["proxy"], PROXY),
        ("arithmetic", inputs["arithmetic"], "rational"),
        ("ids", inputs["rows"]["ids"], None),
    ):
        if got != expected:
            raise InvalidInput(name, got, f"{expected!r}, which the extracted program is about")

    def read(rows: Mapping[str, Any], part: str) -> dict[Tokens, list[Fraction]]:
        contexts = {_tokens(key): row[part] if isinstance(row, dict) else row for key, row in rows.items()}
        return {
            c[len(prefix) :]: [Fraction(x) for x in row] for c, row in contexts.items() if c[: len(prefix)] == prefix
        }

    target, draft = inputs["rows"]["target"], inputs["rows"]["draft"]
    sizes = (method["m"], shape["width"], shape["depth"], shape["budget"])
    return Question(read(target, "score"), read(draft, "score"), read(draft, "sampling"), *sizes)


def differences(certificate: Mapping[str, Any], oracle: Path | None = None) -> tuple[Answer, list[str]]:
    """What the extracted program says, and each figure of the certificate that is another."""
    [answer], derived = ask([question(certificate)], oracle), certificate["derived"]
    recorded = {_tokens(key): Fraction(mass) for key, mass in derived["emitted"].items()}
    wrong = [
        f"emitted {','.join(map(str, text))}: {recorded.get(text, 0)}, not {answer.emitted.get(text, 0)} as the proof's"
        " program says"
        for text in sorted({*recorded, *answer.emitted})
        if recorded.get(text, 0) != answer.emitted.get(text, 0)
    ]
    if derived["classes"] != {"count": len(answer.classes), "digest": answer.digest()}:
        wrong.append(f"classes: {derived['classes']}, the proof's program finds {len(answer.classes)} others")
    return answer, wrong
