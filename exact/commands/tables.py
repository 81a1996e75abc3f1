"""How tables look on a terminal, in every command alike."""

from __future__ import annotations

from rich import box
from rich.table import Table


def blank_table(title: str | None = None) -> Table:
    """A table without columns yet."""
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
