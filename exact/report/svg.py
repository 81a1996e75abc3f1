"""Trees and bars as inline SVG: what a page shows without any other file, script or library."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from unicodedata import east_asian_width

from exact.enumeration.rationals import fraction
from exact.enumeration.tree_classes import TreeClass
from exact.report.layout import KINDS, tree_layout
from exact.report.markup import Html, figure, joined, shortened, tag
from rheo_core import Tree
from rheo_core.tree import ROOT

CHARACTER, BOX, LINE, BRANCH, MARGIN = 6.7, 20.0, 27.0, 52.0, 6.0
"""Pixels: a character of the token font, a box's height, the height of a line, the length of a branch, the border."""
LONGEST = 18
"""Characters of a token's text on a box."""


def shown_token(token: int, names: Sequence[str] | None = None) -> str:
    """A token's id, and its text where it is known, with what cannot be seen made visible.

    >>> shown_token(1, ["a", " the" + chr(10)]), shown_token(7)
    ('1 ␣the\\\\n', '7')
    """
    if names is None or not 0 <= token < len(names):
        return str(token)
    seen = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in names[token])
    name = "".join("␣" if each == " " else each for each in seen)
    return f"{token} {name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'}"


def tree_picture(tree: Tree, names: Sequence[str] | None = None) -> Html:
    """One tree from left to right: leads are square boxes, the sampled token is round, fills are empty."""
    labels = [shown_token(token, names) for token in tree.token.tolist()]
    widths = [max(CHARACTER * _columns(label) + 10, BOX + 4) for label in labels]
    layout = tree_layout(tree.parent.tolist(), tree.slot.tolist(), gap=0.25)
    left = [MARGIN + 4.0]
    for depth in range(1, layout.columns):
        above = [width for width, at in zip(widths, layout.depth, strict=True) if at == depth - 1]
        left.append(left[-1] + max(above, default=0) + BRANCH)

    def middle(row: int) -> float:
        return MARGIN + BOX / 2 + LINE * layout.place(row)[1]

    branches, boxes = [], [tag("circle", cx=left[0], cy=_px(middle(ROOT)), r=4, class_="root")]
    for row, (label, width, score) in enumerate(zip(labels, widths, tree.score.tolist(), strict=True)):
        x, y, parent = left[layout.depth[row]], middle(row), int(tree.parent[row])
        start = left[0] if parent == ROOT else left[layout.depth[parent]] + widths[parent]
        bend = (start + x) / 2
        high = _px(middle(parent))
        curve = f"M{_px(start)} {high}C{_px(bend)} {high} {_px(bend)} {_px(y)} {_px(x)} {_px(y)}"
        branches.append(tag("path", d=curve, class_="branch"))
        kind = KINDS[int(tree.kind[row])]
        rounding = BOX / 2 if kind == "sampled" else 2
        place = {"x": _px(x), "y": _px(y - BOX / 2), "width": _px(width), "height": BOX, "rx": rounding}
        boxes.append(tag("rect", **place, class_=kind))
        words = {"font_family": "ui-monospace, 'DejaVu Sans Mono', monospace", "font_size": 11, "text_anchor": "middle"}
        boxes.append(tag("text", label, x=_px(x + width / 2), y=_px(y + 4), **words))
        boxes.append(_score(score, x, y))
    ends = [left[depth] + width for depth, width in zip(layout.depth, widths, strict=True)]
    size = max(ends, default=left[0] + 4) + MARGIN, 2 * MARGIN + BOX + LINE * layout.lines
    said = "; ".join(f"{label} ({KINDS[kind]})" for label, kind in zip(labels, tree.kind.tolist(), strict=True))
    return tag(
        "svg",
        tag("title", f"draft tree in rank order: {said}"),
        *branches,
        *boxes,
        width=_px(size[0]),
        height=_px(size[1]),
        viewBox=f"0 0 {_px(size[0])} {_px(size[1])}",
        class_="tree",
        role="img",
    )


def _score(score: Any, x: float, y: float) -> Html:
    """The path score above the end of a branch."""
    exact = str(fraction(score))
    shown = exact if len(exact) <= 6 else f"{float(score):.3g}"
    return tag("text", shown, x=_px(x - 3), y=_px(y - 3), font_size=9, text_anchor="end", class_="score")


def class_pictures(found: Sequence[TreeClass], names: Sequence[str] | None = None, most: int = 6) -> Html:
    """The most probable classes as figures, with their probabilities; what is not shown is said."""
    ranked = sorted(found, key=lambda each: each.probability, reverse=True)
    figures = [
        tag(
            "figure",
            tag("figcaption", f"class {place}: probability ", figure(fraction(each.probability))),
            bar(each.probability, None, "plain", f"probability {shortened(each.probability)}"),
            tree_picture(each.tree, names),
        )
        for place, each in enumerate(ranked[:most], 1)
    ]
    rest = ranked[most:]
    held = fraction(sum((each.probability for each in rest), start=Fraction(0)))
    more = tag("p", f"The other {len(rest)} classes hold ", figure(held), " together.") if rest else None
    return joined([tag("div", *figures, class_="trees"), more])


def legend() -> Html:
    """What the shapes and colours of the trees mean."""
    samples = []
    for kind, words in (("lead", "lead token"), ("sampled", "sampled token Y"), ("fill", "fill token")):
        box = tag("rect", x=1, y=1, width=24, height=14, rx=7 if kind == "sampled" else 2, class_=kind)
        samples.append(tag("span", tag("svg", box, width=26, height=16, aria_hidden="true"), words))
    dot = tag("svg", tag("circle", cx=8, cy=8, r=4, class_="root"), width=16, height=16, aria_hidden="true")
    return tag("div", tag("span", dot, "the text so far"), *samples, tag("span", "number: path score"), class_="legend")


def bar(value: Any, due: Any, class_: str, said: str, whole: Any = 1) -> Html:
    """A horizontal bar of `value` out of `whole`, with an upright mark at `due` (None: no mark)."""
    share = 100 * float(fraction(value) / fraction(whole))
    pieces = [
        tag("rect", x=0, y=3, width=100, height=6, class_="track"),
        tag("rect", x=0, y=3, width=_px(min(share, 100)), height=6, class_=class_),
    ]
    if due is not None:
        place = min(100 * float(fraction(due) / fraction(whole)), 100)
        pieces.append(tag("rect", x=_px(max(place - 0.6, 0)), y=0, width=1.2, height=12, class_="due"))
    size = {"width": "100%", "height": 12, "viewBox": "0 0 100 12", "preserveAspectRatio": "none"}
    return tag("svg", tag("title", said), *pieces, **size, role="img")


def _columns(label: str) -> int:
    """Columns of a line of text in a font of one width: wide characters take two."""
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in label)


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
