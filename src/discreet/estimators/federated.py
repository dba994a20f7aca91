"""Naive Bayes for several data owners without a curator: runs the real protocol in one process."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.errors import MissingDependencyError, SchemaError
from discreet.estimators.base import CheckedParams, TrainingRows
from discreet.estimators.parameters import (
    AUTO_BINS_RULE,
    BUDGET_RULE,
    COMMON_RULES,
    EPSILON_RULE,
    RANDOM_STATE_RULE,
    ParamRule,
    make_choice_rule,
    make_instance_rule,
    make_integer_rule,
)
from discreet.estimators.private import (
    ChargeCallback,
    PrivateEstimator,
    check_bins,
    with_simulation_assumption,
)
from discreet.federated.counters import (
    PEOPLE_PER_PROVIDER,
    compute_default_bins,
    make_feature_requests,
)
from discreet.federated.judging import pays_to_judge
from discreet.federated.simulation import (
    RoundTerms,
    simulate_horizontal,
    simulate_judged,
    simulate_vertical,
)
from discreet.model import NaiveBayesModel
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import as_random
from discreet.schema.cells import Cells
from discreet.schema.schema import Numeric
from discreet.statistics.statistics import Statistics

__all__ = ["FederatedNB"]

SIMULATION_ASSUMPTION = (
    "the providers are separate parties: here they were simulated in one process"
)
"""Assumption of a guarantee whose providers were simulated in one process."""


def _get_key_types() -> Any:
    try:
        from discreet.federated.crypto.paillier import PrivateKey
    except MissingDependencyError:  # without the dependency there are no keys
        return ()
    return PrivateKey


class FederatedNB(PrivateEstimator):
    """Naive Bayes over several data owners, without a trusted curator.

    ``fit`` deals the table out to simulated providers and runs the real protocol between them, a
    collector and a receiver: keys, signed messages, shares of noise. Real parties use
    :mod:`discreet.federated` instead.

    Parameters
    ----------
    epsilon : float, default 1.0
        Per person and total. ``math.inf`` adds no noise and promises nothing.
    providers : int or "rows", default 3
        How many hold a part; ``"rows"`` makes every person a provider.
    partition : {"horizontal", "vertical"}
        Whether providers hold other people or other columns.
    mode : {"counts", "probabilities"}
        Whether the receiver gets noised counts, or the collector opens them and the receiver gets
        probabilities only.
    aggregation : {"masks", "paillier"}, optional
        Masks if not given. In a vertical round masks also need a collector that works with nobody
        who holds data; Paillier does not.
    tolerated : int, default 1
        How many of those who add noise may be missing or colluding.
    judge : {"auto", "never"}
        Whether providers of rows judge candidate models in a second round, for 5 % of epsilon: the
        model with its evidence toned down, the majority class, and the best two features. By
        default where ``people`` and epsilon say that it pays; only with bins and in mode
        ``"counts"``.
    bins : "auto", int or mapping
        How numeric features are cut. By default by what is public: epsilon, the schema and
        ``people``; the less noise, the more bins, finer ones near zero.
    people : int, optional
        How many people are expected in all tables together, for ``bins`` and ``judge``: an order
        of magnitude that the parties agree on beforehand, not a count of the rows. A thousand per
        provider if not given; vertical rounds take the number of rows, which is public there, and
        ``providers="rows"`` the number of providers.
    numeric : {"bins", "moments"}
        Whether numeric features are counted by bin, or summed on the public grid.
    key : PrivateKey, optional
        A Paillier key; made when one is needed and none given, which takes some seconds. Refused
        where ``aggregation`` is not ``"paillier"``.
    budget : Ledger, MemoryLedger or path, optional
        Where every fit is charged before noise is drawn, and refused if it would be overdrawn.
        Clones share it. Left out, fits of rows that were fitted before in this process warn.
    schema : Schema, path or mapping, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`; only used where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws noise from the cryptographic source; a seed ends the promise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes of the schema, in the type of y, sorted.
    class_count_ : array of shape (n_classes,), or None
        Noisy; None where there are no ``statistics_``.
    class_prior_ : array of shape (n_classes,)
        P(class) of the model.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only for tables with text names.
    schema_ : Schema
        As given, or as taken from the data.
    manifest_ : Manifest
        What the simulated parties agreed on.
    judging_manifest_ : Manifest or None
        The same of the second round; None where no candidate models were judged.
    statistics_ : Statistics or None
        The noised totals; None in mode ``probabilities``, where no receiver sees them.
    inconsistent_ : tuple of str
        Features whose totals contradict the others'.
    model_ : NaiveBayesModel
        What predicts; can be saved as JSON without scikit-learn.
    guarantee_ : Guarantee
        What is promised, and how many parties may work together before it fails.

    See Also
    --------
    CentralNB : One party holds all rows.
    LocalNB : Nobody holds anything but their own row.

    Notes
    -----
    Each provider adds a share of the noise and hides its counts, so that only their noised sum can
    be opened. Rows have no weights, and there is no ``partial_fit``.

    Examples
    --------
    >>> from discreet import FederatedNB, Numeric, Schema
    >>> schema = Schema([Numeric("age", 18, 100, integer=True)], "retired", ["no", "yes"])
    >>> X = [[age] for age in range(20, 95)] * 40
    >>> y = ["no" if age < 65 else "yes" for age in range(20, 95)] * 40
    >>> nb = FederatedNB(epsilon=1.0, providers=5, schema=schema).fit(X, y)
    >>> nb.predict([[25], [85]]).tolist()
    ['no', 'yes']
    >>> nb.guarantee_.trust
    'federated'
    """

    _param_rules: ClassVar[Mapping[str, ParamRule]] = {
        "epsilon": EPSILON_RULE,
        "providers": make_integer_rule(
            "a whole number of at least 2, or 'rows'", 2, allowed_names=("rows",)
        ),
        "partition": make_choice_rule("horizontal", "vertical"),
        "mode": make_choice_rule("counts", "probabilities"),
        "aggregation": make_choice_rule("masks", "paillier").allow_none("for masks"),
        "tolerated": make_integer_rule("a whole number of at least 0", 0),
        "judge": make_choice_rule("auto", "never"),
        "bins": AUTO_BINS_RULE,
        "people": make_integer_rule("a whole number of at least 1", 1).allow_none(
            "for a thousand per provider"
        ),
        "numeric": make_choice_rule("bins", "moments"),
        "key": make_instance_rule("a PrivateKey of discreet.federated", _get_key_types).allow_none(
            "for a new one"
        ),
        "budget": BUDGET_RULE,
        **COMMON_RULES,
        "random_state": RANDOM_STATE_RULE,
    }
    _partial_fit_refusal = (
        "a second call would spend epsilon again on people who took part before. Fit once, or run "
        "one round of discreet.federated over all providers"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        providers: int | Literal["rows"] = 3,
        partition: Literal["horizontal", "vertical"] = "horizontal",
        mode: Literal["counts", "probabilities"] = "counts",
        aggregation: Literal["masks", "paillier"] | None = None,
        tolerated: int = 1,
        judge: Literal["auto", "never"] = "auto",
        bins: Any = "auto",
        people: int | None = None,
        numeric: Literal["bins", "moments"] = "bins",
        key: Any = None,
        budget: Any = None,
        schema: Any = None,
        categorical_features: Any = "from_dtype",
        missing: Literal["skip", "category"] = "skip",
        unseen: Literal["error", "other"] = "error",
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.providers = providers
        self.partition = partition
        self.mode = mode
        self.aggregation = aggregation
        self.tolerated = tolerated
        self.judge = judge
        self.bins = bins
        self.people = people
        self.numeric = numeric
        self.key = key
        self.budget = budget
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def _check_params(self) -> CheckedParams:
        params = super()._check_params()
        if params["partition"] == "vertical" and params["providers"] == "rows":
            raise SchemaError(
                "providers='rows', but in a vertical round providers hold columns; write a number "
                "of providers"
            )
        if params["key"] is not None and params["aggregation"] != "paillier":
            raise SchemaError(
                "key is a Paillier key, which masks do not use; write aggregation='paillier', or "
                "leave the key out"
            )
        return params

    def _compute_release(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics | NaiveBayesModel:
        schema, columns = training_rows.schema, training_rows.columns
        class_codes = training_rows.class_codes
        check_bins(params, schema)
        moment_names = [
            feature.name
            for feature in schema.features
            if params["numeric"] == "moments" and isinstance(feature, Numeric)
        ]
        epsilon, providers, key = params["epsilon"], params["providers"], params["key"]
        aggregation: Any = params["aggregation"] or "masks"
        people = self._expect_people(params, len(class_codes))
        bins = params["bins"]
        if bins == "auto":
            bins = compute_default_bins(schema, epsilon, people, partition=params["partition"])
        requests = make_feature_requests(schema, bins, moment_names)
        round_terms = RoundTerms(
            schema, requests, epsilon, params["mode"], aggregation, params["tolerated"]
        )
        for feature_name, column in columns.items():  # refuse invalid values before the charge
            Cells.from_schema(schema, feature_name, bins).encode_column(column)
        random = as_random(params["random_state"])
        neighbours: Any = "replace" if params["partition"] == "vertical" else "add-remove"
        charge(
            Guarantee.make_unprotected()
            if math.isinf(epsilon)
            else Guarantee(epsilon, neighbours=neighbours, trust="federated")
        )
        self.judging_manifest_ = None
        if params["partition"] == "vertical":
            release, self.manifest_ = simulate_vertical(
                round_terms, dict(columns), class_codes, random, key, providers=providers
            )
        else:
            provider_count = max(2, len(class_codes)) if providers == "rows" else providers
            column_arrays = {name: np.asarray(column) for name, column in columns.items()}
            provider_parts = [
                ({name: column[rows] for name, column in column_arrays.items()}, class_codes[rows])
                for rows in np.array_split(np.arange(len(class_codes)), provider_count)
            ]
            is_judged = params["judge"] == "auto" and pays_to_judge(people, epsilon)
            if is_judged and round_terms.can_judge:
                release, self.manifest_, self.judging_manifest_ = simulate_judged(
                    round_terms, provider_parts, random, key
                )
            else:
                release, self.manifest_ = simulate_horizontal(
                    round_terms, provider_parts, random, key
                )
        self.inconsistent_ = release.inconsistent
        guarantee = with_simulation_assumption(release.model.guarantee, SIMULATION_ASSUMPTION)
        return replace(release.statistics or release.model, guarantee=guarantee)

    @staticmethod
    def _expect_people(params: CheckedParams, row_count: int) -> int:
        """How many people are expected: what is public, and not the number of rows of providers."""
        if params["people"] is not None:
            return int(params["people"])
        if params["partition"] == "vertical" or params["providers"] == "rows":
            return row_count
        return PEOPLE_PER_PROVIDER * int(params["providers"])
