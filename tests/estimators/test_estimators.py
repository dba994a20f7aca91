import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from discreet import (
    Categorical,
    CentralNB,
    FederatedNB,
    LocalNB,
    MixedNB,
    NaiveBayesModel,
    Numeric,
    PrivacyError,
    PrivacyWarning,
    Schema,
    SchemaError,
    Statistics,
    SurveyNB,
    estimate,
)
from discreet.datasets import make_mortgage


def mixed(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue", "green"], n),
            "length": rng.normal(y, 1.0),
            "flag": rng.random(n) < 0.3 + 0.2 * y,
            "weight": rng.normal(10 * y, 5.0),
        }
    )
    return frame, np.array(["a", "b", "c"])[y]


def by_hand(frame, y, train, alpha=1.0):
    """The same classifier from scikit-learn's two halves."""
    numeric = frame[["length", "weight"]].to_numpy()
    codes = np.column_stack([pd.Categorical(frame["colour"]).codes, frame["flag"].astype(int)])
    gaussian = GaussianNB().fit(numeric[train], y[train])
    categorical = CategoricalNB(alpha=alpha).fit(codes[train], y[train])
    joint = gaussian.predict_joint_log_proba(numeric) + categorical.predict_joint_log_proba(codes)
    return joint - np.log(gaussian.class_prior_)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"missing": "category"}, {"unseen": "other"}])
def test_all_of_scikit_learns_checks_pass(options):
    check_estimator(MixedNB(**options))


def test_no_check_is_excepted():
    names = [check.func.__name__ for _, check in estimator_checks_generator(MixedNB())]
    assert len(names) > 40


def test_equals_gaussian_nb_on_numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 7)) * [1, 10, 1e-3, 1, 1e4, 1, 1] + [0, 1e6, 0, 5, 0, 0, -3]
    y = rng.integers(0, 4, 600)
    # with weights, scikit-learn still smooths by the unweighted variance; ours is the weighted one
    for weight, smoothing in ((None, 1e-9), (rng.random(600), 0.0)):
        ours, theirs = (
            nb(var_smoothing=smoothing).fit(X, y, sample_weight=weight)
            for nb in (MixedNB, GaussianNB)
        )
        np.testing.assert_allclose(
            ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(ours.class_prior_, theirs.class_prior_, atol=1e-12)
    prior = [0.1, 0.2, 0.3, 0.4]
    np.testing.assert_allclose(
        MixedNB(class_prior=prior, var_smoothing=1e-3).fit(X, y).predict_log_proba(X),
        GaussianNB(priors=prior, var_smoothing=1e-3).fit(X, y).predict_log_proba(X),
        atol=1e-9,
    )


@pytest.mark.parametrize("alpha", [1.0, 0.1, 1e-10, 7])
def test_equals_categorical_nb_on_codes(alpha):
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, [3, 5, 2, 9], (500, 4)), rng.integers(0, 3, 500)
    for weight in (None, rng.random(500)):
        ours = MixedNB(alpha=alpha, categorical_features="all").fit(X, y, sample_weight=weight)
        theirs = CategoricalNB(alpha=alpha).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(
            ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-9
        )


def test_equals_categorical_nb_where_a_code_does_not_occur():
    X = np.array([[0], [2], [3], [0], [2]])
    y = [0, 1, 1, 0, 0]
    ours = MixedNB(categorical_features="all").fit(X, y)
    theirs = CategoricalNB().fit(X, y)
    every = np.arange(4)[:, None]
    np.testing.assert_allclose(ours.predict_log_proba(every), theirs.predict_log_proba(every))


def test_mixed_columns_are_the_product_of_both_halves():
    frame, y = mixed()
    train = np.arange(300)
    model = MixedNB().fit(frame.iloc[train], y[train])
    np.testing.assert_allclose(
        model.predict_joint_log_proba(frame), by_hand(frame, y, train), atol=1e-9
    )
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.n_features_in_ == 4


def test_every_container_gives_the_same_answer():
    import polars as pl
    import pyarrow as pa

    frame, y = mixed()
    expected = MixedNB().fit(frame, y).predict_proba(frame)
    containers = [
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame.astype({"colour": "category"}),
        frame.to_numpy(dtype=object),
        frame.to_numpy(dtype=object).tolist(),
    ]
    for rows in containers:
        np.testing.assert_allclose(MixedNB().fit(rows, y).predict_proba(rows), expected)
    text = MixedNB(categorical_features=[0, 2]).fit(frame.to_numpy(dtype=object), y)
    np.testing.assert_allclose(text.predict_proba(frame.to_numpy(dtype=object)), expected)


@pytest.mark.parametrize(
    "choice", [["colour", "flag"], [0, 2], [True, False, True, False], [0, -2]]
)
def test_ways_to_name_the_categorical_columns(choice):
    frame, y = mixed()
    np.testing.assert_allclose(
        MixedNB(categorical_features=choice).fit(frame, y).predict_proba(frame),
        MixedNB().fit(frame, y).predict_proba(frame),
    )


@pytest.mark.parametrize("choice", [["color"], [9], [True], "some"])
def test_a_wrong_choice_of_columns_is_explained(choice):
    frame, y = mixed()
    with pytest.raises(SchemaError, match=r"categorical_features|mask"):
        MixedNB(categorical_features=choice).fit(frame, y)


def test_batches_add_up_to_the_whole():
    frame, y = mixed(900)
    whole = MixedNB(var_smoothing=0).fit(frame, y)
    parts = MixedNB(var_smoothing=0)
    for start in range(0, 900, 250):
        batch = slice(start, start + 250)
        parts.partial_fit(frame.iloc[batch], y[batch], classes=["a", "b", "c"])
    np.testing.assert_allclose(
        parts.predict_log_proba(frame), whole.predict_log_proba(frame), atol=1e-9
    )


def test_later_batches_may_bring_new_categories():
    first = pd.DataFrame({"c": ["x", "y", "x", "y"], "n": [1.0, 2, 3, 4]})
    second = pd.DataFrame({"c": ["z", "x", "z", "a"], "n": [2.0, 1, 5, 7]})
    model = MixedNB().partial_fit(first, [0, 1, 0, 1], classes=[0, 1])
    model.partial_fit(second, [0, 1, 1, 1])
    whole = MixedNB().fit(pd.concat([first, second]), [0, 1, 0, 1, 0, 1, 1, 1])
    np.testing.assert_allclose(model.predict_proba(second), whole.predict_proba(second), atol=1e-9)


def test_partial_fit_wants_all_classes_first():
    frame, y = mixed(20)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        MixedNB().partial_fit(frame, y)
    model = MixedNB().partial_fit(frame, y, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="not announced"):
        model.partial_fit(frame, ["d"] * 20)
    with pytest.raises(ValueError, match="not the same"):
        model.partial_fit(frame, y, classes=["a", "b"])
    model.fit(frame, ["d", "e"] * 10)  # a new fit forgets everything
    assert model.classes_.tolist() == ["d", "e"]


def test_missing_values_are_skipped_or_are_evidence():
    frame, y = mixed(600)
    frame = frame.astype({"colour": object, "flag": object})
    late = y == "c"
    frame.loc[late, "length"] = np.nan
    frame.loc[late, "colour"] = None
    probe = frame[late].iloc[:1]
    skip = MixedNB().fit(frame, y).predict_proba(probe)[0]
    evidence = MixedNB(missing="category").fit(frame, y).predict_proba(probe)[0]
    assert evidence[2] > 0.999
    assert skip[2] < evidence[2]
    rest = (
        MixedNB()
        .fit(frame[["flag", "weight"]], y)
        .predict_joint_log_proba(probe[["flag", "weight"]])
    )
    np.testing.assert_allclose(
        MixedNB().fit(frame, y).predict_joint_log_proba(probe), rest, atol=1e-5
    )


def test_a_category_never_seen_is_refused_or_rare():
    frame, y = mixed()
    odd = frame.iloc[:1].assign(colour="violet")
    with pytest.raises(SchemaError, match=r"'violet' is not one of .* set its unseen to 'other'"):
        MixedNB().fit(frame, y).predict(odd)
    assert MixedNB(unseen="other").fit(frame, y).predict_proba(odd).sum() == pytest.approx(1)


def test_a_schema_decides_everything():
    schema = Schema(
        [Numeric("length", -10, 10), Categorical("colour", ["red", "blue", "green", "grey"])],
        "y",
        ["c", "b", "a"],
    )
    frame, y = mixed()
    model = MixedNB(schema=schema, likelihood="truncated").fit(frame, y)
    assert model.classes_.tolist() == ["a", "b", "c"]  # sorted, as scikit-learn expects
    assert model.model_.schema == schema
    assert np.mean(model.predict(frame) == y) > 0.4
    model.predict(frame.assign(colour="grey"))
    with pytest.raises(SchemaError, match="lacks the column length"):
        MixedNB(schema=schema).fit(frame.drop(columns="length"), y)
    with pytest.raises(SchemaError, match="outside the public bounds"):
        MixedNB(schema=schema).fit(frame.assign(length=99.0), y)
    with pytest.raises(SchemaError, match="'d' is not one of the public classes"):
        MixedNB(schema=schema).fit(frame, ["d"] * len(frame))


def test_classes_of_a_schema_take_the_type_of_y():
    schema = Schema([Numeric("x", 0, 9)], "y", ["0", "1"])
    model = MixedNB(schema=schema).fit([[1.0], [8.0], [2.0], [9.0]], np.array([0, 1, 0, 1]))
    assert model.predict([[8.5]]).tolist() == [1]
    assert model.score([[1.0], [8.0]], [0, 1]) == 1.0
    # a list has no type of its own: no single label decides what all classes are called
    model = MixedNB(schema=schema).fit([[1.0], [8.0], [2.0], [9.0]], [0, 1, 0, 1.0])
    assert model.predict([[8.5]]).tolist() == ["1"]


@pytest.mark.slow
def test_it_lives_in_pipelines_and_searches():
    frame, y = mixed()
    scale = make_column_transformer(
        (StandardScaler(), ["length", "weight"]), remainder="passthrough"
    )
    pipeline = make_pipeline(scale, FunctionTransformer(), MixedNB())
    assert cross_val_score(pipeline, frame, y, cv=3).mean() > 0.6
    search = GridSearchCV(MixedNB(), {"alpha": [0.1, 1], "missing": ["skip", "category"]}, cv=3)
    assert search.fit(frame, y).best_score_ > 0.6
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


def test_the_model_says_that_it_promises_nothing():
    frame, y = mixed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MixedNB().fit(frame, y)
    assert not model.guarantee_.is_private
    again = NaiveBayesModel.from_json(model.model_.to_json())
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame))
    assert again.predict(frame).tolist() == model.predict(frame).tolist()


@pytest.mark.parametrize(
    ("X", "y", "says"),
    [
        ([[1.0], [2.0]], None, "requires y to be passed"),
        ([[1.0], [np.inf]], [0, 1], "infinity"),
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([[1.0], [2.0]], [0.5, 0.1], "Unknown label type"),
        ([1.0, 2.0], [0, 1], "Expected 2D array"),
        (np.empty((0, 2)), [], "0 sample"),
        (pd.DataFrame({"a": []}), [], "0 sample"),
        ([[1 + 2j], [2.0]], [0, 1], "Complex data not supported"),
    ],
)
def test_bad_input_is_named(X, y, says):
    with pytest.raises(ValueError, match=says):
        MixedNB().fit(X, y)


def test_weights_of_all_zero_teach_nothing():
    with pytest.raises(ValueError, match="sample_weight is zero for every row"):
        MixedNB().fit([[1.0], [2.0]], [0, 1], sample_weight=[0, 0])
    with pytest.raises(ValueError, match="a weight is -1"):
        MixedNB().fit([[1.0], [2.0]], [0, 1], sample_weight=[1, -1])


@pytest.mark.parametrize("prior", [[0.5], [0.5, 0.6], [1.5, -0.5], [np.nan, 1], "even"])
def test_priors_are_checked(prior):
    with pytest.raises(SchemaError, match=r"class_prior.*one probability for each class"):
        MixedNB(class_prior=prior).fit([[1.0], [2.0]], [0, 1])


SMALL = Schema([Numeric("size", 0, 9), Categorical("flag", [0, 1])], "class", [0, 1])
PRIVATE = [CentralNB, LocalNB, SurveyNB, FederatedNB]
FITTED = {
    "classes_",
    "class_count_",
    "class_prior_",
    "feature_names_in_",
    "guarantee_",
    "model_",
    "n_features_in_",
    "schema_",
    "statistics_",
}
OWN = {
    LocalNB: {"judging_plan_", "plan_", "projection_"},
    SurveyNB: {"questionnaire_"},
    FederatedNB: {"manifest_", "judging_manifest_", "inconsistent_"},
}


def small(n=200):
    y = np.arange(n) % 2
    return pd.DataFrame({"size": 1.0 + 7 * y, "flag": y}), y


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
def test_all_estimators_learn_the_same_names(nb):
    X, y = small()
    fitted = nb(schema=SMALL).fit(X, y)
    assert {name for name in vars(fitted) if name.endswith("_")} == FITTED | OWN.get(nb, set())
    assert fitted.schema_ is SMALL
    assert fitted.guarantee_ == fitted.model_.guarantee == fitted.statistics_.guarantee
    np.testing.assert_allclose(fitted.class_prior_, np.exp(fitted.model_.log_prior))
    np.testing.assert_allclose(fitted.class_count_, fitted.statistics_.totals)


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
def test_the_statistics_alone_give_the_model(nb):
    X, y = small()
    fitted = nb(schema=SMALL).fit(X, y)
    again = estimate(Statistics.from_json(fitted.statistics_.to_json()))
    np.testing.assert_allclose(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("nb", PRIVATE)
def test_what_no_promise_allows_is_refused_with_the_reason(nb):
    assert not hasattr(nb(), "partial_fit")
    with pytest.raises(PrivacyError, match=rf"{nb.__name__} has no partial_fit: .* once"):
        nb().partial_fit  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("nb", PRIVATE)
def test_a_second_private_fit_says_that_budgets_add_up(nb):
    X, y = small()
    fitted = nb(schema=SMALL).fit(X, y)
    with pytest.warns(PrivacyWarning, match="2 fits") as caught:
        fitted.fit(X, y)
    assert {one.filename for one in caught} == {__file__}  # the warning points at the user's line
    other = X.assign(size=X["size"] / 2 + 0.01)  # nobody can tell whether these are others
    with pytest.warns(PrivacyWarning, match="budgets of both fits add up") as caught:
        fitted.fit(other, y)
    assert {one.filename for one in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.set_params(random_state=0).fit(X, y)  # promises nothing
        fitted.set_params(random_state=None).fit(X.assign(size=0.5), y)  # nothing to add to


@pytest.mark.parametrize("nb", PRIVATE)
def test_the_warning_about_a_missing_schema_points_at_the_line_that_fits(nb):
    with pytest.warns(PrivacyWarning, match=rf"write {nb.__name__}\(schema=") as caught:
        nb().fit(*small())
    assert {one.filename for one in caught} == {__file__}


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
def test_a_fit_that_fails_leaves_no_half_new_estimator(nb):
    X, y = small()
    fitted = nb(schema=SMALL).fit(X, y)
    with pytest.raises(SchemaError):
        fitted.fit(X.drop(columns="flag"), y)
    with pytest.raises(NotFittedError):
        fitted.predict(X)


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
def test_changing_the_schema_parameter_does_not_change_a_fitted_model(nb):
    X, y = small()
    fitted = nb(schema=SMALL).fit(X, y)
    before = fitted.predict_proba(X)
    fitted.set_params(schema=Schema([Numeric("other", 0, 1)], "class", [0, 1]))
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
def test_an_estimator_is_shown_in_a_line_or_two(nb):
    many = Schema([Categorical(f"c{i}", range(50)) for i in range(40)], "class", range(30))
    shown = repr(nb(schema=many))
    assert len(shown) < 200
    assert "Schema(40 features" in shown


def test_rows_of_weight_zero_are_not_there_where_the_schema_is_taken_from_the_data():
    frame = pd.DataFrame({"c": ["a", "b", "z"], "n": [1.0, 2.0, 99.0]})
    for nb in (MixedNB(), CentralNB(np.inf)):
        with_row = nb.fit(frame, [0, 1, 2], sample_weight=[1, 2, 0])
        assert with_row.classes_.tolist() == [0, 1]
        assert with_row.schema_["c"].values == ("a", "b")


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pd.Series([10**400] * 20, dtype=object), "size: a whole number is too large"),
        (np.full(20, 1j), "size: .*(complex|not a number)"),
        (pd.to_datetime(["2020-01-01"] * 20), "size: .*(dates|not a number)"),
    ],
    ids=["huge", "complex", "date"],
)
def test_values_that_are_no_numbers_are_named_with_their_column(nb, known, column, says):
    X, y = small(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        with pytest.raises(SchemaError, match=says):
            nb(schema=SMALL if known else None).fit(X.assign(size=column), y)


@pytest.mark.parametrize("nb", [MixedNB, *PRIVATE])
def test_a_column_that_is_there_twice_is_refused(nb):
    X, y = small(20)
    with pytest.raises(SchemaError, match="more than one column named size"):
        nb(schema=SMALL).fit(pd.concat([X, X["size"]], axis=1), y)


def test_weights_that_are_not_numbers_are_refused():
    X, y = small(20)
    with pytest.raises(SchemaError, match="sample_weight is not numeric"):
        MixedNB().fit(X, y, sample_weight=["much"] * 20)


def test_categories_may_be_numbers_beyond_all_floats():
    X = pd.DataFrame({"c": pd.Series([10**400, 1, "a", -(10**400)], dtype=object)})
    nb = MixedNB(categorical_features="all").fit(X, [0, 1, 0, 1])
    assert [str(value)[:3] for value in nb.schema_["c"].values] == ["-10", "1", "100", "a"]


@pytest.mark.slow
def test_columns_are_found_by_name_where_a_schema_was_given(tmp_path):
    """Others may be there, in any order; without a schema scikit-learn's rule holds."""
    people = make_mortgage(400)
    table = people.X.assign(**{people.schema.target: people.y, "id": range(400)})
    table.to_csv(tmp_path / "people.csv", index=False)
    in_memory = CentralNB(epsilon=1.0, schema=people.schema).fit(table.iloc[:, ::-1], people.y)
    from_source = CentralNB(epsilon=1.0, schema=people.schema)
    from_source.fit_source(tmp_path / "people.csv")
    assert set(in_memory.feature_names_in_) == set(people.schema.names)
    for estimator in (in_memory, from_source):
        expected = estimator.model_.predict_proba(people.X)
        for X in (people.X, table, table.iloc[:, ::-1], people.X.iloc[:, ::-1]):
            np.testing.assert_array_equal(estimator.predict_proba(X), expected)
            np.testing.assert_array_equal(estimator.predict_proba(pl.from_pandas(X)), expected)
            arrow = pa.Table.from_pandas(X, preserve_index=False)
            np.testing.assert_array_equal(estimator.predict_proba(arrow), expected)
        with pytest.raises(SchemaError, match="X lacks the column age; it has"):
            estimator.predict(people.X.drop(columns="age"))
    with pytest.warns(PrivacyWarning):
        inferred = CentralNB(epsilon=1.0).fit(people.X, people.y)
    with pytest.raises(ValueError, match="feature names should match"):
        inferred.predict(people.X.iloc[:, ::-1])
