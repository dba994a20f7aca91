"""Experiments on Naive Bayes under local differential privacy (Yilmaz, Al-Rubaie, Chang)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from discreet.model import GaussianFactor
from discreet.model.evaluation import score_model
from discreet.papers.experiments import repeat_score, score_split, split_rows
from discreet.papers.results import PaperCell
from discreet.schema.schema import Categorical, Numeric

__all__ = ["compute", "list_cells", "make_published_estimator"]

DISCRETE_TABLES = ("car", "chess", "mushroom", "connect4")
ORACLES = ("de", "sue", "oue", "she", "the")
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
EPSILON_READINGS = ("per person", "per report")
BINS_BY_TABLE = {"australian": 2, "diabetes": 4}
"""Buckets of each numeric feature, by table."""
PROJECTIONS = ("raw", "PCA", "DCA")
PROJECTION_SOURCES = ("not private", "public sample")
PROJECTION_WAYS = (
    ("raw", "none"),
    *((projection, source) for projection in PROJECTIONS[1:] for source in PROJECTION_SOURCES),
)
"""Projections, each with where it is learnt."""
COMPONENTS_BY_PROJECTION = {
    ("australian", "PCA"): 1,
    ("australian", "DCA"): 1,
    ("diabetes", "PCA"): 6,
    ("diabetes", "DCA"): 1,
}
"""Number of components in figure 3, by table and projection."""
THETAS = (0.05, 0.25, 0.4, 0.55, 0.7, 0.85)
"""Thresholds of THE that are compared."""
REPETITION_DIVISORS = {"connect4": 5}
"""Repetitions are divided by this: 67,557 rows say the same with fewer."""


def list_cells(quick: bool) -> list[PaperCell]:
    """Every point of figures 2 to 4, the limits without noise, and THE by theta."""
    epsilons = (0.5, 2.0, 5.0) if quick else EPSILONS
    tables = DISCRETE_TABLES[:3] if quick else DISCRETE_TABLES
    paper_cells = [
        *PaperCell.list_grid(
            "2", table=tables, oracle=ORACLES, epsilon=epsilons, reading=EPSILON_READINGS
        ),
        *PaperCell.list_grid("2", table=tables, oracle=("none",)),
        *PaperCell.list_grid("theta", table=("car", "mushroom"), theta=THETAS, epsilon=(1.0, 3.0)),
    ]
    for table in BINS_BY_TABLE:
        for projection_way, source in PROJECTION_WAYS:
            for epsilon in epsilons:
                parameters = {
                    "table": (table,),
                    "projection": (projection_way,),
                    "source": (source,),
                    "epsilon": (epsilon,),
                }
                paper_cells += PaperCell.list_grid("3", oracle=("de", "oue"), **parameters)
                paper_cells += PaperCell.list_grid("4", approach=(1, 2, 3), **parameters)
        paper_cells += [PaperCell.from_parameters("3", table=table, oracle="none")]
        paper_cells += [PaperCell.from_parameters("4", table=table, approach="none")]
    return paper_cells


def compute(cell: PaperCell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """Accuracy, a number for each repetition."""
    score_by_figure = {
        "2": _score_discrete,
        "theta": _score_theta,
        "3": _score_continuous,
        "4": _score_continuous,
    }
    return repeat_score(
        max(2, repeats // REPETITION_DIVISORS.get(cell["table"], 1)),
        partial(score_by_figure[cell.figure], cell),
    )


@cache
def _load_rows(table: str) -> Any:
    from discreet.datasets import load

    dataset = load(table)
    if table not in BINS_BY_TABLE:
        return dataset
    # every column is a number, as in the paper: codes of categories, too
    numeric_features, frame = [], dataset.frame.copy()
    for feature in dataset.schema.features:
        if isinstance(feature, Categorical):
            category_numbers = [float(str(value)) for value in feature.values]
            frame[feature.name] = frame[feature.name].astype(float)
            numeric_features.append(
                Numeric(feature.name, min(category_numbers), max(category_numbers), optional=False)
            )
        else:
            numeric_features.append(feature)
    return replace(
        dataset, schema=replace(dataset.schema, features=tuple(numeric_features)), frame=frame
    )


def make_published_estimator(epsilon: float, **options: Any) -> Any:
    """The paper's plan and estimator; also for benchmarks.

    Parameters
    ----------
    epsilon : float
        Total per person.
    **options
        Further parameters of ``LocalNB``.
    """
    from discreet.estimators import LocalNB

    paper_options: dict[str, Any] = {
        "plan": "paper",
        "postprocess": "paper",
        "assignment": "draw",
        "bins": 8,
    }
    return LocalNB(epsilon, **(paper_options | options))


def _score_discrete(cell: PaperCell, repeat: int) -> float:
    dataset = _load_rows(cell["table"])
    training_rows, test_rows = split_rows(dataset, repeat)
    if cell["oracle"] == "none":
        return _score_without_noise(dataset, training_rows, test_rows, 8)
    nb = make_published_estimator(
        cell["epsilon"],
        oracle=cell["oracle"],
        theta=0.25 if cell["oracle"] == "the" else None,
        schema=dataset.schema,
        random_state=repeat,
    )
    if cell["reading"] == "per person":
        return score_split(nb, dataset, training_rows, test_rows)
    X, y = dataset.X, dataset.y
    # a few rows make the plan, which does not depend on rows
    nb.fit(X.iloc[training_rows[:50]], y[training_rows[:50]])
    return score_all_answered(
        nb.plan_, X.iloc[training_rows], y[training_rows], X.iloc[test_rows], y[test_rows], repeat
    )


def score_all_answered(plan: Any, X: Any, y: Any, X_test: Any, y_test: Any, seed: int) -> float:
    """The other reading: n + 1 reports of epsilon each from everyone."""
    from discreet.collection.tally import Tally
    from discreet.estimation import estimate
    from discreet.local.inversion import estimate_statistics
    from discreet.randomness import SeededRandom
    from discreet.schema.cells import encode_classes
    from discreet.statistics.statistics import Table

    columns = {column_name: X[column_name].to_numpy() for column_name in plan.schema.names}
    encoded_answers = plan.encode_columns(columns, encode_classes(plan.schema, y))
    simulated_random, tally = SeededRandom(seed), Tally(plan, simulated=True)
    question_count = len(plan.questions)
    for question in range(question_count):
        reports = plan.randomize_records(question, encoded_answers, simulated_random)
        tally.add_values(question, reports)
    statistics = estimate_statistics(tally)
    tables = {
        name: Table(table.cells, table.counts / question_count, table.variances / question_count**2)
        for name, table in statistics.tables.items()
    }
    scaled = replace(
        statistics,
        totals=statistics.totals / question_count,
        variances=statistics.variances / question_count**2,
        tables=tables,
    )
    return score_model(estimate(scaled, "paper"), X_test, y_test).accuracy


def _score_without_noise(dataset: Any, training_rows: Any, test_rows: Any, bins: int) -> float:
    from discreet.estimators import LocalNB

    nb = LocalNB(math.inf, schema=dataset.schema, bins=bins, random_state=0)
    return score_split(nb, dataset, training_rows, test_rows)


def _score_theta(cell: PaperCell, repeat: int) -> float:
    dataset = _load_rows(cell["table"])
    nb = make_published_estimator(
        cell["epsilon"],
        oracle="the",
        theta=cell["theta"],
        schema=dataset.schema,
        random_state=repeat,
    )
    return score_split(nb, dataset, *split_rows(dataset, repeat))


def _score_continuous(cell: PaperCell, repeat: int) -> float:
    """Figures 3 (buckets) and 4 (normal densities), raw or projected."""
    table, is_gaussian = cell["table"], cell.figure == "4"
    dataset = _load_rows(table)
    training_rows, test_rows = split_rows(dataset, repeat)
    compared_value = cell["approach" if is_gaussian else "oracle"]
    if compared_value == "none" and not is_gaussian:
        return _score_without_noise(dataset, training_rows, test_rows, BINS_BY_TABLE[table])
    if compared_value == "none":
        from discreet.estimators import MixedNB

        return score_split(MixedNB(schema=dataset.schema), dataset, training_rows, test_rows)
    options: dict[str, Any] = {"schema": dataset.schema, "random_state": repeat}
    options["bins"] = BINS_BY_TABLE[table]
    X, y = dataset.X, dataset.y
    if cell["projection"] != "raw":
        from discreet.schema.projection import DCA, PCA

        component_count = 1 if is_gaussian else COMPONENTS_BY_PROJECTION[table, cell["projection"]]
        options["projection"] = {"PCA": PCA, "DCA": DCA}[cell["projection"]](component_count)
        sample_rows = training_rows
        if cell["source"] == "public sample":
            # a tenth of all rows
            sample_rows, training_rows = np.split(training_rows, [len(training_rows) // 8])
        options["public_sample"] = (X.iloc[sample_rows], y[sample_rows])
    if not is_gaussian:
        nb = make_published_estimator(cell["epsilon"], oracle=compared_value, **options)
        return score_split(nb, dataset, training_rows, test_rows)
    # a third each of the respondents for classes, means and squares, as in the paper
    nb = make_published_estimator(
        cell["epsilon"], numeric="gaussian", plan="auto", approach=compared_value, **options
    )
    model = _make_published_model(nb.fit(X.iloc[training_rows], y[training_rows]))
    return score_model(model, X.iloc[test_rows], y[test_rows]).accuracy


def _make_published_model(fitted: Any) -> Any:
    """Means and variances as they come: the estimator's own would draw them to one another."""
    factors = []
    for moments in fitted.statistics_.moments.values():
        lower, upper = moments.feature.lower, moments.feature.upper
        mean = np.clip(moments.mean, lower, upper)
        variance = np.maximum(moments.variance, ((upper - lower) / 100) ** 2)
        factors.append(GaussianFactor(moments.feature, mean, variance))
    return replace(fitted.model_, factors=tuple(factors))
