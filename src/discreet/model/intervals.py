"""Intervals of shares: Wilson's, and the same for counts with known noise."""

from __future__ import annotations

import math

__all__ = ["Z95", "compute_wilson_interval", "solve_score_interval"]

Z95 = 1.959963984540054
"""Quantile of the standard normal for 95 % intervals."""


def compute_wilson_interval(hits: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of a share, 95 % by default; it stays inside [0, 1].

    (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n): Wilson 1927.

    Parameters
    ----------
    hits, trials : int
    z : float
        Quantile of the standard normal; 1.96, for 95 %, by default.

    Examples
    --------
    >>> low, high = compute_wilson_interval(81, 100)
    >>> round(low, 4), round(high, 4)
    (0.7222, 0.8749)
    """
    if trials <= 0:
        return 0.0, 1.0
    hit_share, z_term = hits / trials, z * z / trials
    centre_term = hit_share + z_term / 2
    half_width = z * math.sqrt(hit_share * (1 - hit_share) / trials + z_term / (4 * trials))
    low, high = (centre_term - half_width) / (1 + z_term), (centre_term + half_width) / (1 + z_term)
    # at the ends the formula is exact, its rounding is not
    return (0.0 if hits == 0 else low), (1.0 if hits == trials else high)


def solve_score_interval(
    part: float, whole: float, variance: tuple[float, float, float], z: float = Z95
) -> tuple[float, float]:
    """All shares t in [0, 1] that the estimate part / whole does not contradict.

    They solve (part - t whole)² <= z² (v0 + v1 t + v2 t²), where the right side is the variance of
    the left (Fieller 1954). Of counts without noise v1 = whole and v2 = -whole, which is Wilson's
    interval. Where noise drowns ``whole``, every share is possible.

    Parameters
    ----------
    part, whole : float
    variance : tuple of three floats
        Coefficients of the variance of part - t whole as a polynomial in t.
    z : float
        Quantile of the standard normal; 1.96, for 95 %, by default.

    Examples
    --------
    >>> low, high = solve_score_interval(81, 100, (0, 100, -100))
    >>> round(low, 4), round(high, 4)
    (0.7222, 0.8749)
    >>> solve_score_interval(81, 100, (3000, 100, 2900))  # noise with a deviation of 55
    (0.0, 1.0)
    """
    v0, v1, v2 = variance
    square_term = whole * whole - z * z * v2
    half_linear_term = part * whole + z * z * v1 / 2
    discriminant = half_linear_term**2 - square_term * (part * part - z * z * v0)
    if whole <= 0 or square_term <= 0 or discriminant < 0:
        return 0.0, 1.0
    low, high = (
        (half_linear_term + sign * math.sqrt(discriminant)) / square_term for sign in (-1, 1)
    )
    # where the estimate itself is outside, the nearest share is inside
    return min(1.0, max(0.0, low)), max(0.0, min(1.0, high))
