"""The page of a function that was certified as it stands: one that draws through torch, NumPy or `random`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from exact.interception.verdict import FunctionCertificate
from exact.report.html import page
from exact.report.html_laws import law_table, wrong_box
from exact.report.markup import Html, figure, joined, sequence, shortened, tag
from exact.runtime.provenance import Provenance

NO_TARGET = "The file holds no target: the law alone, no verdict"


def function_page(
    spec: str, certificate: FunctionCertificate | None, law: Mapping[Any, Fraction], made: Provenance, target: str
) -> str:
    """The page of `path.py:function`; without a certificate it shows the law alone. `target` names the right law."""
    if certificate is None:
        scope = "these inputs; exact law of the floats as they are"
        return page(
            "Law of a function",
            None,
            NO_TARGET,
            [spec, scope],
            [tag("h2", "Law"), law_table(law, law, _shown, None)],
            made,
        )
    below = [spec, f"scope: {certificate.scope}"]
    verdict = certificate.verdict[0].upper() + certificate.verdict[1:]
    body = [_figures(certificate), _wrong(spec, certificate, target)]
    body += [
        tag("h2", "Law of its results"),
        law_table(certificate.law, certificate.right, _shown, certificate.lossless),
    ]
    shown = [piece for piece in body if piece is not None]
    return page("Certificate of losslessness", certificate.lossless, verdict, below, shown, made)


def _figures(certificate: FunctionCertificate) -> Html:
    pieces: list[object] = [
        f"Its random calls were caught while it ran, and all {certificate.outcomes} outcomes were walked with their "
        "exact weights. Total variation from the target: ",
        figure(certificate.total_variation),
        ".",
    ]
    if certificate.total_variation_float64 is not None:
        pieces += [
            " The same code in float64: ",
            figure(certificate.total_variation_float64),
            f", to be held against a rounding bound of {shortened(certificate.bound)}.",
        ]
    return joined([tag("h2", "Verdict"), tag("p", *pieces)])


def _wrong(spec: str, certificate: FunctionCertificate, target: str) -> Html | None:
    got, due = certificate.got, certificate.due
    if got is None or due is None:
        return None
    found = certificate.sequence if isinstance(certificate.sequence, tuple) else (certificate.sequence,)
    return wrong_box(
        "Where it is wrong",
        sequence(found),
        got,
        due,
        tag(
            "details",
            tag("summary", "Reproduce it: a test that fails until the function is repaired"),
            tag("pre", to_pytest(spec, target)),
        ),
    )


def to_pytest(spec: str, target: str) -> str:
    """A test of `path.py:function` against the name `target` of its file."""
    path, _, name = spec.rpartition(":")
    return f'''"""{name} draws its results with the law of `{target}`."""

from pathlib import Path

from exact.interception import certify_function
from exact.methods.load import load_name


def test_{name}_is_lossless():
    beside, known = Path(__file__).with_name({Path(path).name!r}), {str(Path(path).resolve())!r}
    function = load_name(str(beside if beside.exists() else known), {name!r})
    names = function.__globals__
    certificate = certify_function(function, target=names[{target!r}], length=names.get("length"))
    assert certificate.lossless, str(certificate)
'''


def _shown(result: Any) -> str:
    return ", ".join(map(_shown, result)) if isinstance(result, tuple) else str(result)
