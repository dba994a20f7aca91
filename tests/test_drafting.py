"""A schema is begun from names and types alone, and is not accepted before it is finished."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Categorical, Date, FormatError, Numeric, Schema, SchemaError
from discreet.files.yaml_text import convert_yaml_to_json
from discreet.schema import drafting
from discreet.schema.drafting import ColumnDraft, SchemaDraft, read_header

FRAME = pd.DataFrame(
    {
        "age": np.array([31, 47], dtype="int32"),
        "income": [1.5, 2.5],
        "smokes": [True, False],
        "colour": pd.Categorical(["red", "blue"]),
        "name": pd.array(["x", "y"], dtype="string"),
        "when": pd.date_range("2020-01-01", periods=2),
        "anything": np.array([1, "x"], dtype=object),
        "ill": ["no", "yes"],
    }
)
KINDS = {
    "age": "numeric",
    "income": "numeric",
    "smokes": "categorical",
    "colour": "categorical",
    "name": "categorical",
    "when": "date",
}


class Closed:
    """A frame that tells names and types, and fails at anything else."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.columns, self.dtypes = frame.columns, frame.dtypes

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "collect_schema"):
            raise AttributeError(name)
        raise AssertionError(f"{name} was looked at")


def test_only_names_and_types_are_looked_at() -> None:
    draft = Schema.from_dtypes(Closed(FRAME), "ill")
    assert draft == Schema.from_dtypes(FRAME.iloc[:0], "ill")
    assert {one.name: one.kind for one in draft.columns} == {**KINDS, "anything": ""}
    assert [one.name for one in draft.columns if one.integer] == ["age"]
    assert "red" not in draft.to_yaml()
    assert "2020" not in draft.to_yaml()


def test_a_draft_that_looks_at_values_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin takes types from the first row."""
    monkeypatch.setattr(
        drafting, "_get_column_types", lambda frame: dict(frame.iloc[:1].dtypes)
    )  # bad twin
    with pytest.raises(AssertionError, match="iloc was looked at"):
        Schema.from_dtypes(Closed(FRAME), "ill")


@pytest.mark.parametrize(
    "frame",
    [
        pl.from_pandas(FRAME.drop(columns="anything")),
        pl.from_pandas(FRAME.drop(columns="anything")).lazy(),
        pa.Table.from_pandas(FRAME.drop(columns="anything")),
        pa.Table.from_pandas(FRAME.drop(columns="anything")).schema,
    ],
    ids=["polars", "lazy", "arrow", "arrow schema"],
)
def test_every_kind_of_frame_tells_the_same(frame: Any) -> None:
    draft = Schema.from_dtypes(frame, "ill")
    assert {one.name: one.kind for one in draft.columns} == KINDS
    assert [one.values for one in draft.columns] == [None, None, (False, True), None, None, None]


def test_structured_arrays_are_frames_and_other_arrays_are_not() -> None:
    rows = np.zeros(3, dtype=[("age", "u2"), ("size", "f4"), ("ok", "?"), ("ill", "S3")])
    draft = Schema.from_dtypes(rows, "ill")
    assert draft.open_fields == (
        "classes",
        "age: lower",
        "age: upper",
        "size: lower",
        "size: upper",
    )
    for other in (np.zeros((3, 2)), [[1, 2]], "people.csv"):
        with pytest.raises(SchemaError, match="has no names and types"):
            Schema.from_dtypes(other)


def test_categories_of_a_type_are_public_only_if_somebody_says_so() -> None:
    enum = pl.DataFrame({"e": pl.Series(["a"], dtype=pl.Enum(["a", "b"]))})
    for frame, name, values in ((FRAME, "colour", ("blue", "red")), (enum, "e", ("a", "b"))):
        known = {one.name: one.values for one in Schema.from_dtypes(frame).columns}
        assert known[name] is None
        for declared in (True, [name]):
            draft = Schema.from_dtypes(frame, declared=declared)
            assert {one.name: one.values for one in draft.columns}[name] == values
        draft = Schema.from_dtypes(frame, declared=["other"])
        assert {one.name: one.values for one in draft.columns}[name] is None


def test_a_draft_is_finished_by_what_is_known() -> None:
    draft = Schema.from_dtypes(FRAME[["age", "colour", "smokes", "anything", "ill"]])
    known: dict[str, Any] = {
        "classes": ["no", "yes"],
        "bounds": {"age": (0, 120)},
        "values": {"colour": ["red", "blue"], "anything": ["1", "x"]},
    }
    schema = draft.to_schema("ill", **known)
    assert schema == Schema(
        [
            Numeric("age", 0, 120, integer=True),
            Categorical("colour", ["red", "blue"]),
            Categorical("smokes", [False, True]),
            Categorical("anything", ["1", "x"]),
        ],
        "ill",
        ["no", "yes"],
    )
    assert not schema.inferred
    with pytest.raises(SchemaError, match=r"fill in: colour: values, anything: kind$"):
        draft.to_schema("ill", classes=["no", "yes"], bounds={"age": (0, 120)})
    with pytest.raises(SchemaError, match="no column 'agee'"):
        draft.to_schema("ill", **{**known, "bounds": {"agee": (0, 1)}})
    with pytest.raises(SchemaError, match="no column 'sick'; there are age"):
        draft.to_schema("sick")


def test_a_file_is_refused_until_every_place_is_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "people.schema.yaml"
    text = Schema.from_dtypes(FRAME[["age", "anything", "colour", "ill"]]).to_yaml()
    path.write_text(text)
    with pytest.raises(SchemaError) as raised:
        Schema.read(path)
    places = "target, classes, age: lower, age: upper, anything: kind, colour: values, ill: "
    assert str(raised.value).startswith(f"{path}: this schema is not finished; fill in: {places}")
    text = text.replace("{FILL-IN: [FILL-IN]}", "{ill: [no, yes]}")
    text = text.replace("age: FILL-IN..FILL-IN whole", "age: 0..120")
    for name in ("anything: FILL-IN", "colour: [FILL-IN]"):
        text = text.replace(name, f"{name.partition(':')[0]}: [a, b]")
    path.write_text(text)  # the mark of the target's own line may stay
    assert Schema.read(path) == Schema(
        [
            Numeric("age", 0, 120, integer=True),
            Categorical("anything", ["a", "b"]),
            Categorical("colour", ["a", "b"]),
        ],
        "ill",
        ["no", "yes"],
    )


@pytest.mark.parametrize(
    "name", ["age", "my age", "yes", "12", "größe", "a: b", "#x", 'q"q', "-", "é\nf"]
)
def test_every_name_comes_back(name: str) -> None:
    draft = SchemaDraft(
        (ColumnDraft(name, "numeric", bounds=(-0.5, 1e300)),), "the target", ("1", 2)
    )
    schema = Schema.from_json(convert_yaml_to_json(draft.to_yaml(), "schema", True))
    assert schema.names == [name]
    assert schema.features[0] == Numeric(name, -0.5, 1e300)
    assert schema.classes == ("1", 2)
    assert schema.target == "the target"


# ---- files


def test_of_a_csv_file_only_the_header_is_read(tmp_path: Path) -> None:
    """The rows are in a pipe that nobody writes to: whoever waits for them waits for ever."""
    pipe = tmp_path / "people.csv"
    os.mkfifo(pipe)
    writer = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; f = open(sys.argv[1], 'wb', 0);"
            "f.write(b'age,\"in\\ncome\",ill\\r\\n'); time.sleep(60)",
            str(pipe),
        ]
    )
    try:
        assert read_header(str(pipe)) == ["age", "in\ncome", "ill"]
    finally:
        writer.kill()
        writer.wait()


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,b\n1,2\n", ["a", "b"]),
        (b"\xef\xbb\xbfa;b\r\n1;2\r\n", ["a", "b"]),
        (b"a\tb, c\n", ["a", "b, c"]),
        (b'"a,x"|b\n\xff\xfe', ["a,x", "b"]),
        (b"only", ["only"]),
    ],
)
def test_headers(content: bytes, names: list[str], tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert read_header(str(plain)) == read_header(str(packed)) == names
    assert [one.name for one in SchemaDraft.from_source(str(plain)).columns] == names


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "first line is empty"),
        (b"\n1,2\n", "first line is empty"),
        (b"1,2.5,-3e4\n4,5,6\n", "holds numbers, not names"),
        (b"\xff\xfea\x00,\x00\n\x00", "line 1 is not text in UTF-8; save it as UTF-8"),
        (b"a,a\n", "more than one column is named a"),
    ],
)
def test_headers_that_are_none(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises((FormatError, SchemaError), match=says) as raised:
        SchemaDraft.from_source(str(path))
    assert "2.5" not in str(raised.value)  # a first row is private


def test_parquet_and_databases_tell_types(tmp_path: Path) -> None:
    import duckdb

    table = pa.Table.from_pandas(FRAME[["age", "income", "smokes", "name", "ill"]])
    path = tmp_path / "people.parquet"
    pq.write_table(table, path)
    where = tmp_path / "people.duckdb"
    with duckdb.connect(str(where)) as engine:
        engine.execute(f"create table people as select * from '{path}'")
    for draft in (
        SchemaDraft.from_source(str(path), "ill"),
        SchemaDraft.from_source(f"duckdb://{where}", "ill", table="people"),
    ):
        kinds = [(one.name, one.kind, one.integer) for one in draft.columns]
        assert kinds == [
            ("age", "numeric", True),
            ("income", "numeric", False),
            ("smokes", "categorical", False),
            ("name", "categorical", False),
        ]
        assert draft.open_fields[0] == "classes"


def test_a_draft_shows_in_a_line_what_is_left_to_write():
    frame = pd.DataFrame({"age": [1], "city": ["Oslo"], "ill": [True]})
    draft = Schema.from_dtypes(frame, target="ill")
    shown = "SchemaDraft(2 features, target='ill'; fill in: age: lower, age: upper, city: values)"
    assert repr(draft) == shown


def test_a_column_of_dates_becomes_a_date():
    frame = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=2), "ill": [True, False]})
    draft = Schema.from_dtypes(frame, target="ill")
    assert draft.open_fields == ("when: lower", "when: upper")
    assert "  when: FILL-IN..FILL-IN by month  # datetime64[" in draft.to_yaml()
    schema = draft.to_schema(bounds={"when": ("2020-01-01", "2021-12-31")})
    assert schema["when"] == Date("when", "2020-01-01", "2021-12-31", by="month")
    with pytest.raises(SchemaError, match="when: lower is 0; write a day you know, such as 2015"):
        draft.to_schema(bounds={"when": (0, 9)})


def test_a_column_of_durations_is_refused_with_what_to_do_instead():
    frame = pd.DataFrame({"took": pd.to_timedelta([1, 2]), "ill": [True, False]})
    draft = Schema.from_dtypes(frame, target="ill")
    for bounds in (None, {"took": (0, 9)}):
        with pytest.raises(SchemaError, match=r"took: times .* not supported; drop the column, or"):
            draft.to_schema(bounds=bounds)
