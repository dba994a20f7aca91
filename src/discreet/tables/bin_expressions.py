"""The bins of numbers as expressions of any engine, with the integers of a search among the edges.

Bins of equal width are guessed by one multiplication. The guess may be one off, because it is
rounded, and is compared with the two edges around it, which the engine computes as
:func:`~discreet.schema.cells.compute_equal_width_edges` does: lower + (bin * range) / bins. Sums,
products and quotients of doubles are the same on every engine (IEEE 754), so these edges are, too.
Where that could fail, and for all other edges, there is one comparison for each.

Nothing is computed that may become infinite or zero: PostgreSQL refuses both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.schema.cells import Cells, compute_equal_width_edges
from discreet.schema.dates import Date
from discreet.schema.schema import Numeric
from discreet.tables.columns import make_double

__all__ = ["EqualWidths", "add_bin_columns"]

MAX_RANGE_TIMES_BINS = 1e300
"""Range times bins up to which no product becomes infinite."""
MIN_WIDTH = 1e-290
"""Least width of a bin, so that no quotient becomes zero."""
MIN_FLOATS_PER_BIN = 1 << 10
"""Least number of floats in a bin, so that a rounded edge is next to where it should be."""
MAX_WHOLE = 2.0**52
"""Up to here differences of whole numbers are exact."""


@dataclass(frozen=True)
class EqualWidths:
    """Bins of equal width: bin k > 0 begins at origin + (k * bin_range) / bin_count.

    Whole numbers are counted from their lower bound on, so that edges need not be rounded up to
    whole numbers: a whole number reaches both or neither.

    Parameters
    ----------
    lower, upper : float
        The public bounds.
    shift : float
        What is subtracted from a number first.
    origin, bin_range : float
        Of the shifted numbers.
    bin_count : int
        At least two.
    """

    lower: float
    upper: float
    shift: float
    origin: float
    bin_range: float
    bin_count: int

    @classmethod
    def from_cells(cls, cells: Cells) -> EqualWidths | None:
        """The bins of a numeric feature; None where they are not equal, or not safely so."""
        feature, bin_count = cells.feature, cells.value_count
        assert isinstance(feature, Numeric)
        if not feature.is_bounded or bin_count < 2 or isinstance(feature, Date):
            return None
        if cells.edges != compute_equal_width_edges(feature, bin_count):
            return None
        bin_range = feature.upper - feature.lower + feature.integer
        largest = max(abs(feature.lower), abs(feature.upper))
        is_safe = (
            bin_range * bin_count <= MAX_RANGE_TIMES_BINS
            and bin_range / bin_count >= max(MIN_WIDTH, MIN_FLOATS_PER_BIN * np.spacing(largest))
            and not (feature.integer and largest > MAX_WHOLE)
        )
        if not is_safe:
            return None
        shift, origin = (feature.lower, 0.0) if feature.integer else (0.0, feature.lower)
        return cls(feature.lower, feature.upper, shift, origin, bin_range, bin_count)

    @property
    def first_middle(self) -> float:
        """The middle of the first bin."""
        return self.origin + self.bin_range / self.bin_count / 2

    @property
    def last_edge(self) -> float:
        """The left edge of the last bin."""
        return self.origin + (self.bin_count - 1) * self.bin_range / self.bin_count

    def shift_number(self, number: Any) -> Any:
        """The number inside its bounds, less the shift."""
        import ibis

        lower, upper = make_double(self.lower), make_double(self.upper)
        clipped = ibis.cases((number < lower, lower), (number > upper, upper), else_=number)
        return clipped - make_double(self.shift) if self.shift else clipped

    def guess_bin(self, number: Any) -> Any:
        """The bin of a shifted number as a double, at most one off."""
        import ibis

        bins_per_unit = make_double(self.bin_count / self.bin_range)
        # next to the origin the product might become zero
        return ibis.ifelse(
            number < make_double(self.first_middle),
            make_double(0.0),
            ((number - make_double(self.origin)) * bins_per_unit)
            .floor()
            .cast("int64")
            .cast("float64"),
        )

    def correct_guess(self, number: Any, guessed_bin: Any) -> Any:
        """The bin, by comparison of a shifted number with the edges around its guess."""
        import ibis

        next_bin = guessed_bin + make_double(1.0)
        bin_number = ibis.cases(
            (number < make_double(self.first_middle), make_double(0.0)),
            (number >= make_double(self.last_edge), make_double(self.bin_count - 1.0)),
            (number < self._compute_edge(guessed_bin), guessed_bin - make_double(1.0)),
            (number >= self._compute_edge(next_bin), next_bin),
            else_=guessed_bin,
        )
        return bin_number.cast("int32")

    def _compute_edge(self, bin_number: Any) -> Any:
        """The left edge of a bin, rounded as the edges of the schema are."""
        edge = bin_number * make_double(self.bin_range) / make_double(float(self.bin_count))
        return make_double(self.origin) + edge if self.origin else edge


def add_bin_columns(rows: Any, cells: Mapping[str, tuple[str, Cells]]) -> Any:
    """Rows with the cells of numbers; what is NULL gets the cell of missing values, or -1.

    Parameters
    ----------
    rows : ibis.Table
    cells : mapping of column to (column, Cells)
        From the name of each new column to its numbers and their cells.
    """
    import ibis

    widths = {name: EqualWidths.from_cells(own_cells) for name, (_, own_cells) in cells.items()}
    equal_widths = {name: width for name, width in widths.items() if width is not None}
    # step by step, so that no expression has another one many times
    shifted_numbers = {
        f"{name}_shifted": width.shift_number(rows[cells[name][0]])
        for name, width in equal_widths.items()
    }
    rows = rows.mutate(**shifted_numbers) if shifted_numbers else rows
    guessed_bins = {
        f"{name}_guess": width.guess_bin(rows[f"{name}_shifted"])
        for name, width in equal_widths.items()
    }
    rows = rows.mutate(**guessed_bins) if guessed_bins else rows
    bin_columns = {}
    for name, (number_name, own_cells) in cells.items():
        number = rows[number_name]
        if name in equal_widths:
            bin_code = equal_widths[name].correct_guess(
                rows[f"{name}_shifted"], rows[f"{name}_guess"]
            )
        else:
            bin_code = _compare_with_edges(number, own_cells.edges[1:-1])
        missing_code = -1 if own_cells.missing_index is None else own_cells.missing_index
        bin_columns[name] = number.isnull().ifelse(ibis.literal(missing_code, "int32"), bin_code)
    return rows.mutate(**bin_columns)


def _compare_with_edges(number: Any, inner_edges: Sequence[float]) -> Any:
    """The number of inner edges that a number reaches, in log2 as many comparisons."""
    import ibis

    bin_codes = [ibis.literal(bin_code, "int32") for bin_code in range(len(inner_edges) + 1)]
    while inner_edges:  # the edge between two neighbours separates them; then between two pairs, …
        merged_codes = [
            ibis.ifelse(number < make_double(edge), lower_code, upper_code)
            for edge, lower_code, upper_code in zip(
                inner_edges[::2], bin_codes[::2], bin_codes[1::2], strict=False
            )
        ]
        bin_codes = merged_codes + bin_codes[2 * len(merged_codes) :]
        inner_edges = inner_edges[1::2]
    return bin_codes[0]
