"""Does the strongest evidence of a model rest on people, and does it hold for them?

    python benchmarks/strongest_evidence.py --tables telco,credit,churn,adult --epsilon 1 --fits 10
    python benchmarks/strongest_evidence.py --trust local --tables telco,adult --epsilon 3 --fits 10

For each table the lines that "strongest evidence" shows: by the largest log-odds, as before; by
share of people times log-odds; and as it is now, without what the known noise could turn round. A
line is counted as wrong if the exact table of the same people says the opposite or nothing, as
"on nobody" if nobody is in its cell, and "on five" if at most five people are. Figures are means
over fits, with standard errors. Benchmark tables are read from DISCREET_DATA.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import CentralNB, LocalNB
from discreet.datasets import load
from discreet.model import CellFactor
from discreet.model.strongest_evidence import EvidenceLine, find_strongest_evidence
from discreet.tables import CountRequest, count

ESTIMATORS: dict[str, Any] = {"central": CentralNB, "local": LocalNB}
SHOWN_LINES = 10


def remove_support(model: Any) -> Any:
    """The model as if its statistics were not known: all lines, with the model's own shares."""
    factors = [
        replace(factor, support=None) if isinstance(factor, CellFactor) else factor
        for factor in model.factors
    ]
    return replace(model, factors=factors, pairs=())


def count_exactly(model: Any, table: Any) -> dict[tuple[str, str, str], tuple[float, int]]:
    """For each line: P(cell | class) - P(cell | others) of the people, and people in the cell."""
    factors = [factor for factor in model.factors if isinstance(factor, CellFactor)]
    bins = {factor.name: factor.cells.edges[1:-1] for factor in factors if factor.cells.edges}
    frame = table.X.assign(**{table.schema.target: np.asarray(table.y)})
    exact = count(frame, table.schema, CountRequest(bins=bins, moments=None))
    truth = {}
    for factor in factors:
        counts = exact.tables[factor.name].counts
        for code, label in enumerate(factor.cells.rounded_labels):
            for index, name in enumerate(map(str, table.schema.classes)):
                others = counts[:, code].sum() - counts[index, code]
                rest = exact.totals.sum() - exact.totals[index]
                difference = counts[index, code] / exact.totals[index] - others / rest
                truth[factor.name, label, name] = (difference, int(counts[:, code].sum()))
    return truth


def judge_lines(lines: list[EvidenceLine], truth: Any) -> tuple[int, int, int, int]:
    """How many lines, and how many of them are wrong, rest on nobody and on five at most."""
    found = [truth[line.feature, line.value, line.label] for line in lines]
    return (
        len(found),
        sum(difference <= 0 for difference, _ in found),
        sum(people == 0 for _, people in found),
        sum(people <= 5 for _, people in found),
    )


def main() -> None:
    """Print a table for each benchmark table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="telco,credit,churn,adult")
    parser.add_argument("--trust", default="central", choices=list(ESTIMATORS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--fits", type=int, default=10)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | order | lines | wrong | on nobody | on five |\n|---|---|---|---|---|---|")
    for name in given.tables.split(","):
        table, figures = load(name), dict[str, list[tuple[int, int, int, int]]]()
        for seed in range(given.fits):
            estimator = ESTIMATORS[given.trust](
                given.epsilon, schema=table.schema, random_state=seed
            )
            model = estimator.fit(table.X, table.y).model_
            truth, every_line = (
                count_exactly(model, table),
                find_strongest_evidence(remove_support(model)),
            )
            now = [line for line in find_strongest_evidence(model) if " & " not in line.feature]
            by_odds = sorted(every_line, key=lambda line: -line.log_odds)
            for order, lines in (
                ("log-odds (before)", by_odds[:SHOWN_LINES]),
                ("share times log-odds", every_line[:SHOWN_LINES]),
                ("now", now[:SHOWN_LINES]),
                ("now, all lines", now),
            ):
                figures.setdefault(order, []).append(judge_lines(lines, truth))
        for order, rows in figures.items():
            means = np.mean(rows, axis=0)
            errors = np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
            cells = [f"{m:.1f} ± {e:.1f}" for m, e in zip(means, errors, strict=True)]
            print(f"| {name} | {order} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
