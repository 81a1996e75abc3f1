"""Why each surviving mutant is equivalent: it changes no law and no acceptance of any legal input."""

from __future__ import annotations

REASONS: dict[str, str] = {}
"""Mutant key -> reason."""


def reason(key: str) -> str | None:
    """Why a mutant may survive; None where nothing is on record."""
    return REASONS.get(key)
