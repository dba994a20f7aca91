"""A model trained on components needs the original columns, and only those."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Categorical, FormatError, NaiveBayesModel, Numeric, Schema, SchemaError
from discreet.errors import EstimationError
from discreet.estimation import estimate
from discreet.model.evaluation import score_model
from discreet.model.export import ModelClassifier, to_onnx, to_skops
from discreet.schema.projection import Projection
from discreet.statistics.statistics import Statistics
from discreet.tables.in_memory import CountRequest, count_arrays


def public(**options):
    return Schema(
        [
            Numeric("height", -50, 250),
            Categorical("colour", ["red", "blue"]),
            Numeric("year", 1.7e9, 1.7e9 + 60, integer=True),
        ],
        "y",
        ["no", "yes"],
        **options,
    )


def projection(**options):
    return Projection(
        public(**options),
        np.array([100.0, 1.7e9 + 30]),
        np.array([40.0, 15.0]),
        np.array([[0.8, -0.6], [0.6, 0.8]]),
        (
            Numeric("component1", -3, 3, optional=False),
            Numeric("component2", -3, 3, optional=False),
        ),
    )


def rows(n=500, seed=0, missing=True, beyond=0):
    rng = np.random.default_rng(seed)
    height = np.clip(rng.normal(100, 40, n), -50, 250)
    height += beyond * rng.normal(0, 200, n)
    if missing:
        height[:7] = np.nan
    year = rng.integers(1_700_000_000, 1_700_000_061, n).astype(float)
    colour = rng.choice(["red", "blue", ""] if missing else ["red", "blue"], n).astype(object)
    return {"height": height, "colour": colour, "year": year}


def trained(bins=None, **options):
    step = projection(**options)
    columns = rows()
    codes = (np.nan_to_num(columns["height"], nan=100) > 100).astype(np.int32)
    contents = CountRequest(bins, None if bins else "float")
    found = count_arrays(step.output_schema, step.transform_columns(columns), codes, contents)
    return replace(found, projection=step), columns, codes


@pytest.mark.parametrize("bins", [None, 6])
def test_a_model_with_a_projection_predicts_explains_and_is_scored_from_original_columns(bins):
    statistics, columns, codes = trained(bins)
    model = estimate(Statistics.from_json(statistics.to_json()))
    again = NaiveBayesModel.from_json(model.to_json())
    assert again.to_json() == model.to_json() == estimate(statistics).to_json()
    assert again.inputs.names == ["height", "colour", "year"]
    without = replace(model, projection=None)
    expected = without.predict_joint_log_proba(projection().transform_columns(columns))
    np.testing.assert_array_equal(again.predict_joint_log_proba(columns), expected)
    classes = np.array(["no", "yes"])
    assert score_model(again, columns, classes[codes]).accuracy > 0.8
    row = {name: column[9] for name, column in columns.items()}
    told = again.explain(row)
    assert {one.feature for one in told.evidence} == {"component1", "colour", "component2"}
    assert told.predicted == again.predict([row])[0]
    assert told.log_odds == pytest.approx(abs(expected[9, 1] - expected[9, 0]))
    assert again.explain([row["height"], row["colour"], row["year"]]) == told


def test_components_are_what_they_say_also_far_from_zero_and_one_row_at_a_time():
    step, columns = projection(), rows(300)
    made = step.transform_columns(columns)
    z = np.column_stack(
        [np.nan_to_num((columns["height"] - 100) / 40), (columns["year"] - 1.7e9 - 30) / 15]
    )
    for k in range(2):
        np.testing.assert_allclose(made[f"component{k + 1}"], z @ step.matrix[:, k], atol=1e-12)
    singly = [
        step.transform_columns({name: column[i : i + 1] for name, column in columns.items()})[
            "component2"
        ][0]
        for i in range(300)
    ]
    assert singly == made["component2"].tolist()


@pytest.mark.parametrize("outliers", ["error", "clip"])
@pytest.mark.parametrize("bins", [None, 6])
def test_onnx_and_skops_read_the_original_columns_too(bins, outliers):
    onnxruntime = pytest.importorskip("onnxruntime")
    skops = pytest.importorskip("skops.io")
    model = estimate(trained(bins, outliers=outliers)[0])
    columns = rows(400, seed=5, beyond=outliers == "clip")
    session = onnxruntime.InferenceSession(to_onnx(model))
    assert {one.name for one in session.get_inputs()} == {"height", "colour", "year"}
    label, probability = session.run(None, {n: c[:, None] for n, c in columns.items()})
    np.testing.assert_allclose(probability, model.predict_proba(columns), atol=1e-9)
    assert label.tolist() == model.predict(columns).tolist()
    trusted = ["discreet.model.export.ModelClassifier"]
    loaded = skops.loads(to_skops(model), trusted=trusted)
    assert isinstance(loaded, ModelClassifier)
    np.testing.assert_array_equal(loaded.predict_proba(columns), model.predict_proba(columns))


def test_onnx_takes_a_refused_number_as_missing():
    onnxruntime = pytest.importorskip("onnxruntime")
    model = estimate(trained()[0])
    session = onnxruntime.InferenceSession(to_onnx(model))
    odd, absent = rows(3, missing=False), rows(3, missing=False)
    odd["height"][:], absent["height"][:] = 1e9, np.nan
    with pytest.raises(SchemaError, match="height"):
        model.predict(odd)
    found = session.run(None, {n: c[:, None] for n, c in odd.items()})[1]
    np.testing.assert_allclose(found, model.predict_proba(absent), atol=1e-9)


def test_original_columns_are_checked_as_their_schema_says():
    model = estimate(trained()[0])
    columns = rows(20)
    with pytest.raises(SchemaError, match=r"year.*whole number"):
        model.predict(columns | {"year": columns["year"] + 0.5})
    with pytest.raises(SchemaError, match="lacks the column height"):
        model.predict({name: columns[name] for name in ("colour", "year")})
    unbounded = replace(public(), features=(Numeric("a"),))
    wide = Projection(
        unbounded, np.zeros(1), np.ones(1), np.ones((1, 1)), projection().components[:1]
    )
    with pytest.raises(SchemaError, match="infinity"):
        wide.transform_columns({"a": np.array([np.inf])})


def test_projections_that_do_not_fit_are_refused():
    step, statistics = projection(), trained()[0]
    for change in (
        {"centre": np.zeros(3)},
        {"scale": np.array([0.0, 1.0])},
        {"matrix": np.full((2, 2), np.nan)},
        {"matrix": np.zeros((3, 2))},
        {"components": (Numeric("a"), Numeric("b"))},
    ):
        with pytest.raises(SchemaError):
            replace(step, **change)
    other = replace(step, components=step.components[:1], matrix=np.ones((2, 1)))
    with pytest.raises(EstimationError, match="projection"):
        replace(statistics, projection=other)
    with pytest.raises(FormatError, match="projection"):
        replace(estimate(statistics), projection=other)
    with pytest.raises(EstimationError, match="projections"):
        statistics + replace(statistics, projection=replace(step, centre=np.array([90.0, 1.7e9])))
