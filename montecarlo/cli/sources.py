"""Which models a command runs on, as the user says it.

A source is a small picklable value, so that worker processes can build the same models for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from exact.cli import options
from exact.methods.load import load_method, load_name, own_errors, with_lead
from exact.methods.rows_file import Rows
from montecarlo.checks import Suite, Tally
from montecarlo.keyed_random import Uniforms
from montecarlo.pairs import CallablePair, Dials, Ints, TablePair, rows_pair, synthetic
from rheo_core import InvalidInput, Method, TreeShape

RowsFile = Annotated[Path | None, typer.Option("--rows", help="Rows file (JSON).", show_default=False)]
Vocabulary = Annotated[int, typer.Option("--vocabulary", help="V of the synthetic pair.")]
Overlap = Annotated[float, typer.Option("--overlap", help="Draft quality: mean of sum min(p, q), in (0, 1].")]
Peak = Annotated[float, typer.Option("--peak", help="Peakedness: exponent of the power law; 0 is flat.")]
Ties = Annotated[int, typer.Option("--ties", help="Steps that probabilities are rounded to; 0: no ties.")]
States = Annotated[int, typer.Option("--states", help="Distinct rows of the synthetic pair, by a hash of the prefix.")]
Real = Annotated[bool, typer.Option("--real", help="The shipped real rows (V = 5, prefixes to length 3).")]
PairSpec = Annotated[
    str | None,
    typer.Option("--pair", help="path.py:name of a CallablePair or TablePair (runs that file).", show_default=False),
]
Alarm = Annotated[float, typer.Option("--false-alarm", help="Probability of any false alarm, all tests together.")]


@dataclass(frozen=True)
class ModelSource:
    """Where the models come from: exactly one of `dials`, `pair` (path.py:name) and `rows`."""

    name: str
    dials: Dials | None = None
    pair: str | None = None
    rows: Rows | None = None

    def build(self) -> TablePair | CallablePair:
        """The models themselves."""
        if self.dials is not None:
            return synthetic(self.dials)
        if self.rows is not None:
            return rows_pair(self.rows)
        path, _, name = (self.pair or "").rpartition(":")
        if not path.endswith(".py"):
            raise InvalidInput("pair", self.pair, "path.py:name")
        found = load_name(path, name, "pair")
        if not isinstance(found, (TablePair, CallablePair)):
            raise InvalidInput("pair", self.pair, "the name of a montecarlo.pairs.CallablePair or TablePair")
        return found


@dataclass(frozen=True)
class Job:
    """One suite to run; `build` makes it in whatever process it is needed."""

    method: str
    lead: int | None
    source: ModelSource
    shape: TreeShape
    seed: int
    length: int

    def __str__(self) -> str:
        return f"{self.method} on {self.source.name}"

    def rule(self) -> Method:
        """The method, looked up in the whole catalogue."""
        from exact.methods import methods

        return with_lead(load_method(self.method, methods), self.lead)

    def build(self, rule: Method | None = None, pair: TablePair | CallablePair | None = None) -> Suite:
        """The suite of checks, of a rule and a pair that are at hand already where they are given.

        Rows files only know short prefixes, so their texts are continued from the target.
        """
        return Suite(
            rule or self.rule(),
            pair or self.source.build(),
            self.shape,
            Uniforms(self.seed),
            length=self.length,
            repeated=self.source.rows is None,
        )


def sources_of(
    rows: Path | None, real: bool, pair: str | None, dials: Dials, temperature: float, support: int
) -> list[ModelSource]:
    """The sources that the options name; more than one kind at once is refused."""
    named = [name for name, given in (("--rows", rows), ("--real", real), ("--pair", pair)) if given]
    if len(named) > 1:
        raise InvalidInput("models", " and ".join(named), "one of --rows, --real and --pair, or the synthetic dials")
    if rows is not None or real:
        return [ModelSource(each.name, rows=each) for each in options.rows_of(rows, temperature, support, "float64")]
    if temperature != 1:
        raise InvalidInput("temperature", temperature, "1 for models given as laws (logits: --rows or --real)")
    if pair is not None:
        return [ModelSource(pair, pair=pair)]
    return [ModelSource("synthetic", dials=dials)]


@dataclass(frozen=True)
class Count:
    """Counting the cycles of a job in another process, where its suite is built once.

    What comes from a user's file is sent along; models that can be built from the job are not.
    """

    job: Job
    rule: Method
    pair: TablePair | CallablePair | None

    @classmethod
    def of(cls, job: Job, suite: Suite) -> Count:
        """For the suite that the job built here."""
        return cls(job, suite.method, suite.pair if job.source.pair else None)

    @cached_property
    def suite(self) -> Suite:
        """The suite of this process."""
        return self.job.build(self.rule, self.pair)

    def __call__(self, runs: Ints) -> Tally:
        """Counts of the cycles of `runs` [B]."""
        with own_errors(self.rule):
            return self.suite.count(runs)
