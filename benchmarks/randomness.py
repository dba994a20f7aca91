"""How fast exact, cryptographic draws are, beside NumPy and OpenDP in the same run.

``.venv/bin/python benchmarks/randomness.py`` prints a table ready for RESULTS.md: CPU time on one
thread, the best of five runs. NumPy's draws are neither cryptographic nor exact, and OpenDP's time
includes its walk through Python lists: both are what a user of theirs gets.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from discreet.randomness import CryptoRandom

Row = tuple[str, float, str, float]  # what, ours per second, peer, theirs per second

RUNS = 5
MANY, SOME, FEW = 10_000_000, 1_000_000, 50_000
SCALE = 10.0


def rate(draw: Callable[[], object], count: int) -> float:
    """Return draws per second of CPU time, the best of ``RUNS``."""
    draw()
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        draw()
        seconds.append(time.process_time() - start)
    return count / min(seconds)


def opendp_rates() -> tuple[float, float] | None:
    """Return OpenDP's integer Laplace and Gaussian draws per second, None where not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain, zeros = dp.vector_domain(dp.atom_domain(T=int)), [0] * FEW
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=int), SCALE)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T=int), SCALE)
    return rate(lambda: laplace(zeros), FEW), rate(lambda: gaussian(zeros), FEW)


def rows() -> list[Row]:
    """Return what was measured, ours beside a peer's."""
    ours, numpy = CryptoRandom(), np.random.default_rng()
    third, height = (1 << 64) // 3, MANY // 1000
    flags = rate(lambda: numpy.random(MANY) < 1 / 3, MANY)
    laplace = rate(lambda: ours.discrete_laplace(SCALE, SOME), SOME)
    gaussian = rate(lambda: ours.discrete_gaussian(SCALE**2, SOME), SOME)
    table: list[Row] = [
        ("Bernoulli(1/3)", rate(lambda: ours.bernoulli(1 / 3, MANY), MANY), "NumPy", flags),
        (
            "packed bits, 1/3",
            rate(lambda: ours.bits(third, height, 1000), MANY),
            "NumPy",
            rate(
                lambda: np.packbits(
                    numpy.random((height, 1000)) < 1 / 3, axis=1, bitorder="little"
                ),
                MANY,
            ),
        ),
        (
            "64-bit words",
            rate(lambda: ours.words(MANY), MANY),
            "NumPy",
            rate(lambda: numpy.integers(0, 1 << 64, MANY, np.uint64), MANY),
        ),
        (
            "integers below 10",
            rate(lambda: ours.integers(10, MANY), MANY),
            "NumPy",
            rate(lambda: numpy.integers(0, 10, MANY), MANY),
        ),
        (
            "discrete Laplace, scale 10",
            laplace,
            "NumPy, rounded",
            rate(lambda: np.rint(numpy.laplace(0, SCALE, SOME)).astype(np.int64), SOME),
        ),
        (
            "discrete Gaussian, sigma 10",
            gaussian,
            "NumPy, rounded",
            rate(lambda: np.rint(numpy.normal(0, SCALE, SOME)).astype(np.int64), SOME),
        ),
    ]
    opendp = opendp_rates()
    if opendp is not None:
        table.append(("discrete Laplace, scale 10", laplace, "OpenDP", opendp[0]))
        table.append(("discrete Gaussian, sigma 10", gaussian, "OpenDP", opendp[1]))
    return table


def main() -> None:
    """Print the table."""
    print("| draws, million a second | discreet | peer | peer's | ratio |")
    print("|---|---:|---|---:|---:|")
    for what, ours, peer, theirs in rows():
        print(f"| {what} | {ours / 1e6:.1f} | {peer} | {theirs / 1e6:.2f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
