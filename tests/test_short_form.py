"""One line for each column says the same as the long form, and keeps every spelling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Categorical, DiscreetError, Numeric, Schema
from discreet.schema.schema import Feature
from discreet.schema.short_form import format_feature


def read_line(line: str, name: str = "tenure") -> Feature:
    return Schema.from_yaml(f"features:\n  {name}: {line}\ntarget: {{churned: [no, yes]}}\n")[name]


LINES: dict[str, Feature] = {
    "0..72": Numeric("tenure", 0, 72, integer=True),
    "0 .. 72": Numeric("tenure", 0, 72, integer=True),
    "-5..-1": Numeric("tenure", -5, -1, integer=True),
    "0..72 real": Numeric("tenure", 0, 72),
    "0.0..72": Numeric("tenure", 0, 72),
    "0..1e6": Numeric("tenure", 0, 1e6),
    "0..1e6 whole": Numeric("tenure", 0, 1e6, integer=True),
    "18..100 whole": Numeric("tenure", 18, 100, integer=True),
    "0..1e6, never missing": Numeric("tenure", 0, 1e6, optional=False),
    "0..72 real, never missing": Numeric("tenure", 0, 72, optional=False),
    "0..72, real, never missing": Numeric("tenure", 0, 72, optional=False),
    "0..": Numeric("tenure", 0, integer=True),
    "..0.5": Numeric("tenure", upper=0.5),
    "number": Numeric("tenure"),
    "number whole": Numeric("tenure", integer=True),
    "[month, year, two years]": Categorical("tenure", ["month", "year", "two years"]),
    "one of [month, year], never missing": Categorical("tenure", ["month", "year"], optional=False),
    "one of [month, year]": Categorical("tenure", ["month", "year"]),
    "[0, 72]": Categorical("tenure", [0, 72]),
    "{kind: numeric, lower: 0, upper: 72, integer: true}": Numeric("tenure", 0, 72, integer=True),
    # yes, no, on, off, dates and numbers with a spelling of their own are text
    "[yes, no]": Categorical("tenure", ["yes", "no"]),
    "one of [yes, no], never missing": Categorical("tenure", ["yes", "no"], optional=False),
    "[on, off, y, n]": Categorical("tenure", ["on", "off", "y", "n"]),
    "[012, 1e3, 1.10, 1.0, 1_000, 0x1F, 1:30, +1]": Categorical(
        "tenure", ["012", "1e3", "1.10", "1.0", "1_000", "0x1F", "1:30", "+1"]
    ),
    "one of [012, 1.10, 3]": Categorical("tenure", ["012", "1.10", 3]),
    "[2015-01-01, 2015-01-02]": Categorical("tenure", ["2015-01-01", "2015-01-02"]),
    "[1, 0.5, true, 'false', '2']": Categorical("tenure", [1, 0.5, True, "false", "2"]),
    "['a, b', \"c: d\", 'it''s']": Categorical("tenure", ["a, b", "c: d", "it's"]),
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_a_feature(line: str) -> None:
    feature, wanted = read_line(line), LINES[line]
    assert feature == wanted
    if isinstance(feature, Categorical) and isinstance(wanted, Categorical):
        assert list(map(type, feature.values)) == list(map(type, wanted.values))
    assert read_line(format_feature(feature)) == feature


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0-72", "tenure: '0-72' does not say what the column may hold; write tenure: 0..72"),
        ("0 to 72", "write tenure: 0..72"),
        ("0...72", "write tenure: 0..72"),
        ("0 … 72", "write tenure: 0..72"),
        ("0:72", "write tenure: 0..72"),
        ("(0, 72)", "write tenure: 0..72"),
        ("month, year", "write tenure: [month, year]"),
        ("", "tenure: its line is empty; write 0..72 for numbers, [month, year] for"),
        ("~", "tenure: its line is empty"),
        ("72", "tenure: 72 does not say"),
        ("true", "tenure: True does not say"),
        ("yes", "tenure: 'yes' does not say"),
        ("..", "tenure: '..' does not say"),
        ("0..72 hole", "such as tenure: 0..72"),
        ("0..72, sometimes missing", "'0..72, sometimes missing' does not say"),
        ("0..72 never missing", "'0..72 never missing' does not say"),
        ("0..250,000", "'0..250,000' does not say"),
        ("0..250_000", "'0..250_000' does not say"),
        ("one of [a", "'one of [a' does not say"),
        ("one of month", "'one of month' does not say"),
        ("72..0", "tenure: lower 72 is not below upper 0; swap them"),
        ("0..0.5 whole", "tenure: upper 0.5 is not a whole number"),
        ("[]", "tenure: values is empty"),
        ("[a, a]", "tenure: 'a' is listed twice"),
        ("[a, [b]]", "this schema is invalid at tenure.values"),
        ("[a, ~]", "this schema is invalid at tenure.values"),
        ("{lower: 0}", "this schema is invalid at tenure.kind: it is missing"),
        ("{kind: number, lower: 0}", "invalid at tenure.kind: it should be 'categorical'"),
        ("{kind: numeric, lowr: 0}", "invalid at tenure.lowr: there is no such key; did you mean"),
        ("{kind: numeric, lower: low}", "tenure: lower is 'low'; write a number you know"),
        ("0..1e999", "'0..1e999' does not say"),
        ("{kind: numeric, name: other}", "tenure: has its name twice"),
    ],
)
def test_a_wrong_line_names_its_column_and_what_to_write(line: str, says: str) -> None:
    with pytest.raises(DiscreetError) as raised:
        read_line(line)
    assert says in str(raised.value)
    assert "features." not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"target": {"a": ["no", "yes"], "b": [0, 1]}}, "target: write the class column with its"),
        ({"target": {}}, "target: write the class column"),
        ({"classes": ["no", "yes"]}, "and no classes besides"),
        ({"target": {"churned": "yes"}}, "churned: its classes are 'yes'; write a list, such as"),
        ({"target": {"churned": []}}, "churned: classes is empty"),
        ({"target": {"age": ["no", "yes"]}}, "'age' is the target and also a feature"),
        ({"features": {}}, "features is empty"),
        ({"features": "age"}, "features: it should be a valid list"),
        ({"features": ["age: 0..9"]}, "features, entry 1"),
        ({"features": {"": "0..9"}}, "a numeric feature is named ''"),
    ],
)
def test_the_rest_of_a_short_schema_is_held_to_the_same_rules(
    change: dict[str, Any], says: str
) -> None:
    body: dict[str, Any] = {"features": {"age": "0..9"}, "target": {"churned": ["no", "yes"]}}
    assert Schema.coerce(body).names == ["age"]
    with pytest.raises(DiscreetError) as raised:
        Schema.coerce({**body, **change})
    assert says in str(raised.value)


def test_both_forms_and_a_mix_have_one_digest(tmp_path: Path) -> None:
    schema = Schema(
        [
            Numeric("tenure", 0, 72, integer=True),
            Categorical("contract", ["month", "year", "two years"]),
            Categorical("paid", ["yes", "no"], optional=False),
        ],
        "churned",
        ["no", "yes"],
        outliers="clip",
    )
    short = {"tenure": "0..72", "contract": ["month", "year", "two years"]}
    paid = {"kind": "categorical", "values": ["yes", "no"], "optional": False}
    tenure = {"name": "tenure", "kind": "numeric", "lower": 0, "upper": 72, "integer": True}
    contract = {"name": "contract", "kind": "categorical", "values": short["contract"]}
    target: dict[str, Any]
    for target in (
        {"target": {"churned": ["no", "yes"]}},
        {"target": "churned", "classes": ["no", "yes"]},
    ):
        features: Any
        for features in (
            {**short, "paid": "one of [yes, no], never missing"},
            {**short, "paid": paid},
            [tenure, contract, {"name": "paid", **paid}],
        ):
            body = {"features": features, **target, "outliers": "clip"}
            assert Schema.coerce(body).digest == schema.digest
    (tmp_path / "short.yaml").write_text(schema.to_yaml())
    (tmp_path / "long.json").write_text(schema.to_json())
    for name in ("short.yaml", "long.json"):
        assert Schema.read(tmp_path / name).digest == schema.digest
    assert schema.to_yaml() == (
        "format: discreet/schema\nversion: 2\ntarget: {churned: [no, yes]}\noutliers: clip\n"
        "features:\n  tenure: 0..72\n  contract: [month, year, two years]\n"
        "  paid: one of [yes, no], never missing\n"
    )


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=9)
words = st.one_of(
    names,
    st.sampled_from(["yes", "No", "on", "null", "~", "true", "012", "1.10", "1e3", "2015-01-01"]),
)
values = st.one_of(
    words, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
flags = st.booleans()


def are_different(listed: list[Any]) -> bool:
    return len({str(value).lower().removesuffix(".0") for value in listed}) == len(listed)


lists = st.lists(values, min_size=2, max_size=5).filter(are_different)


@st.composite
def features(draw: st.DrawFn, name: str) -> Feature:
    if draw(flags):
        return Categorical(name, draw(lists), draw(flags))
    bounds = sorted(draw(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2, unique=True)))
    if is_whole := draw(flags):
        bounds = [float(round(bound)) for bound in bounds]
        bounds[1] += bounds[0] == bounds[1]
    if bounds[0] >= bounds[1]:
        bounds = [0.0, 1.0]
    return Numeric(
        name, **dict(zip(("lower", "upper")[: draw(st.integers(0, 2))], bounds, strict=False)),
        integer=is_whole, optional=draw(flags),
    )  # fmt: skip


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    own = draw(st.lists(names.filter(str.strip), min_size=2, max_size=4, unique=True))
    return Schema(
        [draw(features(name)) for name in own[1:]],
        own[0],
        draw(lists),
        draw(st.sampled_from(["skip", "category"])),
        draw(st.sampled_from(["error", "clip"])),
        draw(st.sampled_from(["error", "other"])),
        draw(st.lists(words, max_size=2)),
        draw(flags),
    )


@pytest.mark.slow
@given(schemas())
def test_any_schema_comes_back_from_one_line_a_column(schema: Schema) -> None:
    text = schema.to_yaml()
    assert len(text.splitlines()) >= 3 + len(schema.features)
    again = Schema.from_yaml(text)
    assert again == schema
    assert again.digest == schema.digest


@pytest.mark.slow
@given(st.text(max_size=30), st.one_of(st.none(), values, lists))
def test_any_line_is_read_or_refused_with_the_name_of_its_column(line: str, other: Any) -> None:
    for written in (line, other):
        body = {"features": {"tenure": written}, "target": {"c": ["no", "yes"]}}
        sentence = "tenure"
        try:
            assert Schema.from_json(json.dumps(body)).names == ["tenure"]
        except DiscreetError as error:
            sentence = str(error)
        assert "tenure" in sentence


def test_names_select_the_columns_of_a_frame() -> None:
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)], "y", [0, 1])
    rows = {"b": [0.1], "y": [0], "a": [0.2]}
    assert list(pd.DataFrame(rows)[schema.names].columns) == ["a", "b"]
    assert pl.DataFrame(rows)[schema.names].columns == ["a", "b"]
    schema.names.append("c")
    assert schema.names == ["a", "b"]
