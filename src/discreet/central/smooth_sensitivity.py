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
from discreet.privacy import Neighbours

__all__ = ["smooth_mean", "smooth_trimmed_mean", "smooth_variance", "trimmed_mean"]

Values = Floats
Bound = Callable[[Integers, Values], Values]

SMALLEST = sys.float_info.min
FIRST, MOST = 64, 1 << 16  # distances looked at in one go: few at first, then as many as stay fast


def smooth_mean(
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
    >>> smooth_mean([4.0, 5.0, 6.0, 5.0], 0.0, 10.0, 1.0, neighbours="replace")
    1.5
    """
    t, n, span = _unit(x, lower, upper, beta, neighbours)
    if n and neighbours == "replace":
        # One step away some value may be at a bound, and move from there to the other one.
        return _scaled(max(1 - t[0], t[-1], math.exp(-beta)) / n, span)
    return _scaled(_varying_size(t, beta, power=1), span)


def smooth_variance(
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
    >>> smooth_variance([0.0, 0.0], 0.0, 1.0, 1.0, neighbours="replace")
    0.25
    """
    t, n, span = _unit(x, lower, upper, beta, neighbours)
    if n and neighbours == "replace":
        below, above = _variance_moves(t), _variance_moves(1 - t[::-1])
        largest = _decayed(lambda k, d: np.maximum(below(k, d), above(k, d)), beta, n + 1)
        return _scaled(largest * (n - 1) / n**2, span**2)
    return _scaled(_varying_size(t, beta, power=2), span**2)


def smooth_trimmed_mean(
    x: Any,
    trim: int,
    lower: float,
    upper: float,
    beta: float,
    *,
    neighbours: Neighbours = "add-remove",
) -> float:
    """Return a beta-smooth bound on the sensitivity of :func:`trimmed_mean`.

    Parameters
    ----------
    x, lower, upper, beta, neighbours
        Those of :func:`smooth_mean`.
    trim : int
        How many values are left out at each end; it must not depend on the values. With
        n <= 2 trim the result is upper - lower.

    Examples
    --------
    >>> smooth_trimmed_mean([3.0, 4.0, 4.0, 5.0], 1, 0.0, 8.0, 3.0, neighbours="replace")
    0.5
    """
    t, n, span = _unit(x, lower, upper, beta, neighbours)
    m = _trim(trim)
    kept = n - 2 * m
    if kept < 1 or (kept == 1 and neighbours == "add-remove"):
        return span
    # max_k exp(-beta k) G(k), G(k) = max over 0 <= l <= k+1 of x_{n-m+1+k-l} - x_{m+1-l}
    # (Bun and Steinke 2019), as a gap between a = l steps down from x_{m+1}, b = k+1-l up from
    # x_{n-m}, padded with the bounds.
    gap = _widest_gap(np.append(t[m::-1], 0.0), np.append(t[n - m - 1 :], 1.0), beta)
    if neighbours == "replace":
        return _scaled(gap / kept, span)
    # U_k = max(G(a) / max(1, kept-1-(k-a)) over a <= k, R [kept-k <= 1]): of k = a + j steps, j
    # only shrink the number of values kept, so the maximum splits into one over a and one over j;
    # exp(-beta j) / (kept-1-j) is log-convex in j and largest at an end, j = 0 or kept - 2.
    shrunk = max(1 / (kept - 1), math.exp(-beta * (kept - 2)))
    return _scaled(max(gap * shrunk, math.exp(-beta * (kept - 1))), span)


def trimmed_mean(x: Any, trim: int, lower: float, upper: float) -> Fraction:
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
    >>> trimmed_mean([0, 4, 6, 11], 1, 0, 12), trimmed_mean([], 0, 0, 9)
    (Fraction(5, 1), Fraction(9, 2))
    """
    values, m = _sorted(x, lower, upper), _trim(trim)
    if values.size <= 2 * m:
        return (Fraction(lower) + Fraction(upper)) / 2
    kept = values[m : values.size - m]
    if np.asarray(x).dtype.kind in "iu" and max(abs(lower), abs(upper)) < 1 << 53:
        return Fraction(sum(kept.astype(np.int64).tolist()), kept.size)
    return Fraction(min(upper, float(lower + np.mean(kept - lower))))


def _varying_size(t: Values, beta: float, power: int) -> float:
    """Return max_k exp(-beta k) U_k for the mean (power 1) or the variance (power 2) on [0, 1].

    U_k = min(1, ext + k/(n-k))^power / max(n-k-1, 1), ext = max(1-mu, mu); 1 from k = n on.
    Within k steps there are at least n-k values and their mean moved by at most k/(n-k); adding or
    removing a value moves mean and variance by at most ext^power / (n-1). U_k(x) <= U_{k+1}(y) for
    neighbours x and y, as ext moves by at most 1/(n-1) and n by 1: hence smooth.
    """
    n = t.size
    mean = float(t.mean()) if n else 0.5
    ext = max(1 - mean, mean)

    def bound(k: Integers, decay: Values) -> Values:
        left = np.maximum(n - k, 1)
        reach = np.minimum(1.0, ext + k / left) ** power / np.maximum(left - 1, 1)
        return decay * np.where(k < n, reach, 1.0)

    return _decayed(bound, beta, n + 1)


def _variance_moves(t: Values) -> Bound:
    """Return A^k n^2 / (n-1) as a function of k, for the half of the moves that want a low mean.

    Moving y to z beside the others O changes the variance by
    ((n-1)/n^2) |(z-mu)^2 - (y-mu)^2|, mu the mean of O. For a given y it is largest with z on a
    bound or z = mu, and with mu as low (here) or as high (the mirror image) as k replacements
    allow: the smallest values stay, the others are replaced by the bound. P_r is the sum of the
    r smallest.
    """
    n = t.size
    others = max(n - 1, 1)
    means = np.concatenate(([0.0], np.cumsum(t))) / others  # P_r / (n-1)
    slope = (n + 1) / others

    def moves(k: Integers, decay: Values) -> Values:
        after = means[np.maximum(n - k - 1, 0)]
        # y is a replacement at the mean of the others; it moves to the bound 1
        sizes = np.where(k > 0, (1 - means[n - k]) ** 2, 0.0)
        # y is the largest original and moves to the mean of the others
        np.maximum(sizes, np.where(k < n, (t[-1] - after) ** 2, 0.0), out=sizes)
        sizes *= decay
        # y is one of the n-k smallest originals and moves to the bound 1, by
        # (1-y)(1+y-2 lo), lo = (P_{n-k} - y)/(n-1): concave in y, so next to its vertex. A larger y
        # does no better than x_{n-k}: its lo is the same, and above lo the change falls in y. As
        # it is at most (1-lo)^2, few k can matter.
        open_ = np.flatnonzero((k < n) & (decay * (1 - after) ** 2 > sizes.max()))
        start = 1 - 2 * means[n - k[open_]]
        right = np.searchsorted(t, (slope - start) / (2 * slope))
        for i in (right - 1, right):
            y = t[np.clip(i, 0, n - k[open_] - 1)]
            change = decay[open_] * (1 - y) * (start + slope * y)
            sizes[open_] = np.maximum(sizes[open_], change)
        return sizes

    return moves


def _widest_gap(low: Values, high: Values, beta: float) -> float:
    """Return the largest exp(-beta (a+b-1)) (high_b - low_a) over a + b >= 1.

    ``low`` falls, ``high`` rises, all in [0, 1]. Row a's best column moves left as a grows: for
    b < b' the difference exp(-beta b) (high_b - y) - exp(-beta b') (high_b' - y) falls in y.
    So a row between two others searches only between their best columns: O(m log m) altogether.
    """
    decay = np.exp(-beta * np.arange(low.size))
    best = max(  # a = 0, and b = 0
        float(np.max(decay[:-1] * (high[1:] - low[0]))),
        float(np.max(decay[:-1] * (high[0] - low[1:]))),
    )
    if best > 0:  # beyond this many steps even the whole range, 1, is not worth as much
        reach = int(min(low.size, 2 - math.log(best) / beta))
        low, high, decay = low[:reach], high[:reach], decay[:reach]
    rows = low.size  # 1 .. rows-1 are to do, between two that only limit the search
    column, widest = np.zeros(rows + 1, np.int64), np.ones(rows + 1)
    column[0] = high.size - 1
    above, below = np.array([0]), np.array([rows])
    while above.size:
        row = (above + below) // 2
        first = column[below]
        counts = column[above] - first + 1
        starts = np.cumsum(counts) - counts
        b = np.arange(int(counts.sum())) - np.repeat(starts - first, counts)
        gaps = decay[b] * (high[b] - np.repeat(low[row], counts))
        widest[row] = np.maximum.reduceat(gaps, starts)
        b[gaps < np.repeat(widest[row], counts)] = high.size
        column[row] = np.minimum.reduceat(b, starts)
        best = max(best, float(np.max(decay[row - 1] * widest[row])))
        above, below = np.concatenate([above, row]), np.concatenate([row, below])
        # the widest gap grows with a: rows in between have at most that of the one below
        promising = (below - above > 1) & (decay[above] * widest[below] > best)
        above, below = above[promising], below[promising]
    return best


def _decayed(bound: Bound, beta: float, steps: int) -> float:
    """Return the largest of ``bound(k, exp(-beta k))``, exp(-beta k) at most, over 0 <= k < steps.

    It stops where exp(-beta k) alone can win no more, so that nothing is lost.
    """
    best, start, size = 0.0, 0, FIRST
    while start < steps and math.exp(-beta * start) > best:
        k = np.arange(start, min(start + size, steps))
        best = max(best, float(np.max(bound(k, np.exp(-beta * k)))))
        start, size = start + size, min(2 * size, MOST)
    return best


def _unit(
    x: Any, lower: float, upper: float, beta: float, neighbours: str
) -> tuple[Values, int, float]:
    """Return the sorted values moved to [0, 1], how many they are, and upper - lower."""
    if not (isinstance(beta, int | float | np.floating) and 0 < beta < math.inf):
        raise PrivacyError(f"beta is {beta!r}; smoothness needs a finite number above 0")
    if neighbours not in get_args(Neighbours):
        raise PrivacyError(f"neighbours={neighbours!r}; write one of {get_args(Neighbours)}")
    values, span = _sorted(x, lower, upper), float(upper - lower)
    return np.clip((values - lower) / span, 0.0, 1.0), values.size, span


def _sorted(x: Any, lower: float, upper: float) -> Values:
    if not -math.inf < lower < upper < math.inf or math.isinf(upper - lower):
        raise SchemaError(f"bounds [{lower}, {upper}]; give two finite numbers, lower < upper")
    values = np.asarray(x, np.float64)
    if values.ndim != 1:
        raise SchemaError(f"x has shape {values.shape}; give the values of one class, (n,)")
    if values.size and not (lower <= values.min() and values.max() <= upper):  # NaN is neither
        outside = values[~((lower <= values) & (values <= upper))]
        raise SchemaError(
            f"x holds {outside[0]}, outside the public bounds [{lower}, {upper}]; clip the values "
            "or widen the schema, and treat missing ones before"
        )
    return np.sort(values) if np.any(values[1:] < values[:-1]) else values


def _trim(trim: int) -> int:
    m = operator.index(trim)
    if m < 0:
        raise SchemaError(f"trim is {m}; leave out zero or more values at each end")
    return m


def _scaled(unit: float, factor: float) -> float:
    return max(float(unit) * factor, SMALLEST)
