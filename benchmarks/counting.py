"""Counting a large Parquet file: discreet beside scikit-learn's partial_fit, same file, same run.

    python benchmarks/counting.py [--rows 5000000] [--repeats 3] [--spark]
    python benchmarks/counting.py --rows 10000 --bins 16 256 1024

Prints a Markdown table. Each contestant runs in a process of its own, so that its peak memory is
its own; the best of the repeats counts. Targets: ratio at most 0.3, under 600 MiB. With ``--bins``
the ten numbers are counted in so many bins by DuckDB, all in one process, and the ratio is to the
first number of bins. Target: under twice.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CATEGORICAL, NUMERIC, CLASSES, VALUES = 20, 10, 3, 10
SLICE = 250_000


def make(path: Path, rows: int) -> None:
    """Write the table slice by slice; an interrupted run leaves no file behind."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance = np.random.default_rng(20)
    beside = path.with_suffix(".part")
    writer = None
    for start in range(0, rows, SLICE):
        size = min(SLICE, rows - start)
        y = chance.integers(0, CLASSES, size)
        columns = {"y": y.astype(np.int8)}
        for j in range(CATEGORICAL):
            leaning = chance.integers(0, VALUES, size) + y * chance.integers(0, 2, size)
            columns[f"c{j}"] = (leaning % VALUES).astype(np.int8)
        for j in range(NUMERIC):
            columns[f"n{j}"] = np.clip(chance.normal(50 + 5 * y, 10), 0, 100)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(beside, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    beside.replace(path)


def public() -> Any:
    """What is known about the table beforehand."""
    from discreet.schema.schema import Categorical, Numeric, Schema

    features = [Categorical(f"c{j}", range(VALUES)) for j in range(CATEGORICAL)]
    numbers = [Numeric(f"n{j}", 0, 100) for j in range(NUMERIC)]
    return Schema([*features, *numbers], "y", range(CLASSES))


def discreet(path: str, spark: bool = False) -> list[int]:
    """Exact statistics on the public grid."""
    from discreet.tables import CountRequest, count

    found = count(f"spark:{path}" if spark else path, public(), CountRequest(moments="grid"))
    return [int(total) for total in found.totals]


def central(path: str, method: str) -> list[int]:
    """A private classifier, from the file to the model; its totals are noisy."""
    from discreet import CentralNB

    nb = CentralNB(1.0, method=method, schema=public()).fit_source(path)
    return [int(total) for total in nb.class_count_]


def sklearn(path: str) -> list[int]:
    """CategoricalNB and GaussianNB, fed the same file batch by batch."""
    import numpy as np
    import pyarrow.parquet as pq
    from sklearn.naive_bayes import CategoricalNB, GaussianNB

    categories, numbers = CategoricalNB(min_categories=VALUES), GaussianNB()
    classes = np.arange(CLASSES)
    for batch in pq.ParquetFile(path).iter_batches(batch_size=100_000):
        y = batch["y"].to_numpy()
        X = np.column_stack([batch[f"c{j}"].to_numpy() for j in range(CATEGORICAL)])
        categories.partial_fit(X, y, classes=classes)
        X = np.column_stack([batch[f"n{j}"].to_numpy() for j in range(NUMERIC)])
        numbers.partial_fit(X, y, classes=classes)
    return [int(total) for total in categories.class_count_]


CONTESTANTS = {
    "discreet (DuckDB)": discreet,
    "scikit-learn partial_fit": sklearn,
    "CentralNB, histogram": lambda path: central(path, "histogram"),
    "CentralNB, moments": lambda path: central(path, "moments"),
    "discreet (Spark)": lambda path: discreet(path, spark=True),
}


def run(name: str, path: str) -> None:
    """In a process of its own: seconds (imports are in them), peak memory, what was counted."""
    start = time.perf_counter()
    totals = CONTESTANTS[name](path)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "totals": totals}))


def measured(names: list[str], path: Path, repeats: int) -> dict[str, dict[str, Any]]:
    """Turn and turn about, so that whatever else the machine does hits all of them alike."""
    outcomes: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            command = [sys.executable, __file__, "--run", name, "--file", str(path)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            outcomes[name].append(json.loads(done.stdout.splitlines()[-1]))
    best = {}
    for name, several in outcomes.items():
        least = {key: min(one[key] for one in several) for key in ("seconds", "cpu")}
        peak = max(one["peak"] for one in several)
        best[name] = {**least, "peak": peak, "totals": several[0]["totals"]}
    return best


def compare_bins(path: Path, bin_counts: list[int], repeats: int) -> None:
    """Print the processor time of counting numbers in more and more bins."""
    from discreet.schema.schema import Schema
    from discreet.tables import CountRequest, count

    known = public()
    numbers = Schema([known[f"n{j}"] for j in range(NUMERIC)], "y", range(CLASSES))
    count(path, numbers, CountRequest(bins=2, moments=None))  # imports
    print("| bins | CPU seconds | ratio |\n|---:|---:|---:|")
    first = 0.0
    for bins in bin_counts:
        best = float("inf")
        for _ in range(repeats):
            start = time.process_time()
            count(path, numbers, CountRequest(bins=bins, moments=None))
            best = min(best, time.process_time() - start)
        first = first or best
        print(f"| {bins:,} | {best:.2f} | {best / first:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--spark", action="store_true", help="also count with a local Spark")
    parser.add_argument("--bins", type=int, nargs="+", help="count numbers in so many bins")
    parser.add_argument("--run", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        run(chosen.run, chosen.file)
        return
    folder = Path(tempfile.gettempdir()) / "discreet-benchmarks"
    folder.mkdir(exist_ok=True)
    path = folder / f"counting-{chosen.rows}.parquet"
    if not path.exists():
        make(path, chosen.rows)
    if chosen.bins:
        compare_bins(path, chosen.bins, chosen.repeats)
        return
    names = [name for name in CONTESTANTS if chosen.spark or "Spark" not in name]
    results = measured(names, path, chosen.repeats)
    base = results["scikit-learn partial_fit"]
    exact = {name: result for name, result in results.items() if "Central" not in name}
    assert all(result["totals"] == base["totals"] for result in exact.values())
    print(
        f"{chosen.rows:,} rows, {CATEGORICAL} categorical, {NUMERIC} numeric, best of "
        f"{chosen.repeats}, Parquet of {path.stat().st_size / 2**20:.0f} MiB\n"
    )
    print("| contestant | seconds | ratio | CPU seconds | peak MiB |\n|---|---:|---:|---:|---:|")
    for name, result in results.items():
        ratio = f"{result['seconds']:.2f} | {result['seconds'] / base['seconds']:.2f}"
        note = " (Python only)" if "Spark" in name else ""
        print(f"| {name} | {ratio} | {result['cpu']:.2f} | {result['peak']:.0f}{note} |")


if __name__ == "__main__":
    main()
