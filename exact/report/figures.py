"""Distributions of one token beside the target's, and the picture of Table 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from exact.acceptance import table1
from exact.enumeration.tree_classes import TreeClass, unpruned
from exact.report.panels import Picture
from exact.report.style import COLOURS, INK, MUTED, style
from exact.report.text_boxes import Names, number_text, token_name
from exact.report.trees import draw_legend, draw_on, draw_tree
from exact.verdict.certificate import Certificate
from rheo_core import SAMPLED, ModelPair, TreeMethod, methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_law(law: Sequence[Any], target: Sequence[Any], names: Names, ax: Axes, label: str = "output") -> Axes:
    """Draw a law [V] as bars and the target's law [V] as marks across them; a bar that misses its mark is red."""
    places = range(len(target))
    for place, mass, right in zip(places, law, target, strict=True):
        colour = COLOURS["right"] if mass == right else COLOURS["wrong"]
        ax.bar(place, float(mass), width=0.55, color=colour, alpha=0.85)
        ax.text(place, float(max(mass, right)) + 0.02, number_text(mass), ha="center", size=7.5, color=INK)
        ax.plot([place - 0.38, place + 0.38], [float(right)] * 2, color=INK, linewidth=1.6)
    ax.set_xticks(places, [token_name(place, names) for place in places])
    ax.set_ylim(0, 1.15 * float(max(*law, *target)) + 0.03)
    ax.tick_params(length=0)
    ax.set_ylabel(f"P({label})")
    return ax


def draw_table1(certificates: Mapping[str, Certificate]) -> Figure:
    """Table 1 as a picture: for each proxy its two pools, what is pruned, and the law of the next token."""
    from matplotlib.figure import Figure

    with style():
        figure = Figure(figsize=(7.6, 1.9 * len(certificates) + 0.5))
        figure.set_layout_engine("none")
        pictures: list[Picture] = []
        height = 1.9 / figure.get_figheight()
        for line, (name, certificate) in enumerate(certificates.items()):
            method = methods[name]
            assert isinstance(method, TreeMethod)
            drafter = method.drafter(ModelPair(table1.target, table1.draft), table1.SHAPE)
            bottom = 1 - height * (line + 1)
            found = list(unpruned(drafter, (), table1.SHAPE))
            for place, each in enumerate(found):
                y = next(
                    table1.NAMES[token]
                    for token, kind in zip(each.tree.token, each.tree.kind, strict=True)
                    if kind == SAMPLED
                )
                title = f"Y = {y}, drawn with {number_text(each.probability)}"
                picture = Picture(each.tree, title, table1.SHAPE.budget, share=each.probability)
                pictures.append(picture)
                draw_on(figure.add_axes((0.02 + 0.26 * place, bottom, 0.26, 0.8 * height)), picture, table1.NAMES)
            law = [certificate.law().get((token,), 0) for token in range(len(table1.P))]
            draw_law(law, table1.P, table1.NAMES, figure.add_axes((0.62, bottom + 0.06 * height, 0.36, 0.66 * height)))
            heading = f"{table1.PROXIES[name]} · {certificate.verdict} · TV {certificate.total_variation}"
            figure.text(0.03, bottom + 0.86 * height, heading, weight="bold", size=10, parse_math=False)
        figure.text(0.98, 0.035, "law of the next token; black: the target's", size=7, color=MUTED, ha="right")
        draw_legend(figure.add_axes((0.02, 0, 0.6, 0.09)), pictures)
    return figure


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
        """The verdicts and distributions."""
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
    """Give a panel for each certificate: its most probable draft tree, and the law where it is first wrong, with marks.

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
    """The distribution of the first token; where the first wrong sequence is longer, that of its last token."""
    certificate = each.certificate
    found = certificate.counterexample
    begun = () if found is None else found.sequence[:-1]
    law, due = certificate.law(len(begun) + 1), certificate.right(len(begun) + 1)
    sequences = [(*begun, token) for token in range(certificate.vocabulary)]
    none = Fraction(0)
    got, target = ([masses.get(sequence, none) for sequence in sequences] for masses in (law, due))
    label = "".join(f"{token}, " for token in begun) + "token"
    draw_law(got, target, each.names, ax, label)
