import json
import math
from collections.abc import Set

import numpy as np
import pytest

from discreet import Categorical, FormatError, Numeric, Schema, SchemaError
from discreet.schema.schema import format_value


def mortgage(**options):
    return Schema(
        [Numeric("age", 18, 100, integer=True), Categorical("gender", ["female", "male"])],
        "missed",
        ["no", "yes"],
        **options,
    )


class Unordered(Set):
    """Somebody's own set."""

    def __init__(self, values):
        self.values = frozenset(values)

    def __contains__(self, value):
        return value in self.values

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


def test_keys_of_a_mapping_have_an_order():
    assert Categorical("a", {"y": 1, "x": 2}.keys()).values == ("y", "x")


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Categorical("a", []), "empty; list every value"),
        (lambda: Categorical("a", ["x", "x"]), "listed twice"),
        (lambda: Categorical("a", [1, "1"]), "listed twice"),
        (lambda: Categorical("a", [True, "true"]), "listed twice"),
        (lambda: Categorical("a", {"x", "y"}), "a: values is a set"),
        (lambda: Categorical("a", frozenset("xy")), "write a list"),
        (lambda: Categorical("a", {"x": 1, "y": 2}.keys() | {"z"}), "write a list"),
        (lambda: Categorical("a", Unordered("xy")), "write a list"),
        (lambda: Schema([Numeric("a", 0, 1)], "y", {0, 1}), "y: classes is a set"),
        (lambda: Schema({Numeric("a", 0, 1)}, "y", [0, 1]), "features is a set"),
        (lambda: mortgage(missing_tokens={"?", "-"}), "missing_tokens is a set"),
        (lambda: Categorical("a", "xyz"), "write a list of every value"),
        (lambda: Categorical("a", ["x", None]), "leave missing values to missing="),
        (lambda: Categorical("a", [math.nan]), "cannot be one of the values"),
        (lambda: Categorical("", ["x"]), "write a name"),
        (lambda: Categorical(3, ["x"]), "write a name"),
        (lambda: Numeric("a", 5, 5), "lower 5 is not below upper 5; swap them"),
        (lambda: Numeric("a", 6, 5), "swap them"),
        (lambda: Numeric("a", math.nan, 5), "lower is nan; write a number you know"),
        (lambda: Numeric("a", "0", 5), "lower is '0'"),
        (lambda: Numeric("a", None, 5), "lower is None"),
        (lambda: Numeric("a", 0.5, 5, integer=True), "not a whole number"),
        (lambda: Schema([], "y", [0, 1]), "features is empty"),
        (lambda: Schema([Numeric("a", 0, 1)], "y", [0, 0]), "listed twice in classes"),
        (lambda: Schema([Numeric("a", 0, 1)], "y", []), "classes is empty"),
        (lambda: Schema([Numeric("a", 0, 1)], "a", [0, 1]), "the target must not predict itself"),
        (lambda: Schema([Numeric("a", 0, 1)] * 2, "y", [0, 1]), "two features are named 'a'"),
        (lambda: Schema(["a"], "y", [0, 1]), "write Categorical(name, values)"),
        (
            lambda: Schema(Numeric("a", 0, 1), "y", [0, 1]),
            "write a list of Categorical(name, values)",
        ),
        (lambda: mortgage(missing="drop"), "write 'skip' or 'category'"),
        (lambda: mortgage(outliers="drop"), "write 'error' or 'clip'"),
        (lambda: mortgage(unseen="drop"), "write 'error' or 'other'"),
        (lambda: mortgage(missing_tokens="?"), "such as ['?']"),
        (lambda: mortgage()["agee"], "there are age, gender"),
    ],
)
def test_a_mistake_says_what_to_write_instead(build, says):
    with pytest.raises(SchemaError) as error:
        build()
    assert says in str(error.value)


def test_json_round_trip_keeps_everything_and_the_digest():
    schema = Schema(
        [Numeric("a", -1.5, 2), Numeric("free"), Categorical("b", [True, 2, "x", 0.5], False)],
        "y",
        [1, 0],
        missing="category",
        outliers="clip",
        unseen="other",
        missing_tokens=["?", "n/a"],
    )
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert again.digest == schema.digest
    assert [type(value) for value in again["b"].values] == [bool, int, str, float]


def test_the_digest_changes_with_every_public_fact():
    digests = {mortgage().digest}
    digests.add(mortgage(missing="category").digest)
    digests.add(mortgage(outliers="clip").digest)
    digests.add(mortgage(unseen="other").digest)
    digests.add(mortgage(missing_tokens=["?"]).digest)
    digests.add(Schema(mortgage().features, "missed", ["yes", "no"]).digest)
    digests.add(Schema(mortgage().features[::-1], "missed", ["no", "yes"]).digest)
    assert len(digests) == 7


def test_people_may_edit_a_schema_file():
    text = mortgage().to_json().replace("100.0", "120.0")
    assert Schema.from_json(text)["age"].upper == 120


def test_a_schema_may_be_written_by_hand_without_ceremony():
    text = json.dumps(
        {
            "features": [{"name": "a", "kind": "categorical", "values": ["x", "y"]}],
            "target": "t",
            "classes": ["no", "yes"],
            "missing": "category",
        }
    )
    schema = Schema.from_json(text)
    assert schema.missing == "category"
    assert schema["a"].optional


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("[1, 2]", "holds a list, not keys with values"),
        ('{"format": "discreet/model", "version": 1}', "not a discreet schema"),
        ('{"format": "discreet/schema", "version": 99}', "update discreet"),
        ('{"format": "discreet/schema", "version": 2}', "invalid at"),
        ('{"format": "discreet/schema", "version": 1}', "write version 2 in it and check it"),
        ('{"format": "discreet/schema", "version": true}', "has the version True"),
        ("[" * 100_000, "does not begin with an opening brace"),
    ],
)
def test_a_broken_file_is_refused_with_a_reason(text, says):
    with pytest.raises(FormatError) as error:
        Schema.from_json(text)
    assert says in str(error.value)


def test_an_unknown_field_is_refused_rather_than_ignored():
    text = mortgage().to_json().replace('"target"', '"epsilon": 3, "target"')
    with pytest.raises(FormatError, match="epsilon"):
        Schema.from_json(text)


@pytest.mark.data
@pytest.mark.parametrize("name", ["adult", "mushroom", "glass", "car"])
def test_descriptions_of_benchmark_tables_are_schemas(name):
    import os

    schema = Schema.read(os.path.join(os.environ["DISCREET_DATA"], f"{name}.json"))
    assert Schema.from_json(schema.to_json()) == schema
    optional = {feature.name for feature in schema.features if feature.optional}
    assert (
        optional
        == {
            "adult": {"workclass", "occupation", "native_country"},
            "mushroom": {"stalk_root"},
            "glass": set(),
            "car": set(),
        }[name]
    )


def test_one_spelling_for_equal_values():
    assert (
        format_value(1) == format_value(1.0) == format_value("1") == format_value(np.int8(1)) == "1"
    )
    assert format_value(True) == format_value(np.bool_(True)) == "true"
    assert format_value(0.5) == "0.5"
    assert format_value("05") == "05"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"features": 3}, "features: it should be a valid list"),
        ({"features": [3]}, "features, entry 1: it should be"),
        ({"features": [{"name": "a", "kind": "numeric", "lowr": 0, "upper": 1}]}, "lowr"),
        ({"features": [{"name": 5, "kind": "numeric"}]}, "features, entry 1, name: it should be"),
        ({"features": [{"name": "tenure", "kind": "number"}]}, "invalid at tenure"),
        ({"clases": ["no", "yes"]}, "clases"),
        ({"missing": 7}, "missing"),
        ({"missing_tokens": 3}, "missing_tokens"),
    ],
)
def test_a_hand_written_file_is_read_as_strictly_as_any_other(change, says):
    """A misspelt bound must not become a feature without bounds."""
    body = {
        "features": [{"name": "a", "kind": "numeric", "lower": 0, "upper": 1}],
        "target": "y",
        "classes": ["no", "yes"],
    }
    assert Schema.from_json(json.dumps(body))["a"].is_bounded
    with pytest.raises(FormatError) as error:
        Schema.from_json(json.dumps({**body, **change}))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Numeric("a", 0, 10**400), "a: upper is 1000"),
        (lambda: Numeric("a", 0, 1, integer="no"), "integer is 'no'; write True or False"),
        (lambda: Numeric("a", 0, 1, optional="no"), "optional is 'no'; write True or False"),
        (lambda: Categorical("a", [0, 1], optional=None), "optional is None; write True or False"),
        (lambda: mortgage(missing_tokens=3), "missing_tokens is 3; write a list"),
    ],
)
def test_no_mistake_is_a_traceback_or_taken_for_true(build, says):
    with pytest.raises(SchemaError) as error:
        build()
    assert says in str(error.value)
    assert Numeric("a", 0, 1, optional=np.bool_(False)).optional is False
