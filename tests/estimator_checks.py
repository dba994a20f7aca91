"""The checks that scikit-learn has for estimators."""

from __future__ import annotations

import warnings
from typing import Any

from sklearn.utils.estimator_checks import check_estimator


def list_failed_checks(estimator: Any) -> set[str]:
    """The checks of scikit-learn that an estimator fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None)
    return {check["check_name"] for check in results if check["status"] == "failed"}
