"""How long a browser needs to draw a report, beside Python on the same machine, and what it loads.

    python benchmarks/browser_report.py

One person's report over 300 cells (300 numbers for means), from checking the answers to the sealed
text: median of 25 times 20 in a headless Chromium. Python's device makes the same report. The
figure to reach is 50 ms. Sizes are those of the modules as they are served, gzip -9.
"""

from __future__ import annotations

import gzip
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "vectors")]

from cases import plan_of  # noqa: E402

from discreet.collection.respondent import MemoryStore, Respondent  # noqa: E402
from discreet.local import Plan  # noqa: E402
from discreet.mechanisms.frequency import ORACLES  # noqa: E402
from programs import STATIC, browser, modules, page  # noqa: E402

CELLS, TIMES = 300, 25
MEANS = ("laplace", "duchi-many", "one-bit", "piecewise-many", "hybrid-many")
DEVICE = ("draw", "random", "mechanisms", "cells", "promise")

IN_THE_PAGE = """async ([text, answers, times]) => {
  const { collectionOf } = await import("/draw.js");
  const began = performance.now();
  const collection = await collectionOf(new TextEncoder().encode(text));
  const read = performance.now() - began, took = [];
  for (let series = 0; series < times; series++) {
    const start = performance.now();
    for (let k = 0; k < 20; k++) await collection.report(answers); // the clock is coarse
    took.push((performance.now() - start) / 20);
  }
  return [read, took];
}"""


def in_python(plan: Plan, answers: dict[str, object]) -> float:
    """Median milliseconds of a report."""
    took = []
    for _ in range(TIMES):
        start = time.perf_counter()
        Respondent(plan, MemoryStore()).report(answers).to_json()
        took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took)


def main() -> None:
    """Print both tables."""
    print(f"load average {os.getloadavg()[0]:.1f}")
    print("| mechanism | Chromium, ms: median | slowest 20, mean | Python, ms: median | ratio |")
    print("|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory() as folder,
        browser() as opened,
        page(opened, modules(Path(folder))) as shown,
    ):
        for name in (*ORACLES, *MEANS):
            plan = plan_of(name, 1.0, CELLS, 1 if name in ORACLES else 3)
            numbers = {f: 0.3 for f in plan.schema.names if name not in ORACLES}
            answers = {**numbers, "answer": 1}
            _, took = shown.evaluate(
                IN_THE_PAGE, [plan.encode_canonical().decode(), answers, TIMES]
            )
            middle, ours = statistics.median(took), in_python(plan, answers)
            print(f"| {name} | {middle:.2f} | {max(took):.1f} | {ours:.2f} | {middle / ours:.1f} |")

    print("\n| module | lines | bytes | compressed | compressed without comments |")
    print("|---|---|---|---|---|")
    total = [0] * 4
    for name in DEVICE:
        text = (STATIC / f"{name}.js").read_text(encoding="utf-8")
        code = re.sub(r"/\*\*.*?\*/", "", text, flags=re.S)
        code = re.sub(r"^\s*//.*\n|^\s*\n", "", code, flags=re.M)
        row = [text.count("\n"), len(text.encode()), packed(text), packed(code)]
        total = [a + b for a, b in zip(total, row, strict=True)]
        print(f"| {name}.js | " + " | ".join(map(str, row)) + " |")
    print("| together | " + " | ".join(map(str, total)) + " |")


def packed(text: str) -> int:
    """Bytes after compression."""
    return len(gzip.compress(text.encode(), 9))


if __name__ == "__main__":
    main()
