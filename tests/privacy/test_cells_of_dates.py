"""Claim: the cell of a date is a function of that value alone, whatever the other rows hold.

A library that guesses the format of a column lets one row decide whether 03.02. is in March.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Date, DatePart, Schema, SchemaError
from discreet.schema import cells as cells_module
from discreet.schema.cells import Cells
from discreet.tables import CountRequest, count

FEATURES = [
    Date("d", "1990-01-01", "2030-12-31", by="month"),
    DatePart("d", by="weekday"),
    DatePart("d", by="month of year"),
    DatePart("d", by="hour"),
]
moments = st.datetimes()
texts = st.one_of(
    moments.map(lambda moment: moment.isoformat()),
    moments.map(lambda moment: f"{moment.isoformat(' ')}+05:30"),
    st.dates().map(str),
    st.sampled_from(["", "?", "2020-02-29", "03.02.2021", "02/03/2021", "1614729600", "Monday"]),
)
values = st.one_of(texts, moments, st.dates(), st.none())


def encode(feature: Date | DatePart, rows: list[Any]) -> list[int]:
    schema = Schema([feature], "c", ["n"], "skip", "clip", "error", ["?"], inferred=True)
    return Cells.from_schema(schema, feature, 8).encode_column(rows).tolist()


def encode_each(feature: Date | DatePart, rows: list[Any]) -> list[int]:
    return [encode(feature, [row])[0] for row in rows]


def check(feature: Date | DatePart, rows: list[Any]) -> None:
    try:
        wanted = encode_each(feature, rows)
    except SchemaError:
        with pytest.raises(SchemaError):
            encode(feature, rows)
    else:
        assert encode(feature, rows) == wanted


@given(st.sampled_from(FEATURES), st.lists(values, min_size=1, max_size=6))
def test_any_rows_have_the_cells_that_each_has_alone(feature: Any, rows: list[Any]) -> None:
    check(feature, rows)


def test_the_known_bad_twin_reads_all_rows_in_the_format_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def guess(feature: Any, column: Any, tokens: Any = ()) -> Any:
        moments = pd.to_datetime(pd.Series(list(column)), dayfirst=True, errors="coerce")
        hours = moments.to_numpy().astype("datetime64[h]").astype(np.float64)
        return np.where(moments.isna(), np.nan, hours)

    rows = ["2021-02-03", "03.02.2021"]
    check(FEATURES[0], rows)
    monkeypatch.setattr(cells_module, "parse_hours", guess)  # bad twin
    with pytest.raises(AssertionError):
        check(FEATURES[0], rows)


@pytest.mark.slow
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(FEATURES), st.lists(texts, min_size=1, max_size=5))
def test_the_same_in_frames_that_are_counted_by_an_engine(feature: Any, rows: list[str]) -> None:
    schema = Schema([feature], "c", ["n", "y"], "skip", "clip", "error", ["?"])
    columns = {"d": rows, "c": ["n"] * len(rows)}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        try:
            wanted = encode_each(feature, rows)
        except SchemaError:
            with pytest.raises(SchemaError, match="d: "):
                count(frame, schema, CountRequest(bins=8))
        else:
            table = count(frame, schema, CountRequest(bins=8)).tables["d"]
            assert (
                table.counts[0].tolist() == np.bincount(wanted, minlength=table.cells.size).tolist()
            )
