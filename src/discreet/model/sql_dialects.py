"""How DuckDB, PostgreSQL and SQLite spell what a classifier in SQL needs.

A dialect quotes names and texts, and reads columns of any type as the schema does: text in the
spelling that all engines share, and numbers as doubles. The type of a column is asked of the engine
when the query runs, because a model does not know the table that it will be used on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from discreet.errors import EstimationError

__all__ = ["DIALECTS", "IMPOSSIBLE_SCORE", "Dialect", "SqlDialect", "format_double"]

SqlDialect = Literal["duckdb", "postgres", "sqlite"]

IMPOSSIBLE_SCORE = -1e290
"""Score in place of minus infinity, which not every engine can write or subtract."""
NUMBER_TEXT_PATTERN = (
    "^[[:space:]]*[-+]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,2})?"
    "|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])[[:space:]]*$"
)
"""Texts that are numbers, less than 1e300 where they are short: PostgreSQL refuses what is more."""
MAX_NUMBER_TEXT_LENGTH = 200
"""Most characters of a number in a column of text."""
MAX_POWER_OF_TWO = 62
"""Largest k for which 2^k is a whole number of every engine."""


def format_double(number: float) -> str:
    """A double as a literal that is a double, not a decimal number, in every dialect but one.

    PostgreSQL reads it as a decimal number, exactly, and rounds it where it meets a double.

    Parameters
    ----------
    number : float
        Finite.

    Examples
    --------
    >>> format_double(-0.1), format_double(1e300)
    ('-0.1e0', '1e+300')
    """
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


@dataclass(frozen=True)
class Dialect:
    """The SQL of one engine.

    Parameters
    ----------
    name : {"duckdb", "postgres", "sqlite"}
    text_template, type_template : str
        A column as text that is compared byte by byte, and the name of its type.
    text_types, number_types, truth_types : tuple of str
        Names of types: of text, of numbers that are spelled with a fraction, of truth values.
    greatest : str
        The function that gives the largest of its arguments.
    nan : str
        The double that is not a number; empty where there is none.
    fence_before, fence_after : str
        What keeps a step from being written into the next one, where its columns would be computed
        again for every use of them.
    """

    name: SqlDialect
    text_template: str
    type_template: str
    text_types: tuple[str, ...]
    number_types: tuple[str, ...]
    truth_types: tuple[str, ...]
    greatest: str
    nan: str
    fence_before: str = ""
    fence_after: str = ""

    def quote_name(self, name: str) -> str:
        """A name of a table or column in double quotes."""
        return '"' + _refuse_unwritable(name).replace('"', '""') + '"'

    def quote_text(self, text: str) -> str:
        """A text in single quotes; a backslash cannot end it, whatever the server's settings."""
        quoted_text = "'" + _refuse_unwritable(text).replace("'", "''") + "'"
        if self.name == "postgres" and "\\" in text:
            return "E" + quoted_text.replace("\\", "\\\\")
        return quoted_text

    def list_texts(self, texts: Sequence[str]) -> str:
        """Texts in parentheses, for ``IN``."""
        return f"({', '.join(map(self.quote_text, texts))})"

    def type_double(self, literal: str) -> str:
        """A literal whose type is that of doubles; PostgreSQL takes it as a decimal number."""
        is_typed = self.name != "postgres"
        return literal if is_typed else f"CAST({literal} AS DOUBLE PRECISION)"

    def write_constant(self, number: float) -> str:
        """A constant of the type of doubles."""
        return self.type_double(format_double(max(number, IMPOSSIBLE_SCORE)))

    def has_type(self, column: str, types: Sequence[str]) -> str:
        """The condition that a column, or in SQLite its value, is of one of these types."""
        type_text = self.type_template.format(column)
        if len(types) == 1:
            return f"{type_text} = {self.quote_text(types[0])}"
        return f"{type_text} IN {self.list_texts(types)}"

    def read_text(
        self,
        column: str,
        text_by_number: Mapping[float, str],
        text_by_truth: Mapping[str, str],
        unknown_text: str,
    ) -> str:
        """A column of any type as text in the spelling of the schema.

        Parameters
        ----------
        column : str
        text_by_number : mapping of float to str
            The public values that a number with a fraction may equal; where there are none,
            numbers are taken as the engine spells them.
        text_by_truth : mapping of {"true", "false"} to str
            The public values of truth values, where they are spelled differently.
        unknown_text : str
            A text that is not public, for other numbers.
        """
        text = self.text_template.format(column)
        arms = []
        if text_by_number:
            number_arms = [f"WHEN {self.nan} THEN NULL"] if self.nan else []
            number_arms += [
                f"WHEN {self.write_edge(value)} THEN {self.quote_text(spelling)}"
                for value, spelling in text_by_number.items()
            ]
            number_text = (
                f"CASE {self._read_double(column)} {' '.join(number_arms)} "
                f"ELSE {self.quote_text(unknown_text)} END"
            )
            is_number = f"{self.has_type(column, self.number_types)} AND {column} IS NOT NULL"
            arms.append(f"WHEN {is_number} THEN {number_text}")
        if text_by_truth:
            truth_arms = " ".join(
                f"WHEN {self._write_truth(truth)} THEN {self.quote_text(spelling)}"
                for truth, spelling in text_by_truth.items()
            )
            arms.append(
                f"WHEN {self.has_type(column, self.truth_types)} "
                f"THEN CASE {text} {truth_arms} ELSE {text} END"
            )
        return f"CASE {' '.join(arms)} ELSE {text} END" if arms else text

    def read_number(self, column: str) -> str:
        """A column of any type as a double; NULL where it is not a number."""
        text, is_text = self.text_template.format(column), self.has_type(column, self.text_types)
        if self.name == "sqlite":  # it has no patterns; of text, only what it would write itself
            is_number = (
                f"CAST(CAST({text} AS INTEGER) AS TEXT) = {text} "
                f"OR CAST(CAST({text} AS REAL) AS TEXT) = {text}"
            )
            return (
                f"CASE WHEN {self.has_type(column, ('integer', 'real'))} OR ({is_text} "
                f"AND ({is_number})) THEN CAST({column} AS REAL) END"
            )
        matches = "regexp_matches({}, {})" if self.name == "duckdb" else "{} ~ {}"
        is_number = matches.format(text, self.quote_text(NUMBER_TEXT_PATTERN))
        cast = "TRY_CAST({} AS DOUBLE)" if self.name == "duckdb" else "CAST({} AS DOUBLE PRECISION)"
        return (
            f"CASE WHEN {is_text} AND NOT ({is_number} "
            f"AND LENGTH({text}) <= {MAX_NUMBER_TEXT_LENGTH}) THEN NULL "
            f"ELSE {cast.format(column)} END"
        )

    def is_missing(self, column: str, tokens: Sequence[str]) -> str:
        """The condition that a value of a column of numbers is missing, or text that says so."""
        is_token = f"{self.text_template.format(column)} IN {self.list_texts(['', *tokens])}"
        is_text = self.has_type(column, self.text_types)
        return f"{column} IS NULL OR ({is_text} AND {is_token})"

    def is_fraction(self, number: str) -> str:
        """The condition that a double has a fraction; beyond 2^53 none has."""
        if self.name == "sqlite":  # FLOOR is an option of its build
            return f"ABS({number}) < 9007199254740992 AND {number} <> CAST({number} AS INTEGER)"
        return f"{number} <> FLOOR({number})"

    def write_edge(self, number: float) -> str:
        """A double to compare with, exactly; SQLite may round a decimal number's last digit."""
        numerator, denominator = float(number).as_integer_ratio()
        is_exact = Decimal(repr(float(number))) == Decimal(float(number))
        is_large = max(abs(numerator), denominator) > 1 << MAX_POWER_OF_TWO
        if self.name != "sqlite" or is_exact or is_large:
            return format_double(number)
        return f"(CAST({numerator} AS REAL) / {denominator})"

    def _read_double(self, column: str) -> str:
        """A value with a fraction as a double, whatever the type of the column may be."""
        text = self.text_template.format(column)
        if self.name == "sqlite":
            return column
        if self.name == "duckdb":
            return f"TRY_CAST({text} AS DOUBLE)"
        return (
            f"(CASE WHEN LENGTH({text}) <= {MAX_NUMBER_TEXT_LENGTH} "
            f"THEN CAST({text} AS DOUBLE PRECISION) END)"
        )

    def _write_truth(self, truth: str) -> str:
        if self.name == "sqlite":
            return self.quote_text(str(int(truth == "true")))
        return self.quote_text(truth)


def _refuse_unwritable(text: str) -> str:
    """Refuse text that SQL cannot hold."""
    is_unicode = text.encode("utf-8", "ignore").decode() == text
    if "\0" in text or not is_unicode:
        raise EstimationError(
            f"{text!r} holds a character that SQL has no literal for; export to ONNX instead"
        )
    return text


DIALECTS: Mapping[str, Dialect] = {
    "duckdb": Dialect(
        name="duckdb",
        text_template="CAST({} AS VARCHAR) COLLATE C",
        type_template="SPLIT_PART(TYPEOF({}), '(', 1)",
        text_types=("VARCHAR",),
        number_types=("FLOAT", "DOUBLE", "DECIMAL"),
        truth_types=("BOOLEAN",),
        greatest="GREATEST",
        nan="CAST('NaN' AS DOUBLE)",
    ),
    "postgres": Dialect(
        name="postgres",
        text_template='CAST({} AS TEXT) COLLATE "C"',
        type_template="CAST(PG_TYPEOF({}) AS TEXT)",
        text_types=("text", "character varying", "character"),
        number_types=("real", "double precision", "numeric"),
        truth_types=("boolean",),
        greatest="GREATEST",
        nan="CAST('NaN' AS DOUBLE PRECISION)",
        fence_after="\n  OFFSET 0",
    ),
    "sqlite": Dialect(
        name="sqlite",
        text_template="(CAST({} AS TEXT) || '')",
        type_template="TYPEOF({})",
        text_types=("text",),
        number_types=("real",),
        truth_types=("integer",),
        greatest="MAX",
        nan="",
        fence_before="MATERIALIZED ",
    ),
}
