"""How long smooth sensitivity takes, beside sorting the same values in the same run.

``.venv/bin/python benchmarks/smooth_sensitivity.py [--largest 10000000]`` prints a table ready for
RESULTS.md: CPU time on one thread, the best of three runs, over np.sort's. The values come
unsorted, as the sort's do, so that every figure includes one sort; ``sorted`` are those of values
sorted before. beta is 1/n where nothing can be cut short, the worst case, and 0.1 as in use.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from discreet.central.smooth_sensitivity import (
    bound_mean_sensitivity,
    bound_trimmed_mean_sensitivity,
    bound_variance_sensitivity,
)
from discreet.privacy.guarantee import Neighbours

Values = NDArray[np.float64]

RUNS = 3
USUAL = 0.1


def seconds(call: Callable[[], object]) -> float:
    """Return CPU seconds, the best of ``RUNS``."""
    best = float("inf")
    for _ in range(RUNS):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def calls(neighbours: Neighbours) -> dict[str, Callable[[Values, float], object]]:
    """Return what is timed; trimming leaves 90 % or, worst of all, next to nothing."""
    return {
        "mean": lambda x, beta: bound_mean_sensitivity(x, 0, 1, beta, neighbours=neighbours),
        "variance": lambda x, beta: bound_variance_sensitivity(
            x, 0, 1, beta, neighbours=neighbours
        ),
        "trimmed mean, 5 % each end": lambda x, beta: bound_trimmed_mean_sensitivity(
            x, x.size // 20, 0, 1, beta, neighbours=neighbours
        ),
        "trimmed mean, nearly the median": lambda x, beta: bound_trimmed_mean_sensitivity(
            x, (x.size - 1) // 2 - 1, 0, 1, beta, neighbours=neighbours
        ),
    }


def rows(sizes: list[int]) -> Iterator[list[str]]:
    """Yield the table, one row a statistic, neighbour relation and beta."""
    source = np.random.default_rng(0)
    samples = [source.beta(2, 5, n) for n in sizes]
    ordered = [np.sort(x) for x in samples]
    sorting = [seconds(partial(np.sort, x)) for x in samples]
    yield ["np.sort", "", "", *(f"{1e3 * s:.2f} ms" for s in sorting)]
    relations: tuple[Neighbours, ...] = ("replace", "add-remove")
    for neighbours in relations:
        for name, call in calls(neighbours).items():
            for label, usual, values in (
                ("0.1", True, samples),
                ("1/n", False, samples),
                ("1/n, sorted", False, ordered),
            ):
                cells = []
                for x, base in zip(values, sorting, strict=True):
                    beta = USUAL if usual else 1 / x.size
                    took = seconds(partial(call, x, beta))
                    cells.append(f"{took / base:.2f}x")
                yield [name, neighbours, label, *cells]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000)
    largest = parser.parse_args().largest
    sizes = [n for n in (10_000, 100_000, 1_000_000, 10_000_000) if n <= largest]
    print("| statistic | neighbours | beta |" + "".join(f" n = {n:,} |" for n in sizes))
    print("|---|---|---|" + "---:|" * len(sizes))
    for row in rows(sizes):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
