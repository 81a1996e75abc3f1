"""Draft trees and classes of trees as pictures.

The three kinds of slots differ in shape as well as in colour: leads are filled boxes, the sampled token is a rounded
one, fills are empty. The number on a branch is the path score of the node that it leads to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from exact.classes import TreeClass
from exact.drawing.layout import (
    BOX,
    BRANCH,
    HEADING,
    MARGIN,
    NUMBER,
    PADDING,
    TITLE,
    TOKEN,
    Box,
    Layout,
    Names,
    arrange,
    number_text,
    text_width,
)
from exact.drawing.style import COLOURS, CYCLE, FAINT, INK, MUTED, style
from rheo_core import FILL, LEAD, SAMPLED, InvalidInput, Tree
from rheo_core.errors import check_count
from rheo_core.tree import ROOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {LEAD: "lead", SAMPLED: "sampled Y", FILL: "fill"}
EDGES = {LEAD: CYCLE[0], SAMPLED: CYCLE[1], FILL: "#98a1ab"}
FACES = {LEAD: "#dbe8f4", SAMPLED: "#fbe0cf", FILL: "#ffffff"}
ACCEPTED = COLOURS["right"]
PRUNED, OWN = -1, -2  # in a legend, beside the kinds
BAR = 90.0  # points: a share of 1


@dataclass(frozen=True)
class Picture:
    """What is drawn of one tree.

    `kept`: rows from there on are drawn as pruned. `accepted`: rows of the accepted path; `emitted`: the target's own
    token behind it. `share`: a probability, shown as a bar below the title.
    """

    tree: Tree
    title: str = ""
    kept: int | None = None
    accepted: Sequence[int] = ()
    emitted: int | None = None
    share: Any = None


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
    panel = _panel(picture, names)
    entries = legend_entries([picture]) if legend else []
    width, height = max(panel.width, _legend_width(entries)), panel.height + (BOX + 6 if entries else 0)
    scale, room = _room(ax, width, height)
    _blank(ax, *room)
    panel.paint(ax, scale)
    _paint_legend(ax, entries, panel.height + BOX / 2, scale)
    return ax


def draw_legend(ax: Axes, pictures: Sequence[Picture]) -> Axes:
    """The legend of several pictures on axes of its own."""
    entries = legend_entries(pictures)
    scale, room = _room(ax, _legend_width(entries), BOX + 4)
    _blank(ax, *room)
    _paint_legend(ax, entries, room[1] / 2, scale)
    return ax


def _room(ax: Axes, width: float, height: float) -> tuple[float, tuple[float, float]]:
    """The scale, at most 1, at which so many points fit on the axes, and the room that they have at that scale."""
    extent = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    scale = min(1.0, extent.width * points / width, extent.height * points / height)
    return scale, (extent.width * points / scale, extent.height * points / scale)


def draw_classes(
    classes: Sequence[TreeClass], names: Names = None, *, columns: int | None = None, most: int = 24, title: str = ""
) -> Figure:
    """Draw classes of trees (appendix C.3) with their probabilities, the most probable first.

    At most `most` of them; the title says how many there are and what share is not shown.
    """
    most = check_count("most", most, 1)
    ranked = sorted(classes, key=lambda each: each.probability, reverse=True)
    left = sum((each.probability for each in ranked[most:]), start=0)
    heading = f"{title}: " if title else ""
    heading += f"{len(ranked)} {'class' if len(ranked) == 1 else 'classes'}"
    if len(ranked) > most:
        heading += f" · the {most} most probable; the other {len(ranked) - most} hold {number_text(left)} together"
    pictures = [
        Picture(each.tree, f"{place}   P = {number_text(each.probability)}", share=each.probability)
        for place, each in enumerate(ranked[:most], 1)
    ]
    return draw_trees(pictures, names, columns=columns, title=heading)


def draw_trees(
    pictures: Sequence[Picture],
    names: Names = None,
    *,
    columns: int | None = None,
    title: str = "",
    legend: bool = True,
) -> Figure:
    """Draw several trees on one sheet, row by row, as large as they need; `columns` None: about as wide as high."""
    from matplotlib.figure import Figure

    if not pictures:
        raise InvalidInput("pictures", list(pictures), "at least one")
    panels = [_panel(each, names) for each in pictures]
    entries = legend_entries(pictures) if legend else []
    if columns is None:
        columns = min(range(1, len(panels) + 1), key=lambda number: _crookedness(panels, number))
    columns = check_count("columns", columns, 1)
    lines = [panels[start : start + columns] for start in range(0, len(panels), columns)]
    widths = [max(line[place].width for line in lines if place < len(line)) for place in range(len(lines[0]))]
    heights = [max(panel.height for panel in line) for line in lines]
    head, foot = (HEADING + 12 if title else 0), (BOX + 10 if entries else 0)
    width = max(sum(widths), text_width(title, HEADING, "bold") + 2 * MARGIN, _legend_width(entries))
    height = head + sum(heights) + foot
    with style():
        figure = Figure(figsize=(width / 72, height / 72))
        figure.set_layout_engine("none")
        top = head
        for line, line_height in zip(lines, heights, strict=True):
            left = 0.0
            for panel, column in zip(line, widths, strict=False):
                panel.paint(_axes(figure, left, top, column, line_height), 1)
                left += column
            top += line_height
        if title:
            place = (MARGIN / width, 1 - (HEADING + 6) / height)
            figure.text(*place, title, size=HEADING, weight="bold", parse_math=False, va="baseline")
        if entries:
            _paint_legend(_axes(figure, 0, top, width, foot), entries, foot / 2, 1)
    return figure


def _panel(picture: Picture, names: Names) -> _Panel:
    return _Panel(picture, arrange(picture.tree, names, picture.accepted, picture.emitted))


def _crookedness(panels: Sequence[_Panel], columns: int) -> float:
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


@dataclass(frozen=True)
class _Panel:
    """One tree with its title, laid out."""

    picture: Picture
    layout: Layout

    @property
    def head(self) -> float:
        """Height of the title and the bar."""
        return (TITLE + 9 if self.picture.title else 0) + (7 if self.picture.share is not None else 0)

    @property
    def width(self) -> float:
        """In points."""
        bar = BAR if self.picture.share is not None else 0
        title = text_width(self.picture.title, TITLE, "bold") if self.picture.title else 0
        return max(self.layout.width, title + 2 * MARGIN, bar + 2 * MARGIN)

    @property
    def height(self) -> float:
        """In points."""
        return self.head + self.layout.height + 8

    def paint(self, ax: Axes, scale: float) -> None:
        """Draw on axes whose unit is the point times `scale`."""
        from matplotlib.patches import Circle, Rectangle

        picture, layout = self.picture, self.layout
        if picture.title:
            font: dict[str, Any] = {"size": TITLE * scale, "weight": "bold", "color": INK}
            ax.text(MARGIN, TITLE + 3, picture.title, **font, va="baseline", parse_math=False)
        if picture.share is not None:
            for length, colour in ((1.0, FAINT), (float(picture.share), CYCLE[2])):
                ax.add_patch(Rectangle((MARGIN, TITLE + 8), BAR * length, 3, color=colour, linewidth=0))
        x, y = layout.root[0], layout.root[1] + self.head
        for row, box in enumerate(layout.boxes):
            parent = layout.parents[row]
            start = layout.boxes[parent] if parent != ROOT else None
            begin = (x + 3, y) if start is None else (start.x + start.width, start.y + self.head)
            self._branch(ax, row, box, begin, scale)
        ax.add_patch(Circle((x, y), 3, color=INK, linewidth=0))
        for row, box in enumerate(layout.boxes):
            self._box(ax, row, box, scale)

    def _kind(self, row: int) -> int:
        return int(self.picture.tree.kind[row]) if row < len(self.picture.tree) else OWN

    def _pruned(self, row: int) -> bool:
        kept = self.picture.kept
        return kept is not None and kept <= row < len(self.picture.tree)

    def _on_path(self, row: int) -> bool:
        return row in self.picture.accepted or row == len(self.picture.tree)

    def _branch(self, ax: Axes, row: int, box: Box, begin: tuple[float, float], scale: float) -> None:
        """A curve that ends level, with the number above its end."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        y, bend = box.y + self.head, box.x - max(text_width(box.number, NUMBER) + 5, BRANCH / 2)
        middle = (begin[0] + bend) / 2
        points = [begin, (middle, begin[1]), (middle, y), (bend, y), (box.x, y)]
        codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4, Path.LINETO]
        on_path, pruned = self._on_path(row), self._pruned(row)
        colour = ACCEPTED if on_path else FAINT if pruned else "#9aa3ad"
        look: dict[str, Any] = {"edgecolor": colour, "linewidth": (2.2 if on_path else 1.0) * scale}
        ax.add_patch(PathPatch(Path(points, codes), fill=False, label=f"_branch {row}", **look))
        font: dict[str, Any] = {"size": NUMBER * scale, "color": "#b4bac1" if pruned else MUTED}
        ax.text(box.x - 2.5, y - 2, box.number, **font, ha="right", va="baseline", parse_math=False)

    def _box(self, ax: Axes, row: int, box: Box, scale: float) -> None:
        kind, pruned = self._kind(row), self._pruned(row)
        _paint_box(ax, box.x, box.y + self.head, box.width, kind, scale, pruned, self._on_path(row), f"_node {row}")
        font: dict[str, Any] = {
            "size": TOKEN * scale,
            "color": "#a7aeb6" if pruned else ACCEPTED if kind == OWN else INK,
        }
        weight = "bold" if self._on_path(row) else "normal"
        middle = box.x + box.width / 2
        ax.text(
            middle,
            box.y + self.head + 0.5,
            box.name,
            **font,
            weight=weight,
            parse_math=False,
            ha="center",
            va="center_baseline",
        )


def _paint_box(
    ax: Axes, x: float, y: float, width: float, kind: int, scale: float, pruned: bool, on_path: bool, label: str
) -> None:
    from matplotlib.patches import FancyBboxPatch

    rounding = BOX / 2 if kind == SAMPLED else 2.0
    face = "#ffffff" if pruned or kind == OWN else FACES[kind]
    edge = "#c3c9d0" if pruned else ACCEPTED if on_path else EDGES[kind]
    look: dict[str, Any] = {
        "facecolor": face,
        "edgecolor": edge,
        "linewidth": (2.0 if on_path else 1.1) * scale,
        "linestyle": (0, (2, 1.5)) if pruned or kind == OWN else "solid",
    }
    shape = f"round,pad=0,rounding_size={rounding}"
    ax.add_patch(FancyBboxPatch((x, y - BOX / 2), width, BOX, boxstyle=shape, mutation_aspect=1, label=label, **look))


Entry = tuple[int, bool, bool, str]
"""Kind, pruned, on the accepted path, text."""


def legend_entries(pictures: Sequence[Picture]) -> list[Entry]:
    """What a legend of these pictures has to explain: nothing that is not on them."""
    kinds = {int(kind) for each in pictures for kind in each.tree.kind}
    entries = [(kind, False, False, KINDS[kind]) for kind in sorted(kinds)]
    if any(each.kept is not None and each.kept < len(each.tree) for each in pictures):
        entries.append((PRUNED, True, False, "pruned"))
    if any(len(each.accepted) for each in pictures):
        entries.append((LEAD, False, True, "accepted"))
    if any(each.emitted is not None for each in pictures):
        entries.append((OWN, False, True, "the target's own token"))
    return entries


def _legend_width(entries: Sequence[Entry]) -> float:
    if not entries:
        return 0
    return 2 * MARGIN + sum(_entry_width(text) for *_, text in entries) + _entry_width("number: path score")


def _entry_width(text: str) -> float:
    return text_width(text, NUMBER + 0.5) + 18 + 3 * PADDING


def _paint_legend(ax: Axes, entries: Sequence[Entry], y: float, scale: float) -> None:
    x = MARGIN
    font: dict[str, Any] = {
        "size": (NUMBER + 0.5) * scale,
        "color": MUTED,
        "va": "center_baseline",
        "parse_math": False,
    }
    for kind, pruned, on_path, text in entries:
        _paint_box(ax, x, y, 18, kind, scale, pruned, on_path, "_legend")
        ax.text(x + 18 + PADDING, y + 0.5, text, **font)
        x += _entry_width(text)
    if entries:
        ax.text(x, y + 0.5, "number: path score", **font)
