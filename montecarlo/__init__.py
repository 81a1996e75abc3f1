"""Losslessness at full size, by simulation.

Exact enumeration ends at tiny vocabularies. This package checks the same claims statistically, at the shapes and
vocabularies that are used in practice, and audits the recorded runs of any engine. Every test states the smallest
discrepancy that it can see, the samples that it needs, and its rate of false alarms.
"""
