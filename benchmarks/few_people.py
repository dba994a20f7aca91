"""With how few people a model is no better than always guessing the largest class.

``.venv/bin/python benchmarks/few_people.py`` prints a table ready for RESULTS.md: accuracy on 4,000
other invented people minus that of the largest class, mean over repetitions ± standard error.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from discreet import CentralNB, LocalNB
from discreet.datasets import make_mortgage

OTHERS = 4_000
"""People on whom each model is tried."""

CASES = [
    (CentralNB, 50, 1.0, 40),
    (CentralNB, 100, 1.0, 40),
    (CentralNB, 500, 0.1, 40),
    (CentralNB, 1_000, 0.1, 40),
    (LocalNB, 1_000, 1.0, 30),
    (LocalNB, 2_000, 1.0, 30),
    (LocalNB, 5_000, 1.0, 20),
]
"""Estimator, people, epsilon, repetitions."""


def measure_lead(estimator: Any, people: int, epsilon: float, seed: int) -> float:
    """Accuracy of one training minus that of always guessing the largest class."""
    population = make_mortgage(people + OTHERS, seed=1_000 + seed)
    X, y = population.X, np.asarray(population.y)
    rows = np.arange(people + OTHERS)
    take = X.iloc.__getitem__ if hasattr(X, "iloc") else X.__getitem__
    model = estimator(epsilon=epsilon, schema=population.schema, random_state=seed)
    model.fit(take(rows[:people]), y[:people])
    others = y[people:]
    largest_share = np.unique(others, return_counts=True)[1].max() / OTHERS
    return float((np.asarray(model.predict(take(rows[people:]))) == others).mean() - largest_share)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # seeds are meant here
    print("| model | people | epsilon | lead over the largest class |\n|---|---:|---:|---:|")
    for estimator, people, epsilon, repeats in CASES:
        leads = np.array([measure_lead(estimator, people, epsilon, s) for s in range(repeats)])
        error = leads.std(ddof=1) / np.sqrt(repeats)
        name = estimator.__name__
        print(f"| {name} | {people:,} | {epsilon:g} | {leads.mean():+.3f} ± {error:.3f} |")
