"""Sample size for a target precision, for every kind of collection."""

from __future__ import annotations

import math

from discreet.errors import EstimationError

__all__ = ["respondents_for"]

MOST = 10**15


def respondents_for(error_of_one: float, wanted: float) -> int:
    """Return the number of respondents for a target standard error.

    A standard error falls with the square root of the number of people.

    Parameters
    ----------
    error_of_one : float
        Standard error of an estimate from one person.
    wanted : float
        As a share, between 0 and 1.

    Examples
    --------
    >>> respondents_for(0.5, 0.01)
    2500
    """
    if not 0 < wanted < 1:
        raise EstimationError(
            f"the wanted standard error is {wanted!r}; give a share between 0 and 1, such as 0.01"
        )
    people = (error_of_one / wanted) ** 2 if error_of_one < 1e150 * wanted else math.inf
    if not people <= MOST:
        raise EstimationError(
            f"a standard error of {wanted:g} takes more than {MOST:.0e} respondents; accept a "
            "larger one, or choose a larger theta or epsilon"
        )
    return max(1, math.ceil(people * (1 - 1e-12)))
