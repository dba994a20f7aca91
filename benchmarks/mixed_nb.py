"""MixedNB against scikit-learn's GaussianNB on a 1,000,000 by 20 array, in the same run.

    python benchmarks/mixed_nb.py [--rows 1000000]

Wall time, best of five, contestants taking turns; BLAS on one thread.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from threadpoolctl import threadpool_limits

from discreet import MixedNB


def best(*runs: Callable[[], object], rounds: int = 5) -> list[float]:
    """Shortest time of each, taking turns so that a busy machine is unfair to nobody."""
    times = [[] for _ in runs]  # type: list[list[float]]
    for _ in range(rounds):
        for run, found in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
    return [min(found) for found in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, 20)), rng.integers(0, 3, rows)
    C = rng.integers(0, 10, (rows, 20))
    ours, theirs = MixedNB().fit(X, y), GaussianNB().fit(X, y)
    np.testing.assert_allclose(ours.predict_log_proba(X[:999]), theirs.predict_log_proba(X[:999]))
    cat, peer = MixedNB(categorical_features="all").fit(C, y), CategoricalNB().fit(C, y)
    lines = [
        ("fit, numeric", *best(lambda: MixedNB().fit(X, y), lambda: GaussianNB().fit(X, y))),
        (
            "predict_log_proba, numeric",
            *best(lambda: ours.predict_log_proba(X), lambda: theirs.predict_log_proba(X)),
        ),
        (
            "fit, categorical",
            *best(
                lambda: MixedNB(categorical_features="all").fit(C, y),
                lambda: CategoricalNB().fit(C, y),
            ),
        ),
        (
            "predict_log_proba, categorical",
            *best(lambda: cat.predict_log_proba(C), lambda: peer.predict_log_proba(C)),
        ),
    ]
    print(f"| {rows:,} x 20, 3 classes | discreet | scikit-learn | ratio |")
    print("|---|---:|---:|---:|")
    for label, mine, other in lines:
        print(f"| {label} | {mine:.2f} s | {other:.2f} s | {mine / other:.2f} |")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
