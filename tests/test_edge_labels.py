"""Labels of bins are short, near the edges, and tell neighbours apart."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Categorical, Date, Numeric, Schema
from discreet.schema.cells import Cells
from discreet.schema.edge_labels import MAX_SHIFT_PART, format_bin_labels


def read_edges(labels: list[str]) -> list[tuple[float, float]]:
    return [(float(low), float(high)) for low, high in (label.split(" to ") for label in labels)]


@pytest.mark.slow
@given(
    st.floats(-1e9, 1e9),
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20),
)
def test_rounded_edges_are_near_and_the_same_on_both_sides(
    first: float, widths: list[float]
) -> None:
    edges = [first, *(first + total for total in np.cumsum(widths).tolist())]
    if any(high <= low for low, high in pairwise(edges)):
        return
    labels = format_bin_labels(edges)
    assert len(set(labels)) == len(labels)
    read = read_edges(labels)
    for (_, high), (next_low, _) in pairwise(read):
        assert high == next_low
    for (low, high), (rounded_low, rounded_high) in zip(pairwise(edges), read, strict=True):
        width = high - low
        assert rounded_low < rounded_high
        assert abs(rounded_low - low) <= MAX_SHIFT_PART * width + 1e-15 * abs(low)
        assert abs(rounded_high - high) <= MAX_SHIFT_PART * width + 1e-15 * abs(high)


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([999999941.0, 999999950.5], ["999999941 to 999999950.5"]),
        ([0.2792727, 0.3819, 0.4845], ["0.28 to 0.38", "0.38 to 0.48"]),
        ([0.0, 1 / 3, 2 / 3, 1.0], ["0 to 0.33", "0.33 to 0.67", "0.67 to 1"]),
        ([-1e6, 0.0, 1e6], ["-1000000 to 0", "0 to 1000000"]),
        ([0.0, 1e-7, 2e-7], ["0 to 1e-07", "1e-07 to 2e-07"]),
    ],
)
def test_edges_are_written_as_a_person_would(edges: list[float], labels: list[str]) -> None:
    assert format_bin_labels(edges) == labels


def test_whole_numbers_in_narrow_bins_are_exact() -> None:
    schema = Schema(
        [
            Numeric("age", 18, 97, integer=True),
            Numeric("income", 0, 1_000_000, integer=True),
            Categorical("town", ["a"]),
        ],
        "y",
        ["n", "p"],
    )
    age = Cells.from_schema(schema, "age", 4)
    assert age.rounded_labels == ("18 to 37", "38 to 57", "58 to 77", "78 to 97", "(missing)")
    assert age.rounded_labels == age.labels
    income = Cells.from_schema(schema, "income", 3)
    assert income.rounded_labels[:2] == ("0 to 330000", "330000 to 670000")
    assert Cells.from_schema(schema, "town").rounded_labels == ("a", "(missing)")


def test_bins_of_dates_are_dates() -> None:
    schema = Schema([Date("joined", "2020-01-01", "2021-12-31", by="month")], "y", ["n", "p"])
    joined = Cells.from_schema(schema, "joined", 2)
    assert joined.rounded_labels == ("2020-01 to 2020-12", "2021-01 to 2021-12", "(missing)")
