"""How long CentralNB takes beside scikit-learn, in the same run.

    python benchmarks/central_speed.py                       # 1,000,000 by 20 in memory
    python benchmarks/central_speed.py --rows 100000 --runs 9
    python benchmarks/central_speed.py --parquet 5000000     # and so many rows from Parquet
    python benchmarks/central_speed.py --parquet 1000000 --spark

From Parquet, scikit-learn reads batches and calls ``GaussianNB.partial_fit``; CentralNB counts in
DuckDB. Processor time, best of three runs; both read the same file. What corrections cost is the
ratio of the first two rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.naive_bayes import GaussianNB

from discreet import CentralNB, Numeric, Schema

COLUMNS, RUNS, BATCH = 20, 3, 65_536
WAYS: dict[str, dict[str, Any]] = {
    "histogram": {},
    "histogram without corrections": {"corrections": False},
    "moments": {"method": "moments"},
}
NAMES = [f"x{i}" for i in range(COLUMNS)]
SCHEMA = Schema([Numeric(name, -8, 8) for name in NAMES], "y", [0, 1], outliers="clip")


def rows(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that differ a little in every column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, count)
    return rng.normal(size=(count, COLUMNS)) + 0.3 * y[:, None], y


def seconds(call: Callable[[], object], runs: int = RUNS) -> float:
    """Seconds, the best of some runs: of processor time, all threads together."""
    best = float("inf")
    for _ in range(runs):
        begun = time.process_time()
        call()
        best = min(best, time.process_time() - begun)
    return best


def write(path: Path, count: int) -> None:
    """Make the file piece by piece, so that it never lies in memory whole."""
    kinds = pa.schema([*((name, pa.float64()) for name in NAMES), ("y", pa.int64())])
    with pq.ParquetWriter(path, kinds) as file:
        for seed, start in enumerate(range(0, count, 500_000)):
            X, y = rows(min(500_000, count - start), seed)
            file.write_table(pa.table([*X.T, y], schema=kinds))


def partial_fit(path: Path) -> GaussianNB:
    """What one does with scikit-learn when the rows do not fit into memory."""
    nb = GaussianNB()
    for batch in pq.ParquetFile(path).iter_batches(BATCH):
        X = np.column_stack([batch.column(name).to_numpy() for name in NAMES])
        nb.partial_fit(X, batch.column("y").to_numpy(), classes=[0, 1])
    return nb


def in_memory(given: argparse.Namespace, line: Callable[..., None]) -> None:
    """Rows that fit into memory."""
    X, y = rows(given.rows, 0)
    theirs = seconds(lambda: GaussianNB().fit(X, y), given.runs)
    peer = GaussianNB().fit(X, y)
    their_prediction = seconds(lambda: peer.predict(X), given.runs)
    for what, options in WAYS.items():
        # a seed, so that every run makes the same number of corrections
        nb = CentralNB(1.0, schema=SCHEMA, random_state=1, **options)
        ours = seconds(lambda nb=nb: _fresh(nb).fit(X, y), given.runs)
        line(f"memory, {what}", given.rows, theirs, ours)
        nb.fit(X, y)
        ours = seconds(lambda nb=nb: nb.predict(X), given.runs)
        line(f"prediction, {what}", given.rows, their_prediction, ours)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parquet", type=int, default=0)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--runs", type=int, default=RUNS)
    given = parser.parse_args()
    print("| what | rows | scikit-learn, CPU s | CentralNB, CPU s | ratio |\n|---|---|---|---|---|")

    def line(what: str, count: int, theirs: float, ours: float) -> None:
        print(
            f"| {what} | {count:,} | {theirs:.2f} | {ours:.2f} | {ours / theirs:.2f} |", flush=True
        )

    in_memory(given, line)
    if not given.parquet:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, given.parquet)
        theirs = seconds(lambda: partial_fit(path), given.runs)
        for what, options in WAYS.items():
            nb = CentralNB(1.0, schema=SCHEMA, **options)
            ours = seconds(lambda nb=nb: _fresh(nb).fit_source(path), given.runs)
            line(f"Parquet, {what}", given.parquet, theirs, ours)
        if given.spark:
            nb = CentralNB(1.0, schema=SCHEMA)
            ours = seconds(lambda: _fresh(nb).fit_source(f"spark:{path}"), 1)
            line("Parquet with Spark, histogram", given.parquet, theirs, ours)


def _fresh(nb: CentralNB) -> CentralNB:
    from sklearn.base import clone

    return clone(nb)


if __name__ == "__main__":
    main()
