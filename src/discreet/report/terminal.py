"""Tables on a terminal, of any width: where columns do not fit, every row becomes lines."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

__all__ = ["Shown", "table"]


class Shown(Table):
    """A table that loses nothing on a narrow terminal.

    Where a word of some column would be cut, every row is printed as lines of name and value.
    """

    def __rich_console__(self, console: Any, options: Any) -> Any:
        """What is printed: the table, or its rows as lines."""
        if sum(self._widths()) + 3 * len(self.columns) + 1 <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield self.title
        for row in zip(*(column.cells for column in self.columns), strict=True):
            for column, cell in zip(self.columns, row, strict=True):
                name = str(column.header)
                yield Text(f"{name}: {cell}" if name else str(cell))
            yield Text("")

    def _widths(self) -> list[int]:
        """Of each column, its longest word; where nothing is wrapped, its longest cell."""
        widths = []
        for column in self.columns:
            cells = [str(column.header), *map(str, column.cells)]
            words = cells if column.no_wrap else [word for cell in cells for word in cell.split()]
            widths.append(max(map(len, words), default=1))
        return widths


def table(title: str, *columns: str) -> Shown:
    """An empty table; a column whose name starts with ``>`` holds numbers."""
    made = Shown(title=Text(title) if title else None, title_justify="left")
    for position, name in enumerate(columns):
        side: Any = "right" if name.startswith(">") else "left"
        made.add_column(Text(name.removeprefix(">")), justify=side, no_wrap=position == 0)
    return made
