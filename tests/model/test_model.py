import json
import math

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from discreet import (
    Categorical,
    FormatError,
    Guarantee,
    NaiveBayesModel,
    Numeric,
    Schema,
    SchemaError,
    estimate,
)
from discreet.model import CellFactor, GaussianFactor, compute_log_posterior
from discreet.schema.cells import Cells
from discreet.tables.in_memory import count_arrays


def schema(**options):
    features = [
        Numeric("age", 0, 100),
        Numeric("score", 0, 1),
        Numeric("binned", 0, 1),
        Categorical("colour", ["red", "blue"]),
    ]
    return Schema(features, "y", ["no", "yes"], **options)


def model(missing="skip"):
    """One factor of every kind, with numbers that can be checked by hand."""
    public = schema(missing=missing, missing_tokens=["?"])
    absent = None if missing == "skip" else np.array([0.1, 0.3])
    colour = (
        [[0.7, 0.3, 1.0], [0.2, 0.8, 1.0]]
        if missing == "skip"
        else [
            [0.6, 0.3, 0.1],
            [0.1, 0.6, 0.3],
        ]
    )
    bins = Cells.from_schema(public, "binned", 2)
    return NaiveBayesModel(
        public,
        np.log([0.6, 0.4]),
        [
            GaussianFactor(
                public["age"], np.array([40.0, 60]), np.array([100.0, 25]), False, absent
            ),
            GaussianFactor(public["score"], np.array([0.2, 1.4]), np.array([0.1, 0.5]), True),
            CellFactor(bins, np.log([[0.25, 0.75, 1.0], [0.5, 0.5, 1.0]])),
            CellFactor(Cells.from_schema(public, "colour"), np.log(colour)),
        ],
        Guarantee(0.5),
    )


ROW = {"age": 44.0, "score": 0.3, "binned": 0.9, "colour": "blue"}


def by_hand(row):
    total = np.log([0.6, 0.4])
    if row["age"] is not None:
        total += norm.logpdf(row["age"], [40, 60], [10, 5])
    mean, deviation = np.array([0.2, 1.4]), np.sqrt([0.1, 0.5])
    low, high = (0 - mean) / deviation, (1 - mean) / deviation
    total += truncnorm.logpdf(row["score"], low, high, mean, deviation)
    total += np.log([0.75, 0.5])
    total += np.log([0.3, 0.8]) if row["colour"] == "blue" else 0
    return total


def test_the_score_is_the_sum_of_the_factors():
    for row in (ROW, {**ROW, "age": None}, {**ROW, "colour": "?"}, {**ROW, "colour": None}):
        np.testing.assert_allclose(model().predict_joint_log_proba([row])[0], by_hand(row))
    posterior = model().predict_proba([ROW])[0]
    joint = np.exp(by_hand(ROW))
    np.testing.assert_allclose(posterior, joint / joint.sum())
    assert model().predict([ROW]).tolist() == ["no"]
    np.testing.assert_allclose(np.exp(model().predict_log_proba([ROW])[0]), posterior)


def test_missing_can_be_evidence():
    public = model("category")
    missing = public.predict_joint_log_proba([{**ROW, "age": None}])[0]
    present = public.predict_joint_log_proba([ROW])[0]
    expected = norm.logpdf(44, [40, 60], [10, 5]) + np.log([0.9, 0.7])
    np.testing.assert_allclose(present - missing, expected - np.log([0.1, 0.3]))


def test_the_truncated_density_integrates_to_one_also_in_the_tail():
    feature = Numeric("x", 0, 1)
    grid = np.linspace(0, 1, 20001)
    for mean, variance in ((0.5, 0.1), (3.0, 0.05), (-8.0, 0.2), (0.5, 1e-4), (0.5, 1e6)):
        factor = GaussianFactor(feature, np.array([mean]), np.array([variance]), True)
        log_density = factor.log_constant[0] - (grid - mean) ** 2 / (2 * variance)
        assert np.trapezoid(np.exp(log_density), grid) == pytest.approx(1, rel=1e-3)


@pytest.mark.slow
def test_thousands_of_features_neither_overflow_nor_underflow():
    names = [f"f{i}" for i in range(5000)]
    public = Schema([Categorical(n, [0, 1], optional=False) for n in names], "y", [0, 1])
    factors = [
        CellFactor(Cells.from_schema(public, n), np.log([[0.999, 0.001], [0.001, 0.999]]))
        for n in names
    ]
    extreme = NaiveBayesModel(public, np.log([0.5, 0.5]), factors)
    rows = np.vstack([np.zeros(5000), np.ones(5000), np.arange(5000) % 2])
    with np.errstate(all="raise", under="ignore"):
        probability = extreme.predict_proba(rows)
    np.testing.assert_allclose(probability, [[1, 0], [0, 1], [0.5, 0.5]], atol=1e-9)
    assert np.isfinite(extreme.predict_log_proba(rows)).all()


def test_what_no_class_can_explain_is_left_undecided():
    np.testing.assert_allclose(
        np.exp(compute_log_posterior(np.array([[-np.inf, -np.inf], [-np.inf, 0.0]]))),
        [[0.5, 0.5], [0, 1]],
    )


def test_an_explanation_adds_up():
    why = model().explain(ROW)
    joint = by_hand(ROW)
    assert why.predicted == "no"
    assert why.log_odds == pytest.approx(joint[0] - joint[1])
    assert why.evidence[0].feature == "age"
    sizes = [abs(one.log_odds) for one in why.evidence]
    assert sizes == sorted(sizes, reverse=True)
    assert why.probability == pytest.approx(model().predict_proba([ROW])[0, 0])
    text = str(why)
    assert "no rather than yes" in text
    assert "colour = blue" in text
    assert model().explain(list(ROW.values()), against="yes").log_odds == why.log_odds
    assert model().explain({**ROW, "age": "?"}).evidence[-1].value == "(missing)"


def test_show_prints_promise_priors_and_evidence(capsys):
    model().show()
    printed = capsys.readouterr().out
    for part in ("epsilon = 0.5", "0.600", "colour", "blue", "40 ± 10"):
        assert part in printed


def test_names_are_shown_as_they_are_and_never_read_as_markup(capsys):
    public = Schema([Categorical("[bold]a", ["[/y]", "x"])], "[red]t", ["[/no]", "yes"])
    table = np.log([[0.3, 0.7, 1.0], [0.6, 0.4, 1.0]])
    factor = CellFactor(Cells.from_schema(public, "[bold]a"), table)
    NaiveBayesModel(public, np.log([0.5, 0.5]), [factor]).show()
    printed = capsys.readouterr().out
    for part in ("[bold]a", "[/y]", "[red]t", "[/no]"):
        assert part in printed


def test_without_factors_the_prior_decides():
    bare = NaiveBayesModel(schema(), np.log([0.3, 0.7]), [])
    assert bare.predict([ROW, ROW]).tolist() == ["yes", "yes"]


def test_json_round_trip_is_exact():
    for missing in ("skip", "category"):
        before = model(missing)
        after = NaiveBayesModel.from_json(before.to_json())
        rows = [ROW, {**ROW, "age": None, "colour": "red"}]
        np.testing.assert_array_equal(
            before.predict_joint_log_proba(rows), after.predict_joint_log_proba(rows)
        )
        assert after.guarantee == before.guarantee
        assert after.schema == before.schema
        assert after.to_json() == before.to_json()


def test_a_class_that_never_occurs_survives_the_journey():
    public = Schema([Numeric("x", 0, 1)], "y", ["a", "b"])
    trained = estimate(
        count_arrays(public, {"x": np.array([0.1, 0.2])}, np.array([0, 0], dtype=np.int32))
    )
    again = NaiveBayesModel.from_json(trained.to_json())
    assert again.log_prior.tolist() == [0.0, -math.inf]
    assert again.predict([[0.9]]).tolist() == ["a"]


def change(text, edit):
    body = json.loads(text)
    edit(body)
    return json.dumps(body)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda b: b.update(version=99), "only; update discreet"),
        (lambda b: b.update(version=1), "make the model again"),
        (lambda b: b.update(format="discreet/plan"), "not a discreet model"),
        (lambda b: b["log_prior"].reverse(), "changed or damaged"),
        (lambda b: b["guarantee"].update(epsilon=0.01), "changed or damaged"),
        (lambda b: b.pop("digest"), "changed or damaged"),
        (lambda b: b.pop("format"), "not a discreet model"),
    ],
)
def test_a_changed_file_is_refused(edit, says):
    with pytest.raises(FormatError) as error:
        NaiveBayesModel.from_json(change(model().to_json(), edit))
    assert says in str(error.value)


def test_hostile_json_is_refused_with_a_sentence():
    deep = '{"format": "discreet/model", "version": 2, "x": ' + "[" * 900 + "]" * 900 + "}"
    half = '{"format": "discreet/model", "version": 2, "x": "\\ud800"}'
    for text in (deep, half, "[" * 100_000):
        with pytest.raises(FormatError):
            NaiveBayesModel.from_json(text)


def test_every_truncation_is_refused():
    text = model().to_json()
    for end in range(0, len(text) - 2, 97):
        with pytest.raises(FormatError):
            NaiveBayesModel.from_json(text[:end])


def sealed(edit):
    """A file whose seal is right but whose content is not: it must still be refused."""
    from discreet.files.documents import compute_digest, encode_canonical

    body = json.loads(model().to_json())
    edit(body)
    body.pop("digest")
    body["digest"] = compute_digest(encode_canonical(body))
    return json.dumps(body)


@pytest.mark.parametrize(
    "edit",
    [
        lambda b: b["factors"][0].update(variance=[1.0, -1.0]),
        lambda b: b["factors"][0].update(variance=[1.0]),
        lambda b: b["factors"][0].update(mean=["nan", 1.0]),
        lambda b: b["factors"][0].update(missing=[0.5]),
        lambda b: b["factors"][3].update(log_probability=[[0.0, 0.0, 0.0], [0.0]]),
        lambda b: b["factors"][3].update(log_probability=[[9.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        lambda b: b["factors"].append(b["factors"][0]),
        lambda b: b.update(log_prior=["nan", -1.0]),
        lambda b: b["factors"][0].update(feature="colour"),
        lambda b: b["factors"][0].update(feature="nobody"),
        lambda b: b["factors"][3].update(log_probability=[[0.0], [0.0]]),
        lambda b: b["factors"][2].update(edges=[1.0, 0.0]),
        lambda b: b["factors"][0].update(kind="python/object"),
        lambda b: b["factors"][0].update(extra="__import__('os')"),
        lambda b: b.update(log_prior=["x", 0]),
        lambda b: b["schema"].update(classes=["no"]),
    ],
)
def test_a_forged_file_is_refused(edit):
    with pytest.raises((FormatError, SchemaError)):
        NaiveBayesModel.from_json(sealed(edit))


def test_rows_are_matched_by_name_and_checked():
    import pandas as pd

    frame = pd.DataFrame([ROW])[["colour", "binned", "score", "age"]]
    np.testing.assert_allclose(model().predict_joint_log_proba(frame)[0], by_hand(ROW))
    with pytest.raises(SchemaError, match="lacks the column age"):
        model().predict(frame.drop(columns="age"))
    with pytest.raises(SchemaError, match="outside the public bounds"):
        model().predict([{**ROW, "age": 140}])
    with pytest.raises(SchemaError, match="'green' is not one of"):
        model().predict([{**ROW, "colour": "green"}])


def test_evidence_names_classes_as_the_priors_do():
    """Classes that are booleans or numbers are written as in the schema's file."""
    from discreet import MixedNB
    from discreet.model.strongest_evidence import find_strongest_evidence

    X = np.array([["short"], ["tall"]], dtype=object).repeat(20, axis=0)
    model = MixedNB().fit(X, X[:, 0] == "tall").model_
    labels = {line.label for line in find_strongest_evidence(model, 4)}
    assert labels == {"true", "false"}
