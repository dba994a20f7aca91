"""Public bins by noise: equal widths, as many as the noise allows, and finer ones near zero.

How many people there are about is public or already private; nothing else of the data is used.
"""

from __future__ import annotations

import math

from discreet.schema.cells import compute_equal_width_edges, compute_near_zero_cuts
from discreet.schema.schema import Numeric

__all__ = [
    "MIN_SIGNAL_FINE_BINS",
    "compute_bin_count",
    "compute_inner_edges",
    "compute_noise_edges",
]

BINS_AT_UNIT_SIGNAL = 4
"""Bins at people / (classes * noise scale) = 1, before they are rounded to a power of two."""
BINS_EXPONENT = 0.3
"""Power of people / (classes * noise scale) with which the number of bins grows."""
MIN_BINS = 8
"""Fewest bins of a numeric feature by the default rule."""
MAX_BINS = 64
"""Most bins of a numeric feature by the default rule."""
MIN_SIGNAL_FINE_BINS = 2.0
"""Bins near zero are split finer when people / (classes * noise scale) is at least this."""


def compute_bin_count(signal_to_noise: float) -> int:
    """Number of equal-width bins: 4 signal_to_noise^0.3 as a power of two, 8 to 64.

    Parameters
    ----------
    signal_to_noise : float
        People / (classes * Laplace scale), from a private estimate of the people.

    >>> [compute_bin_count(u) for u in (0, 1, 10, 100, 10_000, 1_000_000)]
    [8, 8, 8, 16, 64, 64]
    """
    if signal_to_noise <= 1:
        return MIN_BINS
    wanted_bins = BINS_AT_UNIT_SIGNAL * signal_to_noise**BINS_EXPONENT
    return int(min(max(2 ** round(math.log2(wanted_bins)), MIN_BINS), MAX_BINS))


def compute_inner_edges(
    feature: Numeric, bin_count: int, fine_near_zero: bool = False
) -> list[float]:
    """Inner edges of equal-width bins; with ``fine_near_zero`` the bin at zero is split further.

    >>> compute_inner_edges(Numeric("age", 20, 100), 8)
    [30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    bin_edges = compute_equal_width_edges(feature, bin_count)
    near_zero_edges = (
        compute_near_zero_cuts(feature, bin_edges[1] - bin_edges[0]) if fine_near_zero else []
    )
    return sorted({*bin_edges[1:-1], *near_zero_edges})


def compute_noise_edges(feature: Numeric, signal_to_noise: float) -> list[float]:
    """Inner edges of the default bins of a feature: :func:`compute_bin_count`, finer near zero.

    Parameters
    ----------
    feature : Numeric
    signal_to_noise : float
        People / (classes * Laplace scale).

    >>> len(compute_noise_edges(Numeric("income", 0, 4096), 0.5)) + 1
    8
    >>> len(compute_noise_edges(Numeric("income", 0, 4096), 100.0)) + 1
    21
    """
    return compute_inner_edges(
        feature, compute_bin_count(signal_to_noise), signal_to_noise >= MIN_SIGNAL_FINE_BINS
    )
