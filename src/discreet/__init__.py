"""Naive Bayes classifiers trained under differential privacy: central, local, survey, federated.

The public names; each is imported when it is first used, so that ``import discreet`` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.exports import lazy_exports

__version__ = "0.1.0"

_EXPORTS = {
    "Categorical": "schema.schema",
    "Numeric": "schema.schema",
    "Schema": "schema.schema",
    "Guarantee": "privacy.guarantee",
    "Ledger": "privacy.ledger",
    "MemoryLedger": "privacy.ledger",
    "Statistics": "statistics.statistics",
    "estimate": "estimation",
    "NaiveBayesModel": "model",
    "CentralNB": "estimators.central",
    "FederatedNB": "estimators.federated",
    "LocalNB": "estimators.local",
    "MixedNB": "estimators.mixed",
    "SurveyNB": "estimators.survey",
    "CryptoRandom": "randomness",
    "SeededRandom": "randomness",
    "DiscreetError": "errors",
    "EstimationError": "errors",
    "FormatError": "errors",
    "MissingDependencyError": "errors",
    "PrivacyError": "errors",
    "PrivacyWarning": "errors",
    "SchemaError": "errors",
}

__all__ = [
    "Categorical",
    "CentralNB",
    "CryptoRandom",
    "DiscreetError",
    "EstimationError",
    "FederatedNB",
    "FormatError",
    "Guarantee",
    "Ledger",
    "LocalNB",
    "MemoryLedger",
    "MissingDependencyError",
    "MixedNB",
    "NaiveBayesModel",
    "Numeric",
    "PrivacyError",
    "PrivacyWarning",
    "Schema",
    "SchemaError",
    "SeededRandom",
    "Statistics",
    "SurveyNB",
    "__version__",
    "estimate",
]

if TYPE_CHECKING:
    from discreet.errors import (
        DiscreetError,
        EstimationError,
        FormatError,
        MissingDependencyError,
        PrivacyError,
        PrivacyWarning,
        SchemaError,
    )
    from discreet.estimation import estimate
    from discreet.estimators import CentralNB, FederatedNB, LocalNB, MixedNB, SurveyNB
    from discreet.model import NaiveBayesModel
    from discreet.privacy.guarantee import Guarantee
    from discreet.privacy.ledger import Ledger, MemoryLedger
    from discreet.randomness import CryptoRandom, SeededRandom
    from discreet.schema.schema import Categorical, Numeric, Schema
    from discreet.statistics.statistics import Statistics

__getattr__, __dir__ = lazy_exports(__name__, _EXPORTS)
