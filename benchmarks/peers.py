"""Central classifiers next to what a user would pick instead: accuracy, log loss, AUC and time.

    python benchmarks/peers.py
    python benchmarks/peers.py --data diabetes skin --epsilon 0.1 1 --folds 4
    python benchmarks/peers.py --data adult --aim adult --folds 2

The same folds for all: `CentralNB` with epsilon alone and with delta 1e-6, DP-EBM (delta 1e-6, its
categories and the public bounds; two classes only), diffprivlib's Naive Bayes (numbers only; its
promise is not kept), its logistic regression and its forest, and, for the tables named by --aim,
boosted trees on synthetic rows of AIM (dpmm, delta 1e-6). Without privacy: plain Naive Bayes and
logistic regression. Each peer has an environment of its own, made at first use; one that cannot be
installed is skipped with a sentence. Needs the benchmark tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from discreet import CentralNB, MixedNB

sys.path.insert(0, str(Path(__file__).parent))

from _central_peers import DELTA, compute_figures, run_peers
from central_accuracy import folds, rows_of

TABLES = ("adult", "skin", "connect4", "diabetes", "breast_cancer_wisconsin", "car", "wdbc")
MAX_ROWS = 20_000
"""Rows of a larger table that are used, drawn at random: the peers take minutes otherwise."""
FIGURES = ("accuracy", "log_loss", "auc", "seconds")
Figures = dict[tuple[str, float], dict[str, list[float]]]


def load_rows(name: str) -> tuple[pd.DataFrame, np.ndarray, Any]:
    """At most MAX_ROWS rows of a table."""
    X, y, schema = rows_of(name)
    y = np.asarray(y)
    if len(y) > MAX_ROWS:
        rows = np.random.default_rng(1).permutation(len(y))[:MAX_ROWS]
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    return X, y, schema


def make_logistic_regression(schema: Any) -> Any:
    """Logistic regression without privacy."""
    numbers = [feature.name for feature in schema.features if hasattr(feature, "lower")]
    categories = [name for name in schema.names if name not in numbers]
    encoder = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), categories),
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=2000))


def measure_fold(
    classifier: Any, X: Any, y: Any, fold: tuple[Any, Any], classes: Any
) -> dict[str, float]:
    """Fit and test one classifier."""
    train, test = fold
    started = time.process_time()
    classifier.fit(X.iloc[train], y[train])
    seconds = time.process_time() - started
    probability = np.zeros((len(test), len(classes)))
    fitted_classes = np.searchsorted(classes, np.asarray(classifier.classes_).astype(y.dtype))
    probability[:, fitted_classes] = classifier.predict_proba(X.iloc[test])
    return compute_figures(probability, np.searchsorted(classes, y[test])) | {"seconds": seconds}


def measure_ours(table: Any, epsilons: list[float], fold_list: list[Any]) -> Figures:
    """Ours, and the two without privacy."""
    X, y, schema = table
    classes, found = np.unique(y), {}
    for number, fold in enumerate(fold_list):
        for epsilon in epsilons:
            for delta in (0.0, DELTA):
                seed = [number, round(1000 * epsilon)]
                nb = CentralNB(
                    epsilon,
                    delta=delta,
                    schema=schema,
                    random_state=np.random.default_rng(seed),
                )
                key = ("CentralNB" + (", delta 1e-6" if delta else ""), epsilon)
                found.setdefault(key, []).append(measure_fold(nb, X, y, fold, classes))
        for name, classifier in (
            ("plain Naive Bayes", MixedNB(schema=schema)),
            ("logistic regression", make_logistic_regression(schema)),
        ):
            figures = measure_fold(classifier, X, y, fold, classes)
            found.setdefault((name, math.inf), []).append(figures)
    return {
        key: {name: [figures[name] for figures in rows] for name in FIGURES}
        for key, rows in found.items()
    }


def measure_table(name: str, options: argparse.Namespace) -> Figures:
    """Figures of everybody on one table."""
    table = load_rows(name)
    fold_list = folds(table[1], 0)[: options.folds]
    found = measure_ours(table, options.epsilon, fold_list)
    with tempfile.TemporaryDirectory() as folder:
        for environment in ("dp", "aim") if name in options.aim else ("dp",):
            for row in run_peers(
                environment, table, options.epsilon, fold_list, Path(folder), options.peers
            ):
                figures = found.setdefault((row["peer"], row["epsilon"]), {})
                for figure in FIGURES:
                    figures.setdefault(figure, []).append(row[figure])
    return found


def format_rows(name: str, found: Figures) -> list[str]:
    """Lines of the table, best accuracy first at each epsilon."""
    lines = []
    for epsilon in sorted({epsilon for _, epsilon in found}):
        rows = [(peer, figures) for (peer, own), figures in found.items() if own == epsilon]
        for peer, figures in sorted(rows, key=lambda row: -np.mean(row[1]["accuracy"])):
            texts = []
            for figure in FIGURES:
                values = np.array(figures[figure])
                error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
                texts.append(
                    f"{values.mean():.2f}"
                    if figure == "seconds"
                    else f"{values.mean():.3f} ± {error:.3f}"
                )
            stated = "none" if math.isinf(epsilon) else f"{epsilon:g}"
            lines.append("| " + " | ".join([name, stated, peer, *texts]) + " |")
    return lines


def main() -> None:
    """Print the table, one line per classifier."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--folds", type=int, default=4, help="of the ten")
    parser.add_argument("--aim", nargs="*", default=[], help="tables that AIM is tried on")
    parser.add_argument("--peers", nargs="*", default=[], help="only these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | epsilon | classifier | accuracy | log loss | AUC | CPU seconds of a fit |")
    print("|---|---|---|---|---|---|---|")
    totals: dict[tuple[str, float], list[list[float]]] = {}
    for name in options.data:
        found = measure_table(name, options)
        for key, figures in found.items():
            totals.setdefault(key, []).append([np.mean(figures[figure]) for figure in FIGURES])
        print("\n".join(format_rows(name, found)), flush=True)
    print(
        "\nMeans over the tables that a classifier took (tables, accuracy, log loss, AUC, CPU s):"
    )
    for (peer, epsilon), rows in sorted(totals.items(), key=lambda item: (item[0][1], item[0][0])):
        means = ", ".join(f"{mean:.3f}" for mean in np.nanmean(rows, axis=0))
        print(f"- {peer}, epsilon {epsilon:g}: {len(rows)}, {means}")


if __name__ == "__main__":
    main()
