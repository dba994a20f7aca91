"""Claims: a schema taken from data fits that data, and says aloud everything it took."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import PrivacyWarning, SchemaError
from discreet.schema.schema import Categorical, Numeric, Schema
from discreet.tables import count
from discreet.tables.identifiers import is_identifier
from discreet.tables.inference import infer_schema

FRAME = pd.DataFrame(
    {
        "age": [30, 41, 29, 30],
        "income": [1.5, None, 2.25, 9.0],
        "zip": ["05", "5", None, "07"],
        "member": [True, False, True, True],
        "constant": [7, 7, 7, 7],
        "y": ["yes", "no", "no", "yes"],
    }
)
EXPECTED = Schema(
    [
        Numeric("age", 29, 41, integer=True),
        Numeric("income", 1.5, 9.0),
        Categorical("zip", ["05", "07", "5"]),
        Categorical("member", [False, True]),
        Numeric("constant", 7, 8, integer=True),
    ],
    "y",
    ["no", "yes"],
    inferred=True,
)


def quietly(table: Any, target: str = "y", **options: Any) -> Schema:
    return infer_schema(table, target, warn=False, **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pandas", "categories", "polars", "arrow", "parquet"])
def test_every_typed_source_gives_the_same_schema(kind: str, tmp_path: Path) -> None:
    source: Any = FRAME
    if kind == "categories":
        source = FRAME.astype({"zip": "category", "y": "category"})
    elif kind == "polars":
        source = pl.from_pandas(FRAME)
    elif kind in ("arrow", "parquet"):
        source = pa.Table.from_pandas(FRAME, preserve_index=False)
    if kind == "parquet":
        pq.write_table(source, tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    assert quietly(source) == EXPECTED
    assert count(source, EXPECTED).totals.tolist() == [2, 2]


def test_a_csv_schema_keeps_the_spelling_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "code,flag,n,size,y\n05,True,1,?,1\n5,False,2,10,0\nx,True,,12.5,1\n05,True,4,9,0\n"
    )
    schema = quietly(path, missing_tokens=["?"], categorical=["n"])
    assert schema.features == (
        Categorical("code", ["05", "5", "x"]),
        Categorical("flag", ["False", "True"]),
        Categorical("n", [1, 2, 4]),
        Numeric("size", 9, 12.5),
    )
    assert schema.classes == (0, 1)
    assert schema.missing_tokens == ("?",)
    counted = count(path, schema)
    assert counted.totals.tolist() == [2, 2]
    assert counted.tables["n"].counts.sum() == 4


def test_digits_with_leading_zeros_stay_text_when_they_are_categories(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("zip,y\n01,a\n02,b\n")
    assert quietly(path, categorical=["zip"])["zip"] == Categorical("zip", ["01", "02"])
    assert quietly(path)["zip"] == Numeric("zip", 1, 2, integer=True)


def test_one_warning_names_everything_that_was_taken() -> None:
    with pytest.warns(PrivacyWarning) as caught:
        Schema.infer(FRAME, "y")
    ours = [one for one in caught if one.category is PrivacyWarning]
    assert len(ours) == 1
    words = str(ours[0].message)
    for part in ("bounds of age, income, constant", "values of zip, member", "classes of y"):
        assert part in words
    assert ours[0].filename == __file__, "the warning points at the caller"


def test_the_caller_may_warn_in_its_own_words() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        assert quietly(FRAME) == EXPECTED


def test_options_reach_the_schema_and_everything_is_optional() -> None:
    schema = quietly(FRAME, missing="category", outliers="clip", unseen="other")
    assert (schema.missing, schema.outliers, schema.unseen) == ("category", "clip", "other")
    assert all(feature.optional for feature in schema.features)


def test_whole_floats_are_whole_numbers_and_numeric_classes_stay_numbers() -> None:
    frame = pd.DataFrame({"x": [1.0, 4.0, None], "z": [0.5, 1.0, 2.0], "y": [2, 1, 10]})
    schema = quietly(frame)
    assert schema["x"] == Numeric("x", 1, 4, integer=True)
    assert schema["z"] == Numeric("z", 0.5, 2)
    assert schema.classes == (1, 2, 10)


@pytest.mark.parametrize(
    ("frame", "target", "options", "words"),
    [
        (FRAME, "nope", {}, "the table lacks the column nope; it has age, income"),
        (FRAME, "y", {"categorical": ["agee"]}, "the table lacks the column agee"),
        (FRAME, "y", {"categorical": "age"}, "are lists"),
        (FRAME, "y", {"missing_tokens": "?"}, "are lists"),
        (
            pd.DataFrame({"id": [f"p{i}" for i in range(1001)], "y": [0] * 1001}),
            "y",
            {},
            "no column can be a feature; left out: id (nearly every row has a value of its own",
        ),
        (
            pd.DataFrame({"x": [0.5] * 1001, "y": range(1001)}),
            "y",
            {},
            "y: more than 1000 different values",
        ),
        (pd.DataFrame({"x": [None, None], "y": [0, 1]}, dtype="float64"), "y", {}, "x: holds no"),
        (pd.DataFrame({"x": ["?", ""], "y": [0, 1]}), "y", {"missing_tokens": ["?"]}, "holds no"),
        (pd.DataFrame({"x": ["a"], "y": [None]}), "y", {}, "y: holds no class"),
    ],
)
def test_what_makes_no_schema_is_refused(
    frame: Any, target: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        infer_schema(frame, target, **options)
    assert words in str(caught.value)


def test_identifiers_are_left_out_with_a_sentence() -> None:
    rows = range(1_500)
    frame = pd.DataFrame(
        {
            "number": rows,
            "patient_id": [7_919 * row % 1_000_003 for row in rows],
            "email": [f"somebody{row}@example.org" for row in rows],
            "note": [f"note {row % 1_200}" for row in rows],
            "income": [20_000 + 7_919 * row % 99_991 for row in rows],
            "weight": [row / 7 for row in rows],
            "age": [row % 80 for row in rows],
            "y": [row % 2 for row in rows],
        }
    )
    with pytest.warns(PrivacyWarning) as caught:
        schema = Schema.infer(frame, "y")
    assert schema.names == ["income", "weight", "age"]
    words = next(str(one.message) for one in caught if one.category is PrivacyWarning)
    for name in ("number", "patient_id", "email"):
        assert f"{name} (nearly every row has a value of its own" in words
    assert "note (more than 1000 different values" in words


@pytest.mark.parametrize(
    ("name", "rows", "distinct", "span", "expected"),
    [
        ("id", 19, 19, 18.0, False),
        ("anything", 1_000, 1_000, 999.0, True),
        ("anything", 1_000, 900, 999.0, False),
        ("customerID", 1_000, 1_000, 1e9, True),
        ("Customer Id", 1_000, 1_000, 1e9, True),
        ("paid", 1_000, 1_000, 1e9, False),
        ("idle_time", 1_000, 1_000, 1e9, False),
        ("uuid", 1_000, 1_000, None, True),
        ("comment", 1_000, 960, None, True),
        ("city", 1_000, 400, None, False),
    ],
)
def test_what_looks_like_an_identifier(
    name: str, rows: int, distinct: int, span: float | None, expected: bool
) -> None:
    assert is_identifier(name, rows, distinct, span) is expected
