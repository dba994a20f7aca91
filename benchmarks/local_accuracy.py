"""Accuracy of LocalNB at a total epsilon per person, beside the paper's five oracles.

    python benchmarks/local_accuracy.py [--tables car,adult] [--jobs 2] [--repeats 20] [--oracles]
    python benchmarks/local_accuracy.py --people 2000,100000 --epsilons 1,4 [--oracles] [...]

80/20 splits. With ``--people`` that many are drawn with replacement from the 80 %, and the default
is compared with itself at fixed bins and without judges, same people and same seeds. "paper" is the
best of DE, SUE, OUE, SHE and THE with the paper's plan (n + 1 questions) and the paper's estimator,
chosen **in hindsight** for each cell ("published": on the other half of the repetitions);
"prototype" are the figures the design was held to. Needs the benchmark tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from _tables import BUNDLED, bundled

EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
ORACLES = ("de", "sue", "oue", "she", "the")
BINS = {"adult": 8, "australian": 2, "diabetes": 4}
PROTOTYPE = {
    "car": (0.591, 0.673, 0.695, 0.721, 0.756, 0.792),
    "balance_scale": (0.405, 0.459, 0.531, 0.630, 0.728, 0.812),
    "chess": (0.517, 0.535, 0.615, 0.699, 0.788, 0.835),
    "mushroom": (0.669, 0.803, 0.896, 0.918, 0.924, 0.926),
    "splice": (0.429, 0.479, 0.473, 0.536, 0.612, 0.763),
    "connect4": (0.657, 0.650, 0.650, 0.670, 0.692, 0.710),
    "adult": (0.759, 0.762, 0.790, 0.798, 0.808, 0.817),
    "australian": (0.510, 0.563, 0.636, 0.767, 0.828, 0.856),
    "diabetes": (0.577, 0.625, 0.657, 0.678, 0.699, 0.721),
    "spect": (0.654, 0.743, 0.759, 0.744, 0.768, 0.772),
}
REPEATS = {"adult": 12, "connect4": 8, "splice": 24, "chess": 30, "mushroom": 24}


def rows_of(name: str) -> tuple[Any, np.ndarray, Any]:
    """Features, classes and schema of a benchmark table or one of scikit-learn's."""
    if name in BUNDLED:
        return bundled(name)
    if name == "mortgage":
        from discreet.datasets import make_mortgage

        people = make_mortgage(150_000, 1)
        return people.X, people.y, people.schema
    from discreet.datasets import load

    data = load(name)
    return data.X, data.y, data.schema


Task = tuple[str, float, str, int, int]


def cell(task: Task) -> tuple[str, float, str, int, np.ndarray]:
    """Accuracies of one method on one table at one epsilon, a number a repetition."""
    from discreet import LocalNB, Numeric
    from discreet.papers.local_nb_experiments import make_published_estimator
    from discreet.schema.randomized_bins import choose_bins

    name, epsilon, method, repeats, people = task
    warnings.simplefilter("ignore")
    X, y, schema = rows_of(name)
    scores = []
    for repeat in range(repeats):
        order = np.random.default_rng(repeat).permutation(len(y))
        train, test = np.split(order, [int(0.8 * len(y))])
        if people:
            train, test = np.random.default_rng(repeat).choice(train, people), test[:20_000]
        more = {"schema": schema, "random_state": repeat}
        if method == "default":
            nb = LocalNB(epsilon, **more)
        elif method == "before":
            nb = LocalNB(epsilon, bins=BINS.get(name, 8), judge=False, **more)
        elif method.startswith("bins "):
            bins: Any = method.removeprefix("bins ")
            numbers = [feature for feature in schema.features if isinstance(feature, Numeric)]
            bins = choose_bins(numbers, 0.0) if bins == "8+" else int(bins)
            nb = LocalNB(epsilon, bins=bins, judge=False, **more)
        else:
            nb = make_published_estimator(
                epsilon,
                oracle=method,
                theta=0.25 if method == "the" else None,
                bins=BINS.get(name, 8),
                **more,
            )
        nb.fit(X.iloc[train], y[train])
        scores.append(nb.score(X.iloc[test], y[test]))
    return name, epsilon, method, people, np.array(scores)


def limits(name: str) -> tuple[float, float]:
    """Share of the majority class, and accuracy of the same classifier without noise."""
    _, counts = np.unique(rows_of(name)[1], return_counts=True)
    return counts.max() / counts.sum(), float(cell((name, math.inf, "default", 3, 0))[4].mean())


def error(scores: np.ndarray) -> float:
    return float(scores.std(ddof=1) / math.sqrt(len(scores)))


def compare(args: argparse.Namespace) -> None:
    """Print, for each number of people, the default before and after, and the published ways."""
    cuts = [f"bins {one}" for one in args.bins.split(",") if one]
    methods = ("before", "default", *cuts, *(ORACLES if args.oracles else ()))
    epsilons = [float(one) for one in args.epsilons.split(",")]
    print("| table | people | " + " | ".join(f"{e:g}" for e in epsilons) + " |")
    print("|---" * (len(epsilons) + 2) + "|")
    changes, leads, worse = [], [], []
    with ProcessPoolExecutor(args.jobs) as pool:
        for name in args.tables.split(","):
            for people in map(int, args.people.split(",")):
                tasks = [(name, e, m, args.repeats, people) for e in epsilons for m in methods]
                found = {(e, m): scores for _, e, m, _, scores in pool.map(cell, tasks)}
                shown = []
                for e in epsilons:
                    old, new = found[e, "before"], found[e, "default"]
                    changes.append((new - old).mean())
                    text = (
                        f"{old.mean():.3f} → {new.mean():.3f} "
                        f"({(new - old).mean():+.3f} ± {error(new - old):.3f})"
                    )
                    text += "".join(f", {m} {(found[e, m] - old).mean():+.3f}" for m in cuts)
                    if args.oracles:
                        # chosen on one half of the repetitions, judged on the other
                        half = args.repeats // 2
                        top = max(ORACLES, key=lambda m: found[e, m][:half].mean())
                        ahead = (new - found[e, top])[half:]
                        leads.append(ahead.mean())
                        text += f", published {found[e, top][half:].mean():.3f}"
                        if ahead.mean() < -2 * error(ahead):
                            worse.append(f"{name}, {people:,} at {e:g}: {ahead.mean():+.3f}")
                    shown.append(text)
                print(f"| {name} | {people:,} | " + " | ".join(shown) + " |", flush=True)
    print(f"\nMean change over {len(changes)} cells: {np.mean(changes):+.4f}.")
    if leads:
        print(f"Mean lead over the published ways: {np.mean(leads):+.4f}.")
        print(f"More than two standard errors below them: {worse or 'none'}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(PROTOTYPE))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--oracles", action="store_true", help="also the paper's five oracles")
    parser.add_argument("--people", help="how many to draw with replacement, such as 2000,100000")
    parser.add_argument("--epsilons", default="1,4", help="with --people")
    parser.add_argument("--bins", default="", help="with --people: also 4,6,8+ (cuts next to zero)")
    args = parser.parse_args()
    names = args.tables.split(",")
    if args.people:
        compare(args)
        return
    methods = ("default", *(ORACLES if args.oracles else ()))
    tasks = [
        (name, epsilon, method, min(args.repeats, REPEATS.get(name, args.repeats)), 0)
        for name in names
        for method in methods
        for epsilon in EPSILONS
    ]
    with ProcessPoolExecutor(args.jobs) as pool:
        found = {(n, e, m): scores for n, e, m, _, scores in pool.map(cell, tasks)}
        edges = dict(zip(names, pool.map(limits, names), strict=True))
    print(
        "Each cell: default ± standard error (best oracle of the paper in hindsight / prototype)\n"
    )
    print(
        "| table (majority, non-private) | " + " | ".join(f"{e:g}" for e in EPSILONS) + " | lead |"
    )
    print("|---" * (len(EPSILONS) + 2) + "|")
    means, tops, worse = [], [], []
    for name in names:
        majority, limit = edges[name]
        shown, leads = [], []
        for i, epsilon in enumerate(EPSILONS):
            ours = found[name, epsilon, "default"]
            error = ours.std(ddof=1) / math.sqrt(len(ours))
            means.append(ours.mean())
            text = f"**{ours.mean():.3f}** ± {error:.3f}"
            best = math.nan
            if args.oracles:
                rivals = {m: found[name, epsilon, m] for m in ORACLES}
                top = max(rivals, key=lambda m: rivals[m].mean())
                best = rivals[top].mean()
                tops.append(best)
                both = math.hypot(error, rivals[top].std(ddof=1) / math.sqrt(len(ours)))
                if ours.mean() < best - 3 * both:
                    worse.append(f"{name} at {epsilon:g}: {ours.mean():.3f} < {best:.3f} ({top})")
                leads.append(ours.mean() - max(best, majority))
            shown.append(f"{text} ({best:.3f} / {PROTOTYPE.get(name, [math.nan] * 6)[i]:.3f})")
        lead = f"{np.mean(leads):+.3f}" if leads else ""
        print(f"| {name} ({majority:.3f}, {limit:.3f}) | " + " | ".join(shown) + f" | {lead} |")
    known = [PROTOTYPE[name] for name in names if name in PROTOTYPE]
    beside = [f"best oracles {np.mean(tops):.4f}"] if tops else []
    beside += [f"prototype {np.mean(known):.4f}"] if len(known) == len(names) else []
    print(f"\nMean over the {len(means)} cells: {np.mean(means):.4f}; {', '.join(beside)}.")
    print("'lead': mean over epsilon of default - max(best oracle, majority class).")
    print(f"Cells more than three standard errors below the best oracle: {worse or 'none'}.")


if __name__ == "__main__":
    main()
