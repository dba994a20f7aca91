"""Bins of numbers whose cells are reported by randomized response, by the noise to be expected.

Finer bins follow the law of a number more closely, and each of them is noisier. Which of the two
matters more depends on the noise that a cell will have, which is public before anyone is asked: so
are the bins.
"""

from __future__ import annotations

from collections.abc import Iterable

from discreet.schema.cells import compute_equal_width_edges, compute_near_zero_cuts
from discreet.schema.schema import Numeric

__all__ = ["USUAL_BIN_COUNT", "choose_bins"]

USUAL_BIN_COUNT = 8
"""Bins of equal width; 2 to 32 compared: docs/experiments/local.md, "Bins by noise"."""
NOISY_BIN_COUNT = 6
"""Bins of equal width where the noise is large; compared there."""
MAX_CELL_ERROR = 2.0
"""Standard error of a cell, relative to an average cell, above which the noise is large."""
MAX_FINE_CELL_ERROR = 1.0
"""The same, up to which the bin next to zero is split."""
NEAR_ZERO_SCALES = slice(1, None, 2)
"""Which of the geometric cuts in the bin next to zero are made: at 1/16 and 1/256 of its width."""


def choose_bins(features: Iterable[Numeric], cell_error: float) -> dict[str, int | list[float]]:
    """Choose bins by the expected noise of a cell.

    8 bins of equal width. Where it is small, two cuts more in the bin next to zero, where counts
    and amounts crowd; where it is large, 6 bins.

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
    if cell_error > MAX_FINE_CELL_ERROR:
        bin_count = USUAL_BIN_COUNT if cell_error <= MAX_CELL_ERROR else NOISY_BIN_COUNT
        return {feature.name: bin_count for feature in features}
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
