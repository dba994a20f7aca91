import math
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from discreet import Categorical, Numeric, Schema, SchemaError, estimate
from discreet.schema.cells import (
    Cells,
    Grid,
    compute_equal_width_edges,
    encode_classes,
    get_columns,
    parse_numbers,
)
from discreet.tables.in_memory import count_arrays


def schema(**options):
    features = [
        Numeric("age", 0, 10),
        Numeric("kids", 0, 5, integer=True, optional=False),
        Categorical("colour", ["red", "blue"]),
        Categorical("flag", [True, False], optional=False),
    ]
    return Schema(features, "y", ["no", "yes"], **options)


def test_cells_are_listed_in_public_order():
    assert Cells.from_schema(schema(), "colour").labels == ("red", "blue", "(missing)")
    assert Cells.from_schema(schema(unseen="other"), "colour").labels[-2:] == (
        "(other)",
        "(missing)",
    )
    assert Cells.from_schema(schema(), "flag").labels == ("true", "false")
    assert Cells.from_schema(schema(), "age", 2).labels == ("0 to 5", "5 to 10", "(missing)")


@pytest.mark.parametrize(
    ("value", "cell"),
    [("red", 0), ("blue", 1), (None, 2), (math.nan, 2), ("", 2), ("?", 2), (pd.NA, 2), (pd.NaT, 2)],
)
def test_one_value_and_a_whole_column_agree(value, cell):
    cells = Cells.from_schema(schema(missing_tokens=["?"]), "colour")
    assert cells.encode_value(value) == cell
    assert cells.encode_column(np.array([value, "red"], dtype=object)).tolist() == [cell, 0]


@pytest.mark.parametrize("value", [True, np.True_, "true", 1.0])
def test_booleans_are_recognised(value):
    if value == 1.0 and not isinstance(value, (bool, np.bool_, str)):
        with pytest.raises(SchemaError, match="not one of the public values"):
            Cells.from_schema(schema(), "flag").encode_value(value)
    else:
        assert Cells.from_schema(schema(), "flag").encode_value(value) == 0


def test_boolean_data_meets_numbers_or_words_in_the_schema():
    for domain in (["False", "True"], [0, 1], ["0", "1"], ["false", "true"]):
        cells = Cells(Categorical("f", domain))
        assert cells.encode_column(np.array([True, False])).tolist() == [1, 0]
    assert Cells(Categorical("f", [False, True])).encode_column(["True", "false"]).tolist() == [
        1,
        0,
    ]


@pytest.mark.parametrize("values", [[1e308, 1e308], [np.inf, -np.inf]])
def test_sums_print_no_warning_that_depends_on_the_data(values):
    """A value near the largest double would show in a log that numpy wrote."""
    schema = Schema([Numeric("x")], "y", [0, 1])
    with warnings.catch_warnings(), suppress(SchemaError):  # of infinity
        warnings.simplefilter("error")
        moments = count_arrays(schema, {"x": np.array(values)}, np.arange(2)).moments["x"]
        assert moments.mean.tolist() == values


def test_infinity_needs_bounds():
    schema = Schema([Numeric("x")], "y", [0, 1])
    codes = np.zeros(3, dtype=np.int32)
    with pytest.raises(SchemaError, match="x: infinity is not allowed without bounds"):
        count_arrays(schema, {"x": np.array([np.inf, -np.inf, np.nan])}, codes)
    model = estimate(count_arrays(schema, {"x": np.array([1e3, np.nan, 1.0])}, codes))
    with pytest.raises(SchemaError, match="x: infinity is not allowed without bounds"):
        model.predict([[np.inf]])


def test_small_whole_numbers_are_looked_up_without_hashing():
    cells = Cells(Categorical("k", [3, -1, 7]))
    column = np.array([7, 3, -1, -1], dtype=np.int8)
    assert cells.encode_column(column).tolist() == [2, 0, 1, 1]
    assert cells.encode_column(np.array([250, 3], dtype=np.uint8)[1:]).tolist() == [0]
    with pytest.raises(SchemaError, match="5 is not one of"):
        cells.encode_column(np.array([3, 5]))
    wide = Cells(Categorical("k", [-128, 127]))
    assert wide.encode_column(np.array([-128, 127], dtype=np.int8)).tolist() == [0, 1]
    assert wide.encode_column(np.array([], dtype=np.int8)).tolist() == []


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("colour", ["green"], "'green' is not one of the public values (red, blue)"),
        ("flag", [None], "missing although the feature is not optional"),
        ("kids", [None], "missing although the feature is not optional"),
        ("kids", [1.5], "not a whole number although its integer is true"),
        ("age", [140], "140 is outside the public bounds [0, 10]; widen the schema, or"),
        ("age", [-1, 3], "-1 is outside"),
        ("age", [math.inf], "inf is outside"),
        ("age", ["young"], "'young' is not a number; if it means missing"),
    ],
)
def test_what_does_not_fit_is_named(name, values, says):
    with pytest.raises(SchemaError) as error:
        Cells.from_schema(schema(), name).encode_column(np.array(values, dtype=object))
    assert says in str(error.value)


def test_clip_and_other():
    lenient = schema(outliers="clip", unseen="other")
    assert Cells.from_schema(lenient, "age", 2).encode_column(
        np.array([-7.0, 99, np.inf])
    ).tolist() == [0, 1, 1]
    assert Cells.from_schema(lenient, "colour").encode_column(["green", "red"]).tolist() == [2, 0]


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=30),
    st.integers(1, 20),
)
def test_bins_cover_the_bounds_and_follow_their_edges(values, bins):
    cells = Cells.from_schema(schema(), "age", bins)
    codes = cells.encode_column(np.array(values))
    for value, code in zip(values, codes, strict=True):
        assert cells.edges[code] <= value
        assert value < cells.edges[code + 1] or code == bins - 1


def test_whole_numbers_get_whole_bins():
    kids = Numeric("k", 0, 5, integer=True)
    assert compute_equal_width_edges(kids, 3) == (0, 2, 4, 6)
    assert compute_equal_width_edges(kids, 99) == (0, 1, 2, 3, 4, 5, 6)
    assert Cells(kids, compute_equal_width_edges(kids, 3)).labels[:3] == (
        "0 to 1",
        "2 to 3",
        "4 to 5",
    )
    assert Cells(kids, compute_equal_width_edges(kids, 99)).encode_column([0, 5]).tolist() == [0, 5]


def test_bad_bins_are_refused():
    with pytest.raises(SchemaError, match="from 1 to"):
        compute_equal_width_edges(Numeric("a", 0, 1), 0)
    with pytest.raises(SchemaError, match="no public bounds"):
        compute_equal_width_edges(Numeric("a"), 4)
    with pytest.raises(SchemaError, match="increase strictly inside"):
        Cells.from_schema(schema(), "age", {"age": [5, 5]})
    with pytest.raises(SchemaError, match="increase strictly inside"):
        Cells.from_schema(schema(), "age", {"age": [50]})


@pytest.mark.slow
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(0, 1), min_size=1))
@example(0.7304976826528774, 0.5, [0.0])  # a span of one bit more than a half
def test_the_grid_is_fine_and_its_step_a_power_of_two(lower, span, shares):
    feature = Numeric("x", lower, lower + span)
    grid = Grid.from_feature(feature)
    assert math.frexp(grid.step)[0] == 0.5
    assert grid.levels <= 1 << 16
    values = np.array([lower + span * share for share in shares])
    index = grid.to_indices(np.clip(values, feature.lower, feature.upper))
    assert ((index >= 0) & (index <= grid.levels)).all()
    largest_gap = np.abs(grid.lower + grid.step * index - values).max()
    assert largest_gap <= grid.step / 2 * (1 + 1e-6) + 1e-9 * abs(lower)


def test_whole_numbers_lie_on_their_grid():
    grid = Grid.from_feature(Numeric("age", 17, 100, integer=True))
    assert grid.step == 1
    assert grid.to_indices(np.array([17.0, 18, 100])).tolist() == [0, 1, 83]
    with pytest.raises(SchemaError, match="no grid"):
        Grid.from_feature(Numeric("free"))


def test_classes_are_strict():
    public = schema()
    assert encode_classes(public, ["yes", "no"]).tolist() == [1, 0]
    with pytest.raises(SchemaError, match="a row has no class"):
        encode_classes(public, np.array(["yes", None], dtype=object))
    with pytest.raises(SchemaError, match=r"'maybe' is not one of the public classes \(no, yes\)"):
        encode_classes(public, ["maybe"])


def test_columns_of_every_shape():
    import polars as pl
    import pyarrow as pa

    content = {"b": [1.0, 2.0], "a": ["x", "y"], "more": [0, 0]}
    shapes = [pd.DataFrame(content), pl.DataFrame(content), pa.table(content), content]
    shapes.append([{"a": "x", "b": 1.0}, {"a": "y", "b": 2.0}])
    for rows in shapes:
        columns = get_columns(rows, ["a", "b"])
        assert Cells(Categorical("a", ["x", "y"])).encode_column(columns["a"]).tolist() == [0, 1]
        assert parse_numbers(Numeric("b", 0, 5), columns["b"]).tolist() == [1, 2]
    with pytest.raises(SchemaError, match="lacks the columns c, d; it has"):
        get_columns(shapes[0], ["a", "c", "d"])
    with pytest.raises(SchemaError, match="does not fit the 3 features"):
        get_columns(np.zeros((4, 2)), ["a", "b", "c"])
