"""Bounds of a number from noisy counts on public grids.

The first grid is logarithmic and the same for every table: zero, powers of two, and open cells at
both ends, so that it covers all doubles. Between the outermost cells that hold more than noise, the
second grid has cells of equal width, and of those the ends are cut that hold next to nobody, noise
considered. The more noise, the wider the bounds: bounds that are too wide cost a few bins, and
those that are too narrow the difference between people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.arrays import Integers
from discreet.central.budget import IntegerNoise
from discreet.central.noise_thresholds import find_noise_threshold

__all__ = [
    "LOG_GRID_EDGES",
    "cut_empty_ends",
    "find_occupied_range",
    "is_mostly_text",
    "make_bounds",
    "make_equal_edges",
]

FALSE_CELL_CHANCE = Fraction(1, 100)
"""Chance, per grid, that noise alone makes a cell look occupied; 1/10 and 1/1000 compared:
docs/experiments/schemas.md."""
EQUAL_CELLS = 64
"""Cells of the second grid: the most bins of a feature; 32 and 128 compared as above."""
NEAR_ZERO_RATIO = 1 / 4
"""A range begins at zero if it begins at most at this part of its end: a third more width."""
ZERO_NOISE_SDS = 2.0
"""Standard deviations of noise from which on a count of zeros extends a range to zero."""
MAX_TAIL_SHARE = Fraction(1, 100)
"""Largest share of the numbers outside the bounds, at each end; 1/1000 and 3/100 compared as
above."""
TAIL_NOISE_SDS = 1.0
"""Standard deviations of noise that are added to a tail before it is called empty; 0 and 2
compared as above."""
MAX_TEXT_SHARE = Fraction(1, 10)
"""Largest share of text, by noisy counts, in a column that is read as numbers."""
FINE_EXPONENTS = range(-32, 65)
"""Powers of two that are cells of their own, on both sides of zero."""
COARSE_EXPONENTS = (-192, -160, -128, -96, -64, 96, 128, 160, 192)
"""Powers of two further out; at 2^192 the span is the largest that trainings accept."""

_POSITIVE_EDGES = sorted(math.ldexp(1.0, k) for k in (*FINE_EXPONENTS, *COARSE_EXPONENTS))
LOG_GRID_EDGES: tuple[float, ...] = (
    *(-edge for edge in reversed(_POSITIVE_EDGES)),
    0.0,
    *_POSITIVE_EDGES,
)
"""Edges of the first grid; values from the last one on, or below the first, are in open cells."""


def make_equal_edges(lower: float, upper: float) -> tuple[float, ...]:
    """Cut a range into cells of equal width.

    Parameters
    ----------
    lower, upper : float
    """
    width = (upper - lower) / EQUAL_CELLS
    return (*(lower + width * cell for cell in range(EQUAL_CELLS)), upper)


def find_occupied_range(
    noisy_counts: Integers, edges: Sequence[float], noise: IntegerNoise
) -> tuple[float, float, int] | None:
    """Find the range of the cells that hold more than noise, and how many rows are in it.

    Rows that are spread over many cells are found by the sums of 2, 4, 8 … neighbouring cells; such
    a window counts where no shorter one in it does. Zero is included where it costs little width,
    or where the count of zeros suggests it.

    Parameters
    ----------
    noisy_counts : array of shape (edges + 1,)
        The first and the last are of open cells, which give no bounds.
    edges : sequence of float
    noise : IntegerNoise
        Of the counts.

    Returns
    -------
    (lower, upper, noisy rows) or None
        None where no cell holds more than noise.
    """
    closed_counts = noisy_counts[1:-1]
    is_occupied = np.zeros(len(closed_counts), dtype=bool)
    length = 1
    while length <= len(closed_counts):
        threshold = _bound_noise_sum(noise, length, len(closed_counts))
        window_sums = np.convolve(closed_counts, np.ones(length, dtype=np.int64), mode="valid")
        for start in np.flatnonzero(window_sums >= threshold):
            if not is_occupied[start : start + length].any():
                is_occupied[start : start + length] = True
        length *= 2
    occupied_cells = np.flatnonzero(is_occupied)
    if not occupied_cells.size:
        return None
    first_cell, last_cell = int(occupied_cells[0]), int(occupied_cells[-1])
    noisy_rows = int(closed_counts[first_cell : last_cell + 1].sum())
    lower, upper = edges[first_cell], edges[last_cell + 1]
    has_zeros = closed_counts[edges.index(0.0)] >= ZERO_NOISE_SDS * math.sqrt(noise.variance)
    if has_zeros or 0 < lower <= upper * NEAR_ZERO_RATIO:
        lower = min(lower, 0.0)
    if has_zeros or lower * NEAR_ZERO_RATIO <= upper < 0:
        upper = max(upper, 0.0)
    return lower, upper, noisy_rows


def _bound_noise_sum(noise: IntegerNoise, cell_count: int, grid_cells: int) -> float:
    """What the sum of the noise of some cells seldom exceeds, in no window of a grid.

    Sums are bounded by Chernoff's inequality: of a Laplace law of scale s the logarithm of the
    moment generating function is at most s^2 x^2 / (1 - s x), of a Gaussian it is v x^2 / 2. This
    decides how good bounds are, and not what they give away.
    """
    chance = FALSE_CELL_CHANCE / (grid_cells * grid_cells.bit_length())  # for all windows together
    if cell_count == 1:
        return find_noise_threshold(noise, chance)
    log_chance, scale = -math.log(chance), float(noise.parameter)
    if noise.gaussian:
        return math.sqrt(2 * scale * cell_count * log_chance)
    return scale * (2 * math.sqrt(cell_count * log_chance) + log_chance)


def cut_empty_ends(
    noisy_counts: Integers, edges: Sequence[float], noise: IntegerNoise
) -> tuple[float, float]:
    """Cut the ends of a grid that hold next to nobody, as far as the noise allows to say so.

    Parameters
    ----------
    noisy_counts : array of shape (edges + 1,)
        The first and the last are of open cells.
    edges : sequence of float
    noise : IntegerNoise
    """
    closed_counts = noisy_counts[1:-1]
    allowance = float(MAX_TAIL_SHARE) * max(int(closed_counts.sum()), 0)
    cell_numbers = np.arange(1, len(closed_counts))
    margins = TAIL_NOISE_SDS * np.sqrt(noise.variance * cell_numbers)

    def count_empty_cells(counts: Integers) -> int:
        is_empty = np.cumsum(counts)[:-1] + margins <= allowance
        return int(np.flatnonzero(is_empty)[-1]) + 1 if is_empty.any() else 0

    first_cell = count_empty_cells(closed_counts)
    last_cell = len(closed_counts) - count_empty_cells(closed_counts[::-1])
    return (
        (edges[first_cell], edges[last_cell]) if first_cell < last_cell else (edges[0], edges[-1])
    )


def is_mostly_text(noisy_numbers: int, noisy_texts: int, noise: IntegerNoise) -> bool:
    """Whether a column is read as text, by the noisy counts of its numbers and other texts.

    Parameters
    ----------
    noisy_numbers, noisy_texts : int
    noise : IntegerNoise
        Of the counts.
    """
    has_texts = noisy_texts >= find_noise_threshold(noise, FALSE_CELL_CHANCE)
    return has_texts and noisy_texts > MAX_TEXT_SHARE * (noisy_numbers + noisy_texts)


def make_bounds(lower: float, upper: float, integer: bool) -> tuple[float, float]:
    """Round a range outwards to numbers that a person would write.

    Parameters
    ----------
    lower, upper : float
        Edges of cells; a number at the upper one is outside.
    integer : bool
        Whether bounds are whole numbers.

    Examples
    --------
    >>> make_bounds(17.75, 91.625, True), make_bounds(0.0, 1.484375, False)
    ((17.0, 91.0), (0.0, 1.49))
    """
    # the cells next to zero hold zeros
    lower, upper = (0.0 if abs(bound) <= _POSITIVE_EDGES[0] else bound for bound in (lower, upper))
    if lower == upper:
        return lower, lower + 1.0
    exponent = math.floor(math.log10((upper - lower) / EQUAL_CELLS))
    exponent = max(exponent, 0) if integer else exponent
    unit = Fraction(10) ** exponent
    upper_units = math.ceil(Fraction(upper) / unit)
    if integer and exponent == 0:
        upper_units = math.ceil(upper) - 1
    bounds = math.floor(Fraction(lower) / unit) * unit, upper_units * unit
    rounded_lower, rounded_upper = map(float, bounds)
    if not rounded_lower < rounded_upper:
        rounded_upper = rounded_lower + 1.0
    return rounded_lower, rounded_upper
