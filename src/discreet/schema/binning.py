"""Public bins by noise: equal widths, as many as the noise allows, and finer ones near zero.

Finer bins follow the law of a number more closely, and each of them is noisier. How many people
there are about is public or already private; nothing else of the data is used. Where a table is
counted and noise is added once, :func:`compute_noise_edges`; where each person randomizes,
:func:`choose_bins`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from discreet.schema.cells import compute_equal_width_edges, compute_near_zero_cuts
from discreet.schema.schema import Numeric

__all__ = [
    "MANY_CLASSES",
    "MIN_SIGNAL_FINE_BINS",
    "USUAL_BIN_COUNT",
    "choose_bins",
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
MANY_CLASSES = 10
"""With at least so many classes, numeric features are cut half as finely; 4 to 8 bins compared:
docs/experiments/central.md, "Many classes"."""
MAX_SIGNAL_HALVED_BINS = 80.0
"""The same rule as ever from this people / (classes * noise scale) on: half as many lose there."""
MAX_BINS = 64
"""Most bins of a numeric feature by the default rule."""
MIN_SIGNAL_FINE_BINS = 2.0
"""Bins near zero are split finer when people / (classes * noise scale) is at least this."""
USUAL_BIN_COUNT = 8
"""Bins of equal width; 2 to 32 compared: docs/experiments/local.md, "Bins by noise"."""
NOISY_BIN_COUNT = 6
"""Bins of equal width where the noise is large; compared there."""
MAX_CELL_ERROR = 2.0
"""Standard error of a cell, relative to an average cell, above which the noise is large."""
NEAR_ZERO_SCALES = slice(1, None, 2)
"""Which of the geometric cuts in the bin next to zero are made: at 1/16 and 1/256 of its width."""


def compute_bin_count(signal_to_noise: float, class_count: int = 2) -> int:
    """Number of equal-width bins: 4 signal_to_noise^0.3 as a power of two, 8 to 64.

    Half of it where there are many classes and much noise.

    Parameters
    ----------
    signal_to_noise : float
        People / (classes * Laplace scale), from a private estimate of the people.
    class_count : int, default 2

    >>> [compute_bin_count(u) for u in (0, 1, 10, 100, 10_000, 1_000_000)]
    [8, 8, 8, 16, 64, 64]
    >>> [compute_bin_count(u, 26) for u in (0, 1, 10, 50, 100)]
    [4, 4, 4, 8, 16]
    """
    is_halved = class_count >= MANY_CLASSES and signal_to_noise < MAX_SIGNAL_HALVED_BINS
    wanted_bins = BINS_AT_UNIT_SIGNAL * max(signal_to_noise, 1.0) ** BINS_EXPONENT
    bin_count = int(min(max(2 ** round(math.log2(wanted_bins)), MIN_BINS), MAX_BINS))
    return bin_count // 2 if is_halved else bin_count


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


def compute_noise_edges(
    feature: Numeric, signal_to_noise: float, class_count: int = 2
) -> list[float]:
    """Inner edges of the default bins of a feature: :func:`compute_bin_count`, finer near zero.

    Parameters
    ----------
    feature : Numeric
    signal_to_noise : float
        People / (classes * Laplace scale).
    class_count : int, default 2

    >>> len(compute_noise_edges(Numeric("income", 0, 4096), 0.5)) + 1
    8
    >>> len(compute_noise_edges(Numeric("income", 0, 4096), 100.0)) + 1
    21
    """
    return compute_inner_edges(
        feature,
        compute_bin_count(signal_to_noise, class_count),
        signal_to_noise >= MIN_SIGNAL_FINE_BINS,
    )


def choose_bins(features: Iterable[Numeric], cell_error: float) -> dict[str, int | list[float]]:
    """Choose bins by the expected noise of a cell.

    Where it is small, 8 bins of equal width, and two cuts more in the bin next to zero, where
    counts and amounts crowd; where it is large, 6 bins.

    Parameters
    ----------
    features : iterable of Numeric
        With public bounds.
    cell_error : float
        Expected standard error of a cell, relative to an average cell, if there are 8 bins.

    Returns
    -------
    mapping of feature name to number of bins or cut points

    Examples
    --------
    >>> choose_bins([Numeric("income", 0, 4096)], 3.0)
    {'income': 6}
    >>> choose_bins([Numeric("income", 0, 4096)], 0.5)["income"][:4]
    [2.0, 32.0, 512.0, 1024.0]
    >>> choose_bins([Numeric("age", 18, 98)], 0.5)["age"]
    [28.0, 38.0, 48.0, 58.0, 68.0, 78.0, 88.0]
    >>> [cut for cut in choose_bins([Numeric("change", -64, 64)], 0.5)["change"] if abs(cut) < 16]
    [-1.0, -0.0625, 0.0, 0.0625, 1.0]
    """
    if cell_error > MAX_CELL_ERROR:
        return {feature.name: NOISY_BIN_COUNT for feature in features}
    chosen_bins: dict[str, int | list[float]] = {}
    for feature in features:
        bin_edges = compute_equal_width_edges(feature, USUAL_BIN_COUNT)
        near_zero_cuts = compute_near_zero_cuts(feature, bin_edges[1] - bin_edges[0])
        chosen_cuts = [
            cut_point
            for sign in (1, -1)
            for cut_point in [cut for cut in near_zero_cuts if sign * cut > 0][NEAR_ZERO_SCALES]
        ]
        chosen_bins[feature.name] = sorted({*bin_edges[1:-1], *chosen_cuts})
    return chosen_bins
