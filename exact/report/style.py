"""One look for every picture of the project, and one way to write a picture to a file.

The commands and the notebooks take their colours and sizes from here, so that a method has the same colour wherever it
is shown. Matplotlib (extra `plot`) is imported only when something is drawn.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from exact.runtime import atomic_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, FAINT = "#22272e", "#6b7480", "#d5d9de"
"""Text and axes; what stands back; rules and tracks."""

CYCLE = ("#2b6ca3", "#d1662a", "#2f8f6b", "#8a5fb0", "#c9a227", "#6b7480", "#b8405e", "#4fb0c6")
"""Colours of the curves, in order; told apart by most colour-blind readers."""

COLOURS = MappingProxyType(
    {
        "target": INK,
        "top-k": CYCLE[5],
        "rheo": CYCLE[0],
        "rheo-rrsw": CYCLE[3],
        "rheo-adhoc": CYCLE[6],
        "rheo-raw": CYCLE[4],
        "optimum": CYCLE[2],
        "right": CYCLE[2],
        "wrong": CYCLE[6],
    }
)
"""What has a colour of its own in every picture."""


MOST_PIXELS = 60_000
"""Along a side of a png; a larger sheet is drawn coarser (an svg or pdf never is)."""


def rc_params() -> dict[Any, Any]:
    """Matplotlib's settings for this look; in a notebook: `plt.rcParams.update(rc_params())`."""
    from cycler import cycler

    return {
        "axes.edgecolor": MUTED,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.labelcolor": INK,
        "axes.labelsize": 9,
        "axes.prop_cycle": cycler(color=CYCLE),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.axisbelow": True,
        "figure.constrained_layout.use": True,
        "figure.dpi": 80,
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 4.5,
        "savefig.dpi": 150,
        "svg.hashsalt": "rheo-lossless",
        "text.color": INK,
        "xtick.color": MUTED,
        "xtick.labelcolor": INK,
        "xtick.labelsize": 8,
        "ytick.color": MUTED,
        "ytick.labelcolor": INK,
        "ytick.labelsize": 8,
    }


def style() -> AbstractContextManager[None]:
    """Give the look, for the pictures made in a `with style():` block."""
    from matplotlib import rc_context

    context: AbstractContextManager[None] = rc_context(rc_params())
    return context


def save_figure(figure: Figure, path: Path, name: str = "plot") -> None:
    """Write a figure as png, svg or pdf by the file's ending, whole or not at all; the same figure, the same bytes.

    Raises `InvalidInput`, with the option's `name`, on another ending and on a file that cannot be written.
    """
    import matplotlib

    atomic_files.check_figure(path, name)
    ending = path.suffix.lower()
    dateless = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending)
    width, height = figure.get_size_inches()
    finest = min(MOST_PIXELS / max(width, height), math.sqrt(MOST_PIXELS * 2000 / (width * height)))
    buffer = BytesIO()
    with style():
        dots = min(matplotlib.rcParams["savefig.dpi"], finest)
        figure.savefig(buffer, format=ending[1:], metadata=dateless, dpi=dots)
    atomic_files.save_bytes(path, buffer.getvalue(), name)
