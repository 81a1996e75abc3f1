"""What is said when an input cannot be used.

A certificate is worth nothing if a bad row was quietly repaired on the way in. Every refusal is therefore one line
that names the argument, the value that was given and what was expected.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any


class InvalidInput(ValueError):
    """An argument that the definitions of the paper do not allow.

    >>> str(InvalidInput("budget", 0, "an int of at least 1"))
    'budget: got 0, expected an int of at least 1'
    """

    by_rule = False
    """Whether it was raised inside a rule of the user's own, which may refuse nothing in a certificate's name."""

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument = argument
        self.value = value
        self.expected = expected
        super().__init__(f"{argument}: got {_short(value)}, expected {expected}")

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, object, str]]:
        return type(self), (self.argument, self.value, self.expected)


def check_count(name: str, value: Any, least: int) -> int:
    """`value` as an int; raises unless it is a whole number (NumPy's included) of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InvalidInput(name, value, f"an int of at least {least}")
    return int(value)


def _short(value: object) -> str:
    """The value on one line, cut in the middle when it is long."""
    text = " ".join(str(value).split()) if isinstance(value, str) else " ".join(repr(value).split())
    return text if len(text) <= 160 else f"{text[:110]} ... {text[-40:]}"
