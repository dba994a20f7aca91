"""scikit-learn estimators, one a trust model; all of them predict in the same way."""

from discreet.estimators.mixed import MixedNB

__all__ = ["MixedNB"]
