"""Smooth sensitivity of one class's mean, variance and trimmed mean.

What a function here returns is a beta-smooth upper bound S on the local sensitivity of its
statistic (Nissim, Raskhodnikova and Smith 2007): it dominates how far one record can move the
statistic from these values, and between neighbouring data sets it changes by a factor of at most
exp(beta). Noise of scale S / alpha then keeps a promise: :mod:`discreet.mechanisms.additive`.
beta must not depend on the values.

``neighbours="replace"`` keeps the number n of values fixed and public, and gives the *smallest*
such S. ``neighbours="add-remove"`` lets n vary, as a class's size does, and gives a bound of the
same kind that is defined for every n from 0 on. There the statistic of too few values, which the
caller chooses, must not depend on them and must be between the bounds (mean) or between 0 and
(upper - lower)^2 / 4 (variance).

Everything takes the time of sorting or less. Formulas: docs/maths.md; the proofs
are in the comments. Values are first moved to [0, 1]; a result that would underflow is raised to
the smallest normal float, which keeps it smooth.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import numpy as np

from discreet.arrays import Floats, Integers
from discreet.errors import PrivacyError, SchemaError
from discreet.privacy.guarantee import Neighbours

__all__ = [
    "bound_mean_sensitivity",
    "bound_trimmed_mean_sensitivity",
    "bound_variance_sensitivity",
    "compute_trimmed_mean",
]

Values = Floats
BoundFunction = Callable[[Integers, Values], Values]

MIN_BOUND = sys.float_info.min
"""Smallest bound that is returned: the smallest normal float."""
FIRST_CHUNK = 64
"""Distances evaluated at once at first; their number doubles from chunk to chunk."""
MAX_CHUNK = 1 << 16
"""Most distances evaluated at once, to stay fast."""


def bound_mean_sensitivity(
    x: Any, lower: float, upper: float, beta: float, *, neighbours: Neighbours = "add-remove"
) -> float:
    """Return a beta-smooth bound on the sensitivity of the mean.

    Parameters
    ----------
    x : array of shape (n,)
        The values, sorted or not, within the bounds; n may be 0.
    lower, upper : float
        Public bounds.
    beta : float
        How smooth, above 0.
    neighbours : {"add-remove", "replace"}
        Which change counts as one step; "replace" keeps n fixed and is exact.

    Examples
    --------
    >>> bound_mean_sensitivity([4.0, 5.0, 6.0, 5.0], 0.0, 10.0, 1.0, neighbours="replace")
    1.5
    """
    unit_values, n, range_width = _move_to_unit(x, lower, upper, beta, neighbours)
    if n and neighbours == "replace":
        # One step away some value may be at a bound, and move from there to the other one.
        return _scale_bound(
            max(1 - unit_values[0], unit_values[-1], math.exp(-beta)) / n, range_width
        )
    return _scale_bound(_bound_varying_size(unit_values, beta, power=1), range_width)


def bound_variance_sensitivity(
    x: Any, lower: float, upper: float, beta: float, *, neighbours: Neighbours = "add-remove"
) -> float:
    """Return a beta-smooth bound on the sensitivity of the variance, mean((x - mean(x))^2).

    Parameters
    ----------
    x : array of numbers
    lower, upper : float
        Public bounds of the values.
    beta : float
        How fast the bound may grow with the distance from ``x``.
    neighbours : {"add-remove", "replace"}

    Examples
    --------
    >>> bound_variance_sensitivity([0.0, 0.0], 0.0, 1.0, 1.0, neighbours="replace")
    0.25
    """
    unit_values, n, range_width = _move_to_unit(x, lower, upper, beta, neighbours)
    if n and neighbours == "replace":
        low_moves, high_moves = (
            _make_variance_moves(unit_values),
            _make_variance_moves(1 - unit_values[::-1]),
        )
        largest_move = _find_decayed_maximum(
            lambda k, d: np.maximum(low_moves(k, d), high_moves(k, d)), beta, n + 1
        )
        return _scale_bound(largest_move * (n - 1) / n**2, range_width**2)
    return _scale_bound(_bound_varying_size(unit_values, beta, power=2), range_width**2)


def bound_trimmed_mean_sensitivity(
    x: Any,
    trim: int,
    lower: float,
    upper: float,
    beta: float,
    *,
    neighbours: Neighbours = "add-remove",
) -> float:
    """Return a beta-smooth bound on the sensitivity of :func:`compute_trimmed_mean`.

    Parameters
    ----------
    x, lower, upper, beta, neighbours
        Those of :func:`bound_mean_sensitivity`.
    trim : int
        How many values are left out at each end; it must not depend on the values. With
        n <= 2 trim the result is upper - lower.

    Examples
    --------
    >>> bound_trimmed_mean_sensitivity([3.0, 4.0, 4.0, 5.0], 1, 0.0, 8.0, 3.0, neighbours="replace")
    0.5
    """
    unit_values, n, range_width = _move_to_unit(x, lower, upper, beta, neighbours)
    m = _check_trim(trim)
    kept_count = n - 2 * m
    if kept_count < 1 or (kept_count == 1 and neighbours == "add-remove"):
        return range_width
    # max_k exp(-beta k) G(k), G(k) = max over 0 <= l <= k+1 of x_{n-m+1+k-l} - x_{m+1-l}
    # (Bun and Steinke 2019), as a gap between a = l steps down from x_{m+1}, b = k+1-l up from
    # x_{n-m}, padded with the bounds.
    widest_gap = _find_widest_gap(
        np.append(unit_values[m::-1], 0.0), np.append(unit_values[n - m - 1 :], 1.0), beta
    )
    if neighbours == "replace":
        return _scale_bound(widest_gap / kept_count, range_width)
    # U_k = max(G(a) / max(1, kept-1-(k-a)) over a <= k, R [kept-k <= 1]): of k = a + j steps, j
    # only shrink the number of values kept, so the maximum splits into one over a and one over j;
    # exp(-beta j) / (kept-1-j) is log-convex in j and largest at an end, j = 0 or kept - 2.
    shrink_factor = max(1 / (kept_count - 1), math.exp(-beta * (kept_count - 2)))
    return _scale_bound(
        max(widest_gap * shrink_factor, math.exp(-beta * (kept_count - 1))), range_width
    )


def compute_trimmed_mean(x: Any, trim: int, lower: float, upper: float) -> Fraction:
    """Return the mean without the ``trim`` smallest and the ``trim`` largest values.

    With n <= 2 trim nothing is left and the result is the midpoint of the bounds. The mean of
    whole numbers is exact: rounded, it would differ between neighbours by more than its
    sensitivity allows wherever that is small relative to the values.

    Parameters
    ----------
    x : array of numbers
    trim : int
        How many values to leave out at either end.
    lower, upper : float
        Public bounds of the values.

    Examples
    --------
    >>> compute_trimmed_mean([0, 4, 6, 11], 1, 0, 12), compute_trimmed_mean([], 0, 0, 9)
    (Fraction(5, 1), Fraction(9, 2))
    """
    sorted_values, m = _sort_values(x, lower, upper), _check_trim(trim)
    if sorted_values.size <= 2 * m:
        return (Fraction(lower) + Fraction(upper)) / 2
    kept_values = sorted_values[m : sorted_values.size - m]
    if np.asarray(x).dtype.kind in "iu" and max(abs(lower), abs(upper)) < 1 << 53:
        return Fraction(sum(kept_values.astype(np.int64).tolist()), kept_values.size)
    return Fraction(min(upper, float(lower + np.mean(kept_values - lower))))


def _bound_varying_size(unit_values: Values, beta: float, power: int) -> float:
    """Return max_k exp(-beta k) U_k for the mean (power 1) or the variance (power 2) on [0, 1].

    U_k = min(1, ext + k/(n-k))^power / max(n-k-1, 1), ext = max(1-mu, mu); 1 from k = n on.
    Within k steps there are at least n-k values and their mean moved by at most k/(n-k); adding or
    removing a value moves mean and variance by at most ext^power / (n-1). U_k(x) <= U_{k+1}(y) for
    neighbours x and y, as ext moves by at most 1/(n-1) and n by 1: hence smooth.
    """
    n = unit_values.size
    mean = float(unit_values.mean()) if n else 0.5
    ext = max(1 - mean, mean)

    def compute_bound(k: Integers, decay: Values) -> Values:
        min_size = np.maximum(n - k, 1)
        largest_change = np.minimum(1.0, ext + k / min_size) ** power / np.maximum(min_size - 1, 1)
        return decay * np.where(k < n, largest_change, 1.0)

    return _find_decayed_maximum(compute_bound, beta, n + 1)


def _make_variance_moves(unit_values: Values) -> BoundFunction:
    """Return A^k n^2 / (n-1) as a function of k, for the half of the moves that want a low mean.

    Moving y to z beside the others O changes the variance by
    ((n-1)/n^2) |(z-mu)^2 - (y-mu)^2|, mu the mean of O. For a given y it is largest with z on a
    bound or z = mu, and with mu as low (here) or as high (the mirror image) as k replacements
    allow: the smallest values stay, the others are replaced by the bound. P_r is the sum of the
    r smallest.
    """
    n = unit_values.size
    other_count = max(n - 1, 1)
    low_means = np.concatenate(([0.0], np.cumsum(unit_values))) / other_count  # P_r / (n-1)
    slope = (n + 1) / other_count

    def compute_moves(k: Integers, decay: Values) -> Values:
        mean_after = low_means[np.maximum(n - k - 1, 0)]
        # y is a replacement at the mean of the others; it moves to the bound 1
        move_sizes = np.where(k > 0, (1 - low_means[n - k]) ** 2, 0.0)
        # y is the largest original and moves to the mean of the others
        np.maximum(
            move_sizes, np.where(k < n, (unit_values[-1] - mean_after) ** 2, 0.0), out=move_sizes
        )
        move_sizes *= decay
        # y is one of the n-k smallest originals and moves to the bound 1, by
        # (1-y)(1+y-2 lo), lo = (P_{n-k} - y)/(n-1): concave in y, so next to its vertex. A larger y
        # does no better than x_{n-k}: its lo is the same, and above lo the change falls in y. As
        # it is at most (1-lo)^2, few k can matter.
        open_steps = np.flatnonzero((k < n) & (decay * (1 - mean_after) ** 2 > move_sizes.max()))
        line_start = 1 - 2 * low_means[n - k[open_steps]]
        vertex_index = np.searchsorted(unit_values, (slope - line_start) / (2 * slope))
        for candidate_index in (vertex_index - 1, vertex_index):
            y = unit_values[np.clip(candidate_index, 0, n - k[open_steps] - 1)]
            decayed_change = decay[open_steps] * (1 - y) * (line_start + slope * y)
            move_sizes[open_steps] = np.maximum(move_sizes[open_steps], decayed_change)
        return move_sizes

    return compute_moves


def _find_widest_gap(low: Values, high: Values, beta: float) -> float:
    """Return the largest exp(-beta (a+b-1)) (high_b - low_a) over a + b >= 1.

    ``low`` falls, ``high`` rises, all in [0, 1]. Row a's best column moves left as a grows: for
    b < b' the difference exp(-beta b) (high_b - y) - exp(-beta b') (high_b' - y) falls in y.
    So a row between two others searches only between their best columns: O(m log m) altogether.
    """
    decay_factors = np.exp(-beta * np.arange(low.size))
    best_gap = max(  # a = 0, and b = 0
        float(np.max(decay_factors[:-1] * (high[1:] - low[0]))),
        float(np.max(decay_factors[:-1] * (high[0] - low[1:]))),
    )
    if best_gap > 0:  # beyond this many steps even the whole range, 1, is not worth as much
        step_limit = int(min(low.size, 2 - math.log(best_gap) / beta))
        low, high, decay_factors = low[:step_limit], high[:step_limit], decay_factors[:step_limit]
    row_count = low.size  # 1 .. rows-1 are to do, between two that only limit the search
    best_columns, widest_gaps = np.zeros(row_count + 1, np.int64), np.ones(row_count + 1)
    best_columns[0] = high.size - 1
    rows_above, rows_below = np.array([0]), np.array([row_count])
    while rows_above.size:
        middle_rows = (rows_above + rows_below) // 2
        first_columns = best_columns[rows_below]
        column_counts = best_columns[rows_above] - first_columns + 1
        segment_starts = np.cumsum(column_counts) - column_counts
        column_indices = np.arange(int(column_counts.sum())) - np.repeat(
            segment_starts - first_columns, column_counts
        )
        decayed_gaps = decay_factors[column_indices] * (
            high[column_indices] - np.repeat(low[middle_rows], column_counts)
        )
        widest_gaps[middle_rows] = np.maximum.reduceat(decayed_gaps, segment_starts)
        column_indices[decayed_gaps < np.repeat(widest_gaps[middle_rows], column_counts)] = (
            high.size
        )
        best_columns[middle_rows] = np.minimum.reduceat(column_indices, segment_starts)
        best_gap = max(
            best_gap, float(np.max(decay_factors[middle_rows - 1] * widest_gaps[middle_rows]))
        )
        rows_above, rows_below = (
            np.concatenate([rows_above, middle_rows]),
            np.concatenate([middle_rows, rows_below]),
        )
        # the widest gap grows with a: rows in between have at most that of the one below
        is_promising = (rows_below - rows_above > 1) & (
            decay_factors[rows_above] * widest_gaps[rows_below] > best_gap
        )
        rows_above, rows_below = rows_above[is_promising], rows_below[is_promising]
    return best_gap


def _find_decayed_maximum(bound: BoundFunction, beta: float, steps: int) -> float:
    """Return the largest of ``bound(k, exp(-beta k))``, exp(-beta k) at most, over 0 <= k < steps.

    It stops where exp(-beta k) alone can win no more, so that nothing is lost.
    """
    best_value, first_step, chunk_size = 0.0, 0, FIRST_CHUNK
    while first_step < steps and math.exp(-beta * first_step) > best_value:
        k = np.arange(first_step, min(first_step + chunk_size, steps))
        best_value = max(best_value, float(np.max(bound(k, np.exp(-beta * k)))))
        first_step, chunk_size = first_step + chunk_size, min(2 * chunk_size, MAX_CHUNK)
    return best_value


def _move_to_unit(
    x: Any, lower: float, upper: float, beta: float, neighbours: str
) -> tuple[Values, int, float]:
    """Return the sorted values moved to [0, 1], how many they are, and upper - lower."""
    if not (isinstance(beta, int | float | np.floating) and 0 < beta < math.inf):
        raise PrivacyError(f"beta is {beta!r}; smoothness needs a finite number above 0")
    if neighbours not in get_args(Neighbours):
        raise PrivacyError(f"neighbours={neighbours!r}; write one of {get_args(Neighbours)}")
    sorted_values, range_width = _sort_values(x, lower, upper), float(upper - lower)
    return np.clip((sorted_values - lower) / range_width, 0.0, 1.0), sorted_values.size, range_width


def _sort_values(x: Any, lower: float, upper: float) -> Values:
    if not -math.inf < lower < upper < math.inf or math.isinf(upper - lower):
        raise SchemaError(f"bounds [{lower}, {upper}]; give two finite numbers, lower < upper")
    values = np.asarray(x, np.float64)
    if values.ndim != 1:
        raise SchemaError(f"x has shape {values.shape}; give the values of one class, (n,)")
    if values.size and not (lower <= values.min() and values.max() <= upper):  # NaN is neither
        outside_values = values[~((lower <= values) & (values <= upper))]
        raise SchemaError(
            f"x holds {outside_values[0]}, outside the public bounds [{lower}, {upper}]; clip "
            "the values or widen the schema, and handle missing ones first"
        )
    return np.sort(values) if np.any(values[1:] < values[:-1]) else values


def _check_trim(trim: int) -> int:
    trim_count = operator.index(trim)
    if trim_count < 0:
        raise SchemaError(f"trim is {trim_count}; leave out zero or more values at each end")
    return trim_count


def _scale_bound(unit_bound: float, factor: float) -> float:
    return max(float(unit_bound) * factor, MIN_BOUND)
