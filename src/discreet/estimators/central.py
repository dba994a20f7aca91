"""Naive Bayes for a trusted curator: releases noisy statistics with their privacy guarantee."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from sklearn.utils import check_consistent_length

from discreet.arrays import Floats
from discreet.central.budget import PUBLIC_SCHEMA_ASSUMPTION, CentralSettings
from discreet.central.training import Method
from discreet.errors import PrivacyError, SchemaError
from discreet.estimators import sklearn_context
from discreet.estimators.base import CheckedParams, TrainingRows, get_class_prior
from discreet.estimators.fit_history import hash_rows
from discreet.estimators.parameters import (
    AUTO_BINS_RULE,
    BUDGET_RULE,
    CLASS_PRIOR_RULE,
    COMMON_RULES,
    EPSILON_RULE,
    LIKELIHOOD_RULE,
    PERSON_RULES,
    RANDOM_STATE_RULE,
    ParamRule,
    make_choice_rule,
    make_flag_rule,
    make_instance_rule,
    make_mapping_rule,
    make_number_rule,
    parse_positive,
)
from discreet.estimators.persons import drop_column, split_persons
from discreet.estimators.private import ChargeCallback, FitAccounting, PrivateEstimator, check_bins
from discreet.randomness import as_random
from discreet.schema.schema import Schema
from discreet.statistics.statistics import Statistics
from discreet.tables.contributions import ContributionBound, MissingPerson
from discreet.tables.key_columns import describe_repeated_ids, find_repeated_ids_in_memory
from discreet.tables.source import InMemorySource, Source, TableSource

__all__ = ["CentralNB"]


def _get_noise_type() -> Any:
    from discreet.mechanisms.additive import AdditiveNoise

    return AdditiveNoise


class CentralNB(PrivateEstimator):
    """Naive Bayes under differential privacy, for a curator who holds the whole table.

    The promise is to everyone in the training table: adding or removing one row changes the
    probability of any model by at most a factor of exp(epsilon). With ``person`` and
    ``rows_per_person`` it is about all rows of a person.

    Parameters
    ----------
    epsilon : float, default 1.0
        Per person and total: the whole budget of one ``fit``. ``math.inf`` is the exact binned
        classifier.
    delta : float, default 0
        Above zero, Gaussian noise is used where it is less than without (many features); where it
        is not, the promise is the stronger one, with a delta of 0.
    method : {"histogram", "moments", "global", "global-published", "smooth", "trimmed"}
        How the statistics are released. ``"histogram"`` is the most accurate by far; the others
        are there to compare with. ``"global-published"`` keeps no promise, and says so.
    allocation : mapping of feature name to weight, optional
        Shares of the budget. Left out, all features are equal for ``"histogram"``, and numeric ones
        count double for the others, as published.
    bins : "auto", int or mapping of feature name to int or cut points
        How ``"histogram"`` cuts numeric features: by the private number of records, or as given.
    likelihood : {"gaussian", "truncated"}
        Density of numeric features for the methods that fit one.
    selection : bool, default True
        Whether ``"histogram"`` may spend a part of the budget on choosing: with few people 30 % on
        the best features (not where there is an ``allocation``), with more 5 to 15 % on how they
        are scored, and how many of them, and 3 % on how sure probabilities may be (decisions
        remain).
    corrections : bool, default True
        Whether ``"histogram"``, where there are people enough, may spend a third to two thirds of
        the budget on tables of what the model so far gets wrong, for each feature and for a few
        pairs of features that it chooses. Needs ``selection``; left out where there is an
        ``allocation`` or ``sample_weight``.
    noise : noise law, optional
        For ``"smooth"`` and ``"trimmed"``: one of :mod:`discreet.mechanisms.additive`.
    person : str, optional
        The column that says whose a row is, where a person may have several: an id. It is never
        learnt from, and the promise is about all rows of a person. Where X has no names, give the
        ids as ``fit(X, y, persons=...)``.
    rows_per_person : int, optional
        How many rows of a person are used at most. Which ones follows from that person's rows
        alone. Choose it without looking at the data.
    missing_person : {"error", "own"}
        Whether a row without an id is refused, or is a person of its own.
    person_weighting : bool, default True
        Whether the rows of a person that are used weigh 1 together: the noise is that of one row,
        each person counts the same, and counts are persons. False lets each weigh 1, with noise
        for ``rows_per_person`` of them, which was less accurate: docs/experiments/central.md.
    max_weight : float, optional
        Public bound on ``sample_weight``, which is refused without it; from 1e-100 to 1e100.
    class_prior : array of shape (n_classes,), optional
        A prior that was known without the data; it is never compared with the data. In
        the order of the schema's classes, where there is a schema.
    budget : Ledger, MemoryLedger or path, optional
        Where every fit is charged before noise is drawn, and refused if it would be overdrawn.
        Clones share it. Left out, fits of rows that were fitted before in this process warn.
    schema : Schema, path or mapping, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`; only used where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source. A seed is for simulation and ends the promise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes of the schema, in the type of y, sorted.
    class_count_ : array of shape (n_classes,)
        Noisy.
    class_prior_ : array of shape (n_classes,)
        P(class) of the model.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only for tables with text names.
    schema_ : Schema
        As given, or as taken from the data.
    statistics_ : Statistics
        What was released, with variances.
    model_ : NaiveBayesModel
        What predicts; can be saved as JSON without scikit-learn.
    guarantee_ : Guarantee
        What is promised, to whom, and what it rests on.

    See Also
    --------
    MixedNB : The same without a promise.
    LocalNB : For a curator whom nobody trusts.
    FederatedNB : For several data owners without a curator.

    Notes
    -----
    Every released number gets discrete noise from a cryptographic source, scaled to what one
    person can change; the charges of all of them add up to epsilon (``guarantee_.charges``). With
    ``sample_weight`` one person counts up to ``max_weight``, so the noise is that much larger.
    There is no ``partial_fit``: every further look at the same people costs another epsilon.

    Examples
    --------
    >>> from discreet import CentralNB, Numeric, Schema
    >>> schema = Schema([Numeric("age", 18, 100, integer=True)], "retired", ["no", "yes"])
    >>> X = [[20], [35], [50], [70], [80], [90]] * 200
    >>> y = ["no", "no", "no", "yes", "yes", "yes"] * 200
    >>> nb = CentralNB(epsilon=1.0, schema=schema).fit(X, y)
    >>> nb.predict([[20], [90]]).tolist()
    ['no', 'yes']
    >>> nb.guarantee_.epsilon, nb.guarantee_.is_private
    (1.0, True)
    """

    _param_rules: ClassVar[Mapping[str, ParamRule]] = {
        "epsilon": EPSILON_RULE,
        "delta": make_number_rule("a number from 0 to below 1", lambda d: 0 <= d < 1, PrivacyError),
        "method": make_choice_rule(*get_args(Method), error_class=PrivacyError),
        "allocation": make_mapping_rule(
            "a mapping of feature names to positive numbers", parse_positive
        ).allow_none("for equal shares"),
        "bins": AUTO_BINS_RULE,
        "likelihood": LIKELIHOOD_RULE,
        "selection": make_flag_rule(),
        "corrections": make_flag_rule(),
        "noise": make_instance_rule(
            "a noise law of discreet.mechanisms.additive", _get_noise_type
        ).allow_none("for the usual one"),
        "max_weight": make_number_rule(
            "a number from 1e-100 to 1e100", lambda bound: 1e-100 <= bound <= 1e100, PrivacyError
        ).allow_none("without weights"),
        "class_prior": CLASS_PRIOR_RULE,
        "budget": BUDGET_RULE,
        **PERSON_RULES,
        **COMMON_RULES,
        "random_state": RANDOM_STATE_RULE,
    }
    _partial_fit_refusal = (
        "each call would spend epsilon again on people who took part before. Fit disjoint groups "
        "separately, with the same bins and selection=False and add their statistics_, or fit once"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        method: Method = "histogram",
        allocation: Any = None,
        bins: Any = "auto",
        likelihood: Literal["gaussian", "truncated"] = "gaussian",
        selection: bool = True,
        corrections: bool = True,
        noise: Any = None,
        person: str | None = None,
        rows_per_person: int | None = None,
        missing_person: MissingPerson = "error",
        person_weighting: bool = True,
        max_weight: float | None = None,
        class_prior: Any = None,
        budget: Any = None,
        schema: Any = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.allocation = allocation
        self.bins = bins
        self.likelihood = likelihood
        self.selection = selection
        self.corrections = corrections
        self.noise = noise
        self.person = person
        self.rows_per_person = rows_per_person
        self.missing_person = missing_person
        self.person_weighting = person_weighting
        self.max_weight = max_weight
        self.class_prior = class_prior
        self.budget = budget
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, persons: Any = None) -> Self:
        """Learn from records and their classes, one row per person unless told otherwise.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Needs a public ``max_weight``.
        persons : array of shape (n_samples,), optional
            Whose each row is, where that is not the column ``person`` of X. Needs
            ``rows_per_person``.

        Returns
        -------
        self
        """
        params = self._check_params()
        schema, bound = params["schema"], _make_bound(params, persons)
        if bound is not None and schema is not None:
            bound.check_schema(schema)
        X, persons = split_persons(X, params["person"], persons)
        if persons is not None:
            check_consistent_length(X, persons)
        elif not self._is_exact and schema is not None and hasattr(X, "columns"):
            columns = {name: X[name] for name in X.columns if isinstance(name, str)}
            _warn_of_repeated_ids(find_repeated_ids_in_memory(columns, schema))
        return self._fit_table(X, y, sample_weight, persons)

    def open_source(
        self,
        source: Any,
        *,
        table: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> TableSource:
        """Open a table that is not in memory and check its columns, without counting anything.

        Parameters
        ----------
        source : path, glob, URL, data frame, Arrow, ibis or Spark table
            Holds the class column as well: whatever :func:`discreet.tables.open_table` opens.
        table : str, optional
            Name of the table, for a database URL.
        progress : callable, optional
            Called as ``progress(done, total)`` after every query.

        Returns
        -------
        TableSource
            For :meth:`fit_source`.
        """
        params = self._check_params()
        schema: Schema | None = params["schema"]
        if schema is None:
            raise SchemaError(
                "a table that is not in memory needs a schema; write CentralNB(schema=...), "
                "or take one from the data with Schema.infer, which voids the promise"
            )
        return TableSource(
            source, schema, table=table, progress=progress, bound=_make_bound(params)
        )

    def fit_source(self, source: Any, **options: Any) -> Self:
        """Learn from a table that is not in memory; its engine does the counting.

        Parameters
        ----------
        source : path, glob, URL, data frame, Arrow, ibis or Spark table
            Or what :meth:`open_source` gave.
        **options
            As for :meth:`open_source`.

        Returns
        -------
        self
        """
        if not isinstance(source, TableSource):
            source = self.open_source(source, **options)
        earlier_guarantee = getattr(self, "guarantee_", None)
        params = self._start_fit()
        if source.bound != _make_bound(params):
            raise PrivacyError(
                "the table was opened with another person or rows_per_person than this estimator "
                "has; open it again with open_source"
            )
        if source.bound is None and not self._is_exact:
            _warn_of_repeated_ids(source.find_repeated_ids())
        schema, raw_source = source.schema, source.source
        if isinstance(raw_source, (str, Path)):
            source_name = source_key = str(raw_source)
        else:
            source_name, source_key = type(raw_source).__name__, secrets.token_hex()
        accounting = FitAccounting(
            self, params, schema, lambda: hash_rows({"": [f"source {source_key}"]}, 1), source_name
        )
        statistics = self._release_statistics(source, params, accounting.charge_ledger)
        self.n_features_in_ = len(schema.features)
        self.feature_names_in_ = np.array(schema.names, dtype=object)
        return self._finish_fit(
            schema, np.array(schema.classes), statistics, accounting, earlier_guarantee
        )

    def _read_rows(self, X: Any, *, reset: bool) -> Any:
        return super()._read_rows(drop_column(X, self.person), reset=reset)

    def _compute_release(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics:
        max_weight = _resolve_max_weight(training_rows.weights, params)
        source = InMemorySource(
            training_rows.schema,
            dict(training_rows.columns),
            training_rows.class_codes,
            training_rows.weights,
            max_weight,
            bound=_make_bound(params, training_rows.persons),
            persons=training_rows.persons,
        )
        return self._release_statistics(source, params, charge)

    def _release_statistics(
        self, source: Source, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics:
        from discreet.central.training import train

        check_bins(params, source.schema)
        class_prior = get_class_prior(params, len(source.schema.classes))
        assumptions: tuple[str, ...] = () if source.schema.inferred else (PUBLIC_SCHEMA_ASSUMPTION,)
        if class_prior is not None:
            assumptions += ("the class prior was known without the data",)
        request: dict[str, Any] = {
            param_name: params[param_name] for param_name in ("epsilon", "delta", "method")
        }
        request["settings"] = CentralSettings(
            params["allocation"],
            params["bins"],
            params["likelihood"],
            params["selection"],
            params["corrections"],
            params["noise"],
            assumptions,
        )
        random, has_ledger = as_random(params["random_state"]), params["budget"] is not None
        statistics = train(source, **request, random=random, charge=charge, has_ledger=has_ledger)
        if class_prior is None:
            return statistics
        scoring = replace(statistics.scoring, prior=tuple(class_prior.tolist()))
        return replace(statistics, scoring=scoring)


def _warn_of_repeated_ids(names: list[str]) -> None:
    if names:
        sklearn_context.warn_user(describe_repeated_ids(names))


def _make_bound(params: CheckedParams, persons: Any = None) -> ContributionBound | None:
    """How many rows of a person are used; None where each row is a person."""
    column_name = "persons" if persons is not None and params["person"] is None else None
    return ContributionBound.from_options(
        params["person"] or column_name,
        params["rows_per_person"],
        params["missing_person"],
        params["person_weighting"],
    )


def _resolve_max_weight(weights: Floats | None, params: CheckedParams) -> float | None:
    """The public bound on the weights; None if there are no weights, or no noise."""
    max_weight: float | None = params["max_weight"]
    if weights is None or (max_weight is None and params["epsilon"] == math.inf):
        return None
    if max_weight is None:
        raise PrivacyError(
            "sample_weight without a public max_weight is refused: one person could change the "
            "result without limit; write max_weight=... with a bound you know"
        )
    if weights.max() > max_weight:
        raise PrivacyError(
            f"a weight of {weights.max():g} is above max_weight={max_weight:g}; clip the weights "
            "to the public bound"
        )
    return max_weight
