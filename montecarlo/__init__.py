"""Losslessness at full size, by simulation.

Exact enumeration ends at tiny vocabularies. This package checks the same claims statistically, at the shapes and
vocabularies that are used in practice, and audits the recorded runs of any engine. Every test states the smallest
discrepancy that it can see, the samples that it needs, and its rate of false alarms.
"""

from typing import TYPE_CHECKING

from exact.runtime.lazy import lazily

if TYPE_CHECKING:
    from montecarlo.auditing import Audit, Report, audit
    from montecarlo.checks import Suite
    from montecarlo.chunks import Chunker
    from montecarlo.keyed_random import AddressChooser, Uniforms
    from montecarlo.pairs import CallablePair, Dials, TablePair, rows_pair, synthetic
    from montecarlo.recording import Writer, read
    from montecarlo.reference_run import record
    from montecarlo.simulation import Outcome, simulate
    from montecarlo.simulator import Simulator, texts

__all__ = [
    "AddressChooser",
    "Audit",
    "CallablePair",
    "Chunker",
    "Dials",
    "Outcome",
    "Report",
    "Simulator",
    "Suite",
    "TablePair",
    "Uniforms",
    "Writer",
    "audit",
    "read",
    "record",
    "rows_pair",
    "simulate",
    "synthetic",
    "texts",
]

__getattr__ = lazily(
    __name__,
    {
        "AddressChooser": "montecarlo.keyed_random",
        "Audit": "montecarlo.auditing",
        "CallablePair": "montecarlo.pairs",
        "Chunker": "montecarlo.chunks",
        "Dials": "montecarlo.pairs",
        "Outcome": "montecarlo.simulation",
        "Report": "montecarlo.auditing",
        "Simulator": "montecarlo.simulator",
        "Suite": "montecarlo.checks",
        "TablePair": "montecarlo.pairs",
        "Uniforms": "montecarlo.keyed_random",
        "Writer": "montecarlo.recording",
        "audit": "montecarlo.auditing",
        "read": "montecarlo.recording",
        "record": "montecarlo.reference_run",
        "rows_pair": "montecarlo.pairs",
        "simulate": "montecarlo.simulation",
        "synthetic": "montecarlo.pairs",
        "texts": "montecarlo.simulator",
    },
)
