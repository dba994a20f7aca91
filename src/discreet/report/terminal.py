"""Tables and guarantees on a terminal of any width.

If columns do not fit, every row becomes lines; continuation lines are indented.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from rich.table import Table
from rich.text import Text

__all__ = ["Hanging", "Shown", "table"]


@dataclass(frozen=True)
class Hanging:
    """Lines of text whose continuations are indented further than their beginning."""

    text: str

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Print every line, broken between words where it is too long."""
        for line in self.text.splitlines():
            indent = line[: len(line) - len(line.lstrip())] + "  "
            parts = wrap(
                line,
                max(options.max_width, 2 * len(indent)),
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
            yield Text("\n".join(parts), overflow="ignore", no_wrap=True)


class Shown(Table):
    """A table that loses nothing on a narrow terminal.

    Where a word of some column would be cut, every row is printed as lines of name and value.
    """

    heading = ""
    """Printed above on its own line: rich would break a title at the width of the table."""

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """Print the table, or its rows as lines."""
        if self.heading:
            yield Text(self.heading, style="italic")
        widths = self._widths()
        if sum(widths) + 3 * len(self.columns) + 1 <= options.max_width:
            for column, width in zip(self.columns, widths, strict=True):
                column.min_width = width  # lines break between words, never inside one
            yield from super().__rich_console__(console, options)
            return
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for column, cell in zip(self.columns, row, strict=True):
                name = str(column.header)
                if name or cell:
                    yield Text(f"{name}: {cell}" if name else str(cell))
            yield Text("")

    def _widths(self) -> list[int]:
        """Width of each column: its longest word, or its longest cell where nothing is wrapped."""
        widths = []
        for column in self.columns:
            cells = [str(column.header), *map(str, column.cells)]
            words = cells if column.no_wrap else [word for cell in cells for word in cell.split()]
            widths.append(max(map(len, words), default=1))
        return widths


def table(title: str, *columns: str) -> Shown:
    """An empty table; a column whose name starts with ``>`` holds numbers."""
    made = Shown()
    made.heading = title
    for position, name in enumerate(columns):
        side: Any = "right" if name.startswith(">") else "left"
        made.add_column(Text(name.removeprefix(">")), justify=side, no_wrap=position == 0)
    return made
