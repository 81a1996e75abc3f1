"""Sheets of draft trees: one tree, classes with their probabilities, several trees for comparison.

A sheet is as large as what is on it, so that text keeps its size from 3 nodes to 59; on axes that are given, a tree is
made smaller until it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exact.enumeration.tree_classes import TreeClass
from exact.report.panels import Panel, Picture, legend_entries, legend_width, paint_legend
from exact.report.style import style
from exact.report.text_boxes import BOX, FONT, HEADING, MARGIN, Names, number_text, text_width, visible
from rheo_core import InvalidInput, Tree
from rheo_core.checks import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_tree(
    tree: Tree,
    names: Names = None,
    ax: Axes | None = None,
    *,
    title: str = "",
    kept: int | None = None,
    accepted: Sequence[int] = (),
    emitted: int | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a draft tree; the axes that it is drawn on.

    `names` are the tokens' names; `ax` the axes to fill (None: a figure of its own, of the size that the tree needs).
    `kept` draws the rows from there on as pruned (of an unpruned tree, which is ranked); `accepted` are the rows of
    the accepted path and `emitted` is the target's own token behind it. On given axes all is made smaller where the
    tree needs more room than they have when they are given. Raises `InvalidInput` on rows or names that the tree lacks.
    """
    picture = Picture(tree, title, kept, accepted, emitted)
    if ax is None:
        return draw_trees([picture], names, legend=legend).axes[0]
    return draw_on(ax, picture, names, legend)


def draw_on(ax: Axes, picture: Picture, names: Names = None, legend: bool = False) -> Axes:
    """Draw one picture on given axes."""
    panel = Panel.of(picture, names)
    entries = legend_entries([picture]) if legend else []
    width, height = max(panel.width, legend_width(entries)), panel.height + (BOX + 6 if entries else 0)
    scale, room = _room(ax, width, height)
    _blank(ax, *room)
    panel.paint(ax, scale)
    paint_legend(ax, entries, panel.height + BOX / 2, scale)
    return ax


def draw_legend(ax: Axes, pictures: Sequence[Picture]) -> Axes:
    """Give the legend of several pictures on axes of its own."""
    entries = legend_entries(pictures)
    scale, room = _room(ax, legend_width(entries), BOX + 4)
    _blank(ax, *room)
    paint_legend(ax, entries, room[1] / 2, scale)
    return ax


def _room(ax: Axes, width: float, height: float) -> tuple[float, tuple[float, float]]:
    """Give the scale, at most 1, at which so many points fit on the axes, and the room that they have at that scale."""
    extent = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    scale = min(1.0, extent.width * points / width, extent.height * points / height)
    return scale, (extent.width * points / scale, extent.height * points / scale)


@dataclass(frozen=True)
class Section:
    """Some trees over one vocabulary, drawn together below a heading."""

    pictures: Sequence[Picture]
    names: Names = None
    title: str = ""


def class_section(classes: Sequence[TreeClass], names: Names = None, *, most: int = 24, title: str = "") -> Section:
    """Classes of trees (appendix C.3) with their probabilities, the most probable first.

    At most `most` of them; the heading says how many there are and what share is not shown.
    """
    most = check_count("most", most, 1)
    ranked = sorted(classes, key=lambda each: each.probability, reverse=True)
    heading = f"{title}: " if title else ""
    heading += f"{len(ranked)} {'class' if len(ranked) == 1 else 'classes'}"
    if len(ranked) > most:
        left = number_text(sum(each.probability for each in ranked[most:]))
        heading += f" · the {most} most probable; the other {len(ranked) - most} hold {left} together"
    pictures = [
        Picture(each.tree, f"{place}   P = {number_text(each.probability)}", share=each.probability)
        for place, each in enumerate(ranked[:most], 1)
    ]
    return Section(pictures, names, heading)


def draw_classes(
    classes: Sequence[TreeClass], names: Names = None, *, columns: int | None = None, most: int = 24, title: str = ""
) -> Figure:
    """Draw classes of trees (appendix C.3) with their probabilities: the `most` most probable."""
    return draw_sections([class_section(classes, names, most=most, title=title)], columns=columns)


def draw_trees(
    pictures: Sequence[Picture],
    names: Names = None,
    *,
    columns: int | None = None,
    title: str = "",
    legend: bool = True,
) -> Figure:
    """Draw several trees on one sheet, row by row, as large as they need; `columns` None: about as wide as high."""
    return draw_sections([Section(pictures, names, title)], columns=columns, legend=legend)


def draw_sections(sections: Sequence[Section], *, columns: int | None = None, legend: bool = True) -> Figure:
    """Draw sections one below the other on one sheet, with the same number of columns and one legend."""
    from matplotlib.figure import Figure

    blocks = [(visible(each.title), [Panel.of(picture, each.names) for picture in each.pictures]) for each in sections]
    panels = [panel for _, block in blocks for panel in block]
    if not panels:
        raise InvalidInput("pictures", panels, "at least one")
    if columns is None:
        longest = max(len(block) for _, block in blocks)
        columns = min(range(1, longest + 1), key=lambda number: _crookedness(panels, number))
    columns = check_count("columns", columns, 1)
    widths = [
        max((panel.width for _, block in blocks for panel in block[place::columns]), default=0.0)
        for place in range(columns)
    ]
    entries = legend_entries([panel.picture for panel in panels]) if legend else []
    titles = max(text_width(title, HEADING, "bold") + 2 * MARGIN for title, _ in blocks)
    width = max(sum(widths), titles, legend_width(entries))
    places: list[tuple[float, float, float, float]] = []
    heads: list[float] = []
    top = 0.0
    for title, block in blocks:
        heads.append(top + HEADING + 6)
        top += HEADING + 12 if title else 0
        for start in range(0, len(block), columns):
            line = block[start : start + columns]
            height = max(panel.height for panel in line)
            places += [(sum(widths[:column]), top, widths[column], height) for column in range(len(line))]
            top += height
    foot = BOX + 10 if entries else 0
    with style():
        figure = Figure(figsize=(width / 72, (top + foot) / 72))
        figure.set_layout_engine("none")
        for panel, place in zip(panels, places, strict=True):
            panel.paint(_axes(figure, *place), 1)
        for (title, _), head in zip(blocks, heads, strict=True):
            font: dict[str, Any] = {"family": FONT, "size": HEADING, "weight": "bold"}
            figure.text(MARGIN / width, 1 - head / (top + foot), title, parse_math=False, va="baseline", **font)
        if entries:
            paint_legend(_axes(figure, 0, top, width, foot), entries, foot / 2, 1)
    return figure


def _crookedness(panels: Sequence[Panel], columns: int) -> float:
    """How far a sheet of so many columns is from half as wide again as it is high."""
    width = columns * max(panel.width for panel in panels)
    height = -(-len(panels) // columns) * max(panel.height for panel in panels)
    return abs(width / height - 1.5) if width <= 1100 or columns == 1 else float("inf")


def _axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes in points from the upper left corner of the sheet, whose unit is the point, downwards."""
    whole = figure.get_size_inches() * 72
    bottom = whole[1] - top - height
    ax = figure.add_axes((left / whole[0], bottom / whole[1], width / whole[0], height / whole[1]))
    _blank(ax, width, height)
    return ax


def _blank(ax: Axes, width: float, height: float) -> None:
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal", anchor="NW")
    ax.axis("off")
