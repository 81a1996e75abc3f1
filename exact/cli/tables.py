"""How tables look on a terminal, in every command alike.

Rich shrinks columns until a table fits, down to nothing; a verdict or a figure lost that way would not be missed. Here
only the columns named for it wrap, and a table that still does not fit is wider than the terminal.
"""

from __future__ import annotations

from rich import box
from rich.measure import Measurement
from rich.table import Column, Table

from exact.cli import options

UNBOUNDED = 1_000_000


def blank_table(title: str | None = None) -> Table:
    """Give a table without columns yet."""
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        header_style="bold",
        padding=(0, 1, 0, 0),
        show_edge=False,
    )


def show(table: Table, *wraps: str) -> None:
    """Print a table with every cell whole; the columns `wraps` give way between words where room is short."""
    flexible = [column for column in table.columns if column.header in wraps]
    unbounded = options.out.options.update(width=UNBOUNDED)
    rest = Measurement.get(options.out, unbounded, table).maximum
    ranges = [_range(column) for column in flexible]
    widths = [each.maximum for each in ranges]
    rest -= sum(widths)
    while rest + sum(widths) > options.out.width and any(
        width > each.minimum for width, each in zip(widths, ranges, strict=True)
    ):
        widest = max(range(len(widths)), key=lambda which: (widths[which] > ranges[which].minimum, widths[which]))
        widths[widest] -= 1
    for column, width in zip(flexible, widths, strict=True):
        column.width = width
    table.width = rest + sum(widths)
    options.out.print(table, crop=False)


def _range(column: Column) -> Measurement:
    """Give the longest word and the longest cell of a column."""
    unbounded = options.out.options.update(width=UNBOUNDED)
    found = [Measurement.get(options.out, unbounded, cell) for cell in (column.header, *column.cells)]
    return Measurement(max(each.minimum for each in found), max(each.maximum for each in found))
