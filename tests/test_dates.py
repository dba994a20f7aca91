"""Dates as features: what may be written, where bins begin, what is shown, how they are used."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import CentralNB, Date, DatePart, DiscreetError, MixedNB, NaiveBayesModel, Schema
from discreet.errors import PrivacyWarning, SchemaError
from discreet.local.planning import compute_quantile_cuts
from discreet.model.export import to_onnx
from discreet.model.sampling import sample_records
from discreet.schema.cells import Cells, compute_near_zero_cuts, parse_numbers
from discreet.schema.dates import read_hour
from discreet.schema.schema import Feature
from discreet.schema.short_form import format_feature

JOINED = Date("joined", "2015-01-15", "2016-12-31", by="month")


def read_line(line: str) -> Feature:
    return Schema.from_yaml(f"features:\n  joined: {line}\ntarget: {{c: [no, yes]}}\n")["joined"]


LINES: dict[str, Feature] = {
    "2015-01-15..2016-12-31 by month": JOINED,
    "2015-01-15 .. 2016-12-31  by month": JOINED,
    "2015-01-01..2026-12-31": Date("joined", "2015-01-01", "2026-12-31", by="day"),
    "0001-01-01..9999-12-31 by year": Date("joined", date.min, date.max, by="year"),
    "2015-01-01..2026-12-31 by day, never missing": Date(
        "joined", "2015-01-01", "2026-12-31", optional=False
    ),
    "by weekday": DatePart("joined", by="weekday"),
    "by month of year, never missing": DatePart("joined", "month of year", optional=False),
    "by hour": DatePart("joined", by="hour"),
    "{kind: date, by: month, lower: 2015-01-15, upper: 2016-12-31}": JOINED,
    "{kind: date, by: hour}": DatePart("joined", by="hour"),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_date(line: str) -> None:
    feature = read_line(line)
    assert feature == LINES[line]
    assert read_line(format_feature(feature)) == feature
    schema = Schema([feature], "c", ["no", "yes"])
    assert Schema.from_json(schema.to_json()).digest == schema.digest
    assert Schema.from_yaml(schema.to_yaml()).digest == schema.digest


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("2015-02-30..2016-12-31", "joined: lower is '2015-02-30'; write a day you know, such as"),
        ("2016-12-31..2015-01-01", "joined: lower 2016-12-31 is not before upper 2015-01-01; swap"),
        ("2015-01-01..2016-12-31 by week", "joined: by is 'week'; write one of day, month, year, "),
        ("by week", "joined: by is 'week'; write one of day, month, year, weekday, month of year"),
        ("by month", "joined: a date needs its first and last day, such as 2015-01-01..2026-12-31"),
        ("2015-01-01..2016-12-31 by hour", "bounds do not go with by hour; write by hour alone"),
        ("2015-01-01", "joined: '2015-01-01' does not say what the column may hold"),
        ("2015..2016 by month", "write joined: 2015-01-01..2016-12-31 by month"),
        ("2015-01-01..2016-12-31 month", "write joined: 2015-01-01..2016-12-31 by month"),
        ("2015-01-01..2016-12-31, weekday", "write joined: by weekday"),
        ("weekday", "write joined: by weekday"),
        ("date", "2015-01-01..2026-12-31 by month or by weekday for dates"),
        ("{kind: date}", "joined: a date needs its first and last day"),
        ("{kind: date, lower: 0, upper: 9}", "joined: lower is 0"),
    ],
)
def test_a_wrong_line_says_what_to_write(line: str, says: str) -> None:
    with pytest.raises(DiscreetError) as raised:
        read_line(line)
    assert says in str(raised.value)


def test_bins_begin_where_units_begin_and_are_named_after_them() -> None:
    schema = Schema([JOINED], "c", ["no", "yes"])
    cells = Cells.from_schema(schema, JOINED, 8)
    assert cells.labels[0] == "2015-01 to 2015-03"
    assert cells.labels[-2:] == ("2016-10 to 2016-12", "(missing)")
    starts = [JOINED.first + timedelta(days=edge) for edge in cells.edges[1:-1]]
    assert all(start.day == 1 for start in starts)
    assert Cells.from_schema(schema, JOINED, 100).labels[2] == "2015-03"
    assert len(Cells.from_schema(schema, JOINED, 100).labels) == 25
    assert Cells.from_schema(schema, JOINED, {"joined": ["2015-03-01"]}).edges == (0, 45, 717)
    with pytest.raises(SchemaError, match="a cut point does not begin a month"):
        Cells.from_schema(schema, JOINED, {"joined": ["2015-03-02"]})
    with pytest.raises(SchemaError, match=r"strictly inside \[2015-01-15, 2016-12-31\]"):
        Cells.from_schema(schema, JOINED, {"joined": ["2015-01-15"]})
    assert compute_near_zero_cuts(JOINED, 90.0) == []
    sample = {"joined": ["2015-02-07", "2015-02-09", "2016-05-05", "2016-06-06"]}
    assert compute_quantile_cuts(schema, sample, 4) == {"joined": [17.0, 229.0, 472.0]}


def test_what_lies_outside_is_refused_or_moved_and_shown_as_a_date() -> None:
    with pytest.raises(SchemaError) as raised:
        parse_numbers(JOINED, ["2015-02-01", "1999-12-31"])
    assert str(raised.value).startswith(
        "joined: 1999-12-31 is outside the public bounds [2015-01-15, 2016-12-31]; widen"
    )
    column = ["2015-01-14 23:59:59", "2017-01-01", "2015-01-16", None]
    assert parse_numbers(JOINED, column, (), "clip").tolist()[:3] == [0, 716, 1]
    required = Date("joined", "2015-01-15", "2016-12-31", optional=False)
    for missing in ([None], pd.Series([pd.NaT]), np.array(["NaT"], dtype="datetime64[D]")):
        with pytest.raises(SchemaError, match="joined: a value is missing"):
            parse_numbers(required, missing)
        assert np.isnan(parse_numbers(JOINED, missing)[0])


def test_one_malformed_date_among_many_is_shown() -> None:
    column = pd.Series(["2015-02-01"] * 200_000 + ["2015-02-30"] + ["2015-02-01"] * 5)
    with pytest.raises(SchemaError, match="joined: '2015-02-30' is not a date; dates are written"):
        parse_numbers(JOINED, column)


@pytest.mark.parametrize(
    ("value", "hour"),
    [
        (date(1970, 1, 2), 24),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        (datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=1))), -1),
        (datetime(1970, 1, 1, 1, 0, 30, tzinfo=timezone(timedelta(seconds=31))), 0),
        (datetime.max, 24 * 2_932_896 + 23),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), None),
        (np.datetime64("1969-12-31T23:59:59.999999999"), -1),
        (np.datetime64("10000-01-01"), None),
        (pd.Timestamp("1970-01-01 00:30", tz="Asia/Kolkata"), -5),
        (0, None),
        (0.5, None),
        (True, None),
        (b"1970-01-01", None),
        (timedelta(1), None),
        ("1970-01-01t00:00", None),
        ("0001-01-01 00:00+01:00", None),
    ],
)
def test_values_of_other_types(value: Any, hour: int | None) -> None:
    assert read_hour(value) == hour


def make_rows(people: int = 3000) -> tuple[pd.DataFrame, np.ndarray]:
    chance = np.random.default_rng(1)
    days = np.datetime64("2015-01-01") + chance.integers(0, 4000, people)
    hours = days.astype("datetime64[h]") + chance.integers(0, 24, people)
    y = np.where((days > np.datetime64("2020-07-01")) ^ (chance.random(people) < 0.1), "yes", "no")
    text = np.datetime_as_string(hours, unit="m")
    return pd.DataFrame({"joined": days, "visit": hours, "at": text}), y


LINES_OF_ROWS = {
    "features": {
        "joined": "2015-01-01..2026-12-31 by month",
        "visit": "by weekday",
        "at": "by hour",
    },
    "target": {"c": ["no", "yes"]},
}


@pytest.mark.slow
def test_estimators_learn_from_dates_and_explain_by_them(tmp_path: Path) -> None:
    X, y = make_rows()
    central, mixed = CentralNB(epsilon=2.0, schema=LINES_OF_ROWS), MixedNB(schema=LINES_OF_ROWS)
    for estimator in (central, mixed):
        estimator.fit(X, y)
        assert estimator.score(X, y) > 0.8
        assert estimator.score(X.astype({"joined": str}), y) == estimator.score(X, y)
    private = central.model_
    row = {"joined": "2021-05-05", "visit": "2021-05-05", "at": "2021-05-05T10:00Z"}
    assert "joined = 2021-" in str(private.explain(row))
    said = str(mixed.model_.explain(row))
    for line in ("joined = 2021-05-05", "visit = Wednesday", "at = 10:00"):
        assert line in said
    again = NaiveBayesModel.from_json(private.to_json())
    assert (again.predict(X) == private.predict(X)).all()
    drawn = pd.DataFrame(sample_records(private, 50)).reindex(columns=private.inputs.names)
    assert len(private.predict(drawn)) == 50  # what is drawn is read again
    with pytest.raises(SchemaError, match="joined: ONNX does not read dates"):
        to_onnx(private)
    X.assign(c=y).to_csv(tmp_path / "rows.csv", index=False)
    source = CentralNB(epsilon=2.0, schema=LINES_OF_ROWS).fit_source(str(tmp_path / "rows.csv"))
    assert source.score(X, y) > 0.8
    with pytest.warns(PrivacyWarning, match="the bounds of joined, visit, at"):
        taken = Schema.infer(str(tmp_path / "rows.csv"), "c")
    assert [type(feature) for feature in taken.features] == [Date] * 3


def test_a_part_has_no_cell_for_other_values() -> None:
    part = DatePart("d", by="weekday")
    schema = Schema([part], "c", ["no", "yes"], unseen="other")
    assert Cells.from_schema(schema, part).labels[-2:] == ("Sunday", "(missing)")
    with pytest.raises(SchemaError, match="d: 'Caturday' is not a date"):
        Cells.from_schema(schema, part).encode_value("Caturday")


def test_dates_without_a_schema_say_what_to_write() -> None:
    X, y = make_rows(50)
    with pytest.raises(SchemaError, match=r"such as 2015-01-01\.\.2026-12-31 by month"):
        CentralNB(epsilon=1.0).fit(X, y)
