"""The first steps of a query: columns of the table as text and numbers, and components of these."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.model import NaiveBayesModel
from discreet.model.sql_dates import DateColumns
from discreet.model.sql_dialects import Dialect, format_double
from discreet.model.sql_text import list_public_numbers, write_case
from discreet.schema.cells import Cells
from discreet.schema.dates import Date, DatePart
from discreet.schema.projection import Projection
from discreet.schema.schema import Numeric

__all__ = ["InputColumns"]

MAX_UNBOUNDED = 1e150
"""Largest number of an unbounded feature: the square of more may be refused as infinite."""


class InputColumns:
    """The columns that a query reads; each is added when it is first asked for.

    Parameters
    ----------
    model : NaiveBayesModel
    dialect : Dialect
    keys : sequence of str
        Columns that are copied to the result.

    Attributes
    ----------
    inputs, standardised, components : dict of str to str
        Expressions of three steps, by the name of their column there.
    """

    def __init__(self, model: NaiveBayesModel, dialect: Dialect, keys: Sequence[str]) -> None:
        self.model, self.dialect = model, dialect
        self.inputs = {f"k{position}": self.read_column(key) for position, key in enumerate(keys)}
        self.dates = DateColumns(dialect)
        self.standardised: dict[str, str] = {}
        self.components: dict[str, str] = {}
        self.input_names: dict[str, str] = {}
        """The column of the first step that holds a feature: text v0 …, or the digits of x0, m0.

        Those of dates are t0, m0.
        """

    def read_column(self, name: str) -> str:
        """A column of the table, by its name alone."""
        return f"source_rows.{self.dialect.quote_name(name)}"

    def add_text(self, cells: Cells) -> str:
        """The column of a categorical feature as text in the schema's spelling."""
        name = cells.feature.name
        if name not in self.input_names:
            public_texts = {*cells.spellings, *cells.tokens}
            unknown_text = "number"
            while unknown_text in public_texts:
                unknown_text += "_"
            text_name = self.input_names[name] = f"v{len(self.input_names)}"
            self.inputs[text_name] = self.dialect.read_text(
                self.read_column(name),
                list_public_numbers(cells),
                self._list_truths(cells),
                unknown_text,
            )
        return self.input_names[name]

    def add_number(self, feature: Numeric) -> tuple[str, str]:
        """The column of a numeric feature as doubles, and the condition that it is missing."""
        name, projection = feature.name, self.model.projection
        if projection is not None and feature in projection.components:
            return self._add_component(projection, feature), ""
        if isinstance(feature, Date):
            digits = self._add_date(feature)
            return f"x{digits}", f"m{digits}"
        if name not in self.input_names:
            self.input_names[name] = digits = str(len(self.input_names))
            column = self.read_column(name)
            self.inputs[f"x{digits}"] = self.dialect.read_number(column)
            self.inputs[f"m{digits}"] = self._write_is_missing(column)
        digits = self.input_names[name]
        is_nan = f" OR x{digits} = {self.dialect.nan}" if self.dialect.nan else ""
        return f"x{digits}", f"m{digits}{is_nan}"

    def add_part(self, feature: DatePart) -> tuple[str, str, str]:
        """The cell of a part of a date, its column of text, and the condition of missing."""
        digits = self._add_date(feature)
        return self.dates.write_part(feature, digits), f"t{digits}", f"m{digits}"

    def list_refusals(self, feature: Numeric, number: str) -> list[tuple[str, str]]:
        """Cases of numbers that the model refuses."""
        refusals = []
        for sign, bound in (("<", feature.lower), (">", feature.upper)):
            limit = bound
            if not math.isfinite(bound):
                limit = math.copysign(MAX_UNBOUNDED, bound)
            elif self._clips(number):
                continue
            refusals.append((f"{number} {sign} {self.dialect.write_edge(limit)}", "NULL"))
        if feature.integer and not isinstance(feature, Date):
            refusals.append((self.dialect.is_fraction(number), "NULL"))
        return refusals

    def clip_number(self, feature: Numeric, number: str) -> str:
        """A number inside its bounds, where the schema clips."""
        arms = [
            (f"{number} {sign} {edge}", edge)
            for sign, bound in (("<", feature.lower), (">", feature.upper))
            if math.isfinite(bound)
            for edge in (self.dialect.write_edge(bound),)
        ]
        return write_case(arms, number) if arms and self._clips(number) else number

    def _clips(self, number: str) -> bool:
        """Whether numbers outside the bounds count as the bounds: those of components always do."""
        return number in self.components or self.model.inputs.outliers == "clip"

    def _add_date(self, feature: Date | DatePart) -> str:
        """The digits of the columns of a date."""
        name = feature.name
        if name not in self.input_names:
            self.input_names[name] = digits = str(len(self.input_names))
            column = self.read_column(name)
            self.inputs[f"t{digits}"] = self.dates.read_text(column)
            self.inputs[f"m{digits}"] = self._write_is_missing(column)
            self.dates.add_date(feature, digits)
        return self.input_names[name]

    def _write_is_missing(self, column: str) -> str:
        return self.dialect.is_missing(column, self.model.inputs.missing_tokens)

    def _list_truths(self, cells: Cells) -> dict[str, str]:
        """The public texts of truth values that are not spelled true and false."""
        text_by_truth = {}
        for truth in ("true", "false"):
            number_text = str(int(truth == "true"))
            spellings = [truth, truth.capitalize()]
            # SQLite has no truth values: its numbers are either those or numbers
            spellings += [] if self.dialect.name == "sqlite" else [number_text]
            if self.dialect.name == "sqlite" and number_text in cells.spellings:
                continue
            own_spelling = next((text for text in spellings if text in cells.spellings), truth)
            if own_spelling != truth or (
                self.dialect.name == "sqlite" and truth in cells.spellings
            ):
                text_by_truth[truth] = own_spelling
        return text_by_truth

    def _add_component(self, projection: Projection, component: Numeric) -> str:
        """The column of a component: a sum of standardised numbers, in the order of the schema."""
        component_index = projection.components.index(component)
        column_name = f"x_{component_index}"
        if column_name in self.components:
            return column_name
        terms = [self.dialect.write_constant(0.0)]
        for j, feature in enumerate(projection.numeric_features):
            number, is_absent = self.add_number(feature)
            missing_value = self.dialect.write_constant(0.0) if feature.optional else "NULL"
            self.standardised[f"z{j}"] = write_case(
                [(is_absent, missing_value), *self.list_refusals(feature, number)],
                f"({self.clip_number(feature, number)} - ({format_double(projection.centre[j])})) "
                f"/ {self.dialect.write_constant(projection.scale[j])}",
            )
            weight = projection.matrix[j, component_index]
            terms.append(f"z{j} * ({format_double(weight)})")
        self.components[column_name] = " + ".join(terms)
        return column_name
