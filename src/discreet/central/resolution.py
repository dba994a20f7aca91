"""How finely numeric features are cut: from public bounds and from what is already private.

Bins are of equal width and, where there is data enough, ever finer towards zero. A quantity with
the public bounds 0 and 1000 often has nearly all of its values near 0, where bins of equal width
would see one lump; the extra cells near zero cost a little noise and keep such features. Nothing
here looks at the data.
"""

from __future__ import annotations

import math

from discreet.encoding import equal_width
from discreet.schema import Numeric

__all__ = ["bins_for", "cut_points", "cuttings", "towards_zero"]

FEWEST, MOST = 8, 64
FINER_FROM = 2.0
"""People a class and unit of noise from which on cells near zero are worth their noise."""
FACTOR, STEPS = 4, 5
"""The bin next to zero is cut into STEPS + 1, each FACTOR times as wide as the next."""


def bins_for(u: float) -> int:
    """Number of equal-width bins: 4 u^0.3 as a power of two, 8 to 64.

    Parameters
    ----------
    u : float
        People a class and unit of Laplace noise, from a private estimate of their number.

    >>> [bins_for(u) for u in (0, 1, 10, 100, 10_000, 1_000_000)]
    [8, 8, 8, 16, 64, 64]
    """
    if u <= 1:
        return FEWEST
    return int(min(max(2 ** round(math.log2(4 * u**0.3)), FEWEST), MOST))


def cut_points(feature: Numeric, u: float) -> list[float]:
    """Inner edges of the bins of a feature.

    >>> cut_points(Numeric("age", 20, 100), 1.0)
    [30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0]
    """
    return _points(feature, bins_for(u), u >= FINER_FROM)


def cuttings(feature: Numeric) -> list[list[float]]:
    """Ways to cut a feature that a private choice may try: rough, as usual, and fine near zero.

    >>> [len(points) + 1 for points in cuttings(Numeric("age", 20, 100))]
    [4, 8, 16]
    """
    ways = [_points(feature, 4, False), _points(feature, 8, False), _points(feature, 16, True)]
    return [way for i, way in enumerate(ways) if way not in ways[:i]]


def _points(feature: Numeric, bins: int, finer: bool) -> list[float]:
    edges = equal_width(feature, bins)
    near = towards_zero(feature, edges[1] - edges[0]) if finer else []
    return sorted({*edges[1:-1], *near})


def towards_zero(feature: Numeric, width: float) -> list[float]:
    """Cut points that near zero in geometric steps, from a bin width on, inside the bounds.

    >>> towards_zero(Numeric("income", 0, 4096), 1024)
    [256.0, 64.0, 16.0, 4.0, 1.0]
    >>> towards_zero(Numeric("length", 8, 72), 8)
    []
    """
    points: list[float] = []
    for sign in (1, -1):
        near = feature.lower if sign > 0 else -feature.upper
        far = feature.upper if sign > 0 else -feature.lower
        if far <= 0:
            continue
        start = width + max(near, 0.0)
        for step in range(1, STEPS + 1):
            size = start / FACTOR**step
            size = float(math.ceil(size)) if feature.integer else size
            if max(near, 0.0) < size < far:
                points.append(sign * size)
    return points
