"""Types of options that several commands take."""

from __future__ import annotations

from typing import Any

import click

__all__ = ["BinCountType", "NamedNumbersType"]


class BinCountType(click.IntRange):
    """A number of bins, or "auto" for the default of what is trained."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse an option."""
        return value if value == "auto" else super().convert(value, param, ctx)


class NamedNumbersType(click.ParamType[dict[str, float]]):
    """``age=2,sex=1``: numbers by name.

    Parameters
    ----------
    example : str
    number_name : str
        What the numbers are, for errors.
    """

    def __init__(self, example: str, number_name: str) -> None:
        self.name, self.number_name = example, number_name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Parse names and numbers."""
        if isinstance(value, dict):
            return value
        numbers: dict[str, float] = {}
        for pair_text in filter(None, str(value).split(",")):
            name, _, number_text = pair_text.rpartition("=")
            try:
                numbers[name.strip()] = float(number_text)
            except ValueError:
                self.fail(
                    f"invalid {self.number_name} {pair_text!r}; write {self.name}", param, ctx
                )
        return numbers
