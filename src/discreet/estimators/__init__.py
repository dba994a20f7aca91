"""scikit-learn estimators, one a trust model; all of them predict in the same way."""

from discreet.estimators.central import CentralNB
from discreet.estimators.local import LocalNB
from discreet.estimators.mixed import MixedNB

__all__ = ["CentralNB", "LocalNB", "MixedNB"]
