"""Several rows per person: at most N of them, or weights that share one person's influence.

``DISCREET_DATA=… .venv/bin/python benchmarks/rows_per_person.py`` prints a table ready for
docs/experiments/central.md: accuracy, log loss and AUC on the rows of a third of the persons, who
were kept aside; mean over repetitions ± standard error. A repetition draws persons, their numbers
of rows and the split anew, the same for all settings. ``--tables visits,telco --repeats 5`` is a
part of it; ``--by-content`` orders the rows of a person by their content instead of a digest.

``visits`` is generated: a person has 1 to 60 visits, 4 on average and most of them few, and a
tendency to the rarer class; in ``frequent`` those with such a tendency come more often. Other
tables are those of DISCREET_DATA with duplicated people: each
row becomes a person with 1 to 20 rows, 3 on average, of which every value is drawn again from its
column with a chance of a quarter.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from discreet import CentralNB, Numeric, PrivacyWarning, Schema
from discreet.datasets import benchmarks
from discreet.tables import contributions

EPSILONS = (0.3, 1.0, 3.0)
LIMITS = (1, 2, 3, 5, 10)
PERSONS = 2_000
"""Persons of the generated table."""
MAX_PERSONS = 3_000
"""Most persons of any other table."""
REDRAWN_SHARE = 0.25
"""Share of the values of a duplicated row that are drawn again."""


def make_visits(name: str, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, Schema]:
    """Visits of persons; what is measured depends on the visit, and a little on the person."""
    person_tendency = rng.normal(size=PERSONS)
    success_rate = np.full(PERSONS, 0.17)
    if name == "frequent":
        success_rate = 1 / (1 + 4 * np.exp(person_tendency))
    counts = np.minimum(1 + rng.negative_binomial(0.6, success_rate), 60)
    persons = np.repeat(np.arange(PERSONS), counts)
    tendency = person_tendency[persons]
    y = (rng.random(len(persons)) < 1 / (1 + np.exp(1.2 - tendency))).astype(int)
    names = [f"x{j}" for j in range(8)]
    columns = {
        name: np.clip(0.25 * (j % 4) * y + 0.3 * tendency + rng.normal(size=len(y)), -4, 4)
        for j, name in enumerate(names)
    }
    frame = pd.DataFrame({**columns, "person": persons})
    return frame, y, Schema([Numeric(name, -4, 4) for name in names], "late", [0, 1])


def duplicate_people(name: str, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, Schema]:
    """A table of which each row becomes a person with several rows that differ a little."""
    data = benchmarks.load(name)
    frame = pd.DataFrame(data.X).reset_index(drop=True)
    drawn = rng.permutation(len(frame))[:MAX_PERSONS]
    counts = np.minimum(1 + rng.negative_binomial(0.7, 0.26, len(drawn)), 20)
    rows = np.repeat(drawn, counts)
    repeated = frame.iloc[rows].reset_index(drop=True)
    for column in repeated.columns:
        others = frame[column].iloc[rng.integers(0, len(frame), len(rows))].reset_index(drop=True)
        repeated[column] = repeated[column].where(rng.random(len(rows)) >= REDRAWN_SHARE, others)
    repeated["person"] = rows
    return repeated, np.asarray(data.y)[rows], data.schema


def measure(model: Any, X: pd.DataFrame, y: Any) -> list[float]:
    """Accuracy, log loss and area under the curve."""
    proba = model.predict_proba(X)
    classes = list(model.classes_)
    accuracy = float((model.predict(X) == y).mean())
    auc = roc_auc_score(y == classes[1], proba[:, 1])
    return [accuracy, log_loss(y, proba, labels=classes), float(auc)]


def list_settings(epsilon: float) -> dict[str, dict[str, Any]]:
    """Parameters of every model that is compared."""
    settings: dict[str, dict[str, Any]] = {"each row a person (another promise)": {}}
    for limit in LIMITS:
        settings[f"at most {limit}"] = {"person": "person", "rows_per_person": limit}
    for limit in LIMITS[1:]:
        settings[f"at most {limit}, weighing 1 together"] = {
            "person": "person",
            "rows_per_person": limit,
            "person_weighting": True,
        }
    return {name: {"epsilon": epsilon, **options} for name, options in settings.items()}


def compare(name: str, repeats: int) -> None:
    """Print the lines of one table."""
    results: dict[tuple[float, str], list[list[float]]] = {}
    for repeat in range(repeats):
        rng = np.random.default_rng([repeat, len(name)])
        frame, y, schema = (
            make_visits(name, rng)
            if name in ("visits", "frequent")
            else duplicate_people(name, rng)
        )
        persons = frame["person"].to_numpy()
        aside = rng.permutation(np.unique(persons))
        is_test = np.isin(persons, aside[: len(aside) // 3])
        test = frame[is_test].drop(columns="person")
        for epsilon in EPSILONS:
            for setting, options in list_settings(epsilon).items():
                train = frame[~is_test]
                if "person" not in options:
                    train = train.drop(columns="person")
                model = CentralNB(schema=schema, random_state=repeat, **options)
                model.fit(train, y[~is_test])
                results.setdefault((epsilon, setting), []).append(measure(model, test, y[is_test]))
    for (epsilon, setting), figures in results.items():
        means = np.mean(figures, axis=0)
        errors = np.std(figures, axis=0, ddof=1) / np.sqrt(repeats)
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True)]
        print(f"| {name} | {epsilon:g} | {setting} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyWarning)  # seeds are meant here
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="visits,frequent,telco")
    parser.add_argument("--repeats", type=int, default=16)
    parser.add_argument("--by-content", action="store_true")
    arguments = parser.parse_args()
    if arguments.by_content:
        contributions.digest_text = lambda text: ""
    print("| table | epsilon | rows of a person | accuracy | log loss | AUC |")
    print("|---|---:|---|---:|---:|---:|")
    for table_name in arguments.tables.split(","):
        compare(table_name, arguments.repeats)
