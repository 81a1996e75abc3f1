"""How much is accepted, as pictures: tau against m and against temperature (the shapes of Figures 3 and 4), and methods
side by side with the most that any lossless rule could accept from the same drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from exact.drawing.style import COLOURS, CYCLE, FAINT, INK, MUTED, style
from exact.plugins import label
from exact.sweeps import Sweep, sweep_mean
from rheo_core import TreeShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEAN = "mean"
PANELS = 6
"""Most panels in a line: five files and their mean. Of more files only the mean is drawn."""


def sweep_figure(
    swept: Sequence[Sweep],
    shape: TreeShape,
    over: Sequence[str] = ("m", "temperature"),
    temperature: float | None = None,
) -> Figure:
    """tau over m (at `temperature`, else the highest) and over the temperature, a panel for each file and their mean.

    Against m, the dashed line is the plain top-K pool (m = K); against the temperature, the value at T = 0.
    """
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(each.rows for each in swept))
    places = names if len(names) == 1 else [MEAN] if len(names) >= PANELS else [*names, MEAN]
    with style():
        figure = Figure(figsize=(2.0 + 2.0 * len(places), 0.5 + 2.4 * len(over)))
        axes = figure.subplots(len(over), len(places), squeeze=False, sharey="row")
        for line, what in zip(axes, over, strict=True):
            for ax, place in zip(line, places, strict=True):
                rows = None if place == MEAN else place
                if what == "m":
                    _over_leads(ax, swept, rows, max(each.temperature for each in swept) if temperature is None else temperature)
                else:
                    _over_temperatures(ax, swept, rows)
                ax.set_title(place if what == over[0] else "")
            line[0].set_ylabel("tau, tokens a cycle")
            handles = {text: handle for ax in line for handle, text in zip(*ax.get_legend_handles_labels(), strict=True)}
            line[-1].legend(handles.values(), handles, loc="center left", bbox_to_anchor=(1.02, 0.5))
        figure.suptitle(f"K = {shape.width}, D = {shape.depth}, R = {shape.budget}; exact", x=0.01, ha="left", size=9, color=MUTED)
    return figure


def _over_leads(ax: Axes, swept: Sequence[Sweep], rows: str | None, temperature: float) -> None:
    here = [each for each in swept if each.temperature == temperature]
    families: dict[str, dict[int, str]] = {}
    for each in here:
        if each.lead is None:
            mean = sweep_mean(swept, label(each.method), temperature, rows)
            ax.axhline(mean, color=_colour(each.method.name), linestyle=":", label=each.method.name)
        else:
            families.setdefault(each.method.name, {})[each.lead] = label(each.method)
    for number, (name, versions) in enumerate(families.items()):
        points = [(m, sweep_mean(swept, version, temperature, rows)) for m, version in sorted(versions.items())]
        ax.plot(*zip(*points, strict=True), marker="o", color=_colour(name, number), label=name)
        ax.set_xticks([m for m, _ in points])
    ...
