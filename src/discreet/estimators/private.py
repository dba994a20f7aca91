"""Base class of the private estimators: the data are read once, and charged before noise is drawn.

Every fit costs the people in it another epsilon, also when scikit-learn fits clones of an
estimator. With ``budget=`` each fit is charged to a ledger, which refuses a charge beyond its
budget. Without it, a fit of rows that an earlier fit in this process used warns with the
total (:mod:`discreet.estimators.fit_history`); that depends on the data, and stays in the warning.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import RefusedError, SchemaError
from discreet.estimators import sklearn_context
from discreet.estimators.base import CheckedParams, NaiveBayesEstimator, TrainingRows
from discreet.estimators.fit_history import (
    PROCESS_HISTORY,
    Hashes,
    PrivacySpend,
    current_history,
    hash_rows,
)
from discreet.model import NaiveBayesModel
from discreet.privacy.guarantee import Account, Guarantee, format_rounded_up, require_paid
from discreet.randomness import Random
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Statistics

__all__ = [
    "SIMULATION_ASSUMPTION",
    "ChargeCallback",
    "FitAccounting",
    "PrivateEstimator",
    "check_bins",
    "require_two_classes",
    "with_simulation_assumption",
]

ChargeCallback = Callable[[Guarantee], Account | None]
"""Charges a guarantee, or raises; called once, before the first noise is drawn. Returns the account
of the ledger that was charged, or None."""

SIMULATION_ASSUMPTION = (
    "each record is randomized on its owner's device; here one process simulates them"
)
"""Assumption of a guarantee whose randomizing devices were simulated in one process."""

MAX_REPORTED_EPSILON = Fraction(sys.float_info.max)
"""Largest total that a warning reports: sums beyond the largest double are cut to it."""


class FitAccounting:
    """Charges one fit to the ledger and adds the account to its guarantee.

    Parameters
    ----------
    estimator : PrivateEstimator
    params : mapping
        Its parameters.
    schema : Schema
        Of the rows.
    compute_hashes : callable
        Returns the hashes of the rows, for :class:`~discreet.estimators.fit_history.FitHistory`.
    data_source : str
        Whose data, for the ledger.
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        params: CheckedParams,
        schema: Schema,
        compute_hashes: Callable[[], Hashes],
        data_source: str,
    ) -> None:
        self.estimator_name, self.budget = type(estimator).__name__, params["budget"]
        self.schema, self.compute_hashes, self.data_source = schema, compute_hashes, data_source
        random_state = params["random_state"]
        self.is_simulated = (
            random_state.simulated if isinstance(random_state, Random) else random_state is not None
        )
        meta_estimators = sklearn_context.find_meta_estimators()
        self.preparation_reason = sklearn_context.find_data_dependence(estimator, meta_estimators)
        self.meta_estimators = meta_estimators
        self.row_hashes: Hashes | None = None
        self.paid_guarantee: Guarantee | None = None
        self.account: Account | None = None
        self.has_known_rows = False

    def charge_ledger(self, guarantee: Guarantee) -> Account | None:
        """Charge the ledger, if there is one, and warn about what voids the guarantee."""
        guarantee = guarantee.void_if(
            schema=self.schema,
            simulated=self.is_simulated,
            preparation_reason=self.preparation_reason,
        )
        if self.preparation_reason and guarantee.trust != "none":
            sklearn_context.warn_user(
                f"{self.estimator_name}: the promise is void: {self.preparation_reason}"
            )
        if guarantee.trust != "none":
            for remark in sklearn_context.list_remarks(
                self.meta_estimators, is_simulated=self.is_simulated
            ):
                sklearn_context.warn_user(remark)
        if not guarantee.simulated and math.isfinite(guarantee.epsilon):
            # before anything is paid, should a value be unreadable
            self.row_hashes = self.compute_hashes()
        if self.budget is not None:
            ledger_state = self.budget.charge(
                guarantee, f"{self.estimator_name}.fit", data_source=self.data_source
            )
            self.account = ledger_state.make_account(self.budget.path.name)
        self.paid_guarantee = guarantee
        return self.account

    def _warn_of_earlier_fits(self, group_spend: PrivacySpend) -> None:
        """Warn that rows were fitted before; only the warning says so, nothing that is released."""
        in_worker = multiprocessing.parent_process() is not None
        if in_worker and current_history.get() is PROCESS_HISTORY:
            sklearn_context.warn_user(
                f"{self.estimator_name} is fitted in a worker process, whose fits the process that "
                "started it does not count; give budget= a ledger, which all processes share"
            )
        self.has_known_rows = group_spend.fit_count > 1
        if self.has_known_rows:
            total_epsilon = float(min(group_spend.epsilon, MAX_REPORTED_EPSILON))
            total_delta = float(group_spend.delta)
            epsilon_range = (group_spend.min_epsilon, group_spend.max_epsilon)
            epsilon_texts = dict.fromkeys(map(format_rounded_up, epsilon_range))
            delta_text = f" and delta {format_rounded_up(total_delta)}" if total_delta else ""
            sklearn_context.warn_user(
                f"rows of this table were fitted before: epsilon {' to '.join(epsilon_texts)} "
                f"each, {group_spend.fit_count} fits, "
                f"{format_rounded_up(total_epsilon)}{delta_text} in total for the people in them; "
                "give budget= a ledger, which counts every fit and refuses to exceed its budget"
            )

    def make_guarantee(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of the release with the ledger's account; never above the charge."""
        paid_guarantee = require_paid(guarantee, self.paid_guarantee, self.estimator_name)
        if self.row_hashes is not None:  # recorded here: a fit that failed released nothing
            group_spend = current_history.get().add(self.row_hashes, paid_guarantee)
            if self.budget is None:
                self._warn_of_earlier_fits(group_spend)
        return replace(
            guarantee.void_if(preparation_reason=self.preparation_reason), account=self.account
        )


class PrivateEstimator(NaiveBayesEstimator, ABC):
    """Base class of the estimators whose fit has a privacy guarantee."""

    _needs_bounds = True  # noise needs bounds
    _partial_fit_refusal: ClassVar[str]
    """Why there is no ``partial_fit``, and what to do instead."""

    random_state: Any

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from records and their classes, one row per person.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)

        Returns
        -------
        self
        """
        return self._fit_table(X, y)

    def _fit_table(self, X: Any, y: Any, sample_weight: Any = None, persons: Any = None) -> Self:
        earlier_guarantee: Guarantee | None = getattr(self, "guarantee_", None)
        params = self._start_fit()
        training_rows = replace(self._read_table(X, y, params, sample_weight), persons=persons)
        if params["schema"] is None and not self._is_exact:
            sklearn_context.warn_user(
                "no schema was given: bounds, categories and classes were taken from the data and "
                f"are not protected by epsilon; write {type(self).__name__}(schema=...)"
            )
        data_source = f"rows with {', '.join(training_rows.schema.names[:3])}" + ", …" * (
            len(training_rows.columns) > 3
        )
        accounting = FitAccounting(
            self,
            params,
            training_rows.schema,
            lambda: _hash_training_rows(training_rows),
            data_source,
        )
        release = self._compute_release(training_rows, params, accounting.charge_ledger)
        return self._finish_fit(
            training_rows.schema, training_rows.classes, release, accounting, earlier_guarantee
        )

    def _finish_fit(
        self,
        schema: Schema,
        classes: NDArray[Any],
        release: Statistics | NaiveBayesModel,
        accounting: FitAccounting,
        earlier_guarantee: Guarantee | None,
    ) -> Self:
        release = replace(release, guarantee=accounting.make_guarantee(release.guarantee))
        is_accounted = accounting.budget is not None or accounting.has_known_rows
        if (
            earlier_guarantee is not None
            and earlier_guarantee.is_private
            and release.guarantee.is_private
            and not is_accounted
        ):
            sklearn_context.warn_user(
                "this estimator was fitted before: if any person is in both tables, the budgets "
                f"of both fits add up for them ({format_rounded_up(earlier_guarantee.epsilon)} + "
                f"{format_rounded_up(release.guarantee.epsilon)})"
            )
        return self._set_fitted(schema, classes, release)

    @abstractmethod
    def _compute_release(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics | NaiveBayesModel:
        """Compute what this trust model releases: statistics, or a model where nobody sees them.

        Calls ``charge`` with what it is about to promise, before it draws anything.
        """

    @property
    def _is_exact(self) -> bool:
        """Whether epsilon is infinite, so that no noise is added; works on unchecked parameters."""
        epsilon = getattr(self, "epsilon", None)
        return isinstance(epsilon, (float, np.floating)) and bool(epsilon == math.inf)

    @property
    def partial_fit(self) -> Any:
        """Refused: every further look at the same people costs another epsilon."""
        raise RefusedError(f"{type(self).__name__} has no partial_fit: {self._partial_fit_refusal}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._is_exact and self.random_state is None
        return tags


def _hash_training_rows(training_rows: TrainingRows) -> Hashes:
    """Hashes of the rows and, where a person may have several, of the persons."""
    row_count = len(training_rows.class_codes)
    row_hashes = hash_rows(training_rows.columns, row_count)
    if training_rows.persons is None:
        return row_hashes
    return np.union1d(row_hashes, hash_rows({"": training_rows.persons}, row_count))


def with_simulation_assumption(guarantee: Guarantee, assumption: str) -> Guarantee:
    """The guarantee of a fit that simulates all parties, with that assumption first."""
    if math.isinf(guarantee.epsilon):
        return guarantee
    return replace(guarantee, assumptions=(assumption, *guarantee.assumptions))


def require_two_classes(schema: Schema) -> None:
    """Refuse a schema with a single class: there is nothing to ask."""
    if len(schema.classes) < 2:
        raise SchemaError(
            f"{schema.target} has only one class, so there is nothing to ask anyone; name all "
            "classes in the schema"
        )


def check_bins(params: CheckedParams, schema: Schema) -> None:
    """Refuse bins for unknown or non-numeric features."""
    bins = params.get("bins")
    numeric_names = [feature.name for feature in schema.features if isinstance(feature, Numeric)]
    for feature_name in bins if isinstance(bins, Mapping) else ():
        if feature_name not in numeric_names:
            problem = (
                "not a number" if feature_name in schema.names else "not a feature of the schema"
            )
            raise SchemaError(
                f"bins: {feature_name!r} is {problem}; the numeric features are "
                f"{', '.join(numeric_names) or 'none'}"
            )
