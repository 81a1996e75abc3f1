"""Faults that really happened in speculative decoders, as small exact cases, and relatives of them.

Each case is refuted (or, a false alarm, certified) by the same certifier that judges any user's rule. Keys follow the
published list; a letter marks further cases of one entry, and an X the relatives added here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from exact.faults import coins, draft_law, processing, residuals, rheo, siblings
from exact.faults.case import FaultCase

__all__ = ["FaultCase", "cases"]

cases: Mapping[str, FaultCase] = MappingProxyType(
    {case.key: case for module in (draft_law, residuals, siblings, coins, processing, rheo) for case in module.CASES}
)
"""Every case by its key."""
