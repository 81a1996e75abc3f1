"""HTML that cannot be broken by what it shows: every text is escaped unless it was made here.

Method names, file names, tokens and error messages come from outside. A child or an attribute that is not `Html` is
text, whatever it contains.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from exact.enumeration.rationals import fraction

VOID = frozenset({"meta", "br", "rect", "path", "circle", "line"})


class Html(str):
    """A piece of markup, already safe."""

    __slots__ = ()


def text(value: object) -> Html:
    """Any value as text.

    >>> text("<b> & 'co'")
    '&lt;b&gt; &amp; &#x27;co&#x27;'
    """
    return value if isinstance(value, Html) else Html(escape("".join(map(_printable, str(value)))))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element; `class_` and `for_` lose their underscore, other underscores become hyphens, None is left out.

    >>> tag("a", "x < y", href="#1", class_="far", title=None)
    '<a href="#1" class="far">x &lt; y</a>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opened = "".join(f' {key}="{text(value)}"' for key, value in given.items())
    if name in VOID:
        return Html(f"<{name}{opened}/>")
    return Html(f"<{name}{opened}>{joined(children)}</{name}>")


def joined(children: Iterable[object], between: str = "") -> Html:
    """Pieces one after another; None is left out."""
    return Html(text(between).join(text(child) for child in children if child is not None))


def table(head: Iterable[object], rows: Iterable[Iterable[object]], class_: str | None = None) -> Html:
    """A table in a frame that scrolls sideways on a narrow screen; a cell that is a td or th already stays as it is."""
    top = tag("thead", tag("tr", *(_cell(each, "th") for each in head)))
    body = tag("tbody", *(tag("tr", *(_cell(each, "td") for each in row)) for row in rows))
    return tag("div", tag("table", top, body, class_=class_), class_="scroll", tabindex=0)


def _cell(content: object, name: str) -> Html:
    if isinstance(content, Html) and content.startswith(("<td", "<th")):
        return content
    return tag(name, content, scope="col" if name == "th" else None)


def _printable(character: str) -> str:
    """The character, or its escape where HTML may not hold it or it would turn the text around it."""
    code = ord(character)
    if (code < 32 and character not in "\n\t") or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in TURNING:
        return character.encode("unicode_escape", "surrogatepass").decode()
    return character


TURNING = frozenset((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0xFFFE, 0xFFFF))
"""Marks that change the direction of writing, and what is no character."""


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
