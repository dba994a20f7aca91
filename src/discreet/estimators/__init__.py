"""scikit-learn estimators, one per trust model; all of them predict in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazy_exports

_EXPORTS = {
    "CentralNB": "estimators.central",
    "FederatedNB": "estimators.federated",
    "LocalNB": "estimators.local",
    "MixedNB": "estimators.mixed",
    "SurveyNB": "estimators.survey",
}

__all__ = ["CentralNB", "FederatedNB", "LocalNB", "MixedNB", "SurveyNB"]

if TYPE_CHECKING:
    from discreet.estimators.central import CentralNB
    from discreet.estimators.federated import FederatedNB
    from discreet.estimators.local import LocalNB
    from discreet.estimators.mixed import MixedNB
    from discreet.estimators.survey import SurveyNB

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
