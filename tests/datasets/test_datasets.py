"""Claims about the benchmark tables, the two exact tables and the generated population."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from discreet import MixedNB, datasets
from discreet.errors import FormatError, PrivacyWarning, SchemaError
from discreet.schema.schema import Categorical, Schema

TABLES = Path(os.environ.get("DISCREET_DATA", "no such folder"))


def assert_respects_schema(dataset: datasets.Dataset) -> None:
    schema, frame = dataset.schema, dataset.frame
    assert list(frame.columns) == [*schema.names, schema.target]
    assert set(dataset.y) <= set(schema.classes)
    for feature in schema.features:
        column = frame[feature.name]
        assert feature.optional or not column.isna().any(), feature.name
        if isinstance(feature, Categorical):
            assert column.dtype == object
            assert set(column.dropna()) <= set(feature.values), feature.name
        else:
            whole = feature.integer and not column.isna().any()
            assert column.dtype == (np.int64 if whole else np.float64), feature.name
            assert column.dropna().between(feature.lower, feature.upper).all(), feature.name


# Benchmark tables -------------------------------------------------------------------------------


def test_there_are_fifteen_benchmark_tables() -> None:
    assert len(datasets.list_names()) == len(set(datasets.list_names())) == 15


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", datasets.list_names())
def test_a_table_has_the_rows_classes_and_missing_cells_that_its_description_states(
    name: str,
) -> None:
    facts = json.loads((TABLES / f"{name}.json").read_text())
    dataset = datasets.load(name, TABLES)
    assert datasets.is_available(name, TABLES)
    assert (dataset.name, dataset.title) == (name, facts["title"])
    assert dataset.source == facts["source"]
    assert len(dataset) == len(dataset.X) == facts["rows"]
    assert pd.Series(dataset.y).value_counts().to_dict() == facts["class_counts"]
    missing = dataset.frame.isna().sum()
    assert missing[missing > 0].to_dict() == facts.get("missing_counts", {})
    assert_respects_schema(dataset)


@pytest.mark.data
@pytest.mark.parametrize("name", datasets.list_names())
def test_the_shape_expected_of_openml_is_that_of_our_table(name: str) -> None:
    from discreet.datasets.benchmarks import OPENML_TABLES

    facts = json.loads((TABLES / f"{name}.json").read_text())
    shape = (facts["rows"], len(facts["features"]), len(facts["classes"]))
    assert OPENML_TABLES[name][2:] == shape


@pytest.mark.data
def test_the_environment_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_DATA", str(TABLES))
    assert datasets.get_folder() == TABLES
    assert len(datasets.load("glass")) == 214


def write_table(where: Path, csv: str, **changes: Any) -> None:
    """A small table under a benchmark name, with one column of each kind."""
    where.mkdir(exist_ok=True)
    facts: dict[str, Any] = {
        "name": "seeds",
        "title": "Small",
        "rows": csv.count("\n") - 1,
        "target": "class",
        "classes": ["1", "2"],
        "features": [
            {"name": "word", "kind": "categorical", "values": ["NA", "nan", "01", "null"]},
            {"name": "whole", "kind": "numeric", "lower": 0, "upper": 9, "integer": True},
            {"name": "holes", "kind": "numeric", "lower": 0, "upper": 9, "integer": True},
        ],
        "missing": "?",
        "source": "made up",
        "sha256": hashlib.sha256(csv.encode()).hexdigest(),
    }
    (where / "seeds.csv.gz").write_bytes(gzip.compress(csv.encode(), mtime=0))
    (where / "seeds.json").write_text(json.dumps(facts | changes))


SMALL = "word,whole,holes,class\nNA,1,2,1\nnan,2,?,2\n01,3,4,1\n?,4,5,1\nnull,5,6,2\n"


def test_text_is_kept_as_written_and_only_the_stated_token_is_missing(tmp_path: Path) -> None:
    write_table(tmp_path, SMALL)
    frame = datasets.load("seeds", tmp_path).frame
    assert frame["word"].tolist() == ["NA", "nan", "01", None, "null"]
    assert frame["class"].tolist() == ["1", "2", "1", "1", "2"]
    assert frame["whole"].dtype == np.int64
    assert frame["holes"].dtype == np.float64
    assert frame["holes"].isna().tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": "0" * 64}, "damaged or changed"),
        ({"sha256": None}, "damaged or changed"),
        ({"rows": 4}, "rows"),
        ({"target": "whole", "features": []}, "features is empty"),
        ({"target": "label"}, "columns"),
    ],
)
def test_a_table_that_differs_from_its_description_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    write_table(tmp_path, SMALL, **changes)
    with pytest.raises((FormatError, SchemaError), match=message):
        datasets.load("seeds", tmp_path)


def test_words_in_a_numeric_column_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path, SMALL.replace("NA,1,2", "NA,many,2"))
    with pytest.raises(FormatError, match=r"does not fit seeds\.json"):
        datasets.load("seeds", tmp_path)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    write_table(tmp_path, SMALL)
    path = tmp_path / "seeds.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(FormatError, match="cannot be unpacked"):
        datasets.load("seeds", tmp_path)


@pytest.mark.parametrize("lost", ["seeds.csv.gz", "seeds.json"])
def test_half_a_pair_is_an_error_and_not_a_reason_to_download(tmp_path: Path, lost: str) -> None:
    write_table(tmp_path, SMALL)
    (tmp_path / lost).unlink()
    with pytest.raises(FormatError, match=r"no such file|file is missing"):
        datasets.load("seeds", tmp_path)


def test_a_folder_given_by_hand_is_the_only_place_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: pytest.fail("fetched"))
    assert not datasets.is_available("glass", tmp_path)
    with pytest.raises(FormatError, match=r"lacks glass\.csv\.gz and glass\.json"):
        datasets.load("glass", tmp_path)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(FormatError, match=r"did you mean mushroom\?.*adult, australian"):
        datasets.load("mushrooms")
    with pytest.raises(FormatError, match=r"no benchmark table '\.\./secret'; there are adult"):
        datasets.load("../secret")
    assert not datasets.is_available("mushrooms")


# OpenML -----------------------------------------------------------------------------------------


def openml_bunch(rows: int = 210) -> SimpleNamespace:
    """What ``fetch_openml`` returns, in the shape of the seeds table."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.random((rows, 6)), columns=[f"V{i}" for i in range(1, 7)])
    data["V7"] = pd.Categorical(np.where(np.arange(rows) % 9 == 0, None, "a"), ["a", "b"])
    target = pd.Series(pd.Categorical(np.arange(rows) % 3 + 1), name="Class")
    frame = pd.concat([target, data], axis=1)  # OpenML does not promise that the target is last
    return SimpleNamespace(frame=frame, data=data, target=target)


@pytest.fixture
def no_folder(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    return monkeypatch


def test_without_a_folder_a_table_comes_from_openml_with_an_inferred_schema(
    no_folder: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("discreet.tables.inference")
    asked: list[Any] = []

    def fetch_openml(name: str, **options: Any) -> SimpleNamespace:
        asked.append((name, options["version"]))
        return openml_bunch()

    no_folder.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)  # these rows are public
        dataset = datasets.load("seeds")
    assert asked == [("seeds", 1)]
    assert dataset.source == "OpenML seeds, version 1"
    assert dataset.schema.target == "Class"
    assert set(dataset.y) == {"1", "2", "3"}
    assert list(dataset.frame) == [*(f"V{i}" for i in range(1, 8)), "Class"]
    assert dataset.X["V7"].iloc[0] is None
    assert isinstance(dataset.schema["V7"], Categorical)


def test_the_openml_path_infers_quietly_from_text_and_numbers(
    no_folder: pytest.MonkeyPatch,
) -> None:
    seen: list[pd.DataFrame] = []

    def infer(table: pd.DataFrame, target: str, **_: Any) -> Schema:
        warnings.warn("bounds were read from the data", PrivacyWarning, stacklevel=2)
        seen.append(table)
        return Schema([Categorical("V7", ["a"])], target, ["1", "2", "3"])

    no_folder.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: openml_bunch())
    no_folder.setattr(Schema, "infer", infer)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        datasets.load("seeds")
    assert seen[0]["V7"].dtype == seen[0]["Class"].dtype == object
    assert seen[0]["V1"].dtype == np.float64


def test_a_namesake_of_another_shape_is_refused(no_folder: pytest.MonkeyPatch) -> None:
    no_folder.setattr("sklearn.datasets.fetch_openml", lambda *_, **__: openml_bunch(rows=99))
    with pytest.raises(FormatError, match=r"\(99, 7, 3\) where the UCI table has \(210, 7, 3\)"):
        datasets.load("seeds")


def test_a_failed_download_names_both_ways_out(
    no_folder: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fetch_openml(*_: Any, **__: Any) -> None:
        raise OSError("the network is unreachable")

    no_folder.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    both = (
        r"set DISCREET_DATA to a folder with adult\.csv\.gz and adult\.json, "
        r"or allow scikit-learn to download it \(OpenML adult, version 2\).*unreachable"
    )
    with pytest.raises(FormatError, match=both):
        datasets.load("adult")
    for folder in (tmp_path, tmp_path / "nowhere"):  # a folder that lacks the table, and none
        no_folder.setenv("DISCREET_DATA", str(folder))
        with pytest.raises(FormatError, match=both):
            datasets.load("adult")


# Exact tables -----------------------------------------------------------------------------------


def test_balance_scale_needs_no_folder(no_folder: pytest.MonkeyPatch) -> None:
    assert datasets.is_available("balance_scale")
    dataset = datasets.load("balance_scale")
    counts = pd.Series(dataset.y).value_counts().to_dict()
    assert counts == {"L": 288, "R": 288, "B": 49}
    assert_respects_schema(dataset)
    for lw, ld, rw, rd, tip in dataset.frame.itertuples(index=False):
        left, right = int(lw) * int(ld), int(rw) * int(rd)
        assert tip == ("L" if left > right else "R" if left < right else "B")


@pytest.mark.data
def test_generated_balance_scale_equals_the_stored_table_to_the_byte() -> None:
    stored, made = datasets.load("balance_scale", TABLES), datasets.make_balance_scale()
    assert made.schema.digest == stored.schema.digest
    pd.testing.assert_frame_equal(made.frame, stored.frame)
    text = made.frame.to_csv(index=False, lineterminator="\n")
    facts = json.loads((TABLES / "balance_scale.json").read_text())
    assert hashlib.sha256(text.encode()).hexdigest() == facts["sha256"]


def test_the_papers_ten_rows_give_the_corrected_scores() -> None:
    dataset = datasets.make_mortgage_table()
    assert len(dataset) == 10
    assert_respects_schema(dataset)
    rows = list(dataset.frame.itertuples(index=False, name=None))
    person = ("Young", "Medium", "Female")

    def score(label: str) -> Fraction:
        members = [row for row in rows if row[-1] == label]
        matches = [sum(row[j] == value for row in members) for j, value in enumerate(person)]
        factors = (Fraction(match, len(members)) for match in matches)
        return Fraction(len(members), len(rows)) * prod(factors)

    assert score("Yes") == Fraction(1, 40)  # 0.025, as printed
    assert score("No") == Fraction(1, 180)  # 0.0056; the paper prints 0.055 and concludes "No"
    assert max(dataset.schema.classes, key=lambda c: score(str(c))) == "Yes"


# The population ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> datasets.Dataset:
    return datasets.make_mortgage(400_000, seed=7)


@pytest.fixture(scope="module")
def chance(many: datasets.Dataset) -> np.ndarray:
    return datasets.compute_mortgage_probability(many.frame)


def test_a_seed_gives_the_same_people_and_another_seed_others() -> None:
    first, again, other = (datasets.make_mortgage(500, seed=s).frame for s in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    assert len(datasets.make_mortgage()) == 20_000


@pytest.mark.slow
def test_every_person_lies_in_the_fixed_public_schema(many: datasets.Dataset) -> None:
    assert_respects_schema(many)
    assert many.schema is datasets.MORTGAGE_SCHEMA
    assert not many.frame.isna().any(axis=None)
    for feature in many.schema.features:  # and every category does occur
        if isinstance(feature, Categorical):
            assert set(many.frame[feature.name]) == set(feature.values)
    assert (many.frame["years_at_address"] <= many.frame["age"]).all()


def test_features_depend_on_one_another(many: datasets.Dataset) -> None:
    frame = many.frame
    assert frame["age"].corr(frame["years_at_address"]) > 0.3
    score = frame.groupby("income")["credit_score"].mean()
    assert score["low"] < score["medium"] < score["high"]
    assert frame.groupby("employment")["age"].mean().idxmax() == "retired"


def calibration_p_value(chance: np.ndarray, missed: np.ndarray) -> float:
    """Chi-square over 20 equally full bins: observed against promised numbers of "yes"."""
    total = 0.0
    for part in np.array_split(np.argsort(chance), 20):
        p, y = chance[part], missed[part]
        total += (y - p).sum() ** 2 / (p * (1 - p)).sum()
    return float(chi2.sf(total, 20))


def test_the_stated_probability_is_calibrated_and_a_wrong_one_is_found_out(
    many: datasets.Dataset, chance: np.ndarray
) -> None:
    missed = many.y == "yes"
    assert missed.mean() == pytest.approx(0.303, abs=0.004)
    assert calibration_p_value(chance, missed) > 1e-4  # the false-alarm rate
    twin = chance / (chance + (1 - chance) * np.exp(0.05))  # log-odds off by a twentieth
    assert calibration_p_value(twin, missed) < 1e-9


def test_the_stated_optimum_is_the_optimum(many: datasets.Dataset, chance: np.ndarray) -> None:
    # Standard errors at 400 000 rows: 0.00022 for the mean of max(p, 1-p), 0.00056 for the hits.
    best = datasets.MORTGAGE_BAYES_ACCURACY
    assert 0.82 < best < 0.86
    assert np.maximum(chance, 1 - chance).mean() == pytest.approx(best, abs=0.001)
    assert ((chance > 0.5) == (many.y == "yes")).mean() == pytest.approx(best, abs=0.0025)
    assert 0 < datasets.MORTGAGE_BAYES_ACCURACY_ERROR < 0.0001


@pytest.mark.slow
def test_naive_bayes_comes_close_to_the_optimum_but_stays_below(many: datasets.Dataset) -> None:
    schema, train = many.schema, slice(0, 100_000)
    test = slice(100_000, None)
    words = [f for f in schema.features if isinstance(f, Categorical)]
    codes = np.column_stack(
        [pd.Categorical(many.frame[f.name], list(f.values)).codes for f in words]
    )
    numbers = many.X.select_dtypes("number").to_numpy(dtype=float)
    gauss = GaussianNB().fit(numbers[train], many.y[train])
    table = CategoricalNB().fit(codes[train], many.y[train])
    joint = (
        gauss.predict_joint_log_proba(numbers[test])
        + table.predict_joint_log_proba(codes[test])
        - table.class_log_prior_
    )
    accuracy = (gauss.classes_[joint.argmax(axis=1)] == many.y[test]).mean()
    best = datasets.MORTGAGE_BAYES_ACCURACY
    assert best - 0.03 < accuracy < best - 0.005


def test_missing_values_fall_at_random_on_two_columns_of_the_same_people() -> None:
    whole = datasets.make_mortgage(20_000, seed=1)
    holes = datasets.make_mortgage(20_000, seed=1, missing=0.2)
    assert_respects_schema(holes)
    shares = holes.frame.isna().mean()
    assert set(shares[shares > 0].index) == {"employment", "credit_score"}
    assert shares["employment"] == pytest.approx(0.2, abs=0.015)
    assert shares["credit_score"] == pytest.approx(0.2, abs=0.015)
    assert (holes.y == whole.y).all()
    kept = holes.frame["employment"].notna()
    assert (holes.frame["employment"][kept] == whole.frame["employment"][kept]).all()
    with pytest.raises(SchemaError, match=r"employment: .* only known for complete rows"):
        datasets.compute_mortgage_probability(holes.frame)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "at least 1"),
        ({"missing": 1.0}, "write a share"),
        ({"missing": -0.1}, "write a share"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        datasets.make_mortgage(**arguments)


def test_probability_asks_for_the_columns_it_needs() -> None:
    frame = datasets.make_mortgage(5).frame
    with pytest.raises(SchemaError, match="region: the frame has no such column"):
        datasets.compute_mortgage_probability(frame.drop(columns="region"))
    with pytest.raises(SchemaError, match=r"age: 140 .* outside the schema"):
        datasets.compute_mortgage_probability(frame.assign(age=140))


def test_importing_the_module_is_cheap() -> None:
    code = "import sys, discreet.datasets; print({'pandas', 'sklearn', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# The clinic -------------------------------------------------------------------------------------


def test_visits_are_those_of_patients_and_in_the_schema() -> None:
    first, again, other = (datasets.make_visits(500, seed=s).frame for s in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    assert first.patient_id.nunique() == 500
    assert first.visit_id.is_unique
    assert first.patient_id.value_counts().max() > 3, "some patients come often"
    times = pd.to_datetime(first.visited)
    assert times.is_monotonic_increasing
    assert times.dt.strftime("%u").astype(int).max() <= 5, "the clinic is open on working days"
    schema = datasets.VISITS_SCHEMA
    MixedNB(schema=schema).fit(first[list(schema.names)], first.missed)
    assert first.insurance.isna().any()


def test_what_a_patient_missed_before_is_counted_from_earlier_visits() -> None:
    visits = datasets.make_visits(300, seed=1).frame
    for _, rows in visits.groupby("patient_id"):
        missed = (rows.missed == "yes").astype(int)
        assert (rows.missed_before == missed.cumsum() - missed).all()


@pytest.mark.parametrize("make", [datasets.make_mortgage, datasets.make_visits])
def test_a_table_of_nobody_is_refused(make: Callable[[int], datasets.Dataset]) -> None:
    with pytest.raises(SchemaError, match="n=0; write a number of people of at least 1"):
        make(0)
