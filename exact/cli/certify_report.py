"""What `rheo-exact certify` shows beyond its table: the page for a colleague (`--report`) and the figure (`--plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from exact.acceptance import table1
from exact.acceptance.one_layer import OneLayer, one_layer
from exact.cli import options
from exact.enumeration.fixed_trees import FixedTreeMethod
from exact.methods.load import own_errors
from exact.methods.rows_file import Rows
from exact.report import Entry, certificates_page, draw_certificates, save_figure
from exact.runtime import atomic_files
from exact.verdict.certificate import Certificate
from exact.verdict.certify import CheckedModels
from exact.verdict.shared_trees import enumerate_trees
from rheo_core import Method, TreeMethod

OPTIMUM_VOCABULARY = 12
"""Tokens up to which acceptance at the root is held against the optimum."""


def entries(
    certificates: Sequence[tuple[str, str, Certificate]],
    asked: Sequence[tuple[Method, Rows | None]],
    sources: Sequence[str | None],
    labelled: bool,
) -> list[Entry]:
    """An entry for each (label, name of the rows, certificate), with the trees and the optimum of what was asked."""
    read: dict[str, CheckedModels] = {}
    made = []
    for (label, name, certificate), (method, rows), source in zip(certificates, asked, sources, strict=True):
        if name not in read:
            given = (rows.target, rows.draft, rows.ids) if rows else (table1.target, table1.draft, None)
            read[name] = CheckedModels.read(*given)
        names = rows.names if rows else table1.NAMES
        with own_errors(method):
            trees = (
                enumerate_trees(method, read[name].exact, certificate.prefix, certificate.shape)
                if isinstance(method, TreeMethod)
                else None
            )
            layer = _layer(read[name], method, certificate)
        made.append(Entry(label, name, certificate, source, trees, names, layer, labelled))
    return made


def write(report: Path | None, plot: Path | None, shown: Sequence[Entry]) -> None:
    """Write the page and the figure that were asked for."""
    if report is not None:
        atomic_files.save_text(report, certificates_page(shown, options.provenance()), "report")
    if plot is not None:
        save_figure(draw_certificates(shown), plot)


def _layer(models: CheckedModels, method: Method, certificate: Certificate) -> OneLayer | None:
    """Acceptance at the root beside the optimum; not for a cycle function, whose drafts are not known."""
    if not isinstance(method, TreeMethod | FixedTreeMethod) or certificate.vocabulary > OPTIMUM_VOCABULARY:
        return None
    return one_layer(method, models.exact, certificate.shape.width, certificate.prefix)
