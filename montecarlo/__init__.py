"""Losslessness at full size, by simulation.

Exact enumeration ends at tiny vocabularies. This package checks the same claims statistically, at the shapes and
vocabularies that are used in practice, and audits the recorded runs of any engine. Every test states the smallest
discrepancy that it can see, the samples that it needs, and its rate of false alarms.
"""

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
