"""Tallying a large Parquet file of reports, with DuckDB or a local Spark: seconds, peak memory.

    python benchmarks/bulk_tally.py [--reports 10000000] [--oracle auto] [--repeat 0.01]
    python benchmarks/bulk_tally.py --cells 128 --oracle oue --engine duckdb,spark

Prints a Markdown table. The reports answer the plan of the mortgage population, or with ``--cells``
one question of so many cells, and are drawn with the cryptographic source; ``--repeat`` is the
share of them that is delivered twice. The tally runs in a process of its own, so that its peak
memory is its own (without Spark's Java). Target: 10 million, under 1 GiB.
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

SLICE = 250_000


def make(path: Path, chosen: argparse.Namespace, oracle: str) -> None:
    """Write the plan and its reports, slice by slice."""
    from discreet.collection.parquet_reports import ReportFile
    from discreet.collection.simulation import iter_simulated_answers
    from discreet.datasets import make_mortgage
    from discreet.local import PlanOptions, make_plan
    from discreet.randomness import CryptoRandom
    from discreet.schema.cells import encode_classes
    from discreet.schema.schema import Categorical, Schema

    if chosen.cells:
        values = [f"v{k}" for k in range(chosen.cells // 2)]
        schema = Schema([Categorical("value", values, optional=False)], "c", ["no", "yes"])
        plan = make_plan(schema, 1.0, chosen.reports, PlanOptions(oracle=oracle, kind="pairs"))
        columns = {"value": [values[k % len(values)] for k in range(SLICE)]}
        records = plan.encode_columns(columns, [k % 2 for k in range(SLICE)])
    else:
        people = make_mortgage(SLICE)
        plan = make_plan(people.schema, 1.0, chosen.reports, PlanOptions(oracle=oracle))
        records = plan.encode_columns(people.X, encode_classes(people.schema, people.y))
    path.with_suffix(".json").write_text(plan.to_json())
    random = CryptoRandom()
    with ReportFile(path, plan) as file:
        for start in range(0, chosen.reports, SLICE):
            size = min(SLICE, chosen.reports - start)
            for question, rows, values in iter_simulated_answers(plan, records[:size], random):
                ids = random.raw(16 * len(rows)).reshape(-1, 16)
                file.write(question, ids, values)
                again = int(chosen.repeat * len(rows))
                file.write(question, ids[:again], values[:again])


def run(path: Path, engine: str) -> None:
    """In a process of its own: seconds (imports are in them), peak memory, what was counted."""
    start = time.perf_counter()
    from discreet.local import Plan, tally_parquet

    source = f"spark:{path}" if engine == "spark" else str(path)
    tally = tally_parquet(Plan.read(path.with_suffix(".json")), source)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    facts = {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime}
    facts |= {"peak": used.ru_maxrss / 1024, "reports": tally.reports, "repeated": tally.repeated}
    print(json.dumps(facts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--oracle", default="auto,oue,olh", help="several with commas")
    parser.add_argument("--engine", default="duckdb", help="duckdb, spark, or both with a comma")
    parser.add_argument("--cells", type=int, help="one question of so many cells")
    parser.add_argument("--repeat", type=float, default=0.01)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        run(chosen.run, chosen.engine)
        return
    print(
        "| oracle | engine | reports | sent twice | file MB | seconds | CPU s | reports/s "
        "| peak MiB |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for oracle in chosen.oracle.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "reports.parquet")
            make(path, chosen, oracle)
            size = path.stat().st_size / 1e6
            for engine in chosen.engine.split(","):
                command = [sys.executable, __file__, "--run", str(path), "--engine", engine]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                found = json.loads(done.stdout.splitlines()[-1])
                assert found["reports"] == chosen.reports, found
                rate = (found["reports"] + found["repeated"]) / found["seconds"]
                print(
                    f"| {oracle} | {engine} | {found['reports']:,} | {found['repeated']:,} "
                    f"| {size:,.0f} | {found['seconds']:.1f} | {found['cpu']:.1f} | {rate:,.0f} "
                    f"| {found['peak']:,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
