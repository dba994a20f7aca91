"""Small things that people wait for: a program that starts, one answer, a file of reports.

Processor seconds of whole processes, best of several, beside the least that Python could take: an
empty program, an empty program with NumPy, and a loop over the same file that only calls
``json.loads`` and ``hashlib.sha256``, which no check of a report can do without.

    python benchmarks/small_things.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from discreet.collection.report import Report
from discreet.collection.simulation import iter_simulated_answers
from discreet.datasets import make_mortgage
from discreet.local import make_plan
from discreet.randomness import as_random
from discreet.schema.cells import get_columns

REPORTS, REPEATS = 50_000, 5
LOOP = """
import hashlib, json
for line in open("reports.jsonl", "rb"):
    json.loads(line), hashlib.sha256(line).hexdigest()
"""
ME = {"sleep": "well", "medication": "no", "alcohol": 2, "overtime": "no", "burnout": "no"}


def seconds(folder: Path, *words: str) -> float:
    """Processor seconds of a process, the least of several runs."""
    found = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], cwd=folder, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def prepare(folder: Path) -> None:
    """A plan, reports of simulated people as lines of JSON, a questionnaire and a record."""
    people, random = make_mortgage(REPORTS, seed=1), as_random(1)
    plan = make_plan(people.schema, 2.0, REPORTS)
    (folder / "plan.json").write_text(plan.to_json())
    codes = plan.encode_columns(get_columns(people.frame, plan.names))
    with (folder / "reports.jsonl").open("w") as file:
        for question, rows, values in iter_simulated_answers(plan, codes, random):
            ids = random.raw(16 * len(rows)).reshape(-1, 16)
            for identity, value in zip(ids, values.tolist(), strict=True):
                report = Report(plan.digest, identity.tobytes().hex(), question, tuple(value))
                file.write(report.to_json())
    (folder / "me.json").write_text(json.dumps(ME))
    seconds_of_new = ["-m", "discreet", "survey", "new", "-o", "questionnaire.yaml"]
    subprocess.run([sys.executable, *seconds_of_new], cwd=folder, check=True, capture_output=True)


def main() -> None:
    """Measure and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        empty = seconds(folder, "-c", "pass")
        numpy = seconds(folder, "-c", "import numpy")
        loop = seconds(folder, "-c", LOOP)
        answer = ["survey", "answer", "questionnaire.yaml", "me.json", "--store", "kept"]
        tally = ["local", "tally", "plan.json", "reports.jsonl", "-o", "tally.json"]
        rows = [
            ("discreet --version", ["--version"], "an empty program", empty),
            ("discreet --help", ["--help"], "an empty program", empty),
            ("discreet survey answer", answer, "import numpy", numpy),
            (f"discreet local tally, {REPORTS:,} lines", tally, "json.loads and SHA-256", loop),
        ]
        print("| command | processor seconds | beside | seconds | ratio |\n|---|---|---|---|---|")
        for title, words, beside, least in rows:
            own = seconds(folder, "-m", "discreet", *words)
            print(f"| {title} | {own:.2f} | {beside} | {least:.2f} | {own / least:.1f} |")


if __name__ == "__main__":
    main()
