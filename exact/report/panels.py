"""One draft tree as ink: boxes, branches, the legend that explains them.

The three kinds of slots differ in shape as well as in colour: leads are filled boxes, the sampled token is a rounded
one, fills are empty. The number on a branch is the path score of the node that it leads to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from exact.report.style import COLOURS, CYCLE, FAINT, INK, MUTED
from exact.report.text_boxes import (
    BOX,
    BRANCH,
    FONT,
    MARGIN,
    NUMBER,
    PADDING,
    TITLE,
    TOKEN,
    Box,
    Layout,
    Names,
    arrange,
    text_width,
    visible,
)
from rheo_core import FILL, LEAD, SAMPLED, Tree
from rheo_core.tree import ROOT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


@dataclass(frozen=True)
class Panel:
    """One tree with its title, laid out."""

    picture: Picture
    layout: Layout

    @classmethod
    def of(cls, picture: Picture, names: Names) -> Panel:
        """Lay a picture out."""
        picture = replace(picture, title=visible(picture.title))
        return cls(picture, arrange(picture.tree, names, picture.accepted, picture.emitted))

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
            font: dict[str, Any] = {"family": FONT, "size": TITLE * scale, "weight": "bold", "color": INK}
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
        font: dict[str, Any] = {"family": FONT, "size": NUMBER * scale, "color": "#b4bac1" if pruned else MUTED}
        ax.text(box.x - 2.5, y - 2, box.number, **font, ha="right", va="baseline", parse_math=False)

    def _box(self, ax: Axes, row: int, box: Box, scale: float) -> None:
        kind, pruned = self._kind(row), self._pruned(row)
        _paint_box(ax, box.x, box.y + self.head, box.width, kind, scale, pruned, self._on_path(row), f"_node {row}")
        font: dict[str, Any] = {
            "family": FONT,
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


def legend_width(entries: Sequence[Entry]) -> float:
    """In points; 0 without entries."""
    if not entries:
        return 0
    return 2 * MARGIN + sum(_entry_width(text) for *_, text in entries) + _entry_width("number: path score")


def _entry_width(text: str) -> float:
    return text_width(text, NUMBER + 0.5) + 18 + 3 * PADDING


def paint_legend(ax: Axes, entries: Sequence[Entry], y: float, scale: float) -> None:
    """Boxes and words in one line, at height `y` of axes whose unit is the point times `scale`."""
    x = MARGIN
    font: dict[str, Any] = {
        "family": FONT,
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
