"""One look for every picture of the project, and one way to write a picture to a file.

The commands and the notebooks take their colours and sizes from here, so that a method has the same colour wherever it
is shown. Matplotlib (extra `plot`) is imported only when something is drawn.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rheo_core import InvalidInput

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

ENDINGS = (".png", ".svg", ".pdf")


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
    """The look, for the pictures made in a `with style():` block."""
    from matplotlib import rc_context

    context: AbstractContextManager[None] = rc_context(rc_params())
    return context


def check_picture_file(path: Path) -> None:
    """Raise unless a picture can be written to `path`: its ending is known and its folder takes files."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidInput("plot", str(path), f"a file that ends in {', '.join(ENDINGS)}")
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise InvalidInput("plot", str(path), "a file that can be written")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput("plot", str(path), f"a file in a folder that can be written, not in {path.parent}")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as png, svg or pdf by the file's ending, whole or not at all; the same figure, the same bytes."""
    check_picture_file(path)
    ending = path.suffix.lower()
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[ending]
    part = path.with_name(f".{path.stem}.{os.getpid()}.part{ending}")
    try:
        with style():
            figure.savefig(part, metadata=dated)
        part.replace(path)
    except OSError as error:
        raise InvalidInput("plot", str(path), f"a file that can be written ({error.strerror})") from None
    finally:
        part.unlink(missing_ok=True)
