"""Claims over the whole surface, for any schema, any table and any bytes.

What is written and read again is the same. What is malformed is refused with one of discreet's own
errors: nothing crashes, hangs or allocates without bound. Models predict the same after they were
read from JSON, and hostile numbers still give probabilities.
"""

from __future__ import annotations

import json
import math
import tracemalloc
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Categorical, MixedNB, NaiveBayesModel, Numeric, Schema, Statistics, estimate
from discreet.audit.neighbours import iter_records
from discreet.collection.report import Report
from discreet.collection.respondent import MemoryStore, Respondent
from discreet.collection.tally import Tally
from discreet.errors import DiscreetError
from discreet.federated.agreement.identity import Card, Identity
from discreet.federated.agreement.manifest import Manifest
from discreet.federated.counters import make_feature_requests
from discreet.files.documents import compute_digest, encode_canonical
from discreet.local.plan import Plan
from discreet.local.planning import make_plan
from discreet.survey.questionnaire import Questionnaire
from discreet.tables import count

words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
numbers = st.floats(-1e12, 1e12, allow_subnormal=True)


@st.composite
def features(draw: Any, name: str) -> Any:
    optional = draw(st.booleans())
    if draw(st.booleans()):
        said = words.filter(str.strip)
        values = draw(st.lists(said, min_size=1, max_size=5, unique_by=str.strip))
        return Categorical(name, values, optional=optional)
    lower = draw(numbers)
    width = draw(st.floats(1e-3, 1e6))
    return Numeric(name, lower, lower + max(width, abs(lower) * 1e-9), optional=optional)


@st.composite
def schemas(draw: Any) -> Schema:
    names = [f"f{i}" for i in range(draw(st.integers(1, 4)))]
    classes = draw(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=4, unique=True))
    try:
        return Schema(
            [draw(features(name)) for name in names],
            "class",
            classes,
            outliers="clip",
            missing=draw(st.sampled_from(["skip", "category"])),
        )
    except DiscreetError:  # words that are the same to a reader, or a missing token
        return Schema([Categorical("f0", ["x", "y"])], "class", classes)


@st.composite
def tables(draw: Any) -> tuple[Schema, list[dict[str, Any]]]:
    schema = draw(schemas())
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        row: dict[str, Any] = {schema.target: draw(st.sampled_from(schema.classes))}
        for feature in schema.features:
            inside = (
                st.sampled_from(feature.values)
                if isinstance(feature, Categorical)
                else st.floats(feature.lower, feature.upper)
            )
            row[feature.name] = draw(inside | st.none() if feature.optional else inside)
        rows.append(row)
    return schema, rows


def columns_of(schema: Schema, rows: list[dict[str, Any]]) -> dict[str, Any]:
    from discreet.audit.neighbours import convert_to_columns as columns

    found, classes = columns(schema, rows)
    return {**found, schema.target: classes}


quickly = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.slow
@quickly
@given(schemas())
def test_any_schema_is_read_as_it_was_written(schema):
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert again.digest == schema.digest
    assert again.to_json() == schema.to_json()


@pytest.mark.slow
@quickly
@given(tables())
def test_any_table_becomes_statistics_and_a_model_that_survive_their_files(table):
    schema, rows = table
    columns = columns_of(schema, rows)
    found = count(columns, schema)
    assert found.totals.sum() == len(rows)
    again = Statistics.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    model = estimate(found)
    reread = NaiveBayesModel.from_json(model.to_json())
    assert reread.to_json() == model.to_json()
    inputs = {name: columns[name] for name in schema.names}
    expected, got = model.predict_proba(inputs), reread.predict_proba(inputs)
    np.testing.assert_array_equal(expected, got)
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    assert np.isfinite(expected).all()


@pytest.mark.slow
@quickly
@given(schemas(), st.floats(0.1, 8), st.data())
def test_any_schema_can_be_asked_about_and_every_report_is_counted(schema, epsilon, data):
    try:
        plan = make_plan(schema, epsilon)
    except DiscreetError:
        return
    assert Plan.from_json(plan.to_json()).digest == plan.digest
    tally: Tally[Any] = Tally.empty(plan) if hasattr(Tally, "empty") else Tally(plan)
    people = list(iter_records(schema, schema.names[:1], plan.edges))[:4]
    for person in people:
        report = Respondent(plan, MemoryStore()).report(person)
        assert Report.from_json(report.to_json()) == report
        tally.add(report)
    again = Tally.from_json(tally.to_json())
    assert again.to_json() == tally.to_json()


# ---------------------------------------------------------------------- malformed documents


@cache
def documents() -> dict[str, tuple[Any, str]]:
    """One of every kind: how it is read, and a valid text."""
    schema = Schema(
        [Numeric("age", 0, 100, integer=True), Categorical("sex", ["f", "m"])], "c", ["no", "yes"]
    )
    plan = make_plan(schema, 1.0)
    survey = Questionnaire.from_schema(
        Schema([Categorical("a", ["n", "y"], optional=False)], "c", ["n", "y"]), 0.5
    )
    record = {"age": 30, "sex": "f", "c": "no"}
    report = Respondent(plan, MemoryStore()).report(record)
    tally: Tally[Any] = Tally(plan)
    tally.add(report)
    statistics = count(columns_of(schema, [record] * 3), schema)
    who = [Identity.generate(name) for name in ("a", "b", "c", "collector", "receiver")]
    manifest = Manifest(
        schema,
        make_feature_requests(schema, 4, []),
        1.0,
        tuple(one.card for one in who[:3]),
        who[3].card,
        who[4].card,
        aggregation="masks",
    ).with_signatures(*who)
    made = {
        "schema": schema,
        "plan": plan,
        "questionnaire": survey,
        "report": report,
        "tally": tally,
        "statistics": statistics,
        "model": estimate(statistics),
        "card": who[0].card,
        "manifest": manifest,
    }
    return {kind: (type(one).from_json, one.to_json()) for kind, one in made.items()}


KINDS = sorted(documents())
HOSTILE = [
    None, True, -1, 0, 1, 2**31, 2**53 + 1, 2**63, 10**12, 10**30, -0.0, 0.5, 5e-324, 1e308, "inf",
    "-inf", "", "x" * 100, "\x00", "sha256:", [], [[]], [1], {}, {"a": 1}, [0.1] * 50,
]  # fmt: skip


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items: Any = ()
    if isinstance(tree, (dict, list)):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, item in items:
        found += places(item, (*path, key))
    return found


def changed(tree: Any, path: tuple[Any, ...], how: str, value: Any) -> Any:
    """The document with one node replaced, removed or doubled, and sealed again."""
    whole = json.loads(json.dumps(tree))
    node = whole
    for key in path[:-1]:
        node = node[key]
    if how == "replace":
        node[path[-1]] = value
    elif how == "remove":
        del node[path[-1]]
    elif isinstance(node, list):
        node.insert(path[-1], node[path[-1]])
    else:
        node["more"] = node[path[-1]]
    return sealed(whole)


def sealed(whole: dict[str, Any]) -> str:
    if "digest" in whole and "format" in whole and "version" in whole:
        body = {key: value for key, value in whole.items() if key != "digest"}
        with suppress(DiscreetError, ValueError):
            whole["digest"] = compute_digest(encode_canonical(body))
    return json.dumps(whole)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_document_with_one_wrong_node_is_refused_or_read_whole(kind, data):
    """Sealed again, so that the seal is not what refuses it."""
    read, text = documents()[kind]
    tree = json.loads(text)
    path = data.draw(st.sampled_from(places(tree)))
    how = data.draw(st.sampled_from(["replace", "replace", "replace", "remove", "double"]))
    value = data.draw(st.sampled_from(HOSTILE))
    try:
        found = read(changed(tree, path, how, value))
    except DiscreetError:
        return
    assert type(found).from_json(found.to_json()).to_json() == found.to_json()


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e300])
@pytest.mark.parametrize("kind", ["plan", "manifest"])
def test_an_epsilon_beyond_all_scales_is_refused_by_a_sentence(kind, epsilon):
    read, text = documents()[kind]
    tree = json.loads(text)
    with suppress(DiscreetError):
        read(changed(tree, ("epsilon",), "replace", epsilon))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(kind, data):
    read, text = documents()[kind]
    for content in (data, text.encode()[: len(data)], data + text.encode(), text.encode() + data):
        with suppress(DiscreetError):
            read(content)


DEEP = ["[" * 200_000, '{"a":' * 100_000, '{"format": "discreet/' + "x" * 10**6 + '"}', "1" * 10**5]


@pytest.mark.parametrize("kind", KINDS)
def test_deep_and_long_texts_are_refused_without_much_memory(kind):
    read, _ = documents()[kind]
    tracemalloc.start()
    try:
        for text in DEEP:
            with pytest.raises(DiscreetError):
                read(text)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


# -------------------------------------------------------------------------- hostile numbers


def columns(case: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"] * 50)
    return {
        "constant": (np.ones((100, 2)), y),
        "one class": (rng.normal(size=(100, 2)), np.array(["a"] * 100)),
        "denormals": (np.full((100, 1), 5e-324) * (np.arange(100) % 2)[:, None], y),
        "far from zero": (1.7e9 + rng.normal(size=(100, 1)) * 1e-6, y),
        "large": (rng.choice([1e150, -1e150, 0.0], size=(100, 1)), y),
        "ten thousand values": (
            np.arange(10_000)[:, None].astype(str),
            np.array(["a", "b"] * 5000),
        ),
        "one row": (np.array([[1.0, 2.0]]), np.array(["a"])),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        "constant",
        "one class",
        "denormals",
        "far from zero",
        "large",
        "ten thousand values",
        "one row",
    ],
)
def test_hostile_columns_give_valid_probabilities(case):
    X, y = columns(case)
    X = X.astype(object) if X.dtype.kind == "U" else X
    nb = MixedNB().fit(X, y)
    found = nb.predict_proba(X)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    again = NaiveBayesModel.from_json(nb.model_.to_json())
    assert again.to_json() == nb.model_.to_json()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_whose_squares_overflow_are_refused_by_name():
    X = np.array([[1e300], [-1e300], [0.0], [1.0]])
    with pytest.raises(DiscreetError, match="x0: its numbers are so large"):
        MixedNB().fit(X, ["a", "b", "a", "b"])


@pytest.mark.parametrize("scale", [1e-300, 1.0, 2.0**62, 1e300])
def test_hostile_counts_give_valid_probabilities(scale):
    schema = Schema([Categorical("a", ["x", "y"], optional=False)], "c", ["no", "yes"])
    exact = count({"a": np.array(["x", "y"]), "c": np.array(["no", "yes"])}, schema)
    body = json.loads(exact.to_json())
    body["totals"] = [scale, scale]
    body["tables"]["a"]["counts"] = [[scale, 0.0], [0.0, scale]]
    try:
        found = Statistics.from_json(sealed(body))
    except DiscreetError:
        return
    shown = estimate(found).predict_proba({"a": np.array(["x", "y"], dtype=object)})
    assert np.isfinite(shown).all()
    np.testing.assert_allclose(shown.sum(axis=1), 1)


def test_the_fuzzer_can_fail():
    """The known-bad twin: a reader that trusts its file is found by the same changes."""
    _, text = documents()["statistics"]
    tree, crashes = json.loads(text), 0
    for path in places(tree)[:60]:
        for value in HOSTILE[:6]:
            whole = json.loads(changed(tree, path, "replace", value))
            try:
                math.fsum(np.asarray(whole["totals"], float)) + len(whole["tables"])
            except (TypeError, ValueError, KeyError):
                crashes += 1
    assert crashes


def test_cards_are_read_as_they_were_written():
    card = Identity.generate("ann").card
    assert Card.from_json(card.to_json()) == card
