"""Bounds of a number from noisy counts on public grids.

The first grid is logarithmic and the same for every table: zero, powers of two, and open cells at
both ends, so that it covers all doubles. The second cuts what the first has found into cells of
equal width. From each, the cells whose noisy count is above what noise reaches by itself are kept,
and everything between the outermost of them. A few people in the tails stay outside: their values
are clipped to the bounds, as the schema says.
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
    "find_occupied_range",
    "is_mostly_text",
    "make_bounds",
    "make_equal_edges",
]

FALSE_CELL_CHANCE = Fraction(1, 100)
"""Chance, per grid, that noise alone makes a cell look occupied; 1/10 and 1/1000 compared:
docs/experiments/central.md."""
EQUAL_CELLS = 64
"""Cells of the second grid: the most bins of a feature; 32 and 128 compared as above."""
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
    """Find the range of the cells that are occupied by more than noise, and how many rows it holds.

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
        None where no cell is occupied by more than noise.
    """
    closed_counts = noisy_counts[1:-1]
    threshold = find_noise_threshold(noise, FALSE_CELL_CHANCE / len(closed_counts))
    occupied_cells = np.flatnonzero(closed_counts >= threshold)
    if not occupied_cells.size:
        return None
    first_cell, last_cell = int(occupied_cells[0]), int(occupied_cells[-1])
    noisy_rows = int(closed_counts[occupied_cells].sum())
    return edges[first_cell], edges[last_cell + 1], noisy_rows


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
    ((17.0, 91.0), (0.0, 1.5))
    """
    if max(abs(lower), abs(upper)) <= _POSITIVE_EDGES[0]:  # nothing but zeros
        return 0.0, 1.0
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
