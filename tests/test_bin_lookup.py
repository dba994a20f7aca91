"""The bin of a number by lookup is the one that a search among the edges gives, wherever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Numeric, Schema
from discreet.schema import bin_lookup
from discreet.schema.bin_lookup import find_bins
from discreet.schema.cells import Cells

ANY = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-310, 1.7e308, -1.7e308, 2.0**53]
"""Numbers that are often forgotten."""


def around(edges):
    """The edges, their neighbours among the floats, numbers between and far from them."""
    edges = np.asarray(edges)
    inside = np.random.default_rng(len(edges)).uniform(0, 1, 500)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = edges[0] + inside * (edges[-1] - edges[0])
        middles = edges[:-1] / 2 + edges[1:] / 2
    steps = [edges]
    for way in (-np.inf, np.inf):
        step = edges
        for _ in range(3):
            step = np.nextafter(step, way)
            steps.append(step)
    return np.concatenate([*steps, scaled, middles, ANY])


def repeat_to_lookup(edges, numbers):
    """So many numbers that they are looked up; of fewer each is searched for."""
    return np.resize(numbers, bin_lookup._compute_step_count(len(edges)) + len(numbers))


def agrees(edges, numbers, function=find_bins):
    edges = tuple(map(float, edges))
    many = repeat_to_lookup(edges, numbers)
    expected = np.searchsorted(np.array(edges[1:-1]), many, side="right")
    return np.array_equal(function(edges, many), expected)


EDGES = [
    np.linspace(-8, 8, 65),
    np.arange(1025) / 1024 * 0.1 + 0.3,
    -8 + np.arange(17) * (16 / 17),
    [0, 1, 4, 16, 64, 256, 1024, 2048, 3072, 4096],  # narrow near zero: several in a step
    np.sort(np.concatenate([np.linspace(0, 1, 65), 1 / 64 / 4.0 ** np.arange(1, 40)])),
    1e16 + 2 * np.arange(9),  # as close as floats are
    np.array([0, 1, 2, 3]) * 5e-324,
    np.linspace(0, 1, 9) * 1e-300,
    np.linspace(-1, 1, 9) * 1.7e308,  # its range is infinite
    np.linspace(0, 1, 9) * 1.7e308,
    [-np.inf, 0, 1, np.inf],
    [0, 1],
    np.unique(np.random.default_rng(0).normal(size=3000)),
]


@pytest.mark.parametrize("edges", EDGES, ids=range(len(EDGES)))
def test_edges_and_their_neighbours(edges):
    assert agrees(edges, around(edges))


@given(
    st.lists(
        st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.floats(-10, 10)),
        min_size=2, max_size=40, unique_by=lambda edge: edge + 0.0,
    ),
    st.lists(st.floats(), max_size=20),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_edges_and_any_numbers(edges, numbers):
    edges = sorted(edges)
    assert agrees(edges, np.concatenate([around(edges), numbers]))


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e9), st.integers(1, 3000))
@settings(max_examples=40, deadline=None)
def test_equal_widths_of_any_size(lower, width, bins):
    feature = Numeric("x", lower, lower + max(width, abs(lower) * 1e-9))
    schema = Schema([feature], "y", [0, 1], outliers="clip")
    cells = Cells.from_schema(schema, "x", {"x": bins})
    numbers = around(cells.edges)
    many = repeat_to_lookup(cells.edges, numbers)
    expected = np.searchsorted(cells.edges[1:-1], many.clip(feature.lower, feature.upper), "right")
    expected[np.isnan(many)] = cells.missing_index
    np.testing.assert_array_equal(cells.encode_column(many), expected)
    np.testing.assert_array_equal(cells.encode_column(many[:7]), expected[:7])


def test_twin_a_division_without_a_comparison():
    """Known bad: what a division gives is one bin off next to an edge."""

    def divide(edges, numbers):
        bins, inside = len(edges) - 1, np.nan_to_num(numbers, nan=edges[-1])
        scaled = (np.clip(inside, edges[0], edges[-1]) - edges[0]) / (edges[-1] - edges[0]) * bins
        return np.minimum(scaled.astype(int), bins - 1)

    assert not agrees(EDGES[1], around(EDGES[1]), divide)


def test_twin_a_table_that_does_not_look_further(monkeypatch):
    """Known bad: a step's own bins only, which a rounded position misses."""

    class Narrow(bin_lookup.BinLookup):
        def __init__(self, edges, step_count):
            super().__init__(edges, step_count)
            points = edges[0] + (edges[-1] - edges[0]) * np.arange(step_count + 1) / step_count
            self.low_bins = np.searchsorted(self.inner_edges, points, "right").astype(np.int32)
            self.next_edges = np.full(len(edges) - 1, np.inf)

    monkeypatch.setattr(bin_lookup, "BinLookup", Narrow)
    bin_lookup._build_lookup.cache_clear()
    try:
        assert not agrees(EDGES[1], around(EDGES[1]))
    finally:
        bin_lookup._build_lookup.cache_clear()


def test_columns_of_a_matrix_are_as_good_as_in_one_piece():
    numbers = np.random.default_rng(0).uniform(-1, 2, (9000, 3))
    edges = tuple(np.linspace(0, 1, 33).tolist())
    for column in (numbers[:, 1], numbers[::-1, 2], np.asfortranarray(numbers)[:, 0]):
        np.testing.assert_array_equal(find_bins(edges, column), find_bins(edges, column.copy()))
