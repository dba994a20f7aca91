"""Naive Bayes for an untrusted collector: each record is simulated as one respondent."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from discreet.collection.simulation import simulate
from discreet.encoding import Bins, columns_of
from discreet.errors import PrivacyError, SchemaError
from discreet.estimation import Postprocess, estimate
from discreet.estimators.base import Given, Rows
from discreet.estimators.parameters import (
    BINS,
    BUDGET,
    COMMON,
    EPSILON,
    LIKELIHOOD,
    POSTPROCESS,
    RANDOM,
    Rule,
    flag,
    instance,
    number,
    one_of,
    whole,
)
from discreet.estimators.private import Pay, PrivateEstimator, check_bins, kept, two_classes
from discreet.local.inversion import statistics_of
from discreet.local.plan import Design, Plan
from discreet.local.planning import Approach, Choices, make_plan, quantile_cuts
from discreet.local.waves import combined, focus_of
from discreet.mechanisms.frequency import ORACLES
from discreet.privacy import Guarantee
from discreet.projection import DCA, PCA, Projection, fit_projection
from discreet.randomness import as_random
from discreet.schema import Numeric, Schema
from discreet.scoring import Scoring
from discreet.statistics import Statistics
from discreet.tables.in_memory import Contents, count_arrays

__all__ = ["LocalNB"]

RESTS = "each record is randomized on its owner's device; here one process simulates them"

PLANNED = (
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


def _table(value: Any) -> Any:
    """A public sample: a table, or a pair of a table and its classes."""
    table = value[0] if isinstance(value, tuple) and len(value) == 2 else value
    named = any(hasattr(table, name) for name in ("columns", "column_names", "keys"))
    if not named and (isinstance(table, (str, bytes)) or np.ndim(table) != 2):
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
    postprocess : {"none", "paper", "norm-sub", "norm-cut", "bayes", "log-ratios"}, optional
        "bayes" if not given, and "none" where nothing is noisy.
    projection : PCA or DCA, optional
        Replace the numeric features by components, learnt from ``public_sample``.
    public_sample : data frame, array, or pair (X, y), optional
        Records that are public anyway.
    waves : int, default 1
        Later waves are asked more about what mattered in earlier ones.
    assignment : {"groups", "draw"}
        Whether questions are dealt out in exact shares or drawn by each respondent.
    shuffled : bool, default False
        Whether an anonymiser shuffles the reports. Each report may then reveal more, and questions
        are drawn, whatever ``assignment`` says: see :mod:`discreet.shuffling`.
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
        Of the last wave; not set where epsilon is infinite.
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
    >>> from discreet.datasets import mortgage
    >>> people = mortgage(5000)
    >>> nb = LocalNB(epsilon=2.0, schema=people.schema, random_state=0).fit(people.X, people.y)
    >>> nb.guarantee_.epsilon, nb.guarantee_.simulated
    (2.0, True)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "epsilon": EPSILON,
        "oracle": one_of("auto", *ORACLES),
        "plan": instance("'auto', 'pairs', 'paper' or a Plan", lambda: Plan, *get_args(Design)),
        "numeric": one_of("bins", "gaussian"),
        "bins": BINS,
        "cut": one_of("width", "frequency-of-public-sample"),
        "theta": number(
            "a number from 0 to 1", lambda theta: 0 <= theta <= 1, PrivacyError
        ).or_none("for the best one"),
        "approach": one_of(*get_args(Approach)),
        "mechanism": one_of("one-bit", "duchi", "piecewise"),
        "postprocess": POSTPROCESS,
        "projection": instance("PCA(...) or DCA(...)", lambda: (PCA, DCA)).or_none(
            "for no projection"
        ),
        "public_sample": Rule(
            "a data frame, a 2-d array, or a pair of one and its classes", _table
        ).or_none("if there is none"),
        "waves": whole("a whole number of at least 1", 1),
        "assignment": one_of("draw", "groups"),
        "shuffled": flag(),
        "delta": number("a number between 0 and 1", lambda delta: 0 < delta < 1, PrivacyError),
        "likelihood": LIKELIHOOD,
        "budget": BUDGET,
        **COMMON,
        "random_state": RANDOM,
    }
    _once = (
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

    def _checked(self) -> Given:
        given = super()._checked()
        if given["waves"] > 1 and (given["numeric"] == "gaussian" or isinstance(self.plan, Plan)):
            raise SchemaError("waves re-issue plans of cells; use numeric='bins' and no fixed plan")
        if isinstance(self.plan, Plan):
            self._agree(self.plan, given)
        return given

    def _agree(self, plan: Plan, given: Given) -> None:
        """Refuse parameters that contradict the finished plan."""
        promised = plan.guarantee.epsilon
        if given["epsilon"] != promised:
            raise PrivacyError(
                f"epsilon={given['epsilon']!r}, but the plan promises {promised!r} in total; write "
                f"epsilon={promised!r}, or make a plan for the epsilon you want"
            )
        defaults = inspect.signature(type(self)).parameters
        for name in PLANNED:
            if given[name] != defaults[name].default:
                raise SchemaError(
                    f"{name}={given[name]!r} was given with a finished plan, which has fixed "
                    f"it already; leave {name} out, or make the plan with it"
                )

    def _train(self, rows: Rows, given: Given, pay: Pay) -> Statistics:
        found = self._statistics(rows, given, pay)
        scoring = Scoring(given["postprocess"], likelihood=given["likelihood"])
        return replace(found, projection=self.projection_, scoring=scoring)

    def _statistics(self, rows: Rows, given: Given, pay: Pay) -> Statistics:
        schema, columns = rows.schema, rows.columns
        if not self._exact:
            two_classes(schema)
        self.projection_ = self._projected(schema, given)
        if self.projection_ is None:
            check_bins(given, schema)
        else:
            columns, schema = self.projection_.columns(columns), self.projection_.after
        bins = self._bins(schema, given)
        if not self._exact:
            return self._collected(rows, bins, given, pay)
        pay(Guarantee.nothing())
        if given["numeric"] == "gaussian":
            return count_arrays(schema, columns, rows.codes)
        return count_arrays(schema, columns, rows.codes, Contents(bins, moments=None))

    def _projected(self, schema: Schema, given: Given) -> Projection | None:
        if isinstance(given["plan"], Plan):
            return given["plan"].projection
        if given["projection"] is None:
            return None
        sample, classes = _sample(schema, given)
        return fit_projection(given["projection"], schema, sample, classes)

    def _bins(self, schema: Schema, given: Given) -> Bins:
        bins: Bins = given["bins"]
        if given["cut"] == "width":
            return bins
        before = schema if self.projection_ is None else self.projection_.before
        sample, _ = _sample(before, given)
        if self.projection_ is not None:
            sample = self.projection_.columns(sample)
        return quantile_cuts(schema, sample, bins)

    def _collected(self, rows: Rows, bins: Bins, given: Given, pay: Pay) -> Statistics:
        waves, codes = given["waves"], rows.codes
        people = -(-len(codes) // waves)  # of the first wave, which is the largest
        plan = self._plan_of(rows, bins, people, {}, given)
        columns = {name: np.asarray(column) for name, column in rows.columns.items()}
        answers = plan.encoded(columns, codes)  # refuse invalid values before the charge
        pay(kept(plan.promised(people), RESTS))  # nobody is in two waves
        random = as_random(given["random_state"])
        order = np.argsort(random.words(len(codes)), kind="stable") if waves > 1 else None
        found: list[Statistics] = []
        counts: list[int] = []
        for wave in range(waves):
            asked = slice(None) if order is None else order[wave::waves]
            people = len(codes[asked])
            if people == 0:
                continue
            if wave:
                focus = focus_of(estimate(combined(found, counts), "bayes"))
                plan = self._plan_of(rows, bins, people, focus, given)
            self.plan_ = plan
            tally = simulate(plan, answers[asked], random)
            promise = kept(plan.promised(people), RESTS)
            found.append(statistics_of(tally, promise))
            counts.append(people)
        return combined(found, counts) if len(found) > 1 else found[0]

    def _plan_of(
        self, rows: Rows, bins: Bins, people: int, focus: Mapping[str, float], given: Given
    ) -> Plan:
        plan, schema = given["plan"], rows.schema
        if isinstance(plan, Plan):
            if plan.original != schema:
                raise SchemaError(
                    "the plan was made for another schema; write LocalNB(schema=plan.original), or "
                    "make a plan for this one"
                )
            return plan
        numeric = any(isinstance(feature, Numeric) for feature in schema.features)
        return make_plan(
            schema,
            given["epsilon"],
            people,
            Choices(
                kind=plan,
                oracle=given["oracle"],
                theta=given["theta"],
                bins=bins,
                numeric=given["numeric"] if numeric else "bins",
                approach=given["approach"],
                mechanism=given["mechanism"],
                assignment="draw" if given["shuffled"] else given["assignment"],
                focus=focus,
                projection=self.projection_,
                shuffled=given["delta"] if given["shuffled"] else None,
                everyone=len(rows.codes),
            ),
        )


def _sample(schema: Schema, given: Given) -> tuple[dict[str, Any], NDArray[Any] | None]:
    sample, classes = given["public_sample"], None
    if sample is None:
        raise SchemaError("public_sample is missing; write public_sample= with public records")
    if isinstance(sample, tuple):
        sample, classes = sample[0], np.asarray(sample[1])
        if len(classes) != len(sample):
            raise SchemaError(
                f"public_sample has {len(sample)} rows and {len(classes)} classes; give one class "
                "for each row"
            )
    return columns_of(sample, schema.names), classes
