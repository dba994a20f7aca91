"""How well a private evaluation knows how good a model is: coverage and width of its intervals.

``DISCREET_DATA=... .venv/bin/python benchmarks/private_evaluation.py`` prints a table ready for
docs/experiments: a model is trained on half of a table (epsilon 1), the other half is the
population, of which rows are drawn with replacement and scored privately. ``--grids`` compares
grids of confidence instead, by how far the area under the curve in groups is from the exact one and
how wide its interval is; ``--areas`` compares counted areas with exact ones.
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from discreet import CentralNB, Guarantee, SeededRandom
from discreet.central import private_scores
from discreet.central.budget import Budget
from discreet.datasets import load
from discreet.model.noisy_scores import NoisyScores
from discreet.model.ranking import (
    compute_auc,
    compute_average_precision,
    compute_log_odds,
    count_ranks,
)

TABLES = ("adult", "telco", "credit", "churn", "magic", "satimage", "letter")
PEOPLE = (500, 2_000, 10_000)
EPSILONS = (0.1, 0.2, 1.0)
FIGURES = ("accuracy", "recall", "precision", "AUC")
GRIDS = {
    "4 groups": (0.65, 0.8, 0.93),
    "6 groups": (0.6, 0.75, 0.88, 0.96, 0.99),
    "8 groups": private_scores.EDGES_TWO_CLASSES,
    "10 groups": (0.55, 0.62, 0.7, 0.78, 0.86, 0.92, 0.96, 0.985, 0.996),
    "16 groups": tuple(np.round(np.linspace(0.5, 1, 17)[1:-1], 3).tolist()),
}
MAX_ROWS = 40_000
"""Rows of a table that are used."""


def score_others(name: str, seed: int = 0) -> tuple[Any, Any, Any]:
    """Scores and true classes of the half of a table from which nothing was learnt."""
    table = load(name)
    rows = np.random.default_rng(seed).permutation(len(table.y))[:MAX_ROWS]
    half = len(rows) // 2
    nb = CentralNB(1.0, schema=table.schema, random_state=seed)
    model = nb.fit(table.X.iloc[rows[:half]], np.asarray(table.y)[rows[:half]]).model_
    others = table.X.iloc[rows[half:]]
    labels = [str(value) for value in model.schema.classes]
    truth = np.array([labels.index(str(value)) for value in np.asarray(table.y)[rows[half:]]])
    return model.predict_joint_log_proba(others), truth, labels


def count_cells(scores: Any, truth: Any) -> Any:
    """Exact counts by true class, predicted class and group."""
    predicted, groups = private_scores.assign_cells(scores)
    class_count = scores.shape[1]
    edges = private_scores.choose_confidence_edges(class_count)
    shape = (class_count, class_count, len(edges) + 1)
    flat_cells = np.ravel_multi_index((truth, predicted, groups), shape)
    return np.bincount(flat_cells, minlength=math.prod(shape)).reshape(shape)


def look(counts: Any, variance: float, rare_class: int) -> list[tuple[float, Any]]:
    """Accuracy, and recall, precision and AUC of the rarest class."""
    class_count = len(counts)
    scores = NoisyScores(
        tuple(range(class_count)),
        counts,
        private_scores.choose_confidence_edges(class_count),
        variance,
        Guarantee(1.0),
        Guarantee(1.0),
    )
    entry = scores.scores_by_class[rare_class]
    figures = [(scores.accuracy, scores.accuracy_interval)]
    figures += [(entry[key], entry[f"{key}_interval"]) for key in ("recall", "precision", "auc")]
    return figures


def measure(counts: Any, people: int, epsilon: float, repeats: int, seed: int = 0) -> Any:
    """Coverage and mean width of every figure."""
    rare_class = int(np.argmin(counts.sum(axis=(1, 2))))
    truths = [value for value, _ in look(counts, 0.0, rare_class)]
    chances = counts.ravel() / counts.sum()
    noise, variance = None, 0.0
    if math.isfinite(epsilon):
        budget = Budget(epsilon)
        noise = budget.spend_on_noise("scores", budget.total)
        variance = noise.variance
    rng, random = np.random.default_rng(seed), SeededRandom(seed)
    held, widths = [], []
    for _ in range(repeats):
        sampled = rng.multinomial(people, chances).reshape(counts.shape)
        counted = sampled if noise is None else noise.add(sampled, random)
        figures = look(counted, variance, rare_class)
        ends = np.array([interval for _, interval in figures], dtype=float)
        is_held = (ends[:, 0] <= truths) & (truths <= ends[:, 1])
        held.append(np.where(np.isnan(ends[:, 0]), np.nan, is_held))
        widths.append(ends[:, 1] - ends[:, 0])
    return np.nanmean(held, axis=0), np.nanmean(widths, axis=0)


def print_coverage(names: list[str], repeats: int) -> None:
    """Mean coverage over the tables, the least and the most, and the mean half-width."""
    figures = " | ".join(f"{figure}: coverage, ±" for figure in FIGURES)
    print(f"| rows | epsilon | {figures} |\n|---:|---:|{'---|' * len(FIGURES)}")
    tables = [count_cells(*score_others(name)[:2]) for name in names]
    for people in PEOPLE:
        for epsilon in (*EPSILONS, math.inf):
            measured = [measure(counts, people, epsilon, repeats) for counts in tables]
            coverages, widths = (np.array(part) for part in zip(*measured, strict=True))
            cells = (
                f"{np.nanmean(coverage):.3f} ({np.nanmin(coverage):.3f} to "
                f"{np.nanmax(coverage):.3f}), {np.nanmean(width) / 2:.3f}"
                for coverage, width in zip(coverages.T, widths.T, strict=True)
            )
            print(f"| {people:,} | {epsilon:g} | {' | '.join(cells)} |", flush=True)
    print(f"\nstandard error of a coverage of one table: {math.sqrt(0.95 * 0.05 / repeats):.3f}")


def print_grids(names: list[str], repeats: int) -> None:
    """Grids: the area in groups minus the exact one, and half-widths with 2,000 rows."""
    print("| table | exact AUC | grid | AUC in groups - exact | AUC ± | accuracy ± |")
    print("|---|---:|---|---:|---:|---:|")
    for name in names:
        scores, truth, labels = score_others(name)
        if len(labels) != 2:
            continue
        rare_class = int(np.argmin(np.bincount(truth)))
        log_odds = scores[:, rare_class] - scores[:, 1 - rare_class]
        exact = roc_auc_score(truth == rare_class, log_odds)
        for grid, edges in GRIDS.items():
            private_scores.EDGES_TWO_CLASSES = edges
            counts = count_cells(scores, truth)
            grouped = look(counts, 0.0, rare_class)[-1][0]
            _, widths = measure(counts, 2_000, 0.2, repeats)
            print(
                f"| {name} | {exact:.4f} | {grid} | {grouped - exact:+.4f} | {widths[-1] / 2:.3f} "
                f"| {widths[0] / 2:.4f} |",
                flush=True,
            )


def print_areas(names: list[str]) -> None:
    """How far counted areas are from those of scikit-learn, the largest over the classes."""
    print("| table | AUC: counted - exact, at most | average precision |\n|---|---:|---:|")
    for name in names:
        scores, truth, labels = score_others(name)
        log_odds = np.clip(compute_log_odds(scores), -1e6, 1e6)
        ranks = count_ranks(scores, truth)
        gaps = []
        for position, class_index in enumerate([1] if len(labels) == 2 else range(len(labels))):
            is_own, own_odds = truth == class_index, log_odds[:, class_index]
            gaps.append(
                (
                    compute_auc(*ranks[position])[0] - roc_auc_score(is_own, own_odds),
                    compute_average_precision(*ranks[position])[0]
                    - average_precision_score(is_own, own_odds),
                )
            )
        auc_gap, precision_gap = np.abs(gaps).max(axis=0)
        print(f"| {name} | {auc_gap:.5f} | {precision_gap:.5f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(TABLES))
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--grids", action="store_true")
    parser.add_argument("--areas", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # seeds are meant here
    if arguments.areas:
        print_areas(arguments.data)
    else:
        (print_grids if arguments.grids else print_coverage)(arguments.data, arguments.repeats)
