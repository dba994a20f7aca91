"""What shuffled collections reach at an epsilon of 1, beside plain local and central ones.

    python benchmarks/shuffled_accuracy.py [--people 10000,100000] [--repeats 10] [--tables ...]

Each repetition draws the people with replacement from 80 % of the table and tests on the rest, so
that tables of any size can stand for 10,000 or 100,000 respondents: people who are drawn twice
count as two. "shuffled" is LocalNB(1.0, shuffled=True, delta=1e-8); beside it are the local
epsilon that its reports have, the same with fixed bins and without judges ("before"), LocalNB(1.0),
CentralNB(1.0), how far "shuffled" is from it in the same repetitions, and the classifier without
noise. Needs the benchmark tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from local_accuracy import BINS, rows_of

TABLES = "mushroom,splice,chess,adult,car,diabetes"


def main() -> None:
    """Print one row per table and number of people."""
    from discreet import CentralNB, LocalNB

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--people", default="10000,100000")
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    head = [
        "table (majority)",
        "people",
        "local epsilon",
        "before",
        "shuffled",
        "to central",
        "local",
    ]
    head += ["central", "exact"]
    print("| " + " | ".join(head) + " |" + "\n" + "|---" * len(head) + "|")
    for name in args.tables.split(","):
        X, y, schema = rows_of(name)
        _, counts = np.unique(y, return_counts=True)
        for people in map(int, args.people.split(",")):
            scores, local = [], 0.0
            for repeat in range(args.repeats):
                rng = np.random.default_rng(repeat)
                train, test = np.split(rng.permutation(len(y)), [int(0.8 * len(y))])
                test = test[:20_000]
                drawn = rng.choice(train, people)
                common = {"schema": schema, "random_state": repeat}
                asked = {"bins": BINS.get(name, 8), **common}
                shuffled = LocalNB(1.0, shuffled=True, **common)
                models = [
                    LocalNB(1.0, shuffled=True, judge=False, **asked), shuffled,
                    LocalNB(1.0, **common), CentralNB(1.0, **common), LocalNB(math.inf, **asked),
                ]  # fmt: skip
                for model in models:
                    model.fit(X.iloc[drawn], y[drawn])
                scores.append([model.score(X.iloc[test], y[test]) for model in models])
                local = shuffled.plan_.epsilon
            mean = np.mean(scores, axis=0)
            error = np.std(scores, axis=0, ddof=1) / math.sqrt(args.repeats)
            shown = [f"{m:.3f} ± {e:.3f}" for m, e in zip(mean, error, strict=True)]
            gap = np.subtract(*np.array(scores)[:, [1, 3]].T)
            shown.insert(2, f"{gap.mean():+.3f} ± {gap.std(ddof=1) / math.sqrt(len(gap)):.3f}")
            majority = counts.max() / counts.sum()
            print(f"| {name} ({majority:.3f}) | {people:,} | {local:.2f} | {' | '.join(shown)} |")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
