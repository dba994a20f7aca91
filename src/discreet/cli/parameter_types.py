"""Types of options that several commands take."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["BinCountType"]


class BinCountType(click.IntRange):
    """A number of bins, or "auto" for the default of what is trained."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse an option."""
        return value if value == "auto" else super().convert(value, param, ctx)
