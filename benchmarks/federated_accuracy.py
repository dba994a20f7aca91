"""Accuracy of FederatedNB before and after: eight equal bins, cuts by noise, judged candidates.

    python benchmarks/federated_accuracy.py [--tables adult,skin] [--epsilons .5,1,4]
        [--people 20000] [--repeats 8] [--jobs 2]

80/20 splits; training rows are drawn with replacement, as many as ``--people``. Three providers,
masks. "8 bins" is one round with eight equal bins, "cuts" one round with bins="auto", "judged" the
default: cuts, and a second round for 5 % of epsilon. What is expected of people is left at its
default, a thousand per provider. Differences are paired. Needs the tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import Any

import numpy as np

WAYS: dict[str, dict[str, Any]] = {
    "8 bins": {"bins": 8, "judge": "never"},
    "cuts": {"judge": "never"},
    "judged": {},
}
MOST_TEST_ROWS = 10_000


@cache
def rows_of(name: str) -> tuple[Any, np.ndarray, Any]:
    """Features, classes and schema of a benchmark table."""
    from discreet.datasets import load

    data = load(name)
    return data.X, np.asarray(data.y), data.schema


def measure(task: tuple[str, float, int, int]) -> tuple[str, float, list[list[float]]]:
    """Accuracy and log loss of every way in one repetition, and of the majority."""
    from discreet import FederatedNB

    name, epsilon, people, repeat = task
    warnings.simplefilter("ignore")
    X, y, schema = rows_of(name)
    rng = np.random.default_rng(repeat)
    train, test = np.split(rng.permutation(len(y)), [int(0.8 * len(y))])
    train, test = rng.choice(train, people), test[:MOST_TEST_ROWS]
    classes, counts = np.unique(y[train], return_counts=True)
    numbers = [[float(np.mean(y[test] == classes[counts.argmax()])), math.nan]]
    for options in WAYS.values():
        nb = FederatedNB(epsilon, schema=schema, random_state=repeat, **options)
        nb.fit(X.iloc[train], y[train])
        probability = nb.predict_proba(X.iloc[test])
        right = nb.classes_[probability.argmax(axis=1)] == y[test]
        column = np.searchsorted(nb.classes_, y[test])
        loss = -np.log(np.maximum(probability[np.arange(len(test)), column], 1e-12)).mean()
        numbers.append([float(right.mean()), float(loss)])
    return name, epsilon, numbers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="adult,skin,mushroom,connect4")
    parser.add_argument("--epsilons", default=".5,1,4")
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    tasks = [
        (name, float(epsilon), args.people, repeat)
        for name in args.tables.split(",")
        for epsilon in args.epsilons.split(",")
        for repeat in range(args.repeats)
    ]
    print("| table | epsilon | majority | 8 bins | cuts | judged | change | log loss |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    found: list[list[list[float]]] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for name, epsilon, numbers in pool.map(measure, tasks):
            found.append(numbers)
            if len(found) == args.repeats:
                print(describe(name, epsilon, np.array(found)), flush=True)
                found.clear()


def describe(name: str, epsilon: float, results: np.ndarray) -> str:
    """A line of the table; results are (repeats, majority and ways, accuracy and log loss)."""
    mean, change = results.mean(axis=0), results[:, 3, 0] - results[:, 1, 0]
    error = change.std(ddof=1) / math.sqrt(len(change)) if len(change) > 1 else math.nan
    accuracies = " | ".join(f"{number:.3f}" for number in mean[:, 0])
    losses = " → ".join(f"{number:.3f}" for number in mean[1:, 1])
    changed = f"{change.mean():+.3f} ± {error:.3f}"
    return f"| {name} | {epsilon:g} | {accuracies} | {changed} | {losses} |"


if __name__ == "__main__":
    main()
