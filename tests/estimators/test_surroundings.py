"""What a Pipeline, a search or a vote does around a private fit, and what it costs the promise."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from discreet import (
    CentralNB,
    LocalNB,
    Numeric,
    PrivacyError,
    PrivacyWarning,
    Schema,
)
from discreet.estimators import sklearn_context
from discreet.privacy.ledger import MemoryLedger

RNG = np.random.default_rng(3)
Y = np.arange(200) % 2
X = RNG.normal(Y[:, None], 0.5, (200, 2))
PUBLIC = RNG.normal(0.5, 1.0, (50, 2))


def wide(columns: int) -> Schema:
    return Schema(
        [Numeric(f"x{i}", -1e6, 1e6) for i in range(columns)], "class", [0, 1], outliers="clip"
    )


def told(model, rows=X, y=Y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyWarning)
        model.fit(rows, y)
    return [str(one.message) for one in caught if issubclass(one.category, PrivacyWarning)]


LEARNING = [
    StandardScaler(),
    MinMaxScaler(),
    SimpleImputer(),
    SimpleImputer(strategy="constant", fill_value=0, add_indicator=True),
    PCA(2),
    SelectKBest(k=2),
    KBinsDiscretizer(2, encode="ordinal", quantile_method="linear")
    if "quantile_method" in KBinsDiscretizer().get_params()
    else KBinsDiscretizer(2, encode="ordinal"),
    ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough"),
    ColumnTransformer([("as it is", "passthrough", [0])], remainder=StandardScaler()),
    FeatureUnion([("as it is", "passthrough"), ("pca", PCA(1))]),
    Pipeline([("as it is", FunctionTransformer()), ("scale", StandardScaler())]),
]


@pytest.mark.parametrize("transformer", LEARNING, ids=lambda one: type(one).__name__)
def test_a_transformer_that_learns_from_the_rows_voids_the_promise(transformer):
    width = transformer.fit_transform(X, Y).shape[1]
    learner = {"ColumnTransformer": "StandardScaler", "FeatureUnion": "PCA"}
    name = type(transformer).__name__
    name = learner.get(name, "StandardScaler" if name == "Pipeline" else name)
    model = make_pipeline(transformer, CentralNB(schema=wide(width)))
    (said,) = told(model)
    assert said.startswith(f"CentralNB: the promise is void: {name} learnt from the rows")
    promise = model[-1].guarantee_
    assert not promise.is_private
    assert str(promise).startswith(f"NOT KEPT: {name} learnt from the rows before this fit")
    budget = MemoryLedger(10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with pytest.raises(PrivacyError, match=f"cannot be charged .{name} learnt from the rows"):
            model.set_params(centralnb__budget=budget).fit(X, Y)
    assert budget.read().entries == ()


STATELESS = [
    "passthrough",
    FunctionTransformer(np.abs),
    Normalizer(),
    PolynomialFeatures(1, include_bias=False),
    FrozenEstimator(StandardScaler().fit(PUBLIC)),
    FrozenEstimator(make_pipeline(StandardScaler(), PCA(2)).fit(PUBLIC)),
    SimpleImputer(strategy="constant", fill_value=0.0),
    ColumnTransformer([("as it is", "passthrough", [0])], remainder=FunctionTransformer()),
]


@pytest.mark.parametrize(
    "transformer", STATELESS, ids=lambda one: one if isinstance(one, str) else type(one).__name__
)
def test_a_transformer_that_learns_nothing_costs_nothing(transformer):
    model = make_pipeline(transformer, CentralNB(schema=wide(2), budget=MemoryLedger(1.0)))
    assert told(model) == []
    assert model[-1].guarantee_.is_private


def test_a_composition_is_its_parts_and_a_part_is_judged_by_itself():
    scale, pca = StandardScaler(), PCA(1)
    columns = ColumnTransformer([("scale", scale, [0])], remainder=pca)
    for composed in (columns, FeatureUnion([("a", scale), ("b", pca)]), make_pipeline(scale, pca)):
        assert sklearn_context._list_inner_transformers(composed) == [scale, pca]
        assert sklearn_context._list_learning_transformers(composed) == ["StandardScaler", "PCA"]
    for transformer, learns in [
        (scale, True),
        (SimpleImputer(), True),
        (SimpleImputer(strategy="constant"), False),
        (OrdinalEncoder(), True),
        (OrdinalEncoder(categories=[[0, 1]], max_categories=2), True),
        (OrdinalEncoder(categories=[[0, 1]]), False),
        (PolynomialFeatures(), False),
    ]:
        assert sklearn_context._list_inner_transformers(transformer) is None
        assert sklearn_context._learns_from_rows(transformer) is learns


def test_categories_that_were_written_down_were_not_learnt():
    colours = pd.DataFrame({"colour": np.array(["red", "blue"])[Y], "size": X[:, 0]})
    for encoder, learns in [
        (OrdinalEncoder(categories=[["blue", "red"]]), False),
        (OneHotEncoder(categories=[["blue", "red"]], sparse_output=False), False),
        (OrdinalEncoder(), True),
        (OneHotEncoder(sparse_output=False), True),
        (OneHotEncoder(categories=[["blue", "red"]], drop="if_binary", sparse_output=False), True),
        (OneHotEncoder(categories=[["blue", "red"]], min_frequency=2, sparse_output=False), True),
    ]:
        coded = ColumnTransformer([("colour", encoder, ["colour"])], remainder="passthrough")
        width = coded.fit_transform(colours).shape[1]
        model = make_pipeline(coded, CentralNB(schema=wide(width)))
        said = told(model, colours)
        assert model[-1].guarantee_.is_private is not learns
        assert any(type(encoder).__name__ in one for one in said) is learns


def test_what_learnt_somewhere_else_cannot_be_seen():
    """The documented limit: scaled before fit is called, nobody can tell."""
    scaled = StandardScaler().fit_transform(X)
    assert told(CentralNB(schema=wide(2)), scaled) == []


@pytest.mark.filterwarnings("ignore::discreet.PrivacyWarning")  # others than those expected
def test_a_pipeline_inside_a_search_is_seen_there_too():
    model = make_pipeline(StandardScaler(), CentralNB(schema=wide(2)))
    with pytest.warns(PrivacyWarning, match="StandardScaler learnt from the rows"):
        cross_val_score(model, X, Y, cv=2)
    with pytest.warns(PrivacyWarning, match="StandardScaler learnt from the rows"):
        best = GridSearchCV(model, {"centralnb__epsilon": [1.0]}, cv=2).fit(X, Y).best_estimator_
    assert not best[-1].guarantee_.is_private


@pytest.mark.parametrize(
    ("around", "says"),
    [
        (lambda nb: GridSearchCV(nb, {"bins": [3]}, cv=2), "compares exact scores"),
        (lambda nb: CalibratedClassifierCV(nb, cv=2), "learns from the rows again"),
        (lambda nb: VotingClassifier([("a", nb), ("b", GaussianNB())]), "also fits GaussianNB"),
        (lambda nb: StackingClassifier([("a", nb)], cv=2), "also fits LogisticRegression"),
        (lambda nb: StackingClassifier([("a", nb)], final_estimator=GaussianNB(), cv=2), "Gaussia"),
    ],
)
def test_what_is_learnt_beside_the_private_fits_is_said(around, says):
    nb = CentralNB(schema=wide(2), budget=MemoryLedger(100.0))
    assert [says in one for one in told(around(nb))] == [True]  # once, not once a fit
    assert told(around(CentralNB(schema=wide(2), random_state=0))) == []  # promises nothing
    assert (
        told(VotingClassifier([("a", nb), ("b", LocalNB(schema=wide(2), budget=nb.budget))])) == []
    )


def test_a_private_judge_of_other_models_promises_only_if_they_do():
    judge = CentralNB(schema=wide(1), budget=MemoryLedger(9.0))
    private = CentralNB(schema=wide(2), budget=MemoryLedger(9.0))
    model = StackingClassifier([("a", private)], final_estimator=judge, cv=2)
    assert told(model) == []
    assert model.final_estimator_.guarantee_.is_private
    model = StackingClassifier([("a", GaussianNB())], final_estimator=judge, cv=2)
    with pytest.warns(PrivacyWarning), pytest.raises(PrivacyError, match="GaussianNB learnt"):
        model.fit(X, Y)
