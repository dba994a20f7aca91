"""Sample size for a target precision, for every kind of collection."""

from __future__ import annotations

import math

from discreet.errors import EstimationError

__all__ = ["compute_required_respondents"]

MAX_RESPONDENTS = 10**15
"""Respondents beyond which a float no longer counts exactly enough."""


def compute_required_respondents(one_person_error: float, target_error: float) -> int:
    """Return the number of respondents for a target standard error.

    A standard error falls with the square root of the number of people.

    Parameters
    ----------
    one_person_error : float
        Standard error of an estimate from one person.
    target_error : float
        As a share, between 0 and 1.

    Examples
    --------
    >>> compute_required_respondents(0.5, 0.01)
    2500
    """
    if not 0 < target_error < 1:
        raise EstimationError(
            f"the wanted standard error is {target_error!r}; give a share between 0 and 1, such as "
            "0.01"
        )
    people = (
        (one_person_error / target_error) ** 2
        if one_person_error < 1e150 * target_error
        else math.inf
    )
    if not people <= MAX_RESPONDENTS:
        raise EstimationError(
            f"a standard error of {target_error:g} takes more than {MAX_RESPONDENTS:.0e} "
            "respondents; accept a larger one, or choose a larger theta or epsilon"
        )
    return max(1, math.ceil(people * (1 - 1e-12)))
