"""The classifier of a collector whom nobody trusts: every record is a respondent of its own.

>>> from discreet import LocalNB
>>> from discreet.datasets import mortgage
>>> people = mortgage(5000)
>>> nb = LocalNB(epsilon=2.0, schema=people.schema, random_state=0).fit(people.X, people.y)
>>> nb.guarantee_.epsilon, nb.guarantee_.simulated
(2.0, True)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Bins, columns_of
from discreet.errors import PrivacyError, SchemaError
from discreet.estimation import Postprocess, estimate
from discreet.estimators.inferred import LEAKED, PrivateEstimator
from discreet.local.inversion import statistics_of
from discreet.local.plan import Plan
from discreet.local.planning import Approach, Kind, make_plan, quantile_cuts
from discreet.local.projection import DCA, PCA, fit_projection
from discreet.local.simulation import encoded, simulate
from discreet.local.waves import combined, focus_of
from discreet.privacy import Guarantee
from discreet.projection import Projection
from discreet.randomness import as_random
from discreet.randomness.samplers import Random
from discreet.schema import Numeric, Schema
from discreet.statistics import Statistics
from discreet.tables.in_memory import count_arrays

__all__ = ["LocalNB"]


class LocalNB(PrivateEstimator):
    """Naive Bayes from one randomized report a person; fitting simulates the respondents honestly.

    Real collections use :mod:`discreet.local` on the devices; this estimator does the same to a
    table, so that plans can be compared before anyone is asked.

    Parameters
    ----------
    epsilon : float, default 1.0
        Per person and total. ``math.inf`` sends the record itself: the exact binned classifier.
    oracle : {"auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr"}
        Frequency oracle of all questions, or the best for each.
    plan : {"auto", "pairs", "paper"} or Plan
        How questions are made: see :func:`discreet.local.planning.make_plan`.
    numeric : {"bins", "gaussian"}
        Whether numeric features are asked by bin or by mean and mean square.
    bins : int or mapping, default 8
        How numeric features are cut.
    cut : {"width", "frequency-of-public-sample"}
        Bins of equal width on the bounds, or of equal frequency in ``public_sample``.
    theta : float, optional
        Threshold of the oracle "the"; the best one if not given, 0.25 as in the paper.
    approach : {1, 2, 3, "hybrid"}
        How means are asked when ``numeric="gaussian"``.
    mechanism : {"one-bit", "duchi", "piecewise"}
        For approach 2.
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes"}, optional
        "bayes" if not given.
    projection : PCA or DCA, optional
        Replace the numeric features by components, learnt from ``public_sample``.
    public_sample : data frame, array, or pair (X, y), optional
        Records that are public anyway.
    waves : int, default 1
        Later waves are asked more about what mattered in earlier ones.
    assignment : {"groups", "draw"}
        Whether questions are dealt out in exact shares or drawn by each respondent.
    likelihood : {"gaussian", "truncated"}
        Density of numeric features when ``numeric="gaussian"``.
    schema : Schema, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`, where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source; a seed ends the promise.

    Attributes
    ----------
    classes_, class_count_, class_prior_, n_features_in_, feature_names_in_
        As usual; counts are estimates.
    schema_ : Schema
    plan_ : Plan
        Of the last wave.
    statistics_ : Statistics
        Unbiased estimates with variances.
    model_ : NaiveBayesModel
    guarantee_ : Guarantee
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        oracle: str = "auto",
        plan: Kind | Plan = "auto",
        numeric: Literal["bins", "gaussian"] = "bins",
        bins: Any = 8,
        cut: Literal["width", "frequency-of-public-sample"] = "width",
        theta: float | None = None,
        approach: Approach = "hybrid",
        mechanism: Literal["one-bit", "duchi", "piecewise"] = "one-bit",
        postprocess: Postprocess | None = None,
        projection: PCA | DCA | None = None,
        public_sample: Any = None,
        waves: int = 1,
        assignment: Literal["groups", "draw"] = "groups",
        likelihood: Literal["gaussian", "truncated"] = "gaussian",
        schema: Schema | None = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.oracle = oracle
        self.plan = plan
        self.numeric = numeric
        self.bins = bins
        self.cut = cut
        self.theta = theta
        self.approach = approach
        self.mechanism = mechanism
        self.postprocess = postprocess
        self.projection = projection
        self.public_sample = public_sample
        self.waves = waves
        self.assignment = assignment
        self.likelihood = likelihood
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Let every record send its report, tally the reports and learn from the tally.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        """
        self._check()
        X = self._read_rows(X, reset=True)
        y = self._read_classes(X, y)
        schema, columns, codes = self._public(X, y, self.epsilon != math.inf)
        if len(schema.classes) < 2 and self.epsilon != math.inf:
            raise SchemaError(
                "there is only one class, so there is nothing to ask anyone; name all classes in "
                "the schema"
            )
        self.projection_ = self._projected(schema)
        if self.projection_ is not None:
            columns, schema = self.projection_.columns(columns), self.projection_.after
        self.schema_ = schema
        bins = self._bins(schema)
        if self.epsilon == math.inf:
            statistics = self._exact(schema, columns, codes, bins)
        else:
            statistics = self._collected(schema, columns, codes, bins)
        statistics = replace(statistics, projection=self.projection_)
        self.statistics_ = statistics
        self.model_ = estimate(statistics, self.postprocess, likelihood=self.likelihood)
        self.class_count_ = np.asarray(statistics.totals, dtype=float)
        self.class_prior_ = np.exp(self.model_.log_prior)
        self.guarantee_: Guarantee = self.model_.guarantee
        return self

    def _check(self) -> None:
        if isinstance(self.epsilon, bool) or not self.epsilon > 0:
            raise PrivacyError(f"epsilon is {self.epsilon!r}; it must be a number above 0")
        if isinstance(self.waves, bool) or not isinstance(self.waves, int) or self.waves < 1:
            raise SchemaError(f"waves is {self.waves!r}; write a whole number of at least 1")
        if self.numeric not in ("bins", "gaussian"):
            raise SchemaError(f"numeric={self.numeric!r}; write 'bins' or 'gaussian'")
        if self.waves > 1 and (self.numeric == "gaussian" or isinstance(self.plan, Plan)):
            raise SchemaError("waves re-issue plans of cells; use numeric='bins' and no fixed plan")

    def _sample(self, schema: Schema) -> tuple[dict[str, Any], NDArray[Any] | None]:
        if self.public_sample is None:
            raise SchemaError("pass public_sample=: records that are public anyway")
        sample, classes = self.public_sample, None
        if isinstance(sample, tuple):
            sample, classes = sample[0], np.asarray(sample[1])
        return columns_of(sample, schema.names), classes

    def _projected(self, schema: Schema) -> Projection | None:
        if self.projection is None:
            return None
        sample, classes = self._sample(schema)
        return fit_projection(self.projection, schema, sample, classes)

    def _bins(self, schema: Schema) -> Bins:
        bins: Bins = self.bins
        if self.cut == "width":
            return bins
        if self.cut != "frequency-of-public-sample":
            raise SchemaError(f"cut={self.cut!r}; write 'width' or 'frequency-of-public-sample'")
        before = schema if self.projection_ is None else self.projection_.before
        sample, _ = self._sample(before)
        if self.projection_ is not None:
            sample = self.projection_.columns(sample)
        return quantile_cuts(schema, sample, bins)

    def _exact(
        self, schema: Schema, columns: Mapping[str, Any], codes: NDArray[np.int32], bins: Bins
    ) -> Statistics:
        if self.numeric == "gaussian":
            return count_arrays(schema, columns, codes)
        return count_arrays(schema, columns, codes, bins=bins, moments=None)

    def _collected(
        self, schema: Schema, columns: Mapping[str, Any], codes: NDArray[Any], bins: Bins
    ) -> Statistics:
        random = as_random(self.random_state)
        order = np.argsort(random.words(len(codes)), kind="stable") if self.waves > 1 else None
        found: list[Statistics] = []
        focus: dict[str, float] = {}
        for wave in range(self.waves):
            rows = slice(None) if order is None else order[wave :: self.waves]
            people = len(codes[rows])
            if people == 0:
                continue
            self.plan_ = self._plan(schema, bins, people, focus)
            cells = encoded(self.plan_, {n: np.asarray(c)[rows] for n, c in columns.items()})
            tally = simulate(self.plan_, codes[rows], cells, random)
            found.append(statistics_of(tally, self._promise(self.plan_, random)))
            if wave + 1 < self.waves:
                focus = focus_of(estimate(combined(found), "bayes"))
        return combined(found) if len(found) > 1 else found[0]

    def _plan(self, schema: Schema, bins: Bins, people: int, focus: dict[str, float]) -> Plan:
        if isinstance(self.plan, Plan):
            if self.plan.schema != schema:
                raise SchemaError("the plan was made for another schema")
            return self.plan
        numeric = self.numeric
        if not any(isinstance(feature, Numeric) for feature in schema.features):
            numeric = "bins"
        return make_plan(
            schema,
            self.epsilon,
            people,
            kind=self.plan,
            oracle=self.oracle,
            theta=self.theta,
            bins=bins,
            numeric=numeric,
            approach=self.approach,
            mechanism=self.mechanism,
            assignment=self.assignment,
            focus=focus,
        )

    def _promise(self, plan: Plan, random: Random) -> Guarantee:
        rests = "each record is randomized on its owner's device; here whoever fits plays them all"
        promise = replace(plan.guarantee, assumptions=(rests, *plan.guarantee.assumptions))
        if self.schema_.inferred:
            promise = promise.broken_by(LEAKED)
        return promise.in_simulation() if random.simulated else promise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.epsilon != math.inf and self.random_state is None
        return tags
