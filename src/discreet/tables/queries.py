"""The one set of queries that counts a table by its schema, as ibis expressions for any engine.

Every query has the class ``y`` as its first column. Numeric features are numbered in the order of
the schema: ``x0`` … are their values, ``v0`` … what is summed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import SchemaError
from discreet.schema.cells import NUMBER_HINT, Cells, Grid, apply_bounds, refuse_infinity
from discreet.schema.dates import Date, DatePart, make_not_a_date_error
from discreet.schema.schema import Feature, Numeric, Schema, abbreviate_value
from discreet.tables.bin_expressions import add_bin_columns
from discreet.tables.columns import (
    find_fractions,
    make_double,
    make_group_key,
    read_numbers,
)
from discreet.tables.date_expressions import add_date_columns, make_cell_key, read_feature_numbers

__all__ = ["Queries", "check_numbers", "clip_number", "make_not_a_number_error"]


class Queries:
    """A table, its schema, and the queries that count one by the other.

    Parameters
    ----------
    table : ibis.Table
    schema : Schema
    weights : str or None
        Name of the column of weights.
    cells : mapping of feature name to Cells
        Of the features that are counted by cell.

    Attributes
    ----------
    max_keys : dict of name to int
        How many different keys a feature, or the class, has in a table that fits the schema.
    """

    def __init__(
        self, table: Any, schema: Schema, weights: str | None, cells: Mapping[str, Cells]
    ) -> None:
        table = add_date_columns(table, schema.features, schema.missing_tokens)
        self.table = table
        self.schema, self.weights, self.cells = schema, weights, cells
        self.numeric_features = [f for f in schema.features if isinstance(f, Numeric)]
        self.class_cells = Cells.from_schema(schema, schema.target)
        self.max_keys = {
            name: max(counted_cells.size, 3)
            if table[name].type().is_boolean()
            else counted_cells.size
            for name, counted_cells in {**cells, schema.target: self.class_cells}.items()
        }

    def make_class_query(self, moments: str | None) -> Any:
        """Totals, and extremes and sums of numeric features, by class."""
        rows = self._select_numbers(self.numeric_features)
        if moments is not None:
            rows = rows.mutate(**self._clip_numbers(rows, self.numeric_features, moments == "grid"))
        query_aggregates: dict[str, Any] = {"n": self.sum_rows(rows), "rows": rows.count()}
        if self.weights is not None:
            query_aggregates |= {"wn": rows.w.count(), "wlo": rows.w.min(), "whi": rows.w.max()}
        for j, feature in enumerate(self.numeric_features):
            x = rows[f"x{j}"]
            query_aggregates |= {f"p{j}": x.count(), f"lo{j}": x.min(), f"hi{j}": x.max()}
            if f"t{j}" in rows.columns:
                query_aggregates[f"t{j}"] = rows[f"t{j}"].max()
            if feature.integer:
                query_aggregates[f"o{j}"] = find_fractions(x).max()
            if moments is None:
                continue
            v = rows[f"v{j}"]
            if self.weights is not None:
                query_aggregates[f"n{j}"] = x.isnull().ifelse(0.0, rows.w).sum()
                query_aggregates[f"m{j}"] = x.isnull().ifelse(rows.w, 0.0).sum()
            query_aggregates[f"s{j}"] = self.sum_rows(rows, v)
            if moments == "grid":
                query_aggregates[f"q{j}"] = self.sum_rows(rows, v * v)
        return rows.group_by("y").agg(**query_aggregates)

    def make_centred_query(self, classes: Mapping[Any, int], origins: Mapping[str, Any]) -> Any:
        """Sums and sums of squares about the class means, by class."""
        import ibis

        rows = self._select_numbers(self.numeric_features)
        rows = rows.mutate(**self._clip_numbers(rows, self.numeric_features, False))
        centred_columns = {}
        for j, feature in enumerate(self.numeric_features):
            class_origins = origins[feature.name]
            branches = [
                (
                    rows.y
                    == (make_double(raw_class) if isinstance(raw_class, float) else raw_class),
                    make_double(class_origins[class_index]),
                )
                for raw_class, class_index in classes.items()
            ]
            class_centre = ibis.cases(*branches) if branches else make_double(0.0)
            centred_columns[f"v{j}"] = rows[f"v{j}"] - class_centre
        rows = rows.mutate(**centred_columns)
        query_aggregates: dict[str, Any] = {}
        for j in range(len(self.numeric_features)):
            v = rows[f"v{j}"]
            query_aggregates |= {
                f"s{j}": self.sum_rows(rows, v),
                f"q{j}": self.sum_rows(rows, v * v),
            }
        return rows.group_by("y").agg(**query_aggregates)

    def make_cell_query(self, names: Sequence[str]) -> Any:
        """How many rows of each class have each combination of the cells of features."""
        numeric_features = [feature for feature in self.numeric_features if feature.name in names]
        raw_columns = {}
        for position, name in enumerate(names):
            if name not in [feature.name for feature in numeric_features]:
                raw_columns[f"a{position}"] = make_cell_key(self.table[name], self.cells[name])
        rows = self._select_numbers(numeric_features, raw_columns)
        if numeric_features:
            binned_columns = {
                f"a{names.index(feature.name)}": (f"x{j}", self.cells[feature.name])
                for j, feature in enumerate(numeric_features)
            }
            rows = add_bin_columns(rows, binned_columns)
        key_columns = [f"a{position}" for position in range(len(names))]
        return rows.group_by("y", *key_columns).agg(n=self.sum_rows(rows))

    def make_row_query(self, names: Sequence[str], unchanged: Collection[str] = ()) -> Any:
        """Every row with its class y, and of features a0, a1 … what counts are grouped by.

        Of numeric features the number, with text t0, t1 … that is not one. Also the weight w, if
        there are weights.

        Parameters
        ----------
        names : sequence of str
            Of features, in the order of a0, a1 ….
        unchanged : collection of str
            Columns that hold nothing but numbers.
        """
        row_columns = {"y": make_group_key(self.table[self.schema.target], self.class_cells)}
        numeric_by_name = {feature.name: feature for feature in self.numeric_features}
        for position, name in enumerate(names):
            if name in unchanged:
                row_columns[f"a{position}"] = self.table[name]
            elif name in numeric_by_name:
                missing_tokens = self.schema.missing_tokens
                row_columns[f"a{position}"], invalid_text = read_feature_numbers(
                    self.table, numeric_by_name[name], missing_tokens
                )
                if invalid_text is not None:
                    row_columns[f"t{position}"] = invalid_text
            else:
                row_columns[f"a{position}"] = make_cell_key(self.table[name], self.cells[name])
        if self.weights is not None:
            row_columns["w"] = self.table[self.weights]
        return self.table.select(**row_columns)

    def make_level_query(self, name: str) -> Any:
        """How many rows of each class have each grid index of a numeric feature."""
        level_features = [feature for feature in self.numeric_features if feature.name == name]
        rows = self._select_numbers(level_features)
        rows = rows.mutate(**self._clip_numbers(rows, level_features, True))
        rows = rows.filter(rows.v0.notnull()).select("y", k="v0")
        return rows.group_by("y", "k").agg(n=rows.count())

    def sum_rows(self, rows: Any, summand: Any = None) -> Any:
        """Sum over rows, each as often as it weighs: of numbers, or of ones."""
        import ibis

        if self.weights is None:
            if summand is None:
                return rows.count()
            total = summand.sum()
        elif summand is None:
            total = rows.w.sum()
        else:
            total = (summand * rows.w).sum()
        return ibis.coalesce(total, 0)

    def _select_numbers(
        self, numeric: Sequence[Numeric], raw_columns: Mapping[str, Any] | None = None
    ) -> Any:
        """Class y, weight w, numbers x0 … (NULL if missing), text t0 … that is not a number."""
        row_columns = {
            "y": make_group_key(self.table[self.schema.target], self.class_cells),
            **(raw_columns or {}),
        }
        if self.weights is not None:
            row_columns["w"] = read_numbers(self.table, self.weights, self.schema.missing_tokens)[0]
        for j, feature in enumerate(numeric):
            missing_tokens = self.schema.missing_tokens
            row_columns[f"x{j}"], invalid_text = read_feature_numbers(
                self.table, feature, missing_tokens
            )
            if invalid_text is not None:
                row_columns[f"t{j}"] = invalid_text
        return self.table.select(**row_columns)

    def _clip_numbers(self, rows: Any, numeric: Sequence[Numeric], on_grid: bool) -> dict[str, Any]:
        """Numbers v0 … inside their bounds, or their indices on the public grid."""
        return {
            f"v{j}": clip_number(rows[f"x{j}"], feature, on_grid=on_grid)
            for j, feature in enumerate(numeric)
        }


def clip_number(number: Any, feature: Numeric, *, on_grid: bool) -> Any:
    """A number inside the bounds of a feature, or its index on the public grid."""
    import ibis

    upper_bound, lower_bound = make_double(feature.upper), make_double(feature.lower)
    bound_cases = [(number > upper_bound, upper_bound)] if math.isfinite(feature.upper) else []
    bound_cases += [(number < lower_bound, lower_bound)] if math.isfinite(feature.lower) else []
    clipped = ibis.cases(*bound_cases, else_=number) if bound_cases else number
    if not on_grid:
        return clipped
    public_grid = Grid.from_feature(feature)
    grid_steps = (clipped - make_double(public_grid.lower)) / make_double(public_grid.step)
    return (grid_steps + make_double(0.5)).floor().cast("int64")


def make_not_a_number_error(feature: Feature, text: str) -> SchemaError:
    """The error about text in a column of numbers or dates."""
    if isinstance(feature, (Date, DatePart)):
        return make_not_a_date_error(feature.name, text)
    return SchemaError(f"{feature.name}: {abbreviate_value(text)} is not a number; {NUMBER_HINT}")


def check_numbers(queries: Queries, result: Any) -> None:
    """Hold the extremes of numeric columns against the schema, as if they were the columns."""
    values_by_column = {
        name: [value for value in result.column(name).to_pylist() if value is not None]
        for name in result.column_names
    }
    if queries.weights is not None and (
        sum(values_by_column["wn"]) < sum(values_by_column["rows"])
        or min(values_by_column["wlo"], default=0.0) < 0
        or math.isinf(max(values_by_column["whi"], default=0.0))
    ):
        raise SchemaError(f"{queries.weights}: weights must be finite and not negative")
    for j, feature in enumerate(queries.numeric_features):
        if invalid_texts := values_by_column.get(f"t{j}"):
            raise make_not_a_number_error(feature, invalid_texts[0])
        extremes = [
            *values_by_column[f"lo{j}"],
            *values_by_column[f"hi{j}"],
            *values_by_column.get(f"o{j}", []),
        ]
        if sum(values_by_column[f"p{j}"]) < sum(values_by_column["rows"]):
            extremes.append(math.nan)
        extreme_values = np.array(extremes, dtype=np.float64)
        if not feature.is_bounded:
            refuse_infinity(extreme_values[:, None], [feature.name])
        apply_bounds(feature, extreme_values, queries.schema.outliers)
