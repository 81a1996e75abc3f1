"""tau and what survives over the rheostat m, the temperature and the rows: the points of Figures 3 and 4, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from exact.acceptance.one_layer import measured, over_leads
from exact.acceptance.one_pool import ENUMERATED
from exact.methods.load import label, own_errors
from exact.methods.rows_file import Rows
from exact.runtime.journal import Journal, resumed
from exact.verdict.document import number
from rheo_core import Method, ModelPair, TreeMethod, TreeShape
from rheo_core.models import Prefix


@dataclass(frozen=True)
class Sweep:
    """tau of one method on one file at one temperature, and how many sampled slots pruning leaves on average."""

    method: Method
    rows: str
    temperature: float
    acceptance_length: Fraction
    sampled_kept: Fraction | None = None
    path: str = ENUMERATED

    @property
    def lead(self) -> int | None:
        """m, where the method has one."""
        return self.method.lead if isinstance(self.method, TreeMethod) else None

    def document(self) -> dict[str, Any]:
        """Give the point with its exact number."""
        return {
            "method": label(self.method),
            "rows": self.rows,
            "lead": self.lead,
            "temperature": self.temperature,
            "acceptance_length": number(self.acceptance_length),
            "sampled_kept": None if self.sampled_kept is None else number(self.sampled_kept),
            "path": self.path,
        }


def sweep(
    methods: Iterable[Method],
    files: Sequence[Rows],
    shape: TreeShape,
    prefix: Prefix = (),
    *,
    executor: Executor | None = None,
    journal: Journal | None = None,
) -> Iterator[Sweep]:
    """tau of each method on each file, at the file's own temperature; jobs for any `concurrent.futures` executor."""
    versions = list(methods)
    points = [(file, method) for file in files for method in versions]
    jobs = {
        f"{number}: tau of {label(method)} on {file.name} at T = {file.temperature:g}": number
        for number, (file, method) in enumerate(points)
    }
    lengths = resumed(partial(_length, points, shape, prefix), jobs, executor, journal)
    for (file, method), found in zip(points, lengths, strict=True):
        yield Sweep(method, file.name, float(file.temperature), *found)


def _length(
    points: Sequence[tuple[Rows, Method]], shape: TreeShape, prefix: Prefix, which: int
) -> tuple[Fraction, Fraction | None, str]:
    file, method = points[which]
    with own_errors(method):
        return measured(method, ModelPair(file.target, file.draft, file.ids), shape, prefix)


def versions_of(rule: Method, shape: TreeShape, lead: int | None = None) -> list[Method]:
    """Give the method at every m up to K (or at the given m); itself where it has none."""
    if not isinstance(rule, TreeMethod) or rule.lead is None:
        return [rule]
    return list(over_leads(rule, shape, None if lead is None else [lead]))


def sweep_mean(swept: Sequence[Sweep], version: str, temperature: float, rows: str | None = None) -> float:
    """tau of one version, as `label` names it, at one temperature: on one file, or the mean over all."""
    return _mean([each.acceptance_length for each in _points(swept, version, temperature, rows)])


def survival_mean(swept: Sequence[Sweep], version: str, temperature: float, rows: str | None = None) -> float | None:
    """Expected sampled slots that survive pruning, of one version as in `sweep_mean`; None where there are no trees."""
    kept = [each.sampled_kept for each in _points(swept, version, temperature, rows)]
    return None if None in kept else _mean([each for each in kept if each is not None])


def _points(swept: Sequence[Sweep], version: str, temperature: float, rows: str | None) -> list[Sweep]:
    return [
        each
        for each in swept
        if label(each.method) == version and each.temperature == temperature and rows in (None, each.rows)
    ]


def _mean(values: Sequence[Fraction]) -> float:
    return float(sum(values, Fraction(0)) / len(values))
