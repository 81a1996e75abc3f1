"""How much is accepted, as pictures.

tau and the survival of the sampled slot against m, tau against temperature (the shapes of Figures 3 and 4), and methods
side by side with the most that any lossless rule could accept from the same drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from exact.acceptance.sweeps import Sweep, survival_mean, sweep_mean
from exact.methods.load import label
from exact.report.style import COLOURS, CYCLE, INK, MUTED, style
from rheo_core import TreeShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEAN = "mean"
PANELS = 6
"""Most panels in a line: five files and their mean. Of more files only the mean is drawn."""

BY_LEAD = (CYCLE[1], CYCLE[0], CYCLE[2], CYCLE[3], CYCLE[4], CYCLE[7])
"""Colours of m = 0, 1, ..."""

OTHERS = (CYCLE[4], CYCLE[7], CYCLE[6], INK)
"""Colours of methods that have none of their own, in order."""

SOLID = "#a9c6de"
"""Inside of a bar of a lossless method."""

LINES = ("-", "--", ":", "-.")
"""Methods swept over m, in order, where colours tell m apart."""


def sweep_figure(
    swept: Sequence[Sweep],
    shape: TreeShape,
    over: Sequence[str] = (),
    temperature: float | None = None,
) -> Figure:
    """tau over "m" (at `temperature`, else the highest) and over "temperature", a panel for each file and their mean.

    "survival" is the expected number of sampled slots that pruning leaves, over m (section 5.3).
    Without `over`: whatever was swept. m = K is the plain top-K pool, drawn as a line of its own.
    """
    from matplotlib.figure import Figure

    over = over or _swept_over(swept)
    names = list(dict.fromkeys(each.rows for each in swept))
    places = names if len(names) == 1 else [MEAN] if len(names) >= PANELS else [*names, MEAN]
    level = max(each.temperature for each in swept) if temperature is None else temperature
    with style():
        figure = Figure(figsize=(2.2 + 1.75 * len(places), 0.4 + 2.3 * len(over)), layout="constrained")
        grid = figure.subplots(len(over), len(places), squeeze=False, sharey="row")
        for line, what in zip(grid, over, strict=True):
            for ax, place in zip(line, places, strict=True):
                rows = None if place == MEAN else place
                here = [each for each in swept if each.temperature == level]
                if what == "m":
                    _over_leads(ax, here, shape.width, rows)
                elif what == "survival":
                    _survival(ax, here, shape.width, rows)
                else:
                    _over_temperatures(ax, swept, shape.width, rows)
                ax.set_title(place, parse_math=False)
            line[0].set_ylabel("sampled slots kept" if what == "survival" else "tau (tokens a cycle)")
            line[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
        at = f", T = {level:g} above" if len(over) > 1 else f", T = {level:g}" if "m" in over else ""
        said = f"K = {shape.width}, D = {shape.depth}, R = {shape.budget}{at}; exact"
        figure.supxlabel(said, x=0.01, ha="left", fontsize=8, color=MUTED)
    return figure


def _swept_over(swept: Sequence[Sweep]) -> list[str]:
    leads = ["m", "survival"] if any(each.lead is not None for each in swept) else []
    temperatures = ["temperature"] if len({each.temperature for each in swept}) > 1 or not leads else []
    return leads + temperatures


def _over_leads(ax: Axes, swept: Sequence[Sweep], width: int, rows: str | None) -> None:
    """A curve for each method with m; a level line for top-K and for every method without m."""
    level = swept[0].temperature
    families: dict[str, dict[int, float]] = {}
    for version, each in {label(each.method): each for each in swept}.items():
        mean = sweep_mean(swept, version, level, rows)
        if each.lead is None or each.lead >= width:
            name = each.method.name if each.lead is None else "top-k"
            ax.axhline(mean, color=_colour(name, swept), linestyle="--", label=name)
        else:
            families.setdefault(each.method.name, {})[each.lead] = mean
    for name, curve in families.items():
        ax.plot(list(curve), list(curve.values()), marker="o", color=_colour(name, swept), label=name)
    ax.set_xticks(range(width))
    ax.set_xlabel("m")
    _once(ax)


def _survival(ax: Axes, swept: Sequence[Sweep], width: int, rows: str | None) -> None:
    """How many sampled slots survive, a curve for each method with m; at m = K there is none to keep."""
    families: dict[str, dict[int, float]] = {}
    for version, each in {label(each.method): each for each in swept if each.lead is not None}.items():
        kept = survival_mean(swept, version, each.temperature, rows)
        if kept is not None and each.lead is not None:
            families.setdefault(each.method.name, {})[each.lead] = kept
    for name, curve in families.items():
        ax.plot(list(curve), list(curve.values()), marker="o", color=_colour(name, swept), label=name)
    ax.set_xticks(range(width + 1))
    ax.set_ylim(bottom=0)
    ax.set_xlabel("m")


def _over_temperatures(ax: Axes, swept: Sequence[Sweep], width: int, rows: str | None) -> None:
    """A curve for each method and m."""
    levels = sorted({each.temperature for each in swept})
    families = list(dict.fromkeys(each.method.name for each in swept if each.lead is not None))
    for version, each in {label(each.method): each for each in swept}.items():
        curve = [sweep_mean(swept, version, level, rows) for level in levels]
        if each.lead is None or each.lead >= width:
            name = each.method.name if each.lead is None else "top-k"
            ax.plot(levels, curve, marker=".", color=_colour(name, swept), linestyle="--", label=name)
        else:
            line = LINES[families.index(each.method.name) % len(LINES)]
            ax.plot(levels, curve, line, marker="o", color=BY_LEAD[each.lead % len(BY_LEAD)], label=version)
    if len(levels) <= 6:
        ax.set_xticks(levels, [f"{level:g}" for level in levels])
    ax.set_xlabel("temperature")
    _once(ax)


def _colour(name: str, swept: Sequence[Sweep]) -> str:
    """Give a method's own colour, or the next one of the cycle."""
    others = [each for each in dict.fromkeys(each.method.name for each in swept) if each not in COLOURS]
    return COLOURS[name] if name in COLOURS else OTHERS[others.index(name) % len(OTHERS)]


def _once(ax: Axes) -> None:
    """Keep the first of artists with the same label in the legend (top-k, and every method at m = K, are one)."""
    seen: set[str] = set()
    for artist in ax.lines:
        name = str(artist.get_label())
        artist.set_label(f"_{name}" if name in seen else name)
        seen.add(name)


@dataclass(frozen=True)
class Measured:
    """One method on one file: whether it is lossless there, one layer, its optimum (None: not known), and tau."""

    method: str
    rows: str
    lossless: bool
    one_layer: float
    optimum: float | None
    acceptance_length: float


def comparison_figure(measured: Sequence[Measured], title: str = "") -> Figure:
    """Give one layer and tau of each method, the mean over the files as a bar and each file as a dot; best tau on top.

    The upright mark is the optimum of the method's own drafts; methods that lose on any of the files are hatched.
    """
    from matplotlib.figure import Figure

    by_method: dict[str, list[Measured]] = {}
    for each in measured:
        by_method.setdefault(each.method, []).append(each)
    order = sorted(by_method, key=lambda name: _mean([each.acceptance_length for each in by_method[name]]))
    with style():
        figure = Figure(figsize=(9.5, 1.3 + 0.24 * len(order)), layout="constrained")
        layer, tree = figure.subplots(1, 2, sharey=True)
        for place, name in enumerate(order):
            results = by_method[name]
            lossless = all(each.lossless for each in results)
            optima = [each.optimum for each in results if each.optimum is not None and each.lossless]
            _bar(layer, place, [each.one_layer for each in results], lossless)
            _bar(tree, place, [each.acceptance_length for each in results], lossless)
            if len(optima) == len(results):
                layer.plot([_mean(optima)] * 2, [place - 0.4, place + 0.4], color=INK, linewidth=2)
        layer.set_yticks(range(len(order)), order)
        layer.set_ylim(-0.7, len(order) - 0.3)
        for ax, least in ((layer, 0), (tree, 1)):
            ax.grid(visible=True, axis="x")
            ax.grid(visible=False, axis="y")
            ax.tick_params(axis="y", length=0)
            ax.set_xlim(left=least)
        layer.set(title="One layer", xlabel="probability that a draft is accepted")
        tree.set(title="Whole tree", xlabel="tau (tokens a cycle)")
        _explain(figure, measured, title)
    return figure


def _bar(ax: Axes, place: int, values: Sequence[float], lossless: bool) -> None:
    colour = CYCLE[0] if lossless else CYCLE[6]
    (bar,) = ax.barh(place, _mean(values), height=0.68, linewidth=0.8, edgecolor=colour)
    bar.set_facecolor(SOLID if lossless else "white")
    bar.set_hatch("" if lossless else "////")
    if len(values) > 1:
        ax.plot(values, [place] * len(values), ".", color=colour, markersize=4)


def _explain(figure: Figure, measured: Sequence[Measured], title: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown: list[Line2D | Patch] = [
        Patch(facecolor=SOLID, edgecolor=CYCLE[0], label="lossless on all these rows"),
        Patch(facecolor="white", edgecolor=CYCLE[6], hatch="////", label="lossy on some"),
        Line2D([], [], color=INK, linewidth=2, label="most that a lossless rule accepts from these drafts"),
    ]
    if len({each.rows for each in measured}) > 1:
        shown.append(Line2D([], [], color=MUTED, marker=".", linestyle="", label="one file (bar: their mean)"))
    figure.legend(handles=shown, loc="outside lower left", ncols=len(shown))
    if title:
        figure.suptitle(title, x=0.01, ha="left", size=8, color=MUTED)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
