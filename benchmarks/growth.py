"""How time and memory grow with rows, features, classes, cells and bins.

    python benchmarks/growth.py            # under ten minutes on two cores
    python benchmarks/growth.py --quick    # small tables, to see that it runs
    python benchmarks/growth.py --estimators LocalNB --axes classes

For each estimator one size is changed at a time. Processor time is the best of some runs on one
thread; the peer is scikit-learn's GaussianNB for numbers and CategoricalNB for categories, in the
same process on the same table. Memory is what the peak of the process grows by while it fits and
predicts, over imports and the table. Every line is measured in a process of its own. The exponent
is that of the size between a line and the one before: 1 is proportional, 0 is no growth. What
grows with more than the exponent ``LINEAR`` in time or memory is marked with a star and listed at
the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

BASE = {"rows": 20_000, "features": 10, "classes": 2, "cells": 8, "bins": 16}
"""The table that every axis begins or ends with."""
AXES = {
    "rows": (20_000, 80_000, 320_000),
    "features": (10, 40, 160),
    "classes": (2, 16, 128),
    "cells": (8, 64, 512),
    "bins": (16, 128, 1024),
}
QUICK_AXES = {
    "rows": (20_000, 40_000),
    "features": (10, 20),
    "classes": (2, 8),
    "cells": (8, 32),
    "bins": (16, 64),
}
ESTIMATORS = ("CentralNB", "LocalNB", "SurveyNB", "FederatedNB")
RUNS = 2
"""Runs of which the best counts, while one takes less than ``LONG_RUN`` seconds."""
LONG_RUN = 2.0
SHORT_RUN = 0.05
"""Seconds that are measured at least, by several calls."""
LINEAR = 1.15
"""Exponent up to which growth counts as linear: what is measured is never exactly a power."""
MIN_SECONDS = 0.02
MIN_MEMORY = 4.0
"""Exponents are of what takes this much at least; below, fixed costs and pages decide."""
TIME_LIMIT = 45
"""Processor seconds for one line, after which it says so."""


def make_table(sizes: dict[str, int], is_categorical: bool) -> tuple[Any, Any, Any]:
    """Numbers, or categories as whole numbers, that differ a little between classes."""
    import numpy as np

    from discreet import Categorical, Numeric, Schema

    rng = np.random.default_rng(0)
    y = rng.integers(0, sizes["classes"], sizes["rows"])
    shape, names = (sizes["rows"], sizes["features"]), [f"x{j}" for j in range(sizes["features"])]
    X: Any
    features: list[Any]
    if is_categorical:
        leaning = rng.random(shape) < 0.2
        X = np.where(leaning, y[:, None], rng.integers(0, sizes["cells"], shape)) % sizes["cells"]
        features = [Categorical(name, range(sizes["cells"]), optional=False) for name in names]
    else:
        X = rng.normal(size=shape) + 0.3 * (y % 5)[:, None]
        features = [Numeric(name, -8, 8, optional=False) for name in names]
    return X, y, Schema(features, "y", range(sizes["classes"]), outliers="clip")


def make_estimator(name: str, schema: Any, bins: int) -> Any:
    """An unfitted estimator, for numbers in so many bins."""
    import discreet

    options = {"SurveyNB": {"theta": 0.7}, "LocalNB": {"epsilon": 4.0}}.get(name, {"epsilon": 1.0})
    return getattr(discreet, name)(**options, schema=schema, bins=bins)


def measure_seconds(call: Callable[[], object]) -> float:
    """Processor seconds, the best of some runs."""
    best, calls = math.inf, 1
    for _ in range(RUNS):
        seconds = 0.0
        while seconds < SHORT_RUN:  # clocks of processor time may be coarse
            begun = time.process_time()
            for _ in range(calls):
                call()
            seconds = time.process_time() - begun
            calls *= 1 if seconds >= SHORT_RUN else 4
        best = min(best, seconds / calls)
        if best > LONG_RUN:
            break
    return best


def measure_peak() -> float:
    """Largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure_line(name: str, sizes: dict[str, int], is_categorical: bool) -> dict[str, float]:
    """Seconds of fit and predict, those of the peer, and MiB; in a process of its own."""
    from sklearn.naive_bayes import CategoricalNB, GaussianNB

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (TIME_LIMIT, TIME_LIMIT + 1))
    X, y, schema = make_table(sizes, is_categorical)
    small = {**sizes, "rows": 2000, "classes": 2, "features": 2, "bins": 8, "cells": 8}
    small_X, small_y, small_schema = make_table(small, is_categorical)
    make_estimator(name, small_schema, 8).fit(small_X, small_y).predict(small_X)  # imports
    before = measure_peak()
    nb = make_estimator(name, schema, sizes["bins"]).fit(X, y)
    nb.predict(X)
    memory = measure_peak() - before
    fit = measure_seconds(lambda: make_estimator(name, schema, sizes["bins"]).fit(X, y))
    predict = measure_seconds(lambda: nb.predict(X))
    peer: Any = CategoricalNB(min_categories=sizes["cells"]) if is_categorical else GaussianNB()
    peer_fit = measure_seconds(lambda: peer.fit(X, y))
    peer_predict = measure_seconds(lambda: peer.predict(X))
    return {
        "fit": fit,
        "predict": predict,
        "peer_fit": peer_fit,
        "peer_predict": peer_predict,
        "memory": memory,
    }


def run_line(name: str, axis: str, size: int) -> dict[str, float] | None:
    """Measure in a process of its own; None if it takes too long."""
    request = json.dumps([name, {**BASE, axis: size}, axis == "cells"])
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--line", request],
        stdout=subprocess.PIPE, text=True, env={**os.environ, **threads},
    )  # fmt: skip
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    done.check_returncode()
    line: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return line


def format_exponent(values: tuple[float, float], sizes: tuple[int, int], least: float) -> str:
    """The power of the size with which a value grew; with a star beyond linear."""
    if values[1] < least:
        return "–"
    exponent = math.log(values[1] / max(values[0], least)) / math.log(sizes[1] / sizes[0])
    return f"{exponent:.1f}" + "*" * (exponent > LINEAR)


def print_axis(name: str, axis: str, axis_sizes: tuple[int, ...]) -> list[str]:
    """Print the lines of one estimator and axis; give those that are beyond linear."""
    earlier, earlier_size, beyond = None, 0, []
    for size in axis_sizes:
        line = run_line(name, axis, size)
        if line is None:
            print(f"| {name} | {axis} | {size:,} | over {TIME_LIMIT} s | | | | | | |", flush=True)
            return [*beyond, f"{name}, {axis} {size:,}: over {TIME_LIMIT} s"]
        exponents = {"fit": "", "predict": "", "memory": ""}
        if earlier is not None:
            for measure in exponents:
                least = MIN_MEMORY if measure == "memory" else MIN_SECONDS
                exponents[measure] = format_exponent(
                    (earlier[measure], line[measure]), (earlier_size, size), least
                )
        print(
            f"| {name} | {axis} | {size:,} | {line['fit']:.2f} | {exponents['fit']} "
            f"| {line['fit'] / line['peer_fit']:.1f} | {line['predict']:.3f} "
            f"| {exponents['predict']} | {line['predict'] / line['peer_predict']:.1f} "
            f"| {line['memory']:.0f} | {exponents['memory']} |",
            flush=True,
        )
        beyond += [
            f"{name}, {measure} by {axis}, {earlier_size:,} to {size:,}: {exponent[:-1]}"
            for measure, exponent in exponents.items()
            if exponent.endswith("*")
        ]
        earlier, earlier_size = line, size
    return beyond


def main() -> None:
    """Print the table, and what grows faster than its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small tables")
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=ESTIMATORS)
    parser.add_argument("--axes", nargs="+", choices=AXES, default=list(AXES))
    parser.add_argument("--line", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.line:
        print(json.dumps(measure_line(*json.loads(chosen.line))))
        return
    print(", ".join(f"{size:,} {axis}" for axis, size in BASE.items()), "unless a line says more\n")
    print(
        "| estimator | by | size | fit, s | exponent | times peer's | predict, s | exponent "
        "| times peer's | MiB | exponent |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    beyond = []
    for name in chosen.estimators:
        for axis in chosen.axes:
            beyond += print_axis(name, axis, (QUICK_AXES if chosen.quick else AXES)[axis])
    print("\nBeyond linear:", "; ".join(beyond) if beyond else "nothing")


if __name__ == "__main__":
    main()
