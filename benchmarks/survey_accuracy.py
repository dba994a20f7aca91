"""Accuracy of a survey's classifier beside the published one, from the same randomized sheets.

    python benchmarks/survey_accuracy.py --repeats 40
    python benchmarks/survey_accuracy.py --tables half:adult,wdbc --theta 0.1,0.5 --repeats 10

80/20 splits; every question in one group, uniform personal answers. "published" inverts the
channel, clips at zero and adds one; "tables" is the default without what whole sheets say;
"default" is the default. Differences are paired, ± standard error. ``half:NAME`` cuts every
attribute at the midpoint of its range, as the paper does, and so are wdbc, iris and wine; other
tables have their own categories, and four bins for a number. Needs the benchmark tables
(DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from discreet import Categorical, Schema, estimate
from discreet.collection.tally import Tally
from discreet.datasets import load
from discreet.papers.surveys import binarise_at_midpoint
from discreet.schema.cells import Cells, encode_classes
from discreet.survey.inversion import estimate_statistics
from discreet.survey.questionnaire import Questionnaire

sys.path.insert(0, str(Path(__file__).parent))

from _tables import BUNDLED, bundled

TABLES = "half:breast_cancer_wisconsin,half:spect,car,balance_scale,breast_cancer,half:diabetes"
BINS = 4


@cache
def answers(name: str) -> tuple[np.ndarray, np.ndarray, Schema]:
    """True answers as codes, classes as codes, and a schema of categories."""
    if name.startswith("half:"):
        X, y = binarise_at_midpoint(name.removeprefix("half:"))
    elif name in BUNDLED:
        frame, labels, _ = bundled(name)
        numbers = frame.to_numpy()
        X = (numbers > (numbers.min(axis=0) + numbers.max(axis=0)) / 2).astype(int)
        y = np.unique(labels, return_inverse=True)[1]
    else:
        data = load(name)
        cells = [
            Cells.from_schema(
                data.schema, one.name, *([] if isinstance(one, Categorical) else [BINS])
            )
            for one in data.schema.features
        ]
        X = np.column_stack([one.encode_column(data.X[one.feature.name]) for one in cells]).astype(
            int
        )
        y = encode_classes(data.schema, data.y)
        return X, y, _schema([one.size for one in cells], len(data.schema.classes))
    return X, y, _schema([2] * X.shape[1], int(y.max()) + 1)


def _schema(sizes: list[int], classes: int) -> Schema:
    features = [
        Categorical(f"x{j}", [str(value) for value in range(size)], optional=False)
        for j, size in enumerate(sizes)
    ]
    return Schema(features, "y", [str(one) for one in range(classes)])


def cell(name: str, theta: float, repeats: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Accuracies of the three, a number a repetition."""
    X, y, schema = answers(name)
    survey = Questionnaire.from_schema(schema, theta)
    found: dict[str, list[float]] = {"published": [], "tables": [], "default": []}
    for repeat in range(repeats):
        order = np.random.default_rng(777 + 1000 * seed + repeat).permutation(len(y))
        train, test = np.split(order, [int(0.8 * len(y))])
        rng = np.random.default_rng([seed, repeat, int(1000 * theta)])
        true = rng.random(len(train)) < theta
        sizes = survey.sizes[:-1]
        personal = rng.integers(0, sizes, (len(train), len(sizes)))
        sheets = np.where(true[:, None], X[train], personal)
        classes = np.where(true, y[train], rng.integers(0, survey.sizes[-1], len(train)))
        tally = Tally(survey)
        tally.add_values(0, np.column_stack([sheets, classes]))
        statistics = estimate_statistics(tally)
        found["published"].append(right(estimate(statistics, "none"), X[test], y[test]))
        alone = estimate(replace(statistics, likeliest=None))
        found["tables"].append(right(alone, X[test], y[test]))
        found["default"].append(right(estimate(statistics), X[test], y[test]))
    return {who: np.array(values) for who, values in found.items()}


def right(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """The share of people that a model classifies right."""
    score = np.tile(model.log_prior, (len(X), 1))
    for j, factor in enumerate(model.factors):
        score = score + factor.log_probability[:, X[:, j]].T
    return float((score.argmax(axis=1) == y).mean())


def apart(one: np.ndarray, other: np.ndarray) -> str:
    """The mean of paired differences and its standard error."""
    error = (one - other).std(ddof=1) / math.sqrt(len(one))
    return f"{(one - other).mean():+.4f} ± {error:.4f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--theta", default="0.05,0.1,0.2,0.5")
    parser.add_argument("--repeats", type=int, default=40)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | theta | published | tables | default | - published | - tables |")
    print("|---|---|---|---|---|---|---|")
    for name in given.tables.split(","):
        for theta in map(float, given.theta.split(",")):
            some = cell(name, theta, given.repeats)
            means = " | ".join(f"{values.mean():.4f}" for values in some.values())
            gains = [apart(some["default"], some[who]) for who in ("published", "tables")]
            print(f"| {name} | {theta:g} | {means} | {' | '.join(gains)} |", flush=True)


if __name__ == "__main__":
    main()
