"""scikit-learn estimators, one a trust model; all of them predict in the same way."""

from discreet.estimators.central import CentralNB
from discreet.estimators.federated import FederatedNB
from discreet.estimators.local import LocalNB
from discreet.estimators.mixed import MixedNB
from discreet.estimators.survey import SurveyNB

__all__ = ["CentralNB", "FederatedNB", "LocalNB", "MixedNB", "SurveyNB"]
