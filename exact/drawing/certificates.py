"""Certificates as a picture: each method's most probable draft tree beside the law of a token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from exact.certificate import Certificate
from exact.classes import TreeClass
from exact.drawing.laws import draw_law
from exact.drawing.style import style
from exact.drawing.trees import draw_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 10.0, 2.8  # inches, of one certificate


class Certified(Protocol):
    """What is drawn: a label, the name of the rows, the certificate, its classes and its tokens' texts."""

    @property
    def label(self) -> str:
        """The method."""
        ...

    @property
    def rows(self) -> str:
        """Where the rows come from."""
        ...

    @property
    def certificate(self) -> Certificate:
        """The verdicts and laws."""
        ...

    @property
    def trees(self) -> Sequence[TreeClass] | None:
        """The classes, or None where the method has none."""
        ...

    @property
    def names(self) -> Sequence[str] | None:
        """The tokens' texts, or None."""
        ...


def draw_certificates(shown: Sequence[Certified]) -> Figure:
    """A panel for each certificate: its most probable draft tree, and the law where it is first wrong, with marks.

    Panels run down the columns, of which there are as many as make the figure about as wide as it is high.
    """
    from matplotlib.figure import Figure

    columns = max(1, round(math.sqrt(len(shown) * HEIGHT / WIDTH)))
    lines = math.ceil(len(shown) / columns)
    with style():
        figure = Figure(figsize=(WIDTH * columns, HEIGHT * lines))
        figure.set_layout_engine("none")
        width, height = 1 / columns, 1 / lines
        for place, each in enumerate(shown):
            column, line = divmod(place, lines)
            start, bottom = width * column, 1 - height * (line + 1)
            heading = f"{each.label} on {each.rows}: {each.certificate.verdict}"
            top = bottom + 0.9 * height
            figure.text(start + 0.02 * width, top, heading, weight="bold", size=10, parse_math=False)
            left = figure.add_axes((start + 0.02 * width, bottom + 0.04 * height, 0.52 * width, 0.8 * height))
            right = figure.add_axes((start + 0.62 * width, bottom + 0.14 * height, 0.36 * width, 0.7 * height))
            if each.trees:
                best = max(each.trees, key=lambda found: found.probability)
                share = f"most probable of {len(each.trees)}: P = {float(best.probability):.3g}"
                draw_tree(best.tree, each.names, left, title=share)
            else:
                left.text(0.0, 0.5, "no draft tree of its own to enumerate", size=8)
                left.axis("off")
            _draw_law(right, each)
    return figure


def _draw_law(ax: Axes, each: Certified) -> None:
    """The law of the first token; where the first wrong sequence is longer, that of its last token."""
    certificate = each.certificate
    found = certificate.counterexample
    begun = () if found is None else found.sequence[:-1]
    law, due = certificate.law(len(begun) + 1), certificate.right(len(begun) + 1)
    sequences = [(*begun, token) for token in range(certificate.vocabulary)]
    none = Fraction(0)
    got, target = ([masses.get(sequence, none) for sequence in sequences] for masses in (law, due))
    label = "".join(f"{token}, " for token in begun) + "token"
    draw_law(got, target, each.names, ax, label)
