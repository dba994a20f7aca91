"""What keeping an account of fits costs: hashing rows and looking them up, beside the fit itself.

Run: python benchmarks/account.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from discreet import Categorical, CentralNB, MemoryLedger, Numeric, Schema
from discreet.estimators.fit_history import FitHistory, hash_rows
from discreet.privacy.guarantee import Guarantee

WORDS = np.array(["low", "mid", "high"], dtype=object)


def spent(run: Callable[[], object], repeats: int = 3) -> float:
    """Processor seconds, the least of a few runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def measured(count: int, numeric: int, text: int) -> str:
    """One table, as a line."""
    rng = np.random.default_rng(0)
    columns = {f"n{i}": rng.normal(size=count) for i in range(numeric)}
    columns |= {f"c{i}": WORDS[rng.integers(0, 3, count)] for i in range(text)}
    features = [
        Numeric(name, -9, 9) if name.startswith("n") else Categorical(name, WORDS)
        for name in columns
    ]
    schema = Schema(features, "class", [0, 1])
    frame, y = pd.DataFrame(columns), rng.integers(0, 2, count)
    fit = spent(lambda: CentralNB(1.0, schema=schema, random_state=0).fit(frame, y), 2)
    known = FitHistory()
    bits = spent(lambda: hash_rows({n: frame[n] for n in frame}, count))
    rows = hash_rows({n: frame[n] for n in frame}, count)
    known.add(rows, Guarantee(1.0))
    lookup = spent(lambda: known.add(rows, Guarantee(1.0)))
    memory = sum(group.nbytes for group, _ in known.groups) / 1e6
    return (
        f"| {count:,} | {numeric} numbers, {text} texts | {fit:.2f} s | {bits:.3f} s "
        f"| {lookup:.3f} s | {(bits + lookup) / fit:.1%} | {memory:.1f} MB |"
    )


def main() -> None:
    print("| rows | columns | fit | rows to bits | lookup | share of the fit | memory |")
    print("|---|---|---|---|---|---|---|")
    for count, numeric, text in ((100_000, 14, 0), (1_000_000, 14, 0), (100_000, 6, 8)):
        print(measured(count, numeric, text))
    ledger = MemoryLedger(1e6)
    start = time.perf_counter()
    for _ in range(100):
        ledger.charge(Guarantee(1.0), "fit")
    each = (time.perf_counter() - start) / 100
    print(f"\nA charge to a ledger, synced, mean of the first hundred: {1000 * each:.1f} ms")


if __name__ == "__main__":
    main()
