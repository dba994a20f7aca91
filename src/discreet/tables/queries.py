"""The one set of queries that counts a table by its schema, as ibis expressions for any engine.

Every query has the class ``y`` as its first column. Numeric features are numbered in the order of
the schema: ``x0`` … are their values, ``v0`` … what is summed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from discreet.encoding import NUMBER, Cells, Grid, numbers_of, refuse_infinity
from discreet.errors import SchemaError
from discreet.schema import Numeric, Schema, short
from discreet.tables.columns import bin_of, double, key, not_whole, numbers

__all__ = ["Queries", "check_numbers", "not_a_number"]


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
    """

    def __init__(
        self, table: Any, schema: Schema, weights: str | None, cells: Mapping[str, Cells]
    ) -> None:
        self.table, self.schema, self.weights, self.cells = table, schema, weights, cells
        self.numeric = [f for f in schema.features if isinstance(f, Numeric)]
        self.target = Cells.of(schema, schema.target)

    def most_keys(self, name: str) -> int:
        """How many different keys a feature, or the class, has in a table that fits the schema."""
        cells = self.target if name == self.schema.target else self.cells[name]
        return max(cells.size, 3) if self.table[name].type().is_boolean() else cells.size

    def by_class(self, moments: str | None, numeric: Sequence[Numeric]) -> Any:
        """Totals, and extremes and sums of numeric features, by class."""
        rows = self._numbers(numeric)
        if moments is not None:
            rows = rows.mutate(**self._clipped(rows, numeric, moments == "grid"))
        found: dict[str, Any] = {"n": self._sum(rows), "rows": rows.count()}
        if self.weights is not None:
            found |= {"wn": rows.w.count(), "wlo": rows.w.min(), "whi": rows.w.max()}
        for j, feature in enumerate(numeric):
            x = rows[f"x{j}"]
            found |= {f"p{j}": x.count(), f"lo{j}": x.min(), f"hi{j}": x.max()}
            if f"t{j}" in rows.columns:
                found[f"t{j}"] = rows[f"t{j}"].max()
            if feature.integer:
                found[f"o{j}"] = not_whole(x).max()
            if moments is None:
                continue
            v = rows[f"v{j}"]
            if self.weights is not None:
                found[f"n{j}"] = x.isnull().ifelse(0.0, rows.w).sum()
                found[f"m{j}"] = x.isnull().ifelse(rows.w, 0.0).sum()
            found[f"s{j}"] = self._sum(rows, v)
            if moments == "grid":
                found[f"q{j}"] = self._sum(rows, v * v)
        return rows.group_by("y").agg(**found)

    def about(self, classes: Mapping[Any, int], origins: Mapping[str, Any]) -> Any:
        """Sums and sums of squares about the class means, by class."""
        import ibis

        rows = self._numbers(self.numeric)
        rows = rows.mutate(**self._clipped(rows, self.numeric, False))
        centred = {}
        for j, feature in enumerate(self.numeric):
            origin = origins[feature.name]
            branches = [
                (rows.y == (double(raw) if isinstance(raw, float) else raw), double(origin[index]))
                for raw, index in classes.items()
            ]
            centre = ibis.cases(*branches) if branches else double(0.0)
            centred[f"v{j}"] = rows[f"v{j}"] - centre
        rows = rows.mutate(**centred)
        found: dict[str, Any] = {}
        for j in range(len(self.numeric)):
            v = rows[f"v{j}"]
            found |= {f"s{j}": self._sum(rows, v), f"q{j}": self._sum(rows, v * v)}
        return rows.group_by("y").agg(**found)

    def by_cells(self, names: Sequence[str]) -> Any:
        """How many rows of each class have each combination of the cells of features."""
        numeric = [feature for feature in self.numeric if feature.name in names]
        raw = {}
        for position, name in enumerate(names):
            if name not in [feature.name for feature in numeric]:
                raw[f"a{position}"] = key(self.table[name], self.cells[name])
        rows = self._numbers(numeric, raw)
        if numeric:
            codes = {}
            for j, feature in enumerate(numeric):
                cells = self.cells[feature.name]
                missing = -1 if cells.missing is None else cells.missing
                code = bin_of(rows[f"x{j}"], cells.edges[1:-1], missing)
                codes[f"a{names.index(feature.name)}"] = code
            rows = rows.mutate(**codes)
        keys = [f"a{position}" for position in range(len(names))]
        return rows.group_by("y", *keys).agg(n=self._sum(rows))

    def each_row(self, names: Sequence[str], unchanged: Collection[str] = ()) -> Any:
        """Every row with its class y, and of features a0, a1 … what counts are grouped by.

        Of numeric features the number, with text t0, t1 … that is not one.

        Parameters
        ----------
        names : sequence of str
            Of features, in the order of a0, a1 ….
        unchanged : collection of str
            Columns that hold nothing but numbers.
        """
        columns = {"y": key(self.table[self.schema.target], self.target)}
        for position, name in enumerate(names):
            if name in unchanged:
                columns[f"a{position}"] = self.table[name]
            elif isinstance(self.schema[name], Numeric):
                tokens = self.schema.missing_tokens
                columns[f"a{position}"], wrong = numbers(self.table, name, tokens)
                if wrong is not None:
                    columns[f"t{position}"] = wrong
            else:
                columns[f"a{position}"] = key(self.table[name], self.cells[name])
        return self.table.select(**columns)

    def by_level(self, name: str) -> Any:
        """How many rows of each class have each grid index of a numeric feature."""
        numeric = [feature for feature in self.numeric if feature.name == name]
        rows = self._numbers(numeric)
        rows = rows.mutate(**self._clipped(rows, numeric, True))
        rows = rows.filter(rows.v0.notnull()).select("y", k="v0")
        return rows.group_by("y", "k").agg(n=rows.count())

    def _sum(self, rows: Any, what: Any = None) -> Any:
        """Sum over rows, each as often as it weighs: of numbers, or of ones."""
        import ibis

        if self.weights is None:
            if what is None:
                return rows.count()
            total = what.sum()
        elif what is None:
            total = rows.w.sum()
        else:
            total = (what * rows.w).sum()
        return ibis.coalesce(total, 0)

    def _numbers(self, numeric: Sequence[Numeric], raw: Mapping[str, Any] | None = None) -> Any:
        """Class y, weight w, numbers x0 … (NULL if missing), text t0 … that is not a number."""
        columns = {"y": key(self.table[self.schema.target], self.target), **(raw or {})}
        if self.weights is not None:
            columns["w"] = numbers(self.table, self.weights, self.schema.missing_tokens)[0]
        for j, feature in enumerate(numeric):
            tokens = self.schema.missing_tokens
            columns[f"x{j}"], wrong = numbers(self.table, feature.name, tokens)
            if wrong is not None:
                columns[f"t{j}"] = wrong
        return self.table.select(**columns)

    def _clipped(self, rows: Any, numeric: Sequence[Numeric], grid: bool) -> dict[str, Any]:
        """Numbers v0 … inside their bounds, or their indices on the public grid."""
        import ibis

        found = {}
        for j, feature in enumerate(numeric):
            v = rows[f"x{j}"]
            upper, lower = double(feature.upper), double(feature.lower)
            outside = [(v > upper, upper)] if math.isfinite(feature.upper) else []
            outside += [(v < lower, lower)] if math.isfinite(feature.lower) else []
            v = ibis.cases(*outside, else_=v) if outside else v
            if grid:
                public = Grid.of(feature)
                v = (v - double(public.lower)) / double(public.step) + double(0.5)
                v = v.floor().cast("int64")
            found[f"v{j}"] = v
        return found


def not_a_number(name: str, text: str) -> SchemaError:
    """The error about text in a column of numbers."""
    return SchemaError(f"{name}: {short(text)} is not a number; {NUMBER}")


def check_numbers(rows: Queries, numeric: Sequence[Numeric], result: Any) -> None:
    """Hold the extremes of numeric columns against the schema, as if they were the columns."""
    some = {
        name: [value for value in result.column(name).to_pylist() if value is not None]
        for name in result.column_names
    }
    if rows.weights is not None and (
        sum(some["wn"]) < sum(some["rows"])
        or min(some["wlo"], default=0.0) < 0
        or math.isinf(max(some["whi"], default=0.0))
    ):
        raise SchemaError(f"{rows.weights}: weights must be finite and not negative")
    for j, feature in enumerate(numeric):
        if wrong := some.get(f"t{j}"):
            raise not_a_number(feature.name, wrong[0])
        extremes = [*some[f"lo{j}"], *some[f"hi{j}"], *some.get(f"o{j}", [])]
        if sum(some[f"p{j}"]) < sum(some["rows"]):
            extremes.append(math.nan)
        found = np.array(extremes, dtype=np.float64)
        if not feature.bounded:
            refuse_infinity(found[:, None], [feature.name])
        numbers_of(feature, found, (), rows.schema.outliers)
