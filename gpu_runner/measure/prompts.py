"""A small set of questions of this project's own, for the benchmark that needs no data."""

from __future__ import annotations

Question = tuple[str, ...]
"""The user's turns of one conversation."""

QUESTIONS: tuple[Question, ...] = (
    ("A train leaves at 9:40 and arrives at 13:05. How long is the journey? Explain step by step.",),
    ("Write a Python function that returns the second largest number of a list.",),
    ("Explain in simple words why the sky is blue.",),
    ("Write a short email to a landlord about a broken heater.", "Make it more polite."),
)
