"""The figures of randomized response for surveys as tables: accuracy, its variance, privacy.

    python benchmarks/survey_figures.py [--repeats 1000] [--jobs 2] [--tables adult]

What is computed, and how, is in ``discreet.papers.surveys``; what the paper states in words is
asserted. Needs the benchmark tables (DISCREET_DATA).
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

from discreet.papers.surveys import (
    TABLES,
    THETAS,
    benchmark_score,
    cell,
    check_accuracy,
    check_privacy,
    check_warner,
    privacy_table,
)

NEAR_HALF = (0.5, 0.51, 0.6, 0.7, 0.8, 0.9)
PAPER = {
    "related": {0.51: 0.66, 0.6: 0.81, 0.7: 0.82, 0.8: 0.82, 0.9: 0.82},
    "unrelated": {0.5: 0.81, 0.51: 0.81, 0.6: 0.82, 0.7: 0.82, 0.8: 0.82, 0.9: 0.82},
}
"""Their figure 7."""


def main() -> None:
    """Print the tables and check the statements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    names = args.tables.split(",")
    tasks = [(name, theta, "unrelated", args.repeats) for name in names for theta in THETAS]
    tasks += [(name, 0.51, "unrelated", args.repeats) for name in names]
    tasks += [(n, t, "related", args.repeats) for n in names for t in NEAR_HALF if t != 0.5]
    with ProcessPoolExecutor(args.jobs) as pool:
        results = list(pool.map(cell, tasks))
    found = {key: scores for key, scores, _, _ in results}
    ours = {key[:2]: scores for key, _, scores, _ in results if len(scores)}
    for name in names:
        print(f"## {name}: figures 2 to 5, non-private {benchmark_score(name):.4f}\n")
        print("| theta | mean | variance | mean, ours | variance, ours |\n|---|---|---|---|---|")
        for theta in THETAS:
            one, two = found[name, theta, "unrelated"], ours[name, theta]
            print(
                f"| {theta:g} | {one.mean():.4f} | {one.var():.2e} | {two.mean():.4f} | "
                f"{two.var():.2e} |"
            )
        check_accuracy(name, found, ours)
        print()
    print("## Figure 6: PSE before mining, W_y = 1/2\n")
    table = privacy_table()
    print("| W_a | " + " | ".join(f"{t / 10:g}" for t in range(11)) + " |\n" + "|---" * 12 + "|")
    for share, row in table.items():
        print(f"| {share:g} | " + " | ".join(f"{value:.3f}" for value in row) + " |")
    check_privacy(table)
    check_warner()
    for name in names:
        print(f"\n## Figure 7: {name}, mean (variance), and the paper's mean on adult\n")
        print("| theta | related | paper | unrelated | paper |\n|---|---|---|---|---|")
        for theta in NEAR_HALF:
            line = [f"{theta:g}"]
            for model in ("related", "unrelated"):
                scores = found.get((name, theta, model))
                shown = (
                    "undefined" if scores is None else f"{scores.mean():.3f} ({scores.var():.1e})"
                )
                paper = PAPER[model].get(theta) if name == "adult" else None
                line += [shown, "" if paper is None else f"{paper:.2f}"]
            print("| " + " | ".join(line) + " |")
    slowest = max(seconds for *_, seconds in results)
    print(f"\n{args.repeats} repetitions of one theta took at most {slowest:.1f} s on one core.")
    print("All of the paper's statements that are asserted hold.")


if __name__ == "__main__":
    main()
