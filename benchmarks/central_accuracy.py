"""Accuracy of central classifiers, stratified 10-fold, as a Markdown table.

    python benchmarks/central_accuracy.py --repeats 2
    python benchmarks/central_accuracy.py --data diabetes seeds --method moments --jobs 2
    python benchmarks/central_accuracy.py --data iris wine wdbc digits connect4
    python benchmarks/central_accuracy.py --data connect4 --epsilon 0.5 5 --folds 4 --no-corrections
    python benchmarks/central_accuracy.py --data numeric20x30x5000 strong15x1000
    python benchmarks/central_accuracy.py --data telco car --log-loss --epsilon 5 50 inf
    python benchmarks/central_accuracy.py --data adult --log-loss --save before.json
    python benchmarks/central_accuracy.py --data adult --log-loss --against before.json

``reference`` is the prototype of the design notes. ``--save`` keeps the scores of every fold;
``--against`` compares with such a file, paired by fold. Peers: benchmarks/peers.py. Needs the
benchmark tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from discreet import CentralNB, MixedNB, Schema
from discreet.datasets import load, make_long_tailed

sys.path.insert(0, str(Path(__file__).parent))

from _tables import bundled, generated

EPSILONS = (0.1, 0.5, 1.0, 2.0)
NAMES = ("adult", "diabetes", "seeds", "glass", "skin", "australian", "mushroom")
SKIN_ROWS = 50_000
PLAIN = 0.0
"""Stands for plain Naive Bayes among the epsilons."""
FOLDS = 10
REPEATS = {"diabetes": 5, "seeds": 10, "glass": 10, "australian": 5, "mushroom": 2}
REPEATS |= {"breast_cancer": 6, "breast_cancer_wisconsin": 5, "balance_scale": 5, "spect": 6}
REPEATS |= {"car": 3, "chess": 2, "iris": 10, "wine": 10, "wdbc": 5, "digits": 2}
"""Small tables need more folds for the same standard error."""
HELD_OUT = ("iris", "wine", "wdbc", "digits", "connect4")
"""Tables that no setting was chosen on; the first four come with scikit-learn."""

REFERENCE = {
    "adult": (0.840, 0.847, 0.849, 0.850),
    "diabetes": (0.646, 0.723, 0.732, 0.741),
    "seeds": (0.521, 0.841, 0.871, 0.881),
    "glass": (0.273, 0.359, 0.470, 0.526),
    "skin": (0.933, 0.944, 0.945, 0.946),
    "australian": (0.582, 0.813, 0.834, 0.851),
    "mushroom": (0.897, 0.919, 0.928, 0.937),
    "breast_cancer_wisconsin": (0.893, 0.966, 0.969, 0.971),
    "car": (0.707, 0.796, 0.828, 0.839),
    "chess": (0.620, 0.824, 0.851, 0.860),
    "splice": (0.449, 0.666, 0.877, 0.929),
}


def rows_of(name: str) -> tuple[pd.DataFrame, np.ndarray, Schema]:
    """A benchmark table, 50,000 rows of skin, one of scikit-learn's tables, or a generated one."""
    if name in HELD_OUT[:4]:
        return bundled(name)
    if name.startswith(("numeric", "categorical", "strong")):
        return generated(name)
    if name.startswith("mail"):
        data = make_long_tailed(float(name.removeprefix("mail") or 1000))
    else:
        data = load(name)
    X, y = data.X, data.y
    if name == "skin":
        kept = np.random.default_rng(0).permutation(len(y))[:SKIN_ROWS]
        X, y = X.iloc[kept].reset_index(drop=True), y[kept]
    return X, y, data.schema


def folds(y: np.ndarray, repeat: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same folds for everyone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split = StratifiedKFold(FOLDS, shuffle=True, random_state=repeat)
        return list(split.split(np.zeros(len(y)), y))


def cell(task: tuple[str, float, int, int, dict[str, Any]]) -> list[list[float]]:
    """Accuracy, log loss and AUC on every fold of one table at one epsilon."""
    name, epsilon, repeats, most, options = task
    X, y, schema = rows_of(name)
    found = []
    for repeat in range(repeats):
        for number, (train, test) in enumerate(folds(y, repeat)[:most]):
            seed = [repeat, number, round(1000 * min(epsilon, 1e6))]
            if epsilon == PLAIN:
                nb = MixedNB(schema=schema)
            else:
                random = np.random.default_rng(seed)
                nb = CentralNB(epsilon, schema=schema, random_state=random, **options)
            nb.fit(X.iloc[train], y[train])
            found.append(scores_of(nb, X.iloc[test], y[test]))
    return found


def scores_of(nb: Any, X: pd.DataFrame, y: np.ndarray) -> list[float]:
    """Accuracy, log loss (of probabilities of at least 1e-15) and AUC, the mean over classes."""
    log_proba = np.maximum(nb.predict_log_proba(X), math.log(1e-15))
    right = log_proba[np.arange(len(y)), np.searchsorted(nb.classes_, y)]
    present = [i for i, label in enumerate(nb.classes_) if 0 < np.mean(y == label) < 1]
    auc = np.mean([roc_auc_score(y == nb.classes_[i], log_proba[:, i]) for i in present])
    return [float(np.mean(nb.predict(X) == y)), float(-np.mean(right)), float(auc)]


def summary(found: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(len(found)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(NAMES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--method", default="histogram")
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--repeats", type=int, default=1, help="times the usual number")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-selection", action="store_true")
    parser.add_argument("--no-corrections", action="store_true")
    parser.add_argument("--folds", type=int, default=FOLDS, help="of the ten, for large tables")
    parser.add_argument("--log-loss", action="store_true", help="log loss and AUC, too")
    parser.add_argument("--save", type=Path, help="a file for the scores of every fold")
    parser.add_argument("--against", type=Path, help="a file with the scores to compare with")
    given = parser.parse_args()
    options = {"method": given.method, "delta": given.delta, "selection": not given.no_selection}
    options["corrections"] = not given.no_corrections
    tasks, labels = [], []
    for name in given.data:
        times = given.repeats * REPEATS.get(name, 1)
        for epsilon in (*given.epsilon, PLAIN):
            again = 1 if epsilon == PLAIN else times
            tasks.append((name, epsilon, again, given.folds, options))
            labels.append((name, epsilon))
    if given.jobs > 1:
        with ProcessPoolExecutor(given.jobs) as pool:
            scores = dict(zip(labels, pool.map(cell, tasks), strict=True))
    else:
        scores = dict(zip(labels, map(cell, tasks), strict=True))
    if given.save:
        folded = {f"{name} {epsilon:g}": found for (name, epsilon), found in scores.items()}
        given.save.write_text(json.dumps(folded))
    if given.log_loss or given.against:
        before = json.loads(given.against.read_text()) if given.against else {}
        print(paired_report(scores, before))
        return
    results = {label: [one[0] for one in found] for label, found in scores.items()}
    print(report(given, results))


def paired_report(scores: dict[Any, list[list[float]]], before: dict[str, Any]) -> str:
    """Accuracy, log loss and AUC, with the change from before, paired by fold."""
    lines = ["| data | epsilon | accuracy | log loss | AUC | " + "change | " * 3 * bool(before)]
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    for (name, epsilon), found in scores.items():
        earlier = before.get(f"{name} {epsilon:g}")
        columns = list(zip(*found, strict=True))
        cells = ["{:.3f} ({:.3f})".format(*summary(list(one))) for one in columns]
        if earlier is not None and len(earlier) == len(found):
            changes = np.array(found) - np.array(earlier)
            cells += ["{:+.3f} ± {:.3f}".format(*summary(list(one))) for one in changes.T]
        label = "plain Naive Bayes" if epsilon == PLAIN else f"{epsilon:g}"
        lines.append(f"| {name} | {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(given: argparse.Namespace, results: dict[Any, list[float]]) -> str:
    """The Markdown text."""
    head = ["data", "epsilon", given.method, "se", "reference", "(ours - ref)/se"]
    head += ["plain Naive Bayes", "majority"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    ours, theirs = [], []
    for name in given.data:
        y = rows_of(name)[1]
        majority = pd.Series(y).value_counts().max() / len(y)
        plain = np.mean(results[name, PLAIN])
        for epsilon in given.epsilon:
            mean, error = summary(results[name, epsilon])
            known = name in REFERENCE and epsilon in EPSILONS
            reference = REFERENCE[name][EPSILONS.index(epsilon)] if known else math.nan
            ours.append(mean)
            theirs.append(reference)
            row = [name, f"{epsilon:g}", f"{mean:.3f}", f"{error:.3f}", f"{reference:.3f}"]
            row += [f"{(mean - reference) / max(error, 5e-4):+.1f}"]
            lines.append("| " + " | ".join([*row, f"{plain:.3f}", f"{majority:.3f}"]) + " |")
    mean, reference = np.mean(ours), np.nanmean(theirs) if np.isfinite(theirs).any() else math.nan
    lines.append(f"\nMean over cells: {mean:.4f}, reference {reference:.4f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
