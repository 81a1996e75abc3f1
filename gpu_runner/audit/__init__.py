"""Audits of the engine's own tokens against rows of plain forwards, and rows written for other tools."""
