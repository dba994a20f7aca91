"""Tables and guarantees on a terminal of any width.

If columns do not fit, every row becomes lines; continuation lines are indented.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

__all__ = ["AdaptiveTable", "HangingText", "make_table"]


@dataclass(frozen=True)
class HangingText:
    """Lines of text whose continuations are indented further than their beginning."""

    text: str

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Print every line, broken between words where it is too long."""
        for line in self.text.splitlines():
            indent = line[: len(line) - len(line.lstrip())] + "  "
            wrapped_lines = wrap(
                line,
                max(options.max_width, 2 * len(indent)),
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            yield Text("\n".join(wrapped_lines), overflow="ignore", no_wrap=True)


class AdaptiveTable(Table):
    """A table that loses nothing on a narrow terminal.

    Where a word of some column would be cut, every row is printed as lines of name and value.
    """

    heading = ""
    """Printed above on its own line: rich would break a title at the width of the table."""

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Print the table, or its rows as lines."""
        if self.heading:
            yield Text(self.heading, style="italic")
        least_widths, full_widths = [], []
        for column in self.columns:
            cell_texts = [str(column.header), *map(str, column.cells)]
            words = [word for cell in cell_texts for word in cell.split()]
            full_widths.append(max(map(cell_len, cell_texts), default=1))
            least_widths.append(
                full_widths[-1] if column.no_wrap else max(map(cell_len, words), default=1)
            )
        space = options.max_width - 3 * len(self.columns) - 1
        if sum(least_widths) <= space:
            # lines break between words, never inside one, and the border is never cut
            column_widths = _spread_width(least_widths, full_widths, space)
            for column, width in zip(self.columns, column_widths, strict=True):
                column.width = width
            yield from super().__rich_console__(console, options)
            return
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for column, cell in zip(self.columns, row, strict=True):
                column_name = str(column.header)
                if column_name or cell:
                    yield Text(f"{column_name}: {cell}" if column_name else str(cell))
            yield Text("")


def _spread_width(least_widths: list[int], full_widths: list[int], space: int) -> list[int]:
    """Widen columns in turn up to their full widths, so that short texts stay on one line.

    >>> _spread_width([5, 3, 4], [5, 30, 10], 25)
    [5, 10, 10]
    """
    column_widths = list(least_widths)
    spare_width = space - sum(least_widths)
    while spare_width > 0 and column_widths != full_widths:
        for position, full_width in enumerate(full_widths):
            if column_widths[position] < full_width and spare_width > 0:
                column_widths[position] += 1
                spare_width -= 1
    return column_widths


def make_table(title: str, *columns: str) -> AdaptiveTable:
    """An empty table; a column whose name starts with ``>`` holds numbers."""
    empty_table = AdaptiveTable()
    empty_table.heading = title
    for position, column_name in enumerate(columns):
        justification: Any = "right" if column_name.startswith(">") else "left"
        empty_table.add_column(
            Text(column_name.removeprefix(">")), justify=justification, no_wrap=position == 0
        )
    return empty_table
