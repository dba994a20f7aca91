"""Naive Bayes with smooth sensitivity (Zafarani, Clifton): figures 4 to 8 and 13 to 16."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from discreet.papers.paper_figures import Figure, Panel, make_flat_line
from discreet.papers.results import (
    Finding,
    PairedDifference,
    PaperCell,
    PaperResults,
    StatementCheck,
    format_percentages,
    format_verdict,
)
from discreet.privacy.guarantee import format_rounded_up

TITLE = "Naive Bayes with smooth sensitivity, reproduced"
NOTES = """
F. Zafarani, C. Clifton: *Differentially private Naive Bayes classifier using smooth sensitivity*.
Stratified 10-fold cross-validation, five times, where a repetition is one fold: fold k of
cross-validation j is repetition 10 j + k. Every method sees the same folds.

Methods marked *published* are as printed and **keep no promise**: `global-published` scales noise
by exact class counts; `smooth, published` takes the first step of theorems 4 and 7 as sensitivity
(where their maximum lies), the variance's sensitivity for the deviation, and sqrt(2) s / epsilon'
as scale. The others are this package's and sound: releases follow add-remove neighbours. The two
methods with delta spend 1 / n and 1 / n^2, as in the paper. The paper leaves the trimming open;
`trimmed` takes it from the noisy class count.

Verdicts compare fold by fold: a difference is clear, if its interval of 95 % (Student's, widened
for the number of comparisons) leaves out zero, and small, if the interval is within two points. ±
is one standard error over the folds. Folds of one cross-validation share rows, so that intervals
are approximate.
"Much better" is judged as clearly better, a rule set after seeing the result: that it is
more than five points would be undecided as published.
"""
CODE = ("central", "estimation", "estimators", "tables")
REPEATS = 50

TABLES = ("adult", "mushroom", "glass", "seeds", "skin")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
DELTA_POWERS = {"smooth, delta 1/n": 1, "smooth, delta 1/n^2": 2}
"""Method to the power of 1 / n that is its delta."""
METHODS = (
    "global-published",
    "global",
    "trimmed",
    "smooth, published",
    "smooth",
    *DELTA_POWERS,
    "histogram",
)
CENSUS_TABLE = "census_1940"
MAX_TABLE_ROWS = 250_000
"""Largest number of rows used of a table; only the census has more."""
BUDGET_RATIOS = {"1:2": (1, 2), "1:1": (1, 1), "2:1": (2, 1), "4:1": (4, 1)}
"""Weight of numeric to categorical features in the budget, by label."""
SYNTHETIC_TABLES = ("categorical speaks", "numeric speaks")
ROW_COUNTS = (1_000, 5_000, 20_000, 100_000, 1_000_000)


def describe_left_out() -> str:
    """What is not reproduced on this machine, and what it would need."""
    if _list_census():
        return ""
    return (
        "The 1940 census extract is not here, so what the paper shows of it is left out. IPUMS "
        "hands it out to registered users and it may not be passed on. Put your extract as "
        f"{CENSUS_TABLE}.csv.gz with its public schema {CENSUS_TABLE}.json (rows, sha256, "
        "features, target, classes, like the other benchmark tables) into the folder that "
        "DISCREET_DATA names, and it is reproduced as well."
    )


def _list_census() -> tuple[str, ...]:
    from discreet.datasets import is_available

    return (CENSUS_TABLE,) if is_available(CENSUS_TABLE) else ()


def list_cells(quick: bool) -> list[PaperCell]:
    """Accuracy by method and epsilon, allocations, run times, and how sound the printed way is."""
    epsilons = (0.5, 2.0) if quick else EPSILONS
    tables = ("adult", "glass", "seeds") if quick else (*TABLES, *_list_census())
    ratio_tables = SYNTHETIC_TABLES if quick else ("adult", *SYNTHETIC_TABLES)
    return [
        *PaperCell.list_grid("4", table=tables, method=METHODS, epsilon=epsilons),
        *PaperCell.list_grid("4", table=tables, method=("majority", "non-private")),
        *PaperCell.list_grid(
            "14", table=ratio_tables, shares=tuple(BUDGET_RATIOS), epsilon=(0.5, 2.0)
        ),
        *PaperCell.list_grid("13", rows=ROW_COUNTS[:2] if quick else ROW_COUNTS),
        *PaperCell.list_grid("sound", claimed=(0.05, 0.1, 0.5, 1.0, 2.0)),
        PaperCell.from_parameters("sensitivity"),
    ]


def compute(cell: PaperCell, repeats: int, quick: bool) -> dict[str, list[float]]:
    """The values of one cell."""
    if cell.figure in ("4", "14"):
        return {"accuracy": _score_folds(cell, repeats)}
    if cell.figure == "13":
        return _time_training(cell["rows"], max(2, repeats // 10))
    if cell.figure == "sound":
        return {"epsilon": [_compute_real_epsilon(cell["claimed"])]}
    return _compare_sensitivities()


@cache
def _load_rows(table: str) -> tuple[Any, Any, Any]:
    """Rows, classes and schema; the two synthetic tables have 10,000 rows."""
    from discreet.datasets import load

    if table in SYNTHETIC_TABLES:
        return _make_synthetic(table)
    dataset = load(table)
    row_indices = np.random.default_rng(0).permutation(len(dataset.y))[:MAX_TABLE_ROWS]
    return (
        dataset.X.iloc[row_indices].reset_index(drop=True),
        dataset.y[row_indices],
        dataset.schema,
    )


def _make_synthetic(table: str) -> tuple[Any, Any, Any]:
    """Five categorical and five numeric attributes, of which one kind depends on the class."""
    import pandas as pd

    from discreet import Categorical, Numeric, Schema

    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 10_000)
    values = ["a", "b", "c", "d"]
    columns: dict[str, Any] = {}
    for feature_index in range(5):
        law_tilt = np.array([0.125, 0, 0, -0.125]) * (table == SYNTHETIC_TABLES[0])
        class_laws = np.array([0.25 + law_tilt, 0.25 - law_tilt])
        value_indices = (rng.random(len(y))[:, None] > np.cumsum(class_laws, axis=1)[y]).sum(axis=1)
        columns[f"c{feature_index}"] = np.array(values, dtype=object)[np.minimum(value_indices, 3)]
        class_shift = 0.4 * y if table == SYNTHETIC_TABLES[1] else 0.0
        columns[f"n{feature_index}"] = np.clip(rng.normal(0, 1, len(y)) + class_shift, -5, 5)
    features: list[Any] = [
        Categorical(f"c{feature_index}", values, optional=False) for feature_index in range(5)
    ]
    features += [Numeric(f"n{feature_index}", -5, 5, optional=False) for feature_index in range(5)]
    schema = Schema(features, "class", [0, 1])
    return pd.DataFrame(columns)[list(schema.names)], y, schema


def _score_folds(cell: PaperCell, fold_limit: int) -> list[float]:
    from discreet.model.evaluation import score_model, split_folds

    X, y, schema = _load_rows(cell["table"])
    folds = [
        fold for repeat in range(math.ceil(fold_limit / 10)) for fold in split_folds(y, 10, repeat)
    ]
    accuracies = []
    for seed, (training_rows, test_rows) in enumerate(folds[:fold_limit]):
        model = _train_model(cell, X.iloc[training_rows], y[training_rows], schema, seed)
        accuracies.append(score_model(model, X.iloc[test_rows], y[test_rows]).accuracy)
    return accuracies


def _train_model(cell: PaperCell, X: Any, y: Any, schema: Any, seed: int) -> Any:
    from discreet.estimators import CentralNB, MixedNB
    from discreet.schema.schema import Numeric

    method = "smooth" if cell.figure == "14" else cell["method"]
    if method == "non-private":
        return MixedNB(schema=schema).fit(X, y).model_
    if method == "majority":
        return _make_majority_model(y, schema)
    if method == "smooth, published":
        return fit_published_smooth(X, y, schema, cell["epsilon"], seed)
    options: dict[str, Any] = {"method": method.split(",")[0]}
    if cell.figure == "14":
        numeric_weight, categorical_weight = BUDGET_RATIOS[cell["shares"]]
        options["allocation"] = {
            feature.name: numeric_weight if isinstance(feature, Numeric) else categorical_weight
            for feature in schema.features
        }
    if method in DELTA_POWERS:
        options["delta"] = len(y) ** -float(DELTA_POWERS[method])
    nb = CentralNB(cell["epsilon"], schema=schema, random_state=seed, **options)
    return nb.fit(X, y).model_


def _make_majority_model(y: Any, schema: Any) -> Any:
    from discreet.model import NaiveBayesModel
    from discreet.schema.cells import encode_classes

    class_counts = np.bincount(encode_classes(schema, y), minlength=len(schema.classes)) + 1e-9
    return NaiveBayesModel(schema, np.log(class_counts / class_counts.sum()), [])


def fit_published_smooth(X: Any, y: Any, schema: Any, epsilon: float, seed: int) -> Any:
    """Algorithm 1 as printed: for comparison only, it keeps no promise.

    Parameters
    ----------
    X : pandas data frame
    y : array of classes
    schema : Schema
    epsilon : float
        What it claims.
    seed : int
    """
    from discreet.model import NaiveBayesModel
    from discreet.privacy.guarantee import Guarantee
    from discreet.schema.cells import encode_classes
    from discreet.schema.schema import Numeric

    rng, class_indices = np.random.default_rng(seed), encode_classes(schema, y)
    numeric_count = sum(isinstance(feature, Numeric) for feature in schema.features)
    budget_part = epsilon / (numeric_count + len(schema.features) + 1)
    factors = [
        (_fit_published_density if isinstance(feature, Numeric) else _fit_published_cells)(
            schema, feature, X[feature.name], class_indices, budget_part, rng
        )
        for feature in schema.features
    ]
    class_totals = np.bincount(class_indices, minlength=len(schema.classes)).astype(float)
    noisy_totals = np.maximum(
        [total + _draw_published_noise(rng, 1, budget_part) for total in class_totals], 1.0
    )
    return NaiveBayesModel(
        schema, np.log(noisy_totals / noisy_totals.sum()), factors, Guarantee.make_unprotected()
    )


def _draw_published_noise(rng: np.random.Generator, sensitivity: float, epsilon: float) -> float:
    return float(math.sqrt(2) * sensitivity / epsilon * rng.standard_cauchy())


def _fit_published_density(
    schema: Any, feature: Any, column: Any, class_indices: Any, epsilon: float, rng: Any
) -> Any:
    """Lines 5 to 10: a mean and a deviation for each class, with Cauchy noise."""
    from discreet.model import GaussianFactor
    from discreet.schema.cells import parse_numbers

    values = parse_numbers(feature, column, schema.missing_tokens)
    low, high = feature.lower, feature.upper
    means, deviations = np.zeros(len(schema.classes)), np.zeros(len(schema.classes))
    for class_index in range(len(schema.classes)):
        class_values = np.sort(values[(class_indices == class_index) & ~np.isnan(values)])
        class_values = class_values if len(class_values) else np.array([(low + high) / 2])
        mean_sensitivity = max(high - class_values[0], class_values[-1] - low) / len(class_values)
        means[class_index] = class_values.mean() + _draw_published_noise(
            rng, mean_sensitivity, epsilon
        )
        deviations[class_index] = class_values.std() + _draw_published_noise(
            rng, _compute_first_step(class_values, low, high), epsilon
        )
    return GaussianFactor(
        feature,
        np.maximum(means, 0) if low >= 0 else means,
        np.maximum(deviations, (high - low) / 1000) ** 2,
    )


def _fit_published_cells(
    schema: Any, feature: Any, column: Any, class_indices: Any, epsilon: float, rng: Any
) -> Any:
    """A table with Laplace noise, clipped at zero and smoothed by one."""
    from discreet.model import CellFactor
    from discreet.schema.cells import Cells

    cells, class_count = Cells.from_schema(schema, feature.name), len(schema.classes)
    counts = np.bincount(
        class_indices * cells.size + cells.encode_column(column), minlength=class_count * cells.size
    ).reshape(class_count, -1)
    noisy_counts = np.maximum(counts + rng.laplace(0, 1 / epsilon, counts.shape), 0) + 1
    return CellFactor(cells, np.log(noisy_counts / noisy_counts.sum(axis=1, keepdims=True)))


def _compute_first_step(class_values: Any, low: float, high: float) -> float:
    """Theorem 7 at its first step: the largest change of the variance by moving one value."""
    n, value_sum = len(class_values), float(class_values.sum())
    square_sum = float((class_values * class_values).sum())
    base_variance = square_sum / n - (value_sum / n) ** 2
    variance_changes = []
    for removed_value in (
        class_values[0],
        class_values[-1],
        class_values[np.argmin(np.abs(class_values - value_sum / n))],
    ):
        for inserted_value in (low, high, value_sum / n):
            changed_variance = (
                square_sum - removed_value * removed_value + inserted_value * inserted_value
            ) / n - ((value_sum - removed_value + inserted_value) / n) ** 2
            variance_changes.append(abs(changed_variance - base_variance))
    return float(max(variance_changes))


def _time_training(row_count: int, repeats: int) -> dict[str, list[float]]:
    """Training time in seconds with global and smooth sensitivity, on this many rows of Adult."""
    from discreet.datasets import load
    from discreet.estimators import CentralNB

    dataset = load("adult")
    row_indices = np.random.default_rng(0).choice(len(dataset.y), row_count)
    X, y = dataset.X.iloc[row_indices].reset_index(drop=True), dataset.y[row_indices]
    seconds_by_method: dict[str, list[float]] = {"global": [], "smooth": [], "ratio": []}
    for repeat in range(repeats):
        for method in ("global", "smooth"):
            nb = CentralNB(1.0, method=method, schema=dataset.schema, random_state=repeat)
            start_time = time.process_time()
            nb.fit(X, y)
            seconds_by_method[method].append(time.process_time() - start_time)
        seconds_by_method["ratio"].append(
            seconds_by_method["smooth"][-1] / seconds_by_method["global"][-1]
        )
    return seconds_by_method


def _compute_real_epsilon(claimed: float) -> float:
    """The epsilon of line 14 between two neighbours: all values in the middle, and one at U.

    The largest log-ratio of two Cauchy densities is a hyperbolic distance: cosh d = 1 + (difference
    of locations squared + difference of scales squared) / (twice the product of the scales).
    """
    n, range_width = 100, 1.0
    mean_shift = range_width / (2 * n)
    first_scale = math.sqrt(2) * (range_width / (2 * n)) / claimed
    second_scale = math.sqrt(2) * (range_width / n) / claimed
    return math.acosh(
        1 + (mean_shift**2 + (second_scale - first_scale) ** 2) / (2 * first_scale * second_scale)
    )


def _compare_sensitivities() -> dict[str, list[float]]:
    """Printed sensitivity of the mean over the true one (replace one), on 300 random tables."""
    from discreet.central.smooth_sensitivity import bound_mean_sensitivity

    sensitivity_ratios = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, beta = int(rng.integers(5, 40)), float(rng.choice([0.01, 0.1, 0.5]))
        sorted_values = np.sort(rng.beta(rng.uniform(0.3, 20), rng.uniform(0.3, 20), n))
        printed_sensitivity = max(1 - sorted_values[0], sorted_values[-1]) / n
        sensitivity_ratios.append(
            printed_sensitivity
            / bound_mean_sensitivity(sorted_values, 0, 1, beta, neighbours="replace")
        )
    return {"printed over true": sensitivity_ratios}


# ---------------------------------------------------------------- figures and verdicts


def make_figures(results: PaperResults) -> Iterator[Figure]:
    """Figures 4 to 8, 13, and 14 to 16."""
    if epsilons := results.list_parameter_values("4", "epsilon"):
        panels = []
        for table in results.list_parameter_values("4", "table"):
            plot_lines = results.make_lines(
                "4", "method", METHODS, "epsilon", epsilons, table=table
            )
            for method, style in (("non-private", ":"), ("majority", "--")):
                limit_accuracy = results.compute_mean("4", table=table, method=method)
                plot_lines.append(make_flat_line(method, epsilons, limit_accuracy, style))
            panels.append(Panel(table, plot_lines, "epsilon", "accuracy", log_x=True))
        yield Figure("figures 4 to 8", "Accuracy by epsilon.", panels)
    if epsilons := results.list_parameter_values("14", "epsilon"):
        panels = [
            Panel(
                table,
                results.make_lines(
                    "14", "shares", list(BUDGET_RATIOS), "epsilon", epsilons, table=table
                ),
                "epsilon",
                "accuracy",
            )
            for table in results.list_parameter_values("14", "table")
        ]
        yield Figure("figures 14 to 16", "Shares of the budget, numeric to categorical.", panels, 3)
    if sizes := results.list_parameter_values("13", "rows"):
        plot_lines = [
            results.make_line(method, "13", "rows", sizes, method)
            for method in ("global", "smooth")
        ]
        panels = [Panel("", plot_lines, "rows", "CPU seconds to train", log_x=True, log_y=True)]
        yield Figure("figure 13", "Time to train on Adult, drawn with replacement.", panels)


def _average_over_epsilons(results: PaperResults, table: str, method: str) -> list[float]:
    """Mean accuracy of every fold over the epsilons."""
    epsilons = results.list_parameter_values("4", "epsilon")
    return results.average_over("4", "epsilon", epsilons, table=table, method=method)


def _subtract_methods(
    results: PaperResults, table: str, first: str, second: str, comparison_count: int
) -> PairedDifference:
    return PairedDifference.from_pairs(
        _average_over_epsilons(results, table, first),
        _average_over_epsilons(results, table, second),
        comparison_count,
    )


def _check_adult(results: PaperResults) -> Finding:
    mean_accuracies = {
        method: float(np.mean(_average_over_epsilons(results, "adult", method)))
        for method in METHODS
    }
    return Finding.from_differences(
        f"Adult, mean over epsilon: {format_percentages(mean_accuracies)}; smooth minus global, "
        "points: ",
        {
            "as published": _subtract_methods(
                results, "adult", "smooth, published", "global-published", 2
            ),
            "for the sound methods": _subtract_methods(results, "adult", "smooth", "global", 2),
        },
        PairedDifference.is_above,
        "the sound global method releases sums of squares and no deviation, and is better than "
        "smooth sensitivity",
        "",
    )


def _check_mushroom(results: PaperResults) -> Finding | None:
    if "mushroom" not in results.list_parameter_values("4", "table"):
        return None
    compared_methods = ("global-published", "smooth, published", "smooth", "trimmed")
    return Finding.from_differences(
        "minus global, mean over epsilon, points: ",
        {
            method: _subtract_methods(results, "mushroom", method, "global", len(compared_methods))
            for method in compared_methods
        },
        PairedDifference.is_within,
        "they divide the budget and draw class counts differently",
        "for",
    )


def _check_delta(results: PaperResults) -> Finding:
    tables = results.list_parameter_values("4", "table")
    differences = {
        f"{table} {method.split()[-1]}": _subtract_methods(
            results, table, method, "smooth", len(tables) * len(DELTA_POWERS)
        )
        for table in tables
        for method in DELTA_POWERS
    }
    return Finding.from_cases(
        "smooth with delta minus smooth, mean over epsilon, points: "
        + "; ".join(f"{case} {difference}" for case, difference in differences.items()),
        {case: difference.is_above() for case, difference in differences.items()},
        "beta shrinks with ln(2/delta), so for few rows the smooth sensitivity itself is larger",
    )


def _check_run_times(results: PaperResults) -> Finding:
    row_counts = results.list_parameter_values("13", "rows")
    line = results.make_line("", "13", "rows", row_counts, "ratio")
    errors = line.standard_errors or [math.nan] * len(row_counts)
    measured = "ratio: " + ", ".join(
        f"{ratio:.2f} ± {error:.2f} at {row_count:,} rows"
        for row_count, ratio, error in zip(row_counts, line.y, errors, strict=True)
    )
    if max(line.y) >= 3:
        return Finding(measured, "holds")
    return Finding(
        measured,
        "does not hold",
        "sorting once and O(n log n) bounds make smooth sensitivity nearly as quick as global at "
        "every size",
    )


def _check_allocation(results: PaperResults) -> Finding:
    best_ratios, differences = {}, {}
    for table in results.list_parameter_values("14", "table"):
        for epsilon in results.list_parameter_values("14", "epsilon"):
            accuracies = {
                ratio: results.get_values("14", shares=ratio, table=table, epsilon=epsilon)
                for ratio in BUDGET_RATIOS
            }
            case = f"{table} at {format_rounded_up(epsilon)}"
            best_ratio = max(accuracies, key=lambda ratio: float(np.mean(accuracies[ratio])))
            best_ratios[case] = best_ratio
            differences[case] = PairedDifference.from_pairs(
                accuracies[best_ratio], accuracies["2:1"], 6 * len(BUDGET_RATIOS)
            )
    held_by_case = {case: difference.is_within() for case, difference in differences.items()}
    return Finding(
        "best, and points above 2:1: "
        + ", ".join(
            f"{case} {best_ratios[case]} ({difference})" for case, difference in differences.items()
        ),
        format_verdict(held_by_case),
        "which allocation is best depends on which attributes speak"
        if False in held_by_case.values()
        else "",
    )


def _check_guarantee(results: PaperResults) -> Finding:
    real_epsilons = {
        cell["claimed"]: results.compute_mean("sound", "epsilon", claimed=cell["claimed"])
        for cell in results.values
        if cell.figure == "sound"
    }
    sensitivity_ratios = results.get_values("sensitivity", "printed over true")
    underestimated_share = float(np.mean(np.asarray(sensitivity_ratios) < 1 - 1e-9))
    is_broken = any(real_epsilon > claimed for claimed, real_epsilon in real_epsilons.items())
    return Finding(
        f"printed sensitivity of the mean below the true one in {100 * underestimated_share:.0f} % "
        f"of 300 random tables, down to {min(sensitivity_ratios):.2f} of it; line 14 between two "
        "neighbours: "
        + ", ".join(
            f"claimed {claimed:g}, real at least {real_loss:.2f}"
            for claimed, real_loss in real_epsilons.items()
        ),
        "does not hold" if is_broken or underestimated_share > 0 else "holds",
        "theorems 4 and 7 bound how far the statistic drifts, not its local sensitivity at a "
        "distance; label moves are ignored",
    )


STATEMENTS: dict[str, StatementCheck] = {
    "Smooth sensitivity is much better than global on human data": _check_adult,
    "The methods are the same on Mushroom, which has no numbers": _check_mushroom,
    "Approximate differential privacy is a little better": _check_delta,
    "The run-time ratio of smooth to global falls from ten to three as n grows": _check_run_times,
    "A 2:1 allocation is reasonable": _check_allocation,
    "Algorithm 1 is epsilon-differentially private": _check_guarantee,
}
"""What the paper states, and how it is judged."""
