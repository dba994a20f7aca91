"""Tallying a large Parquet file of reports with DuckDB: seconds and peak memory.

    python benchmarks/bulk_tally.py [--reports 10000000] [--oracle auto] [--repeat 0.01]

Prints a Markdown table. The reports answer the plan of the mortgage population and are drawn with
the cryptographic source; ``--repeat`` is the share of them that is delivered twice. The tally runs
in a process of its own, so that its peak memory is its own. Target: 10 million, under 1 GiB.
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


def make(path: Path, reports: int, oracle: str, repeat: float) -> None:
    """Write the plan and its reports, slice by slice."""
    from discreet.collection.files import ReportFile
    from discreet.collection.simulation import answers
    from discreet.datasets import mortgage
    from discreet.encoding import class_codes
    from discreet.local.planning import make_plan
    from discreet.randomness import CryptoRandom

    people = mortgage(SLICE)
    plan = make_plan(people.schema, 1.0, reports, oracle=oracle)
    path.with_suffix(".json").write_text(plan.to_json())
    records = plan.encoded(people.X, class_codes(people.schema, people.y))
    random = CryptoRandom()
    with ReportFile(path, plan) as file:
        for start in range(0, reports, SLICE):
            size = min(SLICE, reports - start)
            for question, rows, values in answers(plan, records[:size], random):
                ids = random.raw(16 * len(rows)).reshape(-1, 16)
                file.write(question, ids, values)
                again = int(repeat * len(rows))
                file.write(question, ids[:again], values[:again])


def run(path: Path) -> None:
    """In a process of its own: seconds (imports are in them), peak memory, what was counted."""
    start = time.perf_counter()
    from discreet.collection.bulk import tally_parquet
    from discreet.local.plan import Plan

    tally = tally_parquet(Plan.read(path.with_suffix(".json")), str(path))
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    facts = {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime}
    facts |= {"peak": used.ru_maxrss / 1024, "people": tally.people, "repeated": tally.repeated}
    print(json.dumps(facts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--oracle", default="auto,oue,olh", help="several with commas")
    parser.add_argument("--repeat", type=float, default=0.01)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        run(chosen.run)
        return
    print("| oracle | reports | sent twice | file MB | seconds | CPU s | reports/s | peak MiB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for oracle in chosen.oracle.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "reports.parquet")
            make(path, chosen.reports, oracle, chosen.repeat)
            command = [sys.executable, __file__, "--run", str(path)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found, size = json.loads(done.stdout), path.stat().st_size / 1e6
        assert found["people"] == chosen.reports, found
        rate = (found["people"] + found["repeated"]) / found["seconds"]
        print(
            f"| {oracle} | {found['people']:,} | {found['repeated']:,} | {size:,.0f} "
            f"| {found['seconds']:.1f} | {found['cpu']:.1f} | {rate:,.0f} | {found['peak']:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
