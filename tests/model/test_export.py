"""An exported model predicts what the model predicts, in every program that reads it."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np
import pytest

from discreet import (
    Categorical,
    MissingDependencyError,
    NaiveBayesModel,
    Numeric,
    Schema,
    estimate,
)
from discreet.datasets import make_balance_scale
from discreet.errors import EstimationError
from discreet.model import CellFactor, GaussianFactor
from discreet.model.export import ModelClassifier, to_onnx, to_skops
from discreet.schema.cells import Cells
from discreet.schema.schema import format_value
from discreet.tables.in_memory import CountRequest, count_arrays

FEATURES = [
    Categorical("colour", ["red", "green", 'a, "b"', "ü"]),
    Numeric("height", -2, 3),
    Categorical("level", [1, 2, 3.5]),
    Numeric("label", 0, 9, integer=True),  # a name that an output would like to have
    Categorical("flag", [True, False], optional=False),
    Numeric("probabilities", 10, 20),
]
TOKENS = ["?", "n/a"]


def made(
    *,
    binned: bool = False,
    likelihood: Any = "gaussian",
    classes: Any = ("no", "yes", "ü"),
    **how: Any,
) -> tuple[NaiveBayesModel, dict[str, Any]]:
    """A model trained on random rows, and the columns of those rows."""
    schema = Schema(FEATURES, "target", classes, missing_tokens=TOKENS, **how)
    columns = random_columns(600, np.random.default_rng(3), schema)
    codes = np.random.default_rng(4).integers(len(classes), size=600).astype(np.int32)
    statistics = count_arrays(
        schema,
        columns,
        codes,
        CountRequest(
            bins={"height": 5, "label": 4, "probabilities": 1} if binned else None,
            moments=None if binned else "float",
        ),
    )
    return estimate(statistics, likelihood=likelihood), columns


def random_columns(
    rows: int, rng: np.random.Generator, schema: Schema, odd: bool = True
) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for feature in schema.features:
        if isinstance(feature, Categorical):
            pool: list[Any] = [format_value(value) for value in feature.values]
            if feature.optional and odd:
                pool += ["", *TOKENS]
            if schema.unseen == "other" and odd:
                pool += ["never seen", "Red"]
            columns[feature.name] = np.array(pool, dtype=object)[rng.integers(len(pool), size=rows)]
        else:
            spread = 2.0 if schema.outliers == "clip" else 0.0
            low, high = feature.lower - spread, feature.upper + spread
            numbers = rng.uniform(low, high, rows)
            if feature.integer:
                numbers = rng.integers(int(low), int(high) + 1, rows).astype(float)
            numbers[:3] = feature.lower, feature.upper, (feature.lower + feature.upper) / 2
            if feature.integer:
                numbers = np.floor(numbers)
            if feature.optional and odd:
                numbers[rng.random(rows) < 0.1] = np.nan
            columns[feature.name] = numbers
    return columns


def run_onnx(content: bytes, columns: dict[str, Any]) -> tuple[Any, Any]:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feed = {one.name: columns[one.name].reshape(-1, 1) for one in session.get_inputs()}
    return tuple(session.run(None, feed))  # type: ignore[return-value]


def assert_same(model: NaiveBayesModel, columns: dict[str, Any]) -> None:
    label, probabilities = run_onnx(to_onnx(model), columns)
    assert label.tolist() == model.predict(columns).tolist()
    assert probabilities.dtype == np.float64
    np.testing.assert_allclose(probabilities, model.predict_proba(columns), rtol=0, atol=1e-9)


@pytest.mark.parametrize("missing", ["skip", "category"])
@pytest.mark.parametrize("unseen", ["error", "other"])
@pytest.mark.parametrize("outliers", ["error", "clip"])
@pytest.mark.parametrize(
    "kind", [{"binned": True}, {"likelihood": "gaussian"}, {"likelihood": "truncated"}], ids=str
)
def test_onnx_predicts_the_same(missing: Any, unseen: Any, outliers: Any, kind: Any) -> None:
    model, columns = made(missing=missing, unseen=unseen, outliers=outliers, **kind)
    assert_same(model, columns)
    assert_same(model, random_columns(900, np.random.default_rng(9), model.schema))


def test_onnx_breaks_ties_as_the_model_does() -> None:
    table = make_balance_scale()
    columns = {name: table.frame[name].to_numpy(dtype=object) for name in table.schema.names}
    codes = np.array(["LBR".index(one) for one in table.y], dtype=np.int32)
    model = estimate(count_arrays(table.schema, columns, codes))
    label, _ = run_onnx(to_onnx(model), columns)
    assert label.tolist() == model.predict(columns).tolist()


@pytest.mark.parametrize(
    ("classes", "spelt"),
    [
        ([0, 1], [0, 1]),
        ([True, False], ["true", "false"]),
        ([0.5, 1], ["0.5", "1"]),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_onnx_labels_keep_whole_numbers_and_spell_the_rest(classes: Any, spelt: Any) -> None:
    model, columns = made(classes=classes)
    label, _ = run_onnx(to_onnx(model), columns)
    codes = np.argmax(model.predict_joint_log_proba(columns), axis=1)
    assert label.tolist() == [spelt[code] for code in codes]


def test_onnx_leaves_out_what_the_model_refuses() -> None:
    model, _ = made()
    row: dict[str, Any] = {
        "colour": "red", "height": 1.0, "level": "2", "label": 4.0, "flag": "true",
        "probabilities": 12.0,
    }  # fmt: skip
    refused = {
        "colour": "purple", "height": 3.5, "level": "3", "label": 4.5, "flag": "",
        "probabilities": math.inf,
    }  # fmt: skip
    for name, value in refused.items():
        without = NaiveBayesModel(
            model.schema, model.log_prior, [f for f in model.factors if f.name != name]
        )
        arrays = {key: np.array([one], dtype=type(one)) for key, one in row.items()}
        odd = arrays | {name: np.array([value], dtype=type(value))}
        odd = {
            key: one.astype(object) if one.dtype.kind == "U" else one for key, one in odd.items()
        }
        _, probabilities = run_onnx(to_onnx(model), odd)
        with pytest.raises(ValueError, match=name):
            model.predict(odd)
        np.testing.assert_allclose(probabilities, without.predict_proba(arrays), atol=1e-9)


def test_onnx_survives_classes_and_rows_that_are_impossible() -> None:
    schema = Schema([Categorical("a", ["x", "y"], optional=False), Numeric("b")], "t", ["p", "q"])
    with np.errstate(divide="ignore"):
        table = np.log(np.array([[1.0, 0.0], [1.0, 0.0]]))
        prior = np.log(np.array([1.0, 0.0]))
    density = GaussianFactor(Numeric("b"), np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    model = NaiveBayesModel(
        schema, prior, [CellFactor(Cells.from_schema(schema, "a"), table), density]
    )
    columns = {
        "a": np.array(["x", "y", "x"], dtype=object),
        "b": np.array([0.0, 1.0, np.inf]),
    }
    label, probabilities = run_onnx(to_onnx(model), columns)
    np.testing.assert_allclose(probabilities, [[1, 0], [0.5, 0.5], [0.5, 0.5]])
    possible = {name: column[:2] for name, column in columns.items()}  # the model refuses infinity
    assert label.tolist()[:2] == model.predict(possible).tolist()


def test_onnx_carries_the_promise() -> None:
    onnx = pytest.importorskip("onnx")
    model, _ = made()
    whole = onnx.load_from_string(to_onnx(model))
    facts = {one.key: one.value for one in whole.metadata_props}
    assert facts["schema_digest"] == model.schema.digest
    assert whole.doc_string == facts["guarantee"] == str(model.guarantee)


def test_a_model_without_features_is_refused() -> None:
    model, _ = made()
    with pytest.raises(EstimationError, match="no features"):
        to_onnx(NaiveBayesModel(model.schema, model.log_prior, []))


@pytest.mark.parametrize("how", [{}, {"binned": True, "unseen": "other"}, {"missing": "category"}])
def test_skops_predicts_the_same_and_trusts_one_class(how: dict[str, Any]) -> None:
    skops = pytest.importorskip("skops.io")
    model, columns = made(**how)
    content = to_skops(model)
    trusted = ["discreet.model.export.ModelClassifier"]
    assert skops.get_untrusted_types(data=content) == trusted
    loaded = skops.loads(content, trusted=trusted)
    assert loaded.predict(columns).tolist() == model.predict(columns).tolist()
    np.testing.assert_array_equal(loaded.predict_proba(columns), model.predict_proba(columns))
    assert loaded.classes_.tolist() == model.classes.tolist()


def test_the_classifier_works_with_scikit_learn() -> None:
    import pandas as pd
    from sklearn.base import clone
    from sklearn.metrics import accuracy_score
    from sklearn.pipeline import make_pipeline

    model, columns = made()
    frame = pd.DataFrame(columns)
    classifier = clone(ModelClassifier(model.to_json()))
    predicted = make_pipeline(classifier).fit(frame, None).predict(frame)
    assert accuracy_score(model.predict(columns), predicted) == 1.0
    joint = classifier.predict_joint_log_proba(frame)
    np.testing.assert_array_equal(joint, model.predict_joint_log_proba(columns))
    np.testing.assert_allclose(np.exp(classifier.predict_log_proba(frame)).sum(axis=1), 1.0)


@pytest.mark.parametrize(("write", "package"), [(to_onnx, "onnx"), (to_skops, "skops")])
def test_a_missing_extra_says_how_to_get_it(
    write: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = builtins.__import__

    def refuse(name: str, *rest: Any, **how: Any) -> Any:
        if name.split(".")[0] == package:
            raise ImportError(name)
        return genuine(name, *rest, **how)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=rf"{package} .*discreet\[export\]"):
        write(made()[0])
