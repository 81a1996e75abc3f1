"""Exact numbers as a reader meets them: the fraction where it is short, a float beside it, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from exact.arithmetic import fraction
from exact.reporting.markup import Html, tag

SHORT = 16
"""Characters up to which a fraction is written out; a longer one is there for those who open it."""


def number(value: Any) -> Html:
    """A number in a table, with its float; a long fraction folded behind it.

    >>> from fractions import Fraction
    >>> number(Fraction(3, 5))
    '<span class="number">3/5 <small>0.6</small></span>'
    """
    exact = str(fraction(value))
    rounded = shortened(value)
    if exact == rounded:
        return tag("span", exact, class_="number")
    if len(exact) <= SHORT:
        return tag("span", exact, " ", tag("small", rounded), class_="number")
    return tag("details", tag("summary", rounded), tag("code", exact), class_="number")


def figure(value: Any) -> Html:
    """A number within a sentence: a long fraction is its six digits there, with the fraction at hand for a pointer.

    >>> from fractions import Fraction
    >>> figure(Fraction(1, 3) ** 40)
    '<span class="number" title="1/12157665459056928801">8.22526e-20</span>'
    """
    exact = str(fraction(value))
    return number(value) if len(exact) <= SHORT else tag("span", shortened(value), class_="number", title=exact)


def shortened(value: Any) -> str:
    """Six digits."""
    return f"{float(value):.6g}"


def signed(value: Any) -> str:
    """A difference with its sign; 0 for none."""
    return f"{float(value):+.4g}" if value else "0"


def sequence(tokens: Iterable[object]) -> str:
    """Tokens in brackets.

    >>> sequence((2, 0))
    'P(2, 0)'
    """
    return f"P({', '.join(map(str, tokens))})"
