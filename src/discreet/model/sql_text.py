"""Pieces of a query: a CASE, the name of a table, and which public values are numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from discreet.schema.cells import Cells
from discreet.schema.schema import Value, format_value

__all__ = ["has_integer_labels", "list_public_numbers", "split_table_name", "write_case"]

MAX_LINE_LENGTH = 100
"""Characters up to which a CASE is written in one line."""


def list_public_numbers(cells: Cells) -> dict[float, str]:
    """The public values that a number may equal, by that number.

    Empty where no value looks like a number: then no number is public, however it is spelled.

    Parameters
    ----------
    cells : Cells
        Of a categorical feature.
    """
    numbers: dict[float, str] = {}
    for spelling in cells.spellings:
        try:
            number = float(spelling)
        except ValueError:
            continue
        if math.isfinite(number) and format_value(number) == spelling:
            numbers[number] = spelling
    return numbers


def write_case(arms: Iterable[tuple[str, str]], otherwise: str = "", *, operand: str = "") -> str:
    """Write a CASE, in one line if it is short.

    Parameters
    ----------
    arms : iterable of (condition, value)
    otherwise : str, optional
        The value where no condition holds; NULL if left out.
    operand : str, optional
        What the conditions are compared with.

    Examples
    --------
    >>> write_case([("x IS NULL", "2")], "0")
    'CASE WHEN x IS NULL THEN 2 ELSE 0 END'
    """
    arm_texts = [f"WHEN {condition} THEN {value}" for condition, value in arms]
    if not arm_texts:
        return otherwise
    parts = [f"CASE {operand}".rstrip(), *arm_texts]
    parts += [f"ELSE {otherwise}"] if otherwise else []
    line = " ".join([*parts, "END"])
    if len(line) <= MAX_LINE_LENGTH:
        return line
    return "\n        ".join(parts) + "\n      END"


def split_table_name(table: str) -> list[str]:
    """Split the name of a table at its dots; a part in double quotes is taken as it is.

    Parameters
    ----------
    table : str

    Examples
    --------
    >>> split_table_name("clinic.visits"), split_table_name('"a.b"'), split_table_name('a"; --')
    (['clinic', 'visits'], ['a.b'], ['a"; --'])
    """
    part_pattern = r'[^."]+|"(?:[^"]|"")+"'
    if re.fullmatch(rf"(?:{part_pattern})(?:\.(?:{part_pattern}))*", table) is None:
        return [table]
    return [
        part[1:-1].replace('""', '"') if part.startswith('"') else part
        for part in re.findall(part_pattern, table)
    ]


def has_integer_labels(classes: Sequence[Value]) -> bool:
    """Whether all classes are whole numbers, so that predictions can be whole numbers, too."""
    return all(isinstance(label, int) and not isinstance(label, bool) for label in classes)
