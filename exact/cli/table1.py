"""`rheo-exact table1`: the paper's Table 1, computed, with the laws that the two proxies lead to."""

from __future__ import annotations

from rich.table import Table

from exact.acceptance import table1
from exact.cli import options
from exact.cli.tables import show
from exact.report import draw_table1, save_figure
from exact.verdict.certify import certify
from exact.verdict.document import number
from rheo_core import methods


def command(as_json: options.AsJson = False, save: options.Save = None, plot: options.Plot = None) -> int:
    """Reproduce Table 1: pool rankings, surviving tokens, and the resulting law of the next token.

    Exit code 0 iff the paper's proxy is lossless and the ad-hoc one is lossy.
    """
    pools = list(table1.pools())
    certificates = {
        name: certify(methods[name], table1.target, table1.draft, table1.SHAPE, length=1) for name in table1.PROXIES
    }
    laws = {
        name: [certificate.law().get((token,), 0) for token in range(3)] for name, certificate in certificates.items()
    }
    if not as_json:
        table = Table(title="Table 1: q = A 1/2, B 3/10, C 1/5; K = 3, m = 1, R = 2", title_justify="left")
        for column in ("proxy", "sampled Y", "pool ranking", "survivors"):
            table.add_column(column)
        for row in pools:
            ranking = " >= ".join(f"{token} ({score})" for token, score in row.ranking)
            table.add_row(
                table1.PROXIES[row.method],
                f"q~({row.sampled}) = {row.probability}",
                ranking,
                ", ".join(row.survivors),
            )
        show(table, "proxy", "pool ranking")
        options.out.print(f"Target p = {_law(table1.P)}. Law of the next token:", highlight=False)
        for name, law in laws.items():
            certificate = certificates[name]
            options.out.print(
                f"  {table1.PROXIES[name]}: {_law(law)}  {certificate.verdict}, TV {certificate.total_variation}, "
                f"acceptance {certificate.acceptance_by_depth[1]}",
                highlight=False,
            )
    if plot is not None:
        save_figure(draw_table1(certificates), plot)
    options.deliver(
        {
            "command": "table1",
            "pools": [
                {
                    "proxy": table1.PROXIES[row.method],
                    "sampled": row.sampled,
                    "probability": str(row.probability),
                    "ranking": [[token, str(score)] for token, score in row.ranking],
                    "survivors": list(row.survivors),
                }
                for row in pools
            ],
            "laws": {name: [number(mass) for mass in law] for name, law in laws.items()},
            "verdicts": {name: certificate.verdict for name, certificate in certificates.items()},
        },
        as_json,
        save,
    )
    expected = all(certificate.as_claimed for certificate in certificates.values())
    return options.LOSSLESS if expected else options.LOSSY


def _law(law: object) -> str:
    return "[" + ", ".join(str(mass) for mass in law) + "]"  # type: ignore[attr-defined]
