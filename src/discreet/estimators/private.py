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
from discreet.estimators import surroundings
from discreet.estimators.base import Given, NaiveBayesEstimator, Rows
from discreet.estimators.fit_history import (
    PROCESS_HISTORY,
    Hashes,
    PrivacySpend,
    current_history,
    hash_rows,
)
from discreet.model import NaiveBayesModel
from discreet.privacy import Account, Guarantee, require_paid, rounded_up
from discreet.randomness import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics

__all__ = ["Pay", "PrivateEstimator", "Till", "check_bins", "kept", "two_classes"]

Pay = Callable[[Guarantee], Account | None]
"""Charges a guarantee, or raises; called once, before the first noise is drawn. Returns the account
of the ledger that was charged, or None."""

MOST = Fraction(sys.float_info.max)
"""Largest total that a warning reports: sums beyond the largest double are cut to it."""


class Till:
    """Charges one fit to the ledger and adds the account to its guarantee.

    Parameters
    ----------
    estimator : PrivateEstimator
    given : mapping
        Its parameters.
    schema : Schema
        Of the rows.
    rows : callable
        Returns the hashes of the rows, for :class:`~discreet.estimators.fit_history.FitHistory`.
    whose : str
        Whose data, for the ledger.
    """

    def __init__(
        self,
        estimator: PrivateEstimator,
        given: Given,
        schema: Schema,
        rows: Callable[[], Hashes],
        whose: str,
    ) -> None:
        self.name, self.budget, self.whose = type(estimator).__name__, given["budget"], whose
        self.schema, self.rows = schema, rows
        state = given["random_state"]
        self.simulated = state.simulated if isinstance(state, Random) else state is not None
        around = surroundings.callers()
        self.prepared = surroundings.learnt_before(estimator, around)
        self.around = around
        self.hashes: Hashes | None = None
        self.paid: Guarantee | None = None
        self.account: Account | None = None
        self.recognised = False

    def pay(self, promise: Guarantee) -> Account | None:
        """Charge the ledger, if there is one, and warn about what voids the guarantee."""
        promise = promise.under(
            schema=self.schema, simulated=self.simulated, prepared=self.prepared
        )
        if self.prepared and promise.trust != "none":
            surroundings.warn(f"{self.name}: the promise is void: {self.prepared}")
        if promise.trust != "none":
            for remark in surroundings.remarks(self.around, simulated=self.simulated):
                surroundings.warn(remark)
        if not promise.simulated and math.isfinite(promise.epsilon):
            self.hashes = self.rows()  # before anything is paid, should a value be unreadable
        if self.budget is not None:
            spending = self.budget.charge(promise, f"{self.name}.fit", who=self.whose)
            self.account = spending.account(self.budget.path.name)
        self.paid = promise
        return self.account

    def _note(self, paid: Guarantee) -> None:
        """Record the release in the fit history; a fit that failed released nothing."""
        if self.hashes is not None:
            spend = current_history().add(self.hashes, paid)
            if self.budget is None:
                self._warn_of_earlier_fits(spend)

    def _warn_of_earlier_fits(self, spend: PrivacySpend) -> None:
        """Warn that rows were fitted before; only the warning says so, nothing that is released."""
        in_worker = multiprocessing.parent_process() is not None
        if in_worker and current_history() is PROCESS_HISTORY:
            surroundings.warn(
                f"{self.name} is fitted in a worker process, whose fits the process that "
                "started it does not count; give budget= a ledger, which all processes share"
            )
        self.recognised = spend.fits > 1
        if self.recognised:
            epsilon, delta = float(min(spend.epsilon, MOST)), float(spend.delta)
            each = dict.fromkeys((rounded_up(spend.least), rounded_up(spend.most)))
            also = f" and delta {rounded_up(delta)}" if delta else ""
            surroundings.warn(
                f"rows of this table were fitted before: epsilon {' to '.join(each)} each, "
                f"{spend.fits} fits, {rounded_up(epsilon)}{also} in total for the people in them; "
                "give budget= a ledger, which counts every fit and refuses to exceed its budget"
            )

    def stated(self, promise: Guarantee) -> Guarantee:
        """The guarantee of the release with the ledger's account; never above the charge."""
        self._note(require_paid(promise, self.paid, self.name))
        return replace(promise.under(prepared=self.prepared), account=self.account)


class PrivateEstimator(NaiveBayesEstimator, ABC):
    """Base class of the estimators whose fit has a privacy guarantee."""

    _bounded = True  # noise needs bounds
    _once: ClassVar[str]
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
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        given, earlier = self._begin()
        rows = self._read(X, y, given, sample_weight)
        if given["schema"] is None and not self._exact:
            surroundings.warn(
                "no schema was given: bounds, categories and classes were taken from the data and "
                f"are not protected by epsilon; write {type(self).__name__}(schema=...)"
            )
        count = len(rows.codes)
        whose = f"rows with {', '.join(rows.schema.names[:3])}" + ", …" * (len(rows.columns) > 3)
        till = Till(self, given, rows.schema, lambda: hash_rows(rows.columns, count), whose)
        found = self._train(rows, given, till.pay)
        return self._end(rows.schema, rows.classes, found, till, earlier)

    def _begin(self) -> tuple[Given, Guarantee | None]:
        """Check the parameters and clear the earlier fit; returns its guarantee."""
        given = self._checked()
        earlier: Guarantee | None = getattr(self, "guarantee_", None)
        self._forget()
        return given, earlier

    def _end(
        self,
        schema: Schema,
        classes: NDArray[Any],
        found: Statistics | NaiveBayesModel,
        till: Till,
        earlier: Guarantee | None,
    ) -> Self:
        found = replace(found, guarantee=till.stated(found.guarantee))
        known = till.budget is not None or till.recognised
        if earlier is not None and earlier.private and found.guarantee.private and not known:
            surroundings.warn(
                "this estimator was fitted before: if any person is in both tables, the budgets "
                f"of both fits add up for them ({rounded_up(earlier.epsilon)} + "
                f"{rounded_up(found.guarantee.epsilon)})"
            )
        return self._learnt(schema, classes, found)

    @abstractmethod
    def _train(self, rows: Rows, given: Given, pay: Pay) -> Statistics | NaiveBayesModel:
        """Compute what this trust model releases: statistics, or a model where nobody sees them.

        Calls ``pay`` with what it is about to promise, before it draws anything.
        """

    @property
    def _exact(self) -> bool:
        """Whether epsilon is infinite, so that no noise is added; works on unchecked parameters."""
        epsilon = getattr(self, "epsilon", None)
        return isinstance(epsilon, (float, np.floating)) and bool(epsilon == math.inf)

    @property
    def partial_fit(self) -> Any:
        """Refused: every further look at the same people costs another epsilon."""
        raise RefusedError(f"{type(self).__name__} has no partial_fit: {self._once}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._exact and self.random_state is None
        return tags


def kept(promise: Guarantee, rests: str) -> Guarantee:
    """The guarantee of a fit that simulates all parties, with that assumption first."""
    if math.isinf(promise.epsilon):
        return promise
    return replace(promise, assumptions=(rests, *promise.assumptions))


def two_classes(schema: Schema) -> None:
    """Refuse a schema with a single class: there is nothing to ask."""
    if len(schema.classes) < 2:
        raise SchemaError(
            f"{schema.target} has only one class, so there is nothing to ask anyone; name all "
            "classes in the schema"
        )


def check_bins(given: Given, schema: Schema) -> None:
    """Refuse bins for unknown or non-numeric features."""
    bins = given.get("bins")
    numeric = [feature.name for feature in schema.features if isinstance(feature, Numeric)]
    for name in bins if isinstance(bins, Mapping) else ():
        if name not in numeric:
            what = "not a number" if name in schema.names else "not a feature of the schema"
            raise SchemaError(
                f"bins: {name!r} is {what}; the numeric features are {', '.join(numeric) or 'none'}"
            )
