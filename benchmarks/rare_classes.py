"""How well a rare class is ranked: tables with two classes, thinned to a few positives.

    python benchmarks/rare_classes.py
    python benchmarks/rare_classes.py --data telco adult --share 0.02 --splits 12
    python benchmarks/rare_classes.py --save before.json
    python benchmarks/rare_classes.py --against before.json

Of the smaller class of each table as many rows are drawn as make it the share wanted; the rows of
the larger class stay, up to 10,000. A third is tested on. ``default`` is ``CentralNB`` as it is,
``selection=False`` releases all tables and chooses nothing; both see the same rows with the same
seeds. The goal: in AUC within one standard error of the better of both, in log loss not worse.
Needs the benchmark tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split

from discreet import CentralNB
from discreet.datasets import load

sys.path.insert(0, str(Path(__file__).parent))

from central_accuracy import summary

TUNED_ON = ("telco", "spambase", "phoneme", "churn", "mushroom")
KEPT_ASIDE = ("adult", "magic", "credit", "attrition", "skin", "chess")
SHARES = (0.01, 0.02, 0.05, 0.1)
MOST_MAJORITY_ROWS = 10_000
VARIANTS: dict[str, dict[str, Any]] = {"default": {}, "selection=False": {"selection": False}}


def thin(name: str, share: float, seed: int) -> tuple[Any, np.ndarray, Any, Any]:
    """Rows, classes, schema and the rare class of a table with that share of the rare class."""
    data = load(name)
    rng = np.random.default_rng(seed)
    labels, counts = np.unique(data.y, return_counts=True)
    rare, common = labels[counts.argmin()], labels[counts.argmax()]
    of_common = rng.permutation(np.flatnonzero(data.y == common))[:MOST_MAJORITY_ROWS]
    wanted = round(len(of_common) * share / (1 - share))
    of_rare = rng.permutation(np.flatnonzero(data.y == rare))[:wanted]
    rows = rng.permutation(np.concatenate([of_common, of_rare]))
    return data.X.iloc[rows].reset_index(drop=True), data.y[rows], data.schema, rare


def score(
    name: str, share: float, epsilon: float, seed: int, delta: float
) -> dict[str, list[float]]:
    """AUC, log loss and average precision of every variant on one split."""
    X, y, schema, rare = thin(name, share, seed)
    train, test = train_test_split(
        np.arange(len(y)), test_size=1 / 3, stratify=y, random_state=seed
    )
    found = {}
    for variant, options in VARIANTS.items():
        random = np.random.default_rng([seed, round(1000 * epsilon)])
        nb = CentralNB(epsilon, delta=delta, schema=schema, random_state=random, **options)
        nb.fit(X.iloc[train], y[train])
        proba = nb.predict_proba(X.iloc[test])[:, list(nb.classes_).index(rare)]
        is_rare = y[test] == rare
        likely = np.maximum(np.where(is_rare, proba, 1 - proba), 1e-15)
        found[variant] = [
            float(roc_auc_score(is_rare, proba)),
            float(-np.log(likely).mean()),
            float(average_precision_score(is_rare, proba)),
        ]
    return found


def format_row(
    found: list[dict[str, list[float]]], before: list[dict[str, list[float]]] | None
) -> str:
    """Means and standard errors; the paired difference of both variants; the change."""
    default, every = (np.array([one[variant] for one in found]) for variant in VARIANTS)
    cells = []
    for column in range(2):
        cells += [
            "{:.3f} ({:.3f})".format(*summary(list(one[:, column]))) for one in (default, every)
        ]
        cells.append("{:+.3f} ± {:.3f}".format(*summary(list((default - every)[:, column]))))
        if before is not None:
            change = default - np.array([one["default"] for one in before])
            cells.append("{:+.3f} ± {:.3f}".format(*summary(list(change[:, column]))))
    return " | ".join(cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=[*TUNED_ON, *KEPT_ASIDE])
    parser.add_argument("--share", nargs="+", type=float, default=list(SHARES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--delta", type=float, default=0.0)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--save", type=Path, help="a file for the scores of every split")
    parser.add_argument("--against", type=Path, help="a file with the scores to compare with")
    given = parser.parse_args()
    before = json.loads(given.against.read_text()) if given.against else {}
    change = "change | " if before else ""
    heads = [
        f"{metric}, default | selection=False | difference | {change}"
        for metric in ("AUC", "log loss")
    ]
    print("| data | share | epsilon | " + "".join(heads))
    print("|---" * (heads[0].count("|") * 2 + 3) + "|")
    scores = {}
    for name in given.data:
        for share in given.share:
            for epsilon in given.epsilon:
                key = f"{name} {share:g} {epsilon:g}"
                found = [
                    score(name, share, epsilon, seed, given.delta) for seed in range(given.splits)
                ]
                scores[key] = found
                print(
                    f"| {name} | {share:g} | {epsilon:g} | {format_row(found, before.get(key))} |",
                    flush=True,
                )
    if given.save:
        given.save.write_text(json.dumps(scores))


if __name__ == "__main__":
    main()
