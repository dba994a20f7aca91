"""Is a decision that is called 90 % steady the one without noise 90 % of the time?

    python benchmarks/steadiness.py --tables mortgage,adult,car --collections 3
    python benchmarks/steadiness.py --tables magic,churn --ways "central 5,,local 5"

"True" is how often the rule without noise decides as the private model does: plain Naive Bayes of
the exact counts of the same people, on the same features and bins; of a model with corrections, the
same start with residuals and curvatures of these people that carry no noise. Standard errors are
over collections, since the rows of one collection err together. Benchmark tables are read from
DISCREET_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from _tables import BUNDLED, bundled
from discreet import CentralNB, FederatedNB, LocalNB, NaiveBayesModel, SurveyNB, estimate
from discreet.central.budget import IntegerNoise
from discreet.central.corrections import CorrectionState
from discreet.central.selection import RowSample
from discreet.datasets import load, make_mortgage
from discreet.estimation.log_ratios import LogRatios
from discreet.estimation.uncertainty import estimate_agreement
from discreet.randomness import SeededRandom
from discreet.schema.cells import encode_classes, get_columns
from discreet.statistics.statistics import Statistics, Table
from discreet.tables import CountRequest, count

HELD_OUT = "chess,connect4,wdbc,australian,skin,wine,breast_cancer,balance_scale"
PEOPLE, ROWS = 5000, 120
EDGES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
WAYS: dict[str, tuple[Any, float]] = {
    **{f"central {e:g}": (CentralNB, e) for e in (0.5, 1.0, 2.0, 5.0)},
    **{f"local {e:g}": (LocalNB, e) for e in (0.5, 1.5, 5.0)},
    **{f"survey, theta {t:g}": (SurveyNB, t) for t in (0.1, 0.3, 0.7)},
    "federated 0.05": (FederatedNB, 0.05),
}


@cache
def table(name: str) -> tuple[Any, Any, Any]:
    if name == "mortgage":
        found = make_mortgage(PEOPLE + ROWS, seed=9)
    elif name in BUNDLED:
        return bundled(name)
    else:
        found = load(name)
    return found.X, np.asarray(found.y), found.schema


def collection(name: str, way: str, seed: int) -> tuple[Any, Any]:
    """How steady the decisions on rows that nobody was asked about are called, and whether so."""
    X, y, schema = table(name)
    order = np.random.default_rng([seed, 7]).permutation(len(y))
    others = min(ROWS, len(y) // 4)
    asked = order[others : others + PEOPLE]
    rows, people = (X.iloc[i].reset_index(drop=True) for i in (order[:others], asked))
    kind, amount = WAYS[way]
    nb = kind(amount, schema=schema, random_state=seed).fit(people, y[asked])
    noisy = nb.statistics_
    bins = {n: list(t.cells.edges[1:-1]) for n, t in noisy.tables.items() if t.cells.edges}
    frame = people.assign(**{schema.target: y[asked]})
    exact = count(frame, schema, CountRequest(bins=bins, moments=None))
    if noisy.scoring.corrections:
        ideal = corrected_without_noise(noisy, exact.tables, people, y[asked])
    else:
        used = {factor.name: exact.tables[factor.name] for factor in nb.model_.factors}
        ideal = estimate(replace(exact, tables=used))
    truth = ideal.predict_joint_log_proba(rows).argmax(axis=1)
    decision = nb.model_.predict_joint_log_proba(rows).argmax(axis=1)
    return estimate_agreement(noisy, rows, draws=100, random_state=seed), truth == decision


def corrected_without_noise(
    noisy: Statistics, exact: Any, people: Any, labels: Any
) -> NaiveBayesModel:
    """The same start, corrected by the exact residuals of these people.

    Tables that are not corrected are exact, too. Those that are keep their noise: it is what the
    residuals are about.
    """
    scoring = noisy.scoring
    steps = noisy.corrections[: scoring.corrections]
    touched = {name for step in steps for name in step.groups}
    tables = {
        name: table
        if name in touched
        else Table(table.cells, exact[name].counts, np.full(table.counts.shape, 1e-6))
        for name, table in noisy.tables.items()
    }
    start = replace(noisy, tables=tables)
    columns = get_columns(people, noisy.schema.names)
    indices = {name: table.cells.encode_column(columns[name]) for name, table in tables.items()}
    sample = RowSample(indices, encode_classes(noisy.schema, labels))
    ratios = LogRatios(start)
    model = ratios.build_model(scoring)
    state = CorrectionState(sample, ratios, model, sample.score_rows(model))
    for step in steps:
        state.add_correction(step.groups, IntegerNoise(Fraction(0)), SeededRandom(0))
    return estimate(replace(start, corrections=state.corrections))


def line(title: str, found: list[tuple[Any, Any]]) -> str:
    """Rows, stated, true and its standard error, in each bin."""
    cells = []
    for low, high in pairwise(EDGES):
        some = [(said >= low) & (said < high) for said, _ in found]
        rows = sum(int(one.sum()) for one in some)
        if rows < 50:
            cells.append("-")
            continue
        said, was = (sum(float(f[i][one].sum()) for f, one in zip(found, some, strict=True)) / rows
                     for i in (0, 1))  # fmt: skip
        apart = [float((f[1][one] - was).sum()) for f, one in zip(found, some, strict=True)]
        error = np.sqrt(np.sum(np.square(apart))) / rows
        cells.append(f"{rows}: {said:.2f}, {was:.2f} ± {error:.2f}")
    said, was = (np.concatenate([f[i] for f in found]).mean() for i in (0, 1))
    return f"| {title} | {said:.3f}, {was:.3f} | " + " | ".join(cells) + " |"


def show(title: str, found: dict[Any, Any], key: Callable[[Any], Any]) -> None:
    names = [f"{low:g} to {high:g}" for low, high in pairwise(EDGES)]
    print(f"\n| {title} | all: stated, true | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 2) + "|")
    for name in dict.fromkeys(map(key, found)):
        print(line(name, [one for case, one in found.items() if key(case) == name]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", default=HELD_OUT)
    parser.add_argument("--collections", type=int, default=4)
    parser.add_argument("--seed", type=int, default=900)
    parser.add_argument("--ways", default=",,".join(WAYS), help="separated by two commas")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for name in given.tables.split(","):
        for way in given.ways.split(",,"):
            for seed in range(given.seed, given.seed + given.collections):
                found[name, way, seed] = collection(name, way, seed)
        print(name, flush=True)
    show("table", found, lambda case: case[0])
    show("table and trust", found, lambda case: f"{case[0]}, {case[1].split()[0]}")
    show("way", found, lambda case: case[1])
    show("everything", found, lambda case: "all")


if __name__ == "__main__":
    main()
