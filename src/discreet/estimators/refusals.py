"""What scikit-learn allows and no promise does, refused with the reason."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.arrays import Floats
from discreet.errors import PrivacyError
from discreet.estimators.base import read_prior

__all__ = ["RefusedError", "check_prior", "largest_weight"]


class RefusedError(PrivacyError, AttributeError):
    """A method that scikit-learn knows and that no promise allows."""


def largest_weight(
    weights: Floats | None, epsilon: float, max_weight: float | None
) -> float | None:
    """The public bound on the weights; None where there are none, or no promise."""
    if weights is None:
        return None
    if not np.any(weights > 0):
        raise PrivacyError("sample_weight is zero for every record; nothing can be learnt")
    if max_weight is None and epsilon == math.inf:
        return None
    if max_weight is None or not 0 < max_weight < math.inf:
        raise PrivacyError(
            "sample_weight without a public max_weight is refused: one person could change the "
            "result without limit; write max_weight=... with a bound you know"
        )
    if weights.max() > max_weight:
        raise PrivacyError(
            f"a weight of {weights.max():g} is above max_weight={max_weight:g}; clip the weights "
            "to the public bound"
        )
    return float(max_weight)


def check_prior(prior: Any, classes: int, codes: NDArray[np.int32] | None, epsilon: float) -> None:
    """Refuse a class prior that is none, or that was taken from the data.

    Parameters
    ----------
    prior : array of shape (classes,) or None
    classes : int
    codes : array of int or None
        Class indices of the training rows, where they are at hand.
    epsilon : float
    """
    given = read_prior(prior, classes)
    if given is None:
        return
    if codes is None or epsilon == math.inf:
        return
    found = np.bincount(codes, minlength=classes) / len(codes)
    if np.abs(found - given).max() < 0.5 / len(codes):
        raise PrivacyError(
            "class_prior equals the class frequencies of y, which are private; leave it out "
            "(the model learns them with noise), or give a prior known without the data"
        )
