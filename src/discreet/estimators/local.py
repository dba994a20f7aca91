"""Naive Bayes for an untrusted collector: each record is simulated as one respondent."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.collection.simulation import simulate_tally
from discreet.collection.tally import Tally
from discreet.errors import PrivacyError, SchemaError
from discreet.estimation import Postprocess, estimate
from discreet.estimators.base import CheckedParams, TrainingRows
from discreet.estimators.parameters import (
    AUTO_BINS_RULE,
    BUDGET_RULE,
    COMMON_RULES,
    EPSILON_RULE,
    LIKELIHOOD_RULE,
    POSTPROCESS_RULE,
    RANDOM_STATE_RULE,
    SHUFFLE_RULES,
    ParamRule,
    make_choice_rule,
    make_flag_rule,
    make_instance_rule,
    make_integer_rule,
    make_number_rule,
)
from discreet.estimators.private import (
    SIMULATION_ASSUMPTION,
    ChargeCallback,
    PrivateEstimator,
    check_bins,
    require_two_classes,
    with_simulation_assumption,
)
from discreet.local.device import PlanRecords
from discreet.local.inversion import estimate_statistics
from discreet.local.judging import apply_verdicts, compute_judges
from discreet.local.plan import Design, Plan
from discreet.local.planning import (
    AutoBins,
    MeanApproach,
    PlanOptions,
    compute_quantile_cuts,
    make_plan,
)
from discreet.local.waves import combine_waves, compute_focus, make_judging_plan
from discreet.mechanisms.frequency import ORACLES
from discreet.privacy.guarantee import Guarantee
from discreet.randomness import Random, as_random
from discreet.schema.cells import get_columns
from discreet.schema.projection import DCA, PCA, Projection, fit_projection
from discreet.schema.randomized_bins import USUAL_BIN_COUNT, choose_bins
from discreet.schema.schema import Numeric, Schema
from discreet.statistics.statistics import Statistics
from discreet.tables.in_memory import CountRequest, count_arrays

__all__ = ["LocalNB"]

PLAN_PARAMETERS = (
    "oracle",
    "numeric",
    "bins",
    "cut",
    "theta",
    "approach",
    "mechanism",
    "assignment",
    "shuffled",
    "delta",
)
"""Parameters that a finished plan has fixed already."""


def _check_public_sample(value: Any) -> Any:
    """A public sample: a table, or a pair of a table and its classes."""
    table = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    has_names = any(
        hasattr(table, attribute_name) for attribute_name in ("columns", "column_names", "keys")
    )
    if not has_names and (isinstance(table, (str, bytes)) or np.ndim(table) != 2):
        raise ValueError
    return value


class LocalNB(PrivateEstimator):
    """Naive Bayes from one randomized report per person; ``fit`` simulates the respondents.

    Real collections use :mod:`discreet.local` on the devices; this estimator does the same to a
    table, so that plans can be compared before anyone is asked.

    Parameters
    ----------
    epsilon : float, default 1.0
        Per person and total. ``math.inf`` sends the record itself: the exact binned classifier.
        With ``shuffled=True``: against everyone who sees only the shuffled reports.
    oracle : {"auto", "de", "sue", "oue", "she", "the", "ss", "olh", "hr"}
        Frequency oracle of all questions, or the best for each.
    plan : {"auto", "pairs", "paper"} or Plan
        How questions are made: see :func:`discreet.local.planning.make_plan`. A finished plan must
        promise the same epsilon, and decides everything from ``oracle`` to ``assignment`` itself.
    numeric : {"bins", "gaussian"}
        Whether numeric features are asked by bin or by mean and mean square.
    bins : "auto", int or mapping
        How numeric features are cut; "auto" follows from the numbers of people, classes and
        features and from epsilon (:func:`~discreet.schema.randomized_bins.choose_bins`).
    cut : {"width", "frequency-of-public-sample"}
        Bins of equal width on the bounds, or of equal frequency in ``public_sample``.
    theta : float, optional
        Threshold of the oracle "the"; the best one if not given, 0.25 as in the paper.
    approach : {1, 2, 3, "hybrid"}
        How means are asked when ``numeric="gaussian"``.
    mechanism : {"one-bit", "duchi", "piecewise"}
        For approach 2.
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"}, optional
        "bayes" if not given, and "none" where nothing is noisy.
    projection : PCA or DCA, optional
        Replace the numeric features by components, learnt from ``public_sample``.
    public_sample : data frame, array, or pair (X, y), optional
        Records that are public anyway.
    waves : int, default 1
        Later waves are asked more about what mattered in earlier ones.
    judge : bool, default True
        Whether, where the numbers of people and epsilon say that it pays, a fifth of the people
        judge candidate models in a last wave instead: the same model with less weight on its
        evidence, and the best few features alone (:mod:`discreet.local.judging`).
    assignment : {"groups", "draw"}
        Whether questions are dealt out in exact shares or drawn by each respondent.
    shuffled : bool, default False
        Whether an anonymiser shuffles the reports. Each report may then reveal more, and questions
        are drawn, whatever ``assignment`` says: see :mod:`discreet.privacy.shuffling`.
    delta : float, default 1e-8
        Of shuffled reports; not used otherwise.
    likelihood : {"gaussian", "truncated"}
        Density of numeric features when ``numeric="gaussian"``.
    budget : Ledger, MemoryLedger or path, optional
        Where every fit is charged before noise is drawn, and refused if it would be overdrawn.
        Clones share it. Left out, fits of rows that were fitted before in this process warn.
    schema : Schema, path or mapping, optional
        What is public. Left out, it is taken from the data, with a warning and without protection.
    categorical_features, missing, unseen
        As in :class:`~discreet.MixedNB`; only used where there is no schema.
    random_state : None, int, numpy Generator or Random
        None draws from the cryptographic source; a seed ends the promise.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The classes of the schema, in the type of y, sorted.
    class_count_ : array of shape (n_classes,)
        Estimates.
    class_prior_ : array of shape (n_classes,)
        P(class) of the model.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; only for tables with text names.
    schema_ : Schema
        As given, or as taken from the data.
    plan_ : Plan
        Of the last wave that asks about features; not set where epsilon is infinite.
    judging_plan_ : Plan or None
        Of the wave that judges models, if there was one; not set where epsilon is infinite.
    projection_ : Projection or None
        Fitted on the public sample.
    statistics_ : Statistics
        Unbiased estimates with variances; of the components, where there is a projection.
    model_ : NaiveBayesModel
        What predicts; can be saved as JSON without scikit-learn.
    guarantee_ : Guarantee
        Promised to every respondent.

    See Also
    --------
    CentralNB : Needs a trusted curator, and far fewer people.
    SurveyNB : Randomized response, for people who answer without a device.
    discreet.local.planning.make_plan : For real collections.

    Notes
    -----
    Each person answers one question of the plan through a frequency oracle with the whole epsilon;
    the tally is inverted to unbiased estimates, of which :func:`discreet.estimate` makes a model.
    Every person sends one report, so there is no ``sample_weight``, and no ``partial_fit``.

    Examples
    --------
    >>> from discreet import LocalNB
    >>> from discreet.datasets import make_mortgage
    >>> people = make_mortgage(5000)
    >>> nb = LocalNB(epsilon=2.0, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> nb.guarantee_.epsilon, nb.guarantee_.simulated
    (2.0, True)
    """

    _param_rules: ClassVar[Mapping[str, ParamRule]] = {
        "epsilon": EPSILON_RULE,
        "oracle": make_choice_rule("auto", *ORACLES),
        "plan": make_instance_rule(
            "'auto', 'pairs', 'paper' or a Plan", lambda: Plan, *get_args(Design)
        ),
        "numeric": make_choice_rule("bins", "gaussian"),
        "bins": AUTO_BINS_RULE,
        "cut": make_choice_rule("width", "frequency-of-public-sample"),
        "theta": make_number_rule(
            "a number from 0 to 1", lambda theta: 0 <= theta <= 1, PrivacyError
        ).allow_none("for the best one"),
        "approach": make_choice_rule(*get_args(MeanApproach)),
        "mechanism": make_choice_rule("one-bit", "duchi", "piecewise"),
        "postprocess": POSTPROCESS_RULE,
        "projection": make_instance_rule("PCA(...) or DCA(...)", lambda: (PCA, DCA)).allow_none(
            "for no projection"
        ),
        "public_sample": ParamRule(
            "a data frame, a 2-d array, or a pair of one and its classes", _check_public_sample
        ).allow_none("if there is none"),
        "waves": make_integer_rule("a whole number of at least 1", 1),
        "judge": make_flag_rule(),
        "assignment": make_choice_rule("draw", "groups"),
        **SHUFFLE_RULES,
        "likelihood": LIKELIHOOD_RULE,
        "budget": BUDGET_RULE,
        **COMMON_RULES,
        "random_state": RANDOM_STATE_RULE,
    }
    _partial_fit_refusal = (
        "a second call would ask the same people again and spend epsilon twice. Fit once, or "
        "collect with discreet.local, where tallies of further people are added"
    )

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        oracle: str = "auto",
        plan: Design | Plan = "auto",
        numeric: Literal["bins", "gaussian"] = "bins",
        bins: Any = "auto",
        cut: Literal["width", "frequency-of-public-sample"] = "width",
        theta: float | None = None,
        approach: MeanApproach = "hybrid",
        mechanism: Literal["one-bit", "duchi", "piecewise"] = "one-bit",
        postprocess: Postprocess | None = None,
        projection: PCA | DCA | None = None,
        public_sample: Any = None,
        waves: int = 1,
        judge: bool = True,
        assignment: Literal["groups", "draw"] = "groups",
        shuffled: bool = False,
        delta: float = 1e-8,
        likelihood: Literal["gaussian", "truncated"] = "gaussian",
        budget: Any = None,
        schema: Any = None,
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
        self.judge = judge
        self.assignment = assignment
        self.shuffled = shuffled
        self.delta = delta
        self.likelihood = likelihood
        self.budget = budget
        self.schema = schema
        self.categorical_features = categorical_features
        self.missing = missing
        self.unseen = unseen
        self.random_state = random_state

    def _check_params(self) -> CheckedParams:
        params = super()._check_params()
        if params["waves"] > 1 and (params["numeric"] == "gaussian" or isinstance(self.plan, Plan)):
            raise SchemaError("waves re-issue plans of cells; use numeric='bins' and no fixed plan")
        if isinstance(self.plan, Plan):
            self._check_plan(self.plan, params)
        return params

    def _check_plan(self, plan: Plan, params: CheckedParams) -> None:
        """Refuse parameters that contradict the finished plan."""
        plan_epsilon = plan.guarantee.epsilon
        if params["epsilon"] != plan_epsilon:
            raise PrivacyError(
                f"epsilon={params['epsilon']!r}, but the plan promises {plan_epsilon!r} in total; "
                f"write epsilon={plan_epsilon!r}, or make a plan for the epsilon you want"
            )
        signature_params = inspect.signature(type(self)).parameters
        for param_name in PLAN_PARAMETERS:
            if params[param_name] != signature_params[param_name].default:
                raise SchemaError(
                    f"{param_name}={params[param_name]!r} was given with a finished plan, which "
                    f"has fixed it already; leave {param_name} out, or make the plan with it"
                )

    def _compute_release(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics:
        statistics = self._estimate_statistics(training_rows, params, charge)
        scoring = replace(
            statistics.scoring, postprocess=params["postprocess"], likelihood=params["likelihood"]
        )
        return replace(statistics, projection=self.projection_, scoring=scoring)

    def _estimate_statistics(
        self, training_rows: TrainingRows, params: CheckedParams, charge: ChargeCallback
    ) -> Statistics:
        schema, columns = training_rows.schema, training_rows.columns
        if not self._is_exact:
            require_two_classes(schema)
        self.projection_ = self._fit_projection(schema, params)
        if self.projection_ is None:
            check_bins(params, schema)
        else:
            columns = self.projection_.transform_columns(columns)
            schema = self.projection_.output_schema
        bins = self._resolve_bins(schema, params)
        if not self._is_exact:
            return self._simulate_collection(training_rows, bins, params, charge)
        charge(Guarantee.make_unprotected())
        if params["numeric"] == "gaussian":
            return count_arrays(schema, columns, training_rows.class_codes)
        if bins == "auto":  # there is no noise
            bins = choose_bins(
                [feature for feature in schema.features if isinstance(feature, Numeric)], 0.0
            )
        return count_arrays(
            schema, columns, training_rows.class_codes, CountRequest(bins, moments=None)
        )

    def _fit_projection(self, schema: Schema, params: CheckedParams) -> Projection | None:
        if isinstance(params["plan"], Plan):
            return params["plan"].projection
        if params["projection"] is None:
            return None
        public_sample, sample_classes = _get_public_sample(schema, params)
        return fit_projection(params["projection"], schema, public_sample, sample_classes)

    def _resolve_bins(self, schema: Schema, params: CheckedParams) -> AutoBins:
        bins: AutoBins = params["bins"]
        if params["cut"] == "width":
            return bins
        original_schema = schema if self.projection_ is None else self.projection_.input_schema
        public_sample, _ = _get_public_sample(original_schema, params)
        if self.projection_ is not None:
            public_sample = self.projection_.transform_columns(public_sample)
        return compute_quantile_cuts(
            schema, public_sample, USUAL_BIN_COUNT if bins == "auto" else bins
        )

    def _simulate_collection(
        self,
        training_rows: TrainingRows,
        bins: AutoBins,
        params: CheckedParams,
        charge: ChargeCallback,
    ) -> Statistics:
        class_codes, wave_count = training_rows.class_codes, params["waves"]
        judges = _count_judges(len(class_codes), params)
        answering_people = len(class_codes) - judges
        respondents = -(-answering_people // wave_count)  # of the first wave, which is the largest
        plan = self._make_plan(training_rows, bins, respondents, {}, params)
        columns = {name: np.asarray(column) for name, column in training_rows.columns.items()}
        # refuse invalid values before the charge
        encoded_answers = plan.encode_columns(columns, class_codes)
        # nobody is in two waves
        charge(with_simulation_assumption(plan.make_guarantee(respondents), SIMULATION_ASSUMPTION))
        random = as_random(params["random_state"])
        row_order = None
        if wave_count > 1 or judges:
            row_order = np.argsort(random.words(len(class_codes)), kind="stable")
        wave_statistics: list[Statistics] = []
        wave_sizes: list[int] = []
        for wave_index in range(wave_count):
            wave_rows = (
                slice(None)
                if row_order is None
                else row_order[wave_index:answering_people:wave_count]
            )
            respondents = len(class_codes[wave_rows])
            if respondents == 0:
                continue
            if wave_index:
                focus = compute_focus(estimate(combine_waves(wave_statistics, wave_sizes), "bayes"))
                plan = self._make_plan(training_rows, plan.bins, respondents, focus, params)
            self.plan_ = plan
            wave_statistics.append(
                estimate_statistics(*_simulate_wave(plan, encoded_answers[wave_rows], random))
            )
            wave_sizes.append(respondents)
        statistics = (
            combine_waves(wave_statistics, wave_sizes)
            if len(wave_statistics) > 1
            else wave_statistics[0]
        )
        self.judging_plan_: Plan | None = None
        if row_order is None or not judges:
            return statistics
        return self._judge(statistics, encoded_answers[row_order[answering_people:]], random)

    def _judge(self, statistics: Statistics, records: PlanRecords, random: Random) -> Statistics:
        """Let the people who did not answer yet judge the models of those who did."""
        shuffle = self.plan_.shuffled
        judging_plan = make_judging_plan(
            self.plan_,
            None,
            self.plan_.epsilon,
            statistics,
            None if shuffle is None else replace(shuffle, respondents=len(records)),
        )
        self.judging_plan_ = judging_plan
        return apply_verdicts(statistics, *_simulate_wave(judging_plan, records, random))

    def _make_plan(
        self,
        training_rows: TrainingRows,
        bins: AutoBins,
        respondents: int,
        focus: Mapping[str, float],
        params: CheckedParams,
    ) -> Plan:
        plan, schema = params["plan"], training_rows.schema
        if isinstance(plan, Plan):
            if plan.original != schema:
                raise SchemaError(
                    "the plan was made for another schema; write LocalNB(schema=plan.original), or "
                    "make a plan for this one"
                )
            return plan
        has_numeric = any(isinstance(feature, Numeric) for feature in schema.features)
        return make_plan(
            schema,
            params["epsilon"],
            respondents,
            PlanOptions(
                kind=plan,
                oracle=params["oracle"],
                theta=params["theta"],
                bins=bins,
                numeric=params["numeric"] if has_numeric else "bins",
                approach=params["approach"],
                mechanism=params["mechanism"],
                assignment="draw" if params["shuffled"] else params["assignment"],
                focus=focus,
                projection=self.projection_,
                shuffled=params["delta"] if params["shuffled"] else None,
                respondents_all_waves=len(training_rows.class_codes),
            ),
        )


def _count_judges(people: int, params: CheckedParams) -> int:
    """Count how many people judge candidate models: none where it does not pay."""
    is_possible = (
        params["judge"]
        and params["plan"] in ("auto", "pairs")
        and params["numeric"] == "bins"
        and params["postprocess"] in (None, "bayes")
    )
    delta = params["delta"] if params["shuffled"] else None
    return compute_judges(people, params["epsilon"], delta) if is_possible else 0


def _simulate_wave(
    plan: Plan, records: PlanRecords, random: Random
) -> tuple[Tally[Plan], Guarantee]:
    """Simulate the reports of one wave; return their tally and what the people are promised."""
    return simulate_tally(plan, records, random), with_simulation_assumption(
        plan.make_guarantee(len(records)), SIMULATION_ASSUMPTION
    )


def _get_public_sample(
    schema: Schema, params: CheckedParams
) -> tuple[dict[str, Any], NDArray[Any] | None]:
    public_sample, sample_classes = params["public_sample"], None
    if public_sample is None:
        raise SchemaError("public_sample is missing; write public_sample= with public records")
    if isinstance(public_sample, tuple):
        public_sample, sample_classes = public_sample[0], np.asarray(public_sample[1])
        if len(sample_classes) != len(public_sample):
            raise SchemaError(
                f"public_sample has {len(public_sample)} rows and {len(sample_classes)} classes; "
                "give one class for each row"
            )
    return get_columns(public_sample, schema.names), sample_classes
