"""Count rows in place: files, data frames, databases and arrays."""

from discreet.tables.counting import count
from discreet.tables.engines import open_table
from discreet.tables.in_memory import CountRequest

__all__ = ["CountRequest", "count", "open_table"]
