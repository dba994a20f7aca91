"""Rows from anywhere, counted where they lie: files, data frames, databases and arrays."""

from discreet.tables.counting import count
from discreet.tables.engines import open_table

__all__ = ["count", "open_table"]
